//! `kcmp`: whether two tasks share something of the kernel's, and an order of those things that tells no address.
//!
//! Owns the two secrets of each kind. Never tells more than an order, which is another one after each boot. Locks: those of the tasks that are looked
//! at, briefly.

use crate::process;
use crate::process::Task;
use crate::random;
use crate::sync::Once;
use crate::vfs::Fd;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// `KCMP_*`.
mod kind {
    pub const FILE: i32 = 0;
    pub const VM: i32 = 1;
    pub const FILES: i32 = 2;
    pub const FS: i32 = 3;
    pub const SIGHAND: i32 = 4;
    pub const IO: i32 = 5;
    pub const SYSVSEM: i32 = 6;
    pub const NUMBER: usize = 7;
}

fn address<T: ?Sized>(thing: Option<Arc<T>>) -> u64 {
    thing.map_or(0, |thing| Arc::as_ptr(&thing).cast::<()>() as u64)
}

/// 0 if both have the same, else 1 or 2 for the order.
pub fn kcmp(first: i32, second: i32, what: i32, fd: u64, other_fd: u64) -> Result<i64> {
    let find = |pid| process::lookup_task(pid).ok_or(Errno::ESRCH);
    let (first, second) = (find(first)?, find(second)?);
    if process::may_attach(&first).is_none() || process::may_attach(&second).is_none() {
        return Err(Errno::EPERM);
    }
    let of = |of: fn(&Task) -> u64| (of(&first), of(&second));
    let both = match what {
        kind::FILE => (file(&first, fd)?, file(&second, other_fd)?),
        kind::VM => of(|task| address(task.mm_arc())),
        kind::FILES => of(|task| address(task.files_arc())),
        kind::FS => of(|task| address(task.fs_arc())),
        kind::SIGHAND => of(|task| address(Some(task.process().signals.actions()))),
        // What is asked for by `ioprio_set` is each task's own; who asked for nothing has nothing.
        kind::IO => of(|task| match task.sched.io_priority() {
            0 => 0,
            _ => core::ptr::from_ref(task) as u64,
        }),
        kind::SYSVSEM => of(|task| address(task.undo_list_of())),
        _ => return Err(Errno::EINVAL),
    };
    Ok(order(what, both))
}

fn file(task: &Task, fd: u64) -> Result<u64> {
    let files = task.files_arc().ok_or(Errno::EBADF)?;
    let fd = i32::try_from(fd as u32).map_err(|_| Errno::EBADF)?;
    Ok(address(Some(files.get_any(Fd(fd))?)))
}

fn order(what: i32, (first, second): (u64, u64)) -> i64 {
    static SECRETS: Once<[u64; 2 * kind::NUMBER]> = Once::new();
    let secrets = SECRETS.call_once(random::secret_words);
    let at = 2 * (what as usize % kind::NUMBER);
    // An odd factor keeps different addresses apart.
    let hidden = |address: u64| (address ^ secrets[at]).wrapping_mul(secrets[at + 1] | 1);
    match hidden(first).cmp(&hidden(second)) {
        core::cmp::Ordering::Equal => 0,
        core::cmp::Ordering::Less => 1,
        core::cmp::Ordering::Greater => 2,
    }
}
