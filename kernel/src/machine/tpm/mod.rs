//! A TPM 2.0 behind either of its interfaces: a command/response buffer (CRB), or a FIFO (the older one, also called TIS).
//!
//! Owns the choice of the interface by the firmware's table. One command at a time: it is sent, and its answer is taken when
//! it is there. Never waits longer than a handshake may take, and never for an answer. What the device or the table says is not
//! believed: buffers lie outside the memory that the kernel uses, and no answer is longer than its buffer. Locks: none; a
//! [`Tpm`] has one owner.
//!
//! Reference: TCG, *PC Client Platform TPM Profile*, 1.05, section 6.5; TCG, *ACPI Specification*, 1.4, section 7.3.

use super::acpi;
use crate::base::boot_info::BootInfo;
use alea_random::tpm::Interface;
use crb::Crb;
use fifo::Fifo;
use mapped::Mapped;

mod crb;
mod fifo;
mod mapped;

pub use fifo::Broken;

/// ACPI's start method for a CRB without more ceremony than the start register.
const BY_CRB: u32 = 7;
/// For a FIFO, whose place is always the same.
const BY_FIFO: u32 = 6;
/// That place, of locality 0.
const FIFO: u64 = 0xfed4_0000;

/// A TPM that grants access.
pub enum Tpm {
    Crb(Crb<Mapped, Mapped>),
    Fifo(Fifo<Mapped>),
}

impl Tpm {
    /// The machine's TPM, if the firmware describes one whose interface is known.
    pub fn find(info: &BootInfo) -> Option<Result<Self, Broken>> {
        let (control_area, method) = acpi::get()?.tpm?;
        match method {
            BY_CRB => {
                let buffer = |start, len| Mapped::new(info, start, len);
                let registers = crb::place(control_area)
                    .and_then(|start| Mapped::new(info, start, crb::REGISTERS));
                Some(registers.and_then(|at| Crb::open(at, buffer)).map(Self::Crb))
            }
            BY_FIFO => {
                Some(Mapped::new(info, FIFO, fifo::REGISTERS).and_then(Fifo::open).map(Self::Fifo))
            }
            _ => None,
        }
    }
}

impl Interface for Tpm {
    type Broken = Broken;

    fn send(&mut self, command: &[u8]) -> Result<(), Broken> {
        match self {
            Self::Crb(crb) => crb.send(command),
            Self::Fifo(fifo) => fifo.send(command),
        }
    }

    fn answer(&mut self, out: &mut [u8]) -> Option<Result<usize, Broken>> {
        match self {
            Self::Crb(crb) => crb.answer(out),
            Self::Fifo(fifo) => fifo.answer(out),
        }
    }
}
