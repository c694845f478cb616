//! /proc/alea/syscalls: which calls were made, how often, and what they lack.

use super::args::Status;
use super::{counters, table};
use crate::fs::procfs::{self, ProcFile};
use crate::mm::fallible::{try_arc, try_string};
use crate::try_writeln;
use abi::Result;
use alloc::vec::Vec;

/// Adds the files of this floor to /proc.
pub fn init() -> Result<()> {
    procfs::register_file("alea/syscalls", 0o444, try_arc(Report)?)
}

/// Lines of `number name count missing`, for calls that were made; a call that does not exist is named `-`, and
/// the last column says what a partial one lacks.
struct Report;

impl ProcFile for Report {
    fn read(&self) -> Result<Vec<u8>> {
        let mut text = try_string("number name count missing\n")?;
        for number in 0..=counters::LEN {
            let total = counters::total(number);
            if total != 0 {
                let (name, missing) = match table::entry(number) {
                    Some((name, Status::Full)) => (name, "-"),
                    Some((name, Status::Partial(missing))) => (name, missing),
                    None => ("-", "everything"),
                };
                try_writeln!(text, "{number} {name} {total} {missing}")?;
            }
        }
        Ok(text.into_bytes())
    }
}
