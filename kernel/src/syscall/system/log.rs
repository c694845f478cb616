//! `syslog`: the kernel's log as `dmesg` and `klogd` read it. /dev/kmsg is the newer way.
//!
//! Owns what `CLEAR` hid, for the whole machine. Never changes the log. Locks: none.

use crate::diag::klog;
use crate::fs::procfs::kmsg;
use crate::mm::fallible::{TryGrow, TryVec};
use crate::mm::{Sink, user};
use crate::process;
use crate::vfs::Capability;
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

const CLOSE: i32 = 0;
const OPEN: i32 = 1;
const READ: i32 = 2;
const READ_ALL: i32 = 3;
const READ_CLEAR: i32 = 4;
const CLEAR: i32 = 5;
const CONSOLE_OFF: i32 = 6;
const CONSOLE_ON: i32 = 7;
const CONSOLE_LEVEL: i32 = 8;
const SIZE_UNREAD: i32 = 9;
const SIZE_BUFFER: i32 = 10;

// Relaxed: each is a setting of its own.
/// `CLEAR` hides the records before this one.
static CLEARED: AtomicU64 = AtomicU64::new(0);
/// The console's level from before it was switched off; [`IS_ON`] if it is on.
static SAVED_LEVEL: AtomicI32 = AtomicI32::new(IS_ON);
const IS_ON: i32 = -1;

pub fn syslog(action: i32, buf: u64, len: i32) -> Result<usize> {
    let open_to_all = matches!(action, READ_ALL | SIZE_BUFFER) && klog::DMESG_RESTRICT.get() == 0;
    if !open_to_all && !process::current().cred().capable(Capability::SYSLOG) {
        return Err(Errno::EPERM);
    }
    match action {
        CLOSE | OPEN => Ok(0),
        READ | READ_ALL | READ_CLEAR => {
            let len = usize::try_from(len).ok().filter(|_| buf != 0).ok_or(Errno::EINVAL)?;
            if len == 0 {
                return Ok(0);
            }
            if action == READ {
                kmsg::take(&mut Sink::user(buf, len), false)
            } else {
                read_all(buf, len, action == READ_CLEAR)
            }
        }
        CLEAR => {
            CLEARED.store(klog::sequences().1, Ordering::Relaxed);
            Ok(0)
        }
        CONSOLE_OFF => {
            if SAVED_LEVEL.load(Ordering::Relaxed) == IS_ON {
                SAVED_LEVEL.store(klog::console_level(), Ordering::Relaxed);
            }
            klog::set_console_level(klog::least_console_level());
            Ok(0)
        }
        CONSOLE_ON => {
            let saved = SAVED_LEVEL.swap(IS_ON, Ordering::Relaxed);
            if saved != IS_ON {
                klog::set_console_level(saved);
            }
            Ok(0)
        }
        CONSOLE_LEVEL => {
            if !(1..=8).contains(&len) {
                return Err(Errno::EINVAL);
            }
            klog::set_console_level(len.max(klog::least_console_level()));
            SAVED_LEVEL.store(IS_ON, Ordering::Relaxed);
            Ok(0)
        }
        SIZE_UNREAD => kmsg::unread(),
        SIZE_BUFFER => Ok(klog::RING_SIZE),
        _ => Err(Errno::EINVAL),
    }
}

/// The newest records that fit, oldest of them first.
fn read_all(buf: u64, len: usize, clear: bool) -> Result<usize> {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut total = 0;
    for record in kmsg::records(CLEARED.load(Ordering::Relaxed)) {
        let (_, text) = record?;
        total += text.len();
        texts.try_push(text)?;
    }
    let mut out = Vec::new();
    for text in texts {
        if total <= len {
            out.try_extend_from_slice(&text)?;
        } else {
            total -= text.len();
        }
    }
    user::write_bytes(buf, &out)?;
    if clear {
        CLEARED.store(klog::sequences().1, Ordering::Relaxed);
    }
    Ok(out.len())
}
