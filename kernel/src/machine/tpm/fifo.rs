//! A TPM 2.0 behind a FIFO (TIS), as chips on LPC or SPI and QEMU's `tpm-tis` have it.
//!
//! Owns the protocol of one command at a time through the registers of locality 0: a byte goes in or out when the device's burst
//! count says that there is room for it, or that it is there. Never more than [`PATIENCE`] readings of a status for a command,
//! or for an answer, whatever the device says; and never a byte beyond the room that the caller gave. Locks: none.
//!
//! Reference: TCG, *PC Client Platform TPM Profile*, 1.05, section 6.5.2 (registers, and the figure of the states).

/// Registers of the locality.
const ACCESS: usize = 0x00;
const STATUS: usize = 0x18;
const DATA: usize = 0x24;
/// How many bytes of them there are, as far as they are used here.
pub const REGISTERS: usize = 0x28;

/// Of the access register: asks for the locality; it is ours (and the register tells the truth).
const REQUEST: u8 = 1 << 1;
const OURS: u8 = 1 << 7 | 1 << 5;

/// Of the status register. In a status that is not valid, the bits for the data mean nothing.
const VALID: u32 = 1 << 7;
const READY: u32 = 1 << 6;
const GO: u8 = 1 << 5;
const AVAILABLE: u32 = 1 << 4;
const EXPECTS: u32 = 1 << 3;

/// How often a status is read for one command or one answer; a reading takes a microsecond or so.
pub const PATIENCE: u32 = 10_000;

/// The device does not keep to the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Registers of a locality, by their place in it.
pub trait Registers {
    fn byte(&mut self, register: usize) -> u8;
    fn word(&mut self, register: usize) -> u32;
    fn write(&mut self, register: usize, value: u8);
}

/// A TPM that has granted locality 0.
pub struct Fifo<R> {
    registers: R,
}

/// How many readings of a status are left.
struct Patience(u32);

impl Patience {
    fn spend(&mut self) -> Result<(), Broken> {
        self.0 = self.0.checked_sub(1).ok_or(Broken)?;
        Ok(())
    }
}

impl<R: Registers> Fifo<R> {
    pub fn open(mut registers: R) -> Result<Self, Broken> {
        registers.write(ACCESS, REQUEST);
        let mut patience = Patience(PATIENCE);
        while registers.byte(ACCESS) & OURS != OURS {
            patience.spend()?;
        }
        Ok(Self { registers })
    }

    /// Sends a command; [`answer`](Self::answer) has what comes back.
    pub fn send(&mut self, command: &[u8]) -> Result<(), Broken> {
        let mut patience = Patience(PATIENCE);
        self.make_ready();
        self.until(&mut patience, |status| status & READY != 0)?;
        for (sent, &byte) in command.iter().enumerate() {
            let status = self.until(&mut patience, |status| burst(status) != 0)?;
            // It expects more from the first byte on, and until the command's own length has come.
            if sent > 0 && status & (VALID | EXPECTS) == VALID {
                return Err(Broken);
            }
            self.registers.write(DATA, byte);
        }
        let status = self.until(&mut patience, |status| status & VALID != 0)?;
        if status & EXPECTS != 0 {
            return Err(Broken);
        }
        self.registers.write(STATUS, GO);
        Ok(())
    }

    /// Takes the answer into `out`, as much as fits, and has the device forget it; how many bytes that are, or nothing if the
    /// TPM is still at work.
    pub fn answer(&mut self, out: &mut [u8]) -> Option<Result<usize, Broken>> {
        let is_there = |status| status & (VALID | AVAILABLE) == VALID | AVAILABLE;
        is_there(self.registers.word(STATUS)).then(|| {
            let taken = self.take(out);
            self.make_ready();
            taken
        })
    }

    fn take(&mut self, out: &mut [u8]) -> Result<usize, Broken> {
        let mut patience = Patience(PATIENCE);
        for (taken, byte) in out.iter_mut().enumerate() {
            let status = self.until(&mut patience, |status| {
                status & VALID != 0 && (status & AVAILABLE == 0 || burst(status) != 0)
            })?;
            if status & AVAILABLE == 0 {
                return Ok(taken);
            }
            *byte = self.registers.byte(DATA);
        }
        Ok(out.len())
    }

    /// Ends what the device does, and what it still has to say.
    fn make_ready(&mut self) {
        self.registers.write(STATUS, READY as u8);
    }

    /// Reads the status until it is as wanted.
    fn until(
        &mut self,
        patience: &mut Patience,
        done: impl Fn(u32) -> bool,
    ) -> Result<u32, Broken> {
        loop {
            let status = self.registers.word(STATUS);
            if done(status) {
                return Ok(status);
            }
            patience.spend()?;
            core::hint::spin_loop();
        }
    }
}

/// How many bytes may go in or out without another look.
const fn burst(status: u32) -> u32 {
    status >> 8 & 0xffff
}
