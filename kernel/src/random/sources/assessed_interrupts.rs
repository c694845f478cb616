//! The times of devices' interrupts for an assessment by NIST SP 800-90B: those that a CPU's pool is given, as it gets them.
//!
//! `alea.interrupt_samples=N` on the command line has the machine wait, before the first program would run, until N
//! interrupts of devices count, by a pool of the same kind that is given the same. Then the low eight bits of the first N times
//! between two of them go to the serial line, as those of [jitter](super::assessed) do, and the machine is switched off. All
//! are shown from the first, those of the start-up tests and those too regular to count among them. Somebody outside has to have the
//! device interrupt: `cargo xtask assess --interrupts` types on the serial line.
//!
//! Owns what the boot CPU has recorded. Never lets a program run, or anything be drawn, on a machine whose samples were shown.
//! Locks: none; the handler of the boot CPU writes, and the same CPU reads with interrupts off.
#![expect(clippy::disallowed_methods, reason = "to the serial line, without memory")]
#![deny(unsafe_code)]

use super::assessed::{Collected, MOST, places, show};
use crate::base::console::EarlyWriter;
use crate::base::cpu;
use crate::cmdline::{self, words};
use crate::per_cpu;
use alea_random::fast_pool::{CHANCES, FastPool};
use alea_random::health::STARTUP;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt::Write;

/// So many interrupts may come for each that is wanted: as with jitter.
const PATIENCE: u32 = 8;

struct Record {
    samples: Vec<u8>,
    shown: usize,
    wider: u32,
    last: u64,
    pool: FastPool,
}

per_cpu! {
    static RECORD: RefCell<Option<Record>> = RefCell::new(None);
}

/// Whether the command line asks for samples: then this CPU's are recorded from now on.
pub fn is_asked() -> bool {
    let Some(count) = cmdline::number(words::INTERRUPT_SAMPLES) else { return false };
    let samples = places(count.clamp(1, MOST) as u32);
    let new = Record { samples, shown: 0, wider: 0, last: 0, pool: FastPool::new() };
    RECORD.with_mut(|record| *record = Some(new)).is_some()
}

/// Records an interrupt of a device, in its handler.
pub fn record(vector: u8, tsc: u64) {
    RECORD.with_mut_in_interrupt(|record| record.as_mut().map(|record| record.add(vector, tsc)));
}

impl Record {
    fn add(&mut self, vector: u8, tsc: u64) {
        let since = tsc.wrapping_sub(self.last);
        self.last = tsc;
        if let Some(place) = self.samples.get_mut(self.shown) {
            *place = since as u8;
            self.shown += 1;
            self.wider += u32::from(since > u64::from(u8::MAX));
        }
        self.pool.stir_device(tsc, u64::from(vector));
    }

    /// What it all came to, once that is known.
    fn end(&self) -> Option<Result<Collected, &'static str>> {
        let (wanted, taken) = (self.samples.len() as u32, self.pool.count());
        if self.pool.failures() >= CHANCES {
            Some(Err("the times of interrupts fail the health tests"))
        } else if self.pool.counted() >= wanted {
            Some(Ok(Collected { taken, regular: taken - self.pool.counted() }))
        } else if taken >= wanted.saturating_mul(PATIENCE).saturating_add(STARTUP * CHANCES) {
            Some(Err("interrupts come too regularly"))
        } else {
            None
        }
    }
}

/// Returns where the command line does not ask for samples. `discard` takes what the serial port has received. On the boot
/// CPU, before process 1.
pub fn show_if_asked(discard: impl Fn()) {
    if cmdline::number(words::INTERRUPT_SAMPLES).is_none() {
        return;
    }
    // What `write!` to the serial line returns is always success.
    let _ = writeln!(EarlyWriter, "\ninterrupts wanted");
    loop {
        cpu::irq_disable();
        discard();
        let ended = RECORD.with_mut(|record| {
            let end = record.as_ref().and_then(Record::end)?;
            Some((record.take()?, end))
        });
        if let Some((record, end)) = ended.flatten() {
            show("interrupts", &record.samples[..record.shown], record.wider, end);
        }
        cpu::wait_for_interrupt();
    }
}
