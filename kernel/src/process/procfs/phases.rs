//! /proc/alea/exec_phases: the table of exec's phases; writing 0 forgets it.

use crate::fs::procfs::ProcFile;
use crate::time;
use crate::trace::exec_phases;
use abi::{Errno, Result};
use alloc::vec::Vec;

pub(super) struct ExecPhases;

impl ProcFile for ExecPhases {
    fn read(&self) -> Result<Vec<u8>> {
        let hz = u128::from(time::tsc_hz().max(1));
        let to_ns = |ticks: u64| (u128::from(ticks) * 1_000_000_000 / hz) as u64;
        Ok(exec_phases::text(to_ns).into_bytes())
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.trim_ascii() != b"0" {
            return Err(Errno::EINVAL);
        }
        exec_phases::reset();
        Ok(data.len())
    }
}
