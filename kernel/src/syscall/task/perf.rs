//! perf_event_open(2).

use crate::process::perf::{self, Request};
use crate::syscall::file::install::install;
use abi::Result;

pub fn perf_event_open(attr: u64, pid: i32, cpu: i32, group_fd: i32, flags: u64) -> Result<i32> {
    let (file, cloexec) = perf::open(&Request { attr, pid, cpu, group_fd, flags })?;
    Ok(install(file, cloexec)?.0)
}
