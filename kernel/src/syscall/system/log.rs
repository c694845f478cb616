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
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

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
/// The console's level while it is switched off; 0 if it is on.
static SAVED_LEVEL: AtomicU8 = AtomicU8::new(0);

pub fn syslog(action: i32, buf: u64, len: i32) -> Result<usize> {
    let open_to_all = matches!(action, READ_ALL | SIZE_BUFFER);
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
            if SAVED_LEVEL.load(Ordering::Relaxed) == 0 {
                SAVED_LEVEL.store(klog::console_level(), Ordering::Relaxed);
            }
            klog::set_console_level(1);
            Ok(0)
        }
        CONSOLE_ON => {
            let saved = SAVED_LEVEL.swap(0, Ordering::Relaxed);
            if saved != 0 {
                klog::set_console_level(saved);
            }
            Ok(0)
        }
        CONSOLE_LEVEL => {
            let level = u8::try_from(len).ok().filter(|level| (1..=8).contains(level));
            klog::set_console_level(level.ok_or(Errno::EINVAL)?);
            SAVED_LEVEL.store(0, Ordering::Relaxed);
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
