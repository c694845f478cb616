//! `futex(2)` and robust lists.

use crate::mm::AddressSpace;
use crate::mm::fallible::try_box;
use crate::mm::user::{self, UserPtr};
use crate::process;
use crate::process::futex::{self, BITSET_MATCH_ANY, pi};
use crate::sync::wait::Moment;
use crate::syscall::time;
use crate::time::ClockId;
use abi::time::Timespec;
use abi::{Errno, Result};

const FUTEX_WAIT: u32 = 0;
const FUTEX_WAKE: u32 = 1;
const FUTEX_REQUEUE: u32 = 3;
const FUTEX_CMP_REQUEUE: u32 = 4;
const FUTEX_WAKE_OP: u32 = 5;
const FUTEX_LOCK_PI: u32 = 6;
const FUTEX_UNLOCK_PI: u32 = 7;
const FUTEX_TRYLOCK_PI: u32 = 8;
const FUTEX_WAIT_BITSET: u32 = 9;
const FUTEX_WAKE_BITSET: u32 = 10;
const FUTEX_WAIT_REQUEUE_PI: u32 = 11;
const FUTEX_CMP_REQUEUE_PI: u32 = 12;
const FUTEX_LOCK_PI2: u32 = 13;
const FUTEX_PRIVATE_FLAG: u32 = 128;
const FUTEX_CLOCK_REALTIME: u32 = 256;

pub fn futex(addr: u64, op: u32, val: u32, arg4: u64, addr2: u64, val3: u32) -> Result<i64> {
    let shared = op & FUTEX_PRIVATE_FLAG == 0;
    let realtime = op & FUTEX_CLOCK_REALTIME != 0;
    let command = op & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    let clocked = [FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2];
    if realtime && !clocked.contains(&command) {
        return Err(Errno::ENOSYS);
    }
    let task = process::current();
    let space = &*task.mm();
    // Counts are signed in the ABI; a negative one wakes one, as Linux does.
    let count = |n: u32| usize::try_from(n as i32).unwrap_or(1);
    let done = |n: usize| Ok(n as i64);
    match command {
        FUTEX_WAIT => {
            let timeout = time::read_timeout(UserPtr::<Timespec>::new(arg4))?;
            let deadline = timeout.map(Moment::monotonic);
            wait(space, addr, shared, val, BITSET_MATCH_ANY, deadline)
        }
        FUTEX_WAIT_BITSET => wait(space, addr, shared, val, val3, absolute(arg4, realtime)?),
        FUTEX_WAKE => done(futex::wake(space, addr, shared, count(val).max(1), BITSET_MATCH_ANY)?),
        FUTEX_WAKE_BITSET => done(futex::wake(space, addr, shared, count(val).max(1), val3)?),
        FUTEX_REQUEUE | FUTEX_CMP_REQUEUE => {
            let moves = arg4 as u32;
            if (val as i32) < 0 || (moves as i32) < 0 {
                return Err(Errno::EINVAL);
            }
            let expected = (command == FUTEX_CMP_REQUEUE).then_some(val3);
            let words = (addr, addr2);
            done(futex::requeue(space, words, shared, count(val), count(moves), expected)?)
        }
        FUTEX_WAKE_OP => {
            let counts = [val, arg4 as u32].map(|n| count(n).max(1));
            done(wake_op(space, [addr, addr2], shared, counts, val3)?)
        }
        FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => {
            let deadline = absolute(arg4, realtime || command == FUTEX_LOCK_PI)?;
            pi::lock(space, addr, shared, deadline, true).map(|()| 0)
        }
        FUTEX_TRYLOCK_PI => pi::lock(space, addr, shared, None, false).map(|()| 0),
        FUTEX_UNLOCK_PI => pi::unlock(space, addr, shared).map(|()| 0),
        FUTEX_WAIT_REQUEUE_PI => {
            let deadline = absolute(arg4, realtime)?;
            let words = (addr, addr2);
            pi::wait_requeue(space, words, shared, val, BITSET_MATCH_ANY, deadline).map(|()| 0)
        }
        FUTEX_CMP_REQUEUE_PI => {
            let moves = arg4 as u32;
            if val != 1 || (moves as i32) < 0 {
                return Err(Errno::EINVAL);
            }
            done(pi::requeue(space, (addr, addr2), shared, count(moves), val3)?)
        }
        _ => Err(Errno::ENOSYS),
    }
}

