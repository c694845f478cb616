//! pidfds: descriptors that mean one process for ever, whatever becomes of its number.
//!
//! A pidfd owns a reference to its process, never a number that could pass to another. It is readable once
//! the process has ended. No locks of its own.

use super::Process;
use crate::fs::eventfd::anonymous;
use crate::fs::{Cred, FileOps, OpenFile, PollEvents};
use crate::sync::WaitQueue;
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;

struct PidFd {
    process: Arc<Process>,
}

impl FileOps for PidFd {
    fn poll(&self, _: &OpenFile, visit: &mut dyn FnMut(&WaitQueue)) -> PollEvents {
        visit(&self.process.ended);
        if self.process.is_reaped() {
            PollEvents::READABLE | PollEvents::HUP
        } else if self.process.is_zombie() {
            PollEvents::READABLE
        } else {
            PollEvents::empty()
        }
    }

    fn seekable(&self) -> bool {
        false
    }

    fn fdinfo(&self, _: &OpenFile) -> String {
        let pid = if self.process.is_reaped() { -1 } else { self.process.pid() };
        format!("Pid:\t{pid}\nNSpid:\t{pid}\n")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A new pidfd of `process`.
pub fn new(process: &Arc<Process>, nonblock: bool, cred: &Arc<Cred>) -> Result<OpenFile> {
    let ops = Arc::new(PidFd { process: process.clone() });
    anonymous(ops, "[pidfd]", OpenFlags::RDWR, nonblock, cred)
}

/// The process that `file` means.
///
/// # Errors
/// `EBADF` if it is no pidfd.
pub fn process_of(file: &OpenFile) -> Result<Arc<Process>> {
    let ops = file.ops().as_any().downcast_ref::<PidFd>();
    ops.map(|pidfd| pidfd.process.clone()).ok_or(Errno::EBADF)
}
