//! Robust lists: the locks that a thread leaves behind when it ends.
//!
//! The list is the program's own memory: every word of it is checked, and its length is bounded.

use super::futex::{BITSET_MATCH_ANY, FUTEX_OWNER_DIED, FUTEX_TID_MASK, FUTEX_WAITERS, wake};
use super::{contended, pi};
use crate::mm::{AddressSpace, user};
use crate::process::task::current::Current;
use abi::{Errno, Result};

/// Size of the user's `struct robust_list_head`.
pub const ROBUST_LIST_HEAD_LEN: usize = 24;
/// Linux's bound on a robust list, against cycles.
const ROBUST_LIST_LIMIT: usize = 2048;
/// Marks, in a pointer of the list, a lock that lends priority.
const PI: u64 = 1;

/// A thread ends or calls exec: its locks are marked as left by a dead owner and go to those who wait.
pub fn leave_locks(task: Current) {
    task.set_futex_state(contended::LEAVING);
    if task.robust_list() != 0 {
        walk(&task.mm(), task.robust_list(), task.tid());
        task.set_robust_list(0);
    }
    pi::give_up_locks(&task);
    task.set_futex_state(if task.is_exiting() { contended::GONE } else { contended::ALIVE });
}

/// Ends quietly at the first bad pointer.
fn walk(space: &AddressSpace, head: u64, tid: i32) {
    let read = |addr: u64| {
        let mut word = [0; 8];
        user::read_bytes(addr, &mut word).ok().map(|()| u64::from_le_bytes(word))
    };
    let (Some(first), Some(offset), Some(pending)) =
        (read(head), read(head.wrapping_add(8)), read(head.wrapping_add(16)))
    else {
        return;
    };
    let lock_of = |entry: u64| (entry & !PI).wrapping_add(offset);
    let mut entry = first;
    for _ in 0..ROBUST_LIST_LIMIT {
        let node = entry & !PI;
        if node == head {
            break;
        }
        let next = read(node);
        let is_pi = entry & PI != 0;
        if node != pending & !PI && leave_lock(space, lock_of(entry), tid, is_pi, false).is_err() {
            return;
        }
        let Some(next) = next else { return };
        entry = next;
    }
    if pending & !PI != 0 {
        // The lock that was being taken or released; a bad pointer ends it like the others.
        if leave_lock(space, lock_of(pending), tid, pending & PI != 0, true).is_err() {}
    }
}

fn leave_lock(space: &AddressSpace, addr: u64, tid: i32, is_pi: bool, pending: bool) -> Result<()> {
    if !addr.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    loop {
        let old = user::load_u32(addr)?;
        if pending && !is_pi && old == 0 {
            // It was unlocked, and perhaps nobody was woken yet. As on Linux: robust locks wait for shared
            // futexes, even within one process.
            wake(space, addr, true, 1, BITSET_MATCH_ANY)?;
            return Ok(());
        }
        if old & FUTEX_TID_MASK != tid as u32 {
            return Ok(());
        }
        let new = old & FUTEX_WAITERS | FUTEX_OWNER_DIED;
        if user::cmpxchg_u32(addr, old, new)? == old {
            // Those of the other kind are woken with all that the thread owns.
            if old & FUTEX_WAITERS != 0 && !is_pi {
                wake(space, addr, true, 1, BITSET_MATCH_ANY)?;
            }
            return Ok(());
        }
    }
}
