//! /proc/alea/exec_phases: what `trace::exec_phases` has summed up.
//!
//! Reading makes the table; writing `0` forgets all that was measured.

use crate::fs::procfs::{self, ProcFile};
use crate::{time, trace};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Adds the file.
pub fn register() -> Result<()> {
    procfs::register_file("alea/exec_phases", 0o644, Arc::new(Report))
}

struct Report;

impl ProcFile for Report {
    fn read(&self) -> Result<Vec<u8>> {
        Ok(trace::exec_phases::text(nanoseconds).into_bytes())
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.trim_ascii() != b"0" {
            return Err(Errno::EINVAL);
        }
        trace::exec_phases::reset();
        Ok(data.len())
    }
}

/// TSC ticks as nanoseconds. The clock knows its frequency before there are processes.
fn nanoseconds(ticks: u64) -> u64 {
    let ns = (u128::from(ticks) * 1_000_000_000).checked_div(u128::from(time::tsc_hz()));
    u64::try_from(ns.unwrap_or(0)).unwrap_or(u64::MAX)
}