fn wait(
    space: &AddressSpace,
    addr: u64,
    shared: bool,
    expected: u32,
    bitset: u32,
    deadline: Option<Moment>,
) -> Result<i64> {
    match futex::wait(space, addr, shared, expected, bitset, deadline) {
        Err(Errno::ERESTARTSYS) if deadline.is_some() => {
            restart_wait(addr, shared, expected, bitset, deadline)
        }
        other => other.map(|()| 0),
    }
}

/// FUTEX_WAKE_OP: the second word is changed first; waiters of the first are woken whatever it held.
fn wake_op(
    space: &AddressSpace,
    [first, second]: [u64; 2],
    shared: bool,
    counts: [usize; 2],
    operation: u32,
) -> Result<usize> {
    let meets = operate(second, operation)?;
    let mut woken = futex::wake(space, first, shared, counts[0], BITSET_MATCH_ANY)?;
    if meets {
        woken += futex::wake(space, second, shared, counts[1], BITSET_MATCH_ANY)?;
    }
    Ok(woken)
}

/// The deadline of a call that takes a point of one of the clocks.
fn absolute(timeout: u64, realtime: bool) -> Result<Option<Moment>> {
    let clock = if realtime { ClockId::Realtime } else { ClockId::Monotonic };
    time::read_moment(UserPtr::<Timespec>::new(timeout), clock)
}

/// A wait with a time limit goes on with the same deadline, not with the limit afresh.
fn restart_wait(
    addr: u64,
    shared: bool,
    val: u32,
    bitset: u32,
    deadline: Option<Moment>,
) -> Result<i64> {
    let again = move || {
        let task = process::current();
        match futex::wait(&task.mm(), addr, shared, val, bitset, deadline) {
            Err(Errno::ERESTARTSYS) => restart_wait(addr, shared, val, bitset, deadline),
            other => other.map(|()| 0),
        }
    };
    // Without memory for it the wait ends as one that no handler lets go on.
    process::current().signals.set_restart(try_box(again).map_err(|_| Errno::EINTR)?);
    Err(Errno::ERESTART_RESTARTBLOCK)
}

/// FUTEX_WAKE_OP's operation on the second word; whether its old value meets the comparison.
fn operate(addr: u64, encoded: u32) -> Result<bool> {
    if !addr.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    let sign_extend = |field: u32| ((field << 20) as i32 >> 20) as u32;
    let operand = sign_extend(encoded >> 12 & 0xfff);
    let comparand = sign_extend(encoded & 0xfff) as i32;
    let operand = if encoded >> 31 != 0 { 1 << (operand & 31) } else { operand };
    let apply = |old: u32| {
        Ok(match encoded >> 28 & 7 {
            0 => operand,
            1 => old.wrapping_add(operand),
            2 => old | operand,
            3 => old & !operand,
            4 => old ^ operand,
            _ => return Err(Errno::ENOSYS),
        })
    };
    let mut old = user::load_u32(addr)?;
    loop {
        let seen = user::cmpxchg_u32(addr, old, apply(old)?)?;
        if seen == old {
            break;
        }
        old = seen;
    }
    let old = old as i32;
    Ok(match encoded >> 24 & 15 {
        0 => old == comparand,
        1 => old != comparand,
        2 => old < comparand,
        3 => old <= comparand,
        4 => old > comparand,
        5 => old >= comparand,
        _ => return Err(Errno::ENOSYS),
    })
}

pub fn set_robust_list(head: u64, len: usize) -> Result<()> {
    if len != futex::ROBUST_LIST_HEAD_LEN {
        return Err(Errno::EINVAL);
    }
    process::current().set_robust_list(head);
    Ok(())
}

pub fn get_robust_list(tid: i32, head: UserPtr<u64>, len: UserPtr<u64>) -> Result<()> {
    let target = match tid {
        0 => process::current_arc(),
        _ => process::lookup_task(tid).ok_or(Errno::ESRCH)?,
    };
    if !process::may_look_into(&target) {
        return Err(Errno::EPERM);
    }
    len.write(&(futex::ROBUST_LIST_HEAD_LEN as u64))?;
    head.write(&target.robust_list())
}
