//! /proc/alea/syscalls: which calls were made, how often, and what they lack.

use super::args::Status;
use super::net::socket::sender;
use super::system::sysrq;
use super::{counters, table, uring};
use crate::fs::procfs::{self, ProcFile};
use crate::mm::fallible::{try_arc, try_string};
use crate::net::unix::sender::register_sender;
use crate::process::watch::{self, Line};
use crate::try_writeln;
use abi::{Errno, Result};
use alloc::vec::Vec;

/// Adds the files of this floor to /proc.
pub fn init() -> Result<()> {
    watch::register_names(|number| table::entry(number).map(|(name, _)| name));
    register_sender(sender);
    sysrq::register()?;
    uring::setup::register()?;
    procfs::register_file("alea/syscalls", 0o644, try_arc(Report)?)
}

/// Lines of `number name count calls errors ns missing`, for calls that were made: how often since boot; how often, how often
/// in vain and how long altogether since somebody wrote 1; a call that does not exist is named `-`, and the last column says
/// what a partial one lacks.
struct Report;

impl ProcFile for Report {
    fn read(&self) -> Result<Vec<u8>> {
        let mut text = try_string("number name count calls errors ns missing\n")?;
        for number in 0..=counters::LEN {
            let total = counters::total(number);
            if total != 0 {
                let (name, missing) = match table::entry(number) {
                    Some((name, Status::Full)) => (name, "-"),
                    Some((name, Status::Partial(missing))) => (name, missing),
                    None => ("-", "everything"),
                };
                let Line { calls, errors, ns } = watch::all(number);
                try_writeln!(text, "{number} {name} {total} {calls} {errors} {ns} {missing}")?;
            }
        }
        Ok(text.into_bytes())
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        match data.trim_ascii() {
            b"1" => watch::set_all(true)?,
            b"0" => watch::set_all(false)?,
            _ => return Err(Errno::EINVAL),
        }
        Ok(data.len())
    }
}
