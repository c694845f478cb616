//! A TPM 2.0 behind a command/response buffer (CRB), as firmware TPMs and QEMU's `tpm-crb` have it.
//!
//! Owns the interface's registers in locality 0 and its buffers, mapped once. Never waits longer than a handshake may take.
//! Locks: none.
//!
//! Reference: TCG, *PC Client Platform TPM Profile*, 1.05, section 6.5.3.

use core::ptr;

use super::fifo::Broken;
use super::mapped::map;
use crate::base::boot_info::BootInfo;

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
const REGISTERS: usize = 0x80;

const READY: u32 = 1;
const IDLE: u32 = 2;
const GRANTED: u32 = 1;
const FATAL: u32 = 1;

/// How often a register of a handshake is read before the device is given up; a reading takes a microsecond or so.
const PATIENCE: u32 = 10_000;

/// Longer buffers are used up to here.
const LONGEST: usize = 4096;

/// A TPM that has granted locality 0.
pub struct Crb {
    registers: u64,
    command: (u64, usize),
    response: (u64, usize),
}

impl Crb {
    pub fn open(info: &BootInfo, control_area: u64) -> Result<Self, Broken> {
        let start = control_area.checked_sub(CONTROL_AREA).ok_or(Broken)?;
        let nowhere = (0, 0);
        let registers = map(info, start, REGISTERS)?;
        let mut tpm = Self { registers, command: nowhere, response: nowhere };
        tpm.write(REQUEST_LOCALITY, 1);
        tpm.until(LOCALITY_STATUS, |status| status & GRANTED != 0)?;
        let place = |low, high| u64::from(tpm.read(high)) << 32 | u64::from(tpm.read(low));
        let command = (place(COMMAND_LOW, COMMAND_HIGH), tpm.read(COMMAND_SIZE));
        let response = (place(RESPONSE_LOW, RESPONSE_HIGH), tpm.read(RESPONSE_SIZE));
        tpm.command = buffer(info, command)?;
        // Most interfaces have one buffer for both.
        tpm.response = if response == command { tpm.command } else { buffer(info, response)? };
        Ok(tpm)
    }

    /// Sends a command; [`answer`](Self::answer) has what comes back.
    pub fn send(&mut self, command: &[u8]) -> Result<(), Broken> {
        let (at, room) = self.command;
        if command.len() > room {
            return Err(Broken);
        }
        self.write(CONTROL_REQUEST, READY);
        self.until(CONTROL_REQUEST, |request| request & READY == 0)?;
        for (offset, &byte) in command.iter().enumerate() {
            // SAFETY: `buffer` mapped `room` bytes there for ever, which nobody else in this kernel reaches.
            unsafe { ptr::write_volatile((at as *mut u8).add(offset), byte) };
        }
        self.write(START, 1);
        Ok(())
    }

    /// Copies the answer to `out`, as much as fits, and wipes it in the buffer; how many bytes that are, or nothing if the TPM
    /// is still at work.
    pub fn answer(&mut self, out: &mut [u8]) -> Option<Result<usize, Broken>> {
        if self.read(START) & 1 != 0 {
            return None;
        }
        if self.read(CONTROL_STATUS) & FATAL != 0 {
            return Some(Err(Broken));
        }
        let (at, room) = self.response;
        let count = room.min(out.len());
        for (offset, byte) in out[..count].iter_mut().enumerate() {
            let place = (at as *mut u8).wrapping_add(offset);
            // SAFETY: as in `send`.
            unsafe {
                *byte = ptr::read_volatile(place);
                ptr::write_volatile(place, 0);
            }
        }
        self.write(CONTROL_REQUEST, IDLE);
        Some(Ok(count))
    }

    fn until(&self, register: usize, done: impl Fn(u32) -> bool) -> Result<(), Broken> {
        for _ in 0..PATIENCE {
            if done(self.read(register)) {
                return Ok(());
            }
            core::hint::spin_loop();
        }
        Err(Broken)
    }

    fn read(&self, register: usize) -> u32 {
        let at = (self.registers as *const u32).wrapping_byte_add(register);
        // SAFETY: `open` mapped the registers for ever, uncached, at an address that keeps their alignment.
        unsafe { ptr::read_volatile(at) }
    }

    fn write(&self, register: usize, value: u32) {
        let at = (self.registers as *mut u32).wrapping_byte_add(register);
        // SAFETY: as in `read`; nothing that the TPM does touches memory of the kernel's.
        unsafe { ptr::write_volatile(at, value) };
    }
}

fn buffer(info: &BootInfo, (start, len): (u64, u32)) -> Result<(u64, usize), Broken> {
    let len = usize::try_from(len).unwrap_or(LONGEST).min(LONGEST);
    Ok((map(info, start, len)?, len))
}
