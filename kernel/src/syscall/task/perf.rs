//! perf_event_open(2).

use crate::process::perf::{self, Request};
use crate::syscall::file::install::reserved;
use abi::Result;

pub fn perf_event_open(attr: u64, pid: i32, cpu: i32, group_fd: i32, flags: u64) -> Result<i32> {
    let wanted = perf::check(Request { attr, pid, cpu, group_fd, flags })?;
    Ok(reserved(wanted.closes_on_exec(), |_| perf::open(wanted))?.0)
}
