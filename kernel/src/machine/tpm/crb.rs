//! A TPM 2.0 behind a command/response buffer (CRB), as firmware TPMs and QEMU's `tpm-crb` have it.
//!
//! Owns the interface's registers in locality 0 and its buffers. Never waits longer than a handshake may take, and never leaves an
//! answer in the buffer. Locks: none.
//!
//! Knows nothing of this kernel, so that the host tests it (`tests/tests/virtio/crb.rs`).
//!
//! Reference: TCG, *PC Client Platform TPM Profile*, 1.05, section 6.5.3.

use super::fifo::Broken;

/// The control area's place in its locality's registers.
const CONTROL_AREA: u64 = 0x40;
/// Registers of a locality, counted from its start: four bytes each.
const REQUEST_LOCALITY: usize = 0x08;
const LOCALITY_STATUS: usize = 0x0c;
const CONTROL_REQUEST: usize = 0x40;
const CONTROL_STATUS: usize = 0x44;
const START: usize = 0x4c;
const COMMAND_SIZE: usize = 0x58;
const COMMAND_LOW: usize = 0x5c;
const COMMAND_HIGH: usize = 0x60;
const RESPONSE_SIZE: usize = 0x64;
const RESPONSE_LOW: usize = 0x68;
const RESPONSE_HIGH: usize = 0x6c;
/// How many bytes of them there are, as far as they are used here.
pub const REGISTERS: usize = 0x80;

const READY: u32 = 1;
const IDLE: u32 = 2;
const GRANTED: u32 = 1;
const FATAL: u32 = 1;

/// How often a register of a handshake is read before the device is given up; a reading takes a microsecond or so.
pub const PATIENCE: u32 = 10_000;

/// Longer buffers are used up to here.
pub const LONGEST: usize = 4096;

/// Registers of a locality, by their place in it.
pub trait Control {
    fn read(&self, register: usize) -> u32;
    fn write(&mut self, register: usize, value: u32);
}

/// A buffer of the device's.
pub trait Buffer: Clone {
    fn len(&self) -> usize;
    fn load(&self, at: usize) -> u8;
    fn store(&mut self, at: usize, byte: u8);
}

/// Where the registers of the locality begin whose control area the firmware's table names.
pub fn place(control_area: u64) -> Result<u64, Broken> {
    control_area.checked_sub(CONTROL_AREA).ok_or(Broken)
}

/// A TPM that has granted locality 0.
pub struct Crb<C, B> {
    registers: C,
    command: B,
    response: B,
}

impl<C: Control, B: Buffer> Crb<C, B> {
    /// Asks for the locality. `buffer` makes a buffer of so many bytes at an address, if the device may name that.
    pub fn open(
        mut registers: C,
        buffer: impl Fn(u64, usize) -> Result<B, Broken>,
    ) -> Result<Self, Broken> {
        registers.write(REQUEST_LOCALITY, 1);
        until(&registers, LOCALITY_STATUS, |status| status & GRANTED != 0)?;
        let place = |low, high, size| {
            let start = u64::from(registers.read(high)) << 32 | u64::from(registers.read(low));
            (start, usize::try_from(registers.read(size)).unwrap_or(LONGEST).min(LONGEST))
        };
        let at = place(COMMAND_LOW, COMMAND_HIGH, COMMAND_SIZE);
        let response_at = place(RESPONSE_LOW, RESPONSE_HIGH, RESPONSE_SIZE);
        let command = buffer(at.0, at.1)?;
        // Most interfaces have one buffer for both.
        let response =
            if response_at == at { command.clone() } else { buffer(response_at.0, response_at.1)? };
        Ok(Self { registers, command, response })
    }

    /// Sends a command; [`answer`](Self::answer) has what comes back.
    pub fn send(&mut self, command: &[u8]) -> Result<(), Broken> {
        if command.len() > self.command.len() {
            return Err(Broken);
        }
        self.registers.write(CONTROL_REQUEST, READY);
        until(&self.registers, CONTROL_REQUEST, |request| request & READY == 0)?;
        command.iter().enumerate().for_each(|(at, &byte)| self.command.store(at, byte));
        self.registers.write(START, 1);
        Ok(())
    }

    /// Copies the answer to `out`, as much as fits, and wipes it in the buffer; how many bytes that are, or nothing if the TPM
    /// is still at work.
    pub fn answer(&mut self, out: &mut [u8]) -> Option<Result<usize, Broken>> {
        if self.registers.read(START) & 1 != 0 {
            return None;
        }
        if self.registers.read(CONTROL_STATUS) & FATAL != 0 {
            return Some(Err(Broken));
        }
        let count = self.response.len().min(out.len());
        for (at, byte) in out[..count].iter_mut().enumerate() {
            *byte = self.response.load(at);
            self.response.store(at, 0);
        }
        self.registers.write(CONTROL_REQUEST, IDLE);
        Some(Ok(count))
    }
}

fn until(
    registers: &impl Control,
    register: usize,
    done: impl Fn(u32) -> bool,
) -> Result<(), Broken> {
    for _ in 0..PATIENCE {
        if done(registers.read(register)) {
            return Ok(());
        }
        core::hint::spin_loop();
    }
    Err(Broken)
}
