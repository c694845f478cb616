//! /proc/alea: `exec_phases`, the table of exec's phases (writing 0 forgets it); `exec_histogram`, their
//! distributions; `exec_timeline`, when the last ones ran (writing 1 begins, 0 ends); `vm_exits`, what would
//! leave a virtual machine.

use crate::base::exits;
use crate::diag::{exec_phases, timeline};
use crate::fs::procfs::{ProcFile, register_file};
use crate::mm::fallible::{try_arc, try_string, written};
use crate::{time, try_writeln};
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;

pub(super) fn register() -> Result<()> {
    register_file("alea/exec_phases", 0o644, try_arc(ExecPhases)?)?;
    register_file("alea/exec_histogram", 0o444, try_arc(Histogram)?)?;
    register_file("alea/exec_timeline", 0o600, try_arc(Timeline)?)?;
    register_file("alea/vm_exits", 0o444, try_arc(VmExits)?)
}

/// Nanoseconds from TSC ticks.
fn to_ns(ticks: u64) -> u64 {
    let hz = u128::from(time::tsc_hz().max(1));
    (u128::from(ticks) * 1_000_000_000 / hz) as u64
}

struct ExecPhases;

impl ProcFile for ExecPhases {
    fn read(&self) -> Result<Vec<u8>> {
        written(|to| exec_phases::text(to_ns, to)).map(String::into_bytes)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.trim_ascii() != b"0" {
            return Err(Errno::EINVAL);
        }
        exec_phases::reset();
        Ok(data.len())
    }
}

struct Histogram;

impl ProcFile for Histogram {
    fn read(&self) -> Result<Vec<u8>> {
        written(|to| exec_phases::histogram(to_ns, to)).map(String::into_bytes)
    }
}

struct Timeline;

impl ProcFile for Timeline {
    fn read(&self) -> Result<Vec<u8>> {
        written(|to| timeline::text(to_ns, to)).map(String::into_bytes)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        match data.trim_ascii() {
            b"0" => timeline::switch(false),
            b"1" => timeline::switch(true),
            _ => return Err(Errno::EINVAL),
        }
        Ok(data.len())
    }
}

struct VmExits;

impl ProcFile for VmExits {
    fn read(&self) -> Result<Vec<u8>> {
        let mut text = try_string("kind count\n")?;
        for (name, count) in exits::counts() {
            try_writeln!(text, "{name} {count}")?;
        }
        Ok(text.into_bytes())
    }
}
