//! [`Awaited`]: what a request waits for that is not one file of the program's: two files, a futex, children; or a ring, which no
//! request may keep open, as it could be its own.
//!
//! It is a file of the ring's own, so that [`super::parked`] waits for it as for any. Owns the references. Never has a descriptor.
//! Locks: none of its own.

use super::check::{SPLICE_FLAGS, futex_words, is_nested, is_ring, is_shared};
use super::outcome::{Done, Outcome, Wait};
use crate::mm::fallible::try_arc;
use crate::mm::user::UserPtr;
use crate::process::futex::{self, Distant};
use crate::process::{self, Process};
use crate::sync::PollTable;
use crate::syscall::event::pipe;
use crate::syscall::file::splice::{self, Place};
use crate::syscall::task::wait::waitid_now;
use crate::vfs::anon::anonymous;
use crate::vfs::{FileOps, OpenFile, PollEvents, Position};
use abi::fs::OpenFlags;
use abi::uring::{Sqe, op};
use abi::{Errno, Result};
use alloc::sync::{Arc, Weak};

const NONBLOCK: u32 = 2;

pub enum Awaited {
    /// SPLICE and TEE: one has nothing, or the other no room.
    Files {
        input: Arc<OpenFile>,
        output: Arc<OpenFile>,
    },
    Futex(Distant),
    /// WAITID: none of the children of this process has changed.
    Children(Arc<Process>),
    /// POLL_ADD of a ring.
    Ring(Weak<OpenFile>),
}

impl FileOps for Awaited {
    fn position(&self) -> Position {
        Position::None
    }

    fn poll(&self, _: &OpenFile, table: &mut PollTable) -> PollEvents {
        match self {
            Self::Files { input, output } => input.poll(table) | output.poll(table),
            Self::Futex(wait) => wait.poll(table),
            Self::Children(parent) => {
                table.watch(&parent.children_changed);
                // One may have changed before: who waits looks once more.
                PollEvents::READABLE
            }
            // Once it is closed nothing happens there.
            Self::Ring(ring) => ring.upgrade().map_or(PollEvents::empty(), |ring| ring.poll(table)),
        }
    }
}

fn stands_for(awaited: Awaited) -> Result<Arc<OpenFile>> {
    try_arc(anonymous(try_arc(awaited)?, "[io_uring]", OpenFlags::RDWR, false)?)
}

fn wait_for(awaited: Awaited) -> Result<Outcome> {
    let wanted = PollEvents::READABLE | PollEvents::WRITABLE | PollEvents::ERR | PollEvents::HUP;
    let file = Some(stands_for(awaited)?);
    Ok(Outcome::Waits(Wait { file, wanted, deadline: None, moved: 0 }))
}

/// Looks again; nothing if it goes on waiting for the same.
pub fn look_again(file: &OpenFile, sqe: &Sqe) -> Option<Done> {
    let done = match file.downcast::<Awaited>()? {
        Awaited::Files { input, output } => match step(input, output, sqe) {
            Err(Errno::EAGAIN) => return None,
            result => result,
        },
        Awaited::Futex(wait) => wait.is_woken().then_some(Ok(0))?,
        Awaited::Children(_) => match answer(sqe) {
            Ok(false) => return None,
            result => result.map(|_| 0),
        },
        Awaited::Ring(_) => return None,
    };
    Some(moved(done, sqe))
}

/// What POLL_ADD watches of a file.
pub fn to_watch(file: Arc<OpenFile>) -> Result<Arc<OpenFile>> {
    if is_ring(&file) { stands_for(Awaited::Ring(Arc::downgrade(&file))) } else { Ok(file) }
}

/// Whether it stands for a ring.
pub fn is_for_ring(file: &OpenFile) -> bool {
    matches!(file.downcast(), Some(Awaited::Ring(_)))
}

/// Whether it was woken, so that it cannot be cancelled any more.
pub fn is_woken(file: &OpenFile) -> bool {
    matches!(file.downcast::<Awaited>(), Some(Awaited::Futex(wait)) if wait.is_woken())
}

fn moved(result: Result<i64>, sqe: &Sqe) -> Done {
    let is_short = matches!(sqe.opcode, op::SPLICE | op::TEE)
        && result.is_ok_and(|moved| moved != i64::from(sqe.len));
    let done = Done::of(result);
    Done { breaks_link: done.breaks_link || is_short, ..done }
}

/// SPLICE and TEE.
pub fn move_between(input: Arc<OpenFile>, output: Arc<OpenFile>, sqe: &Sqe) -> Result<Outcome> {
    if sqe.len == 0 {
        return Ok(Outcome::of(Ok(0)));
    }
    // Neither can be spliced, which a pipe without bytes would hide; and what waits for one would be woken from another's queue.
    if is_nested(&input) || is_nested(&output) {
        return Err(Errno::EINVAL);
    }
    match step(&input, &output, sqe) {
        Err(Errno::EAGAIN)
            if sqe.op_flags & NONBLOCK == 0 && !input.nonblock() && !output.nonblock() =>
        {
            wait_for(Awaited::Files { input, output })
        }
        result => Ok(Outcome::Done(moved(result, sqe))),
    }
}

/// Moves what can be moved now: `EAGAIN` if that is nothing.
fn step(input: &Arc<OpenFile>, output: &Arc<OpenFile>, sqe: &Sqe) -> Result<i64> {
    let (len, flags) = (sqe.len as usize, sqe.op_flags & SPLICE_FLAGS);
    let place = |offset: u64| match offset.cast_signed() {
        -1 => Place::None,
        offset => Place::Given(offset),
    };
    let result = process::without_waiting(|| match sqe.opcode {
        op::TEE => pipe::tee_files(input, output, len, flags),
        _ => splice::splice_files((input, place(sqe.addr)), (output, place(sqe.off)), len, flags),
    });
    match result {
        Err(error) if error == Errno::EINTR || error.is_restart() => Err(Errno::EAGAIN),
        result => result.map(|moved| moved as i64),
    }
}

/// FUTEX_WAIT.
pub fn wait_at_futex(sqe: &Sqe) -> Result<Outcome> {
    let (expected, bitset) = futex_words(sqe)?;
    if bitset == 0 {
        return Err(Errno::EINVAL);
    }
    let task = process::current();
    let wait = Distant::new(&task.mm(), sqe.addr, is_shared(sqe)?, expected, bitset)?;
    wait_for(Awaited::Futex(wait))
}

/// IORING_OP_FUTEX_WAKE: how many it woke.
pub fn wake_futex(sqe: &Sqe) -> Result<i64> {
    let (count, bitset) = futex_words(sqe)?;
    let task = process::current();
    // As on Linux, 0 is none here; a negative number wakes one.
    let count = usize::try_from(count.cast_signed()).unwrap_or(1);
    futex::wake(&task.mm(), sqe.addr, is_shared(sqe)?, count, bitset).map(|woken| woken as i64)
}

/// WAITID.
pub fn wait_for_child(sqe: &Sqe) -> Result<Outcome> {
    if answer(sqe)? {
        return Ok(Outcome::of(Ok(0)));
    }
    wait_for(Awaited::Children(process::current().process().clone()))
}

fn answer(sqe: &Sqe) -> Result<bool> {
    let (kind, options) = (sqe.len.cast_signed(), sqe.file_index.cast_signed());
    waitid_now(kind, sqe.fd, UserPtr::new(sqe.off), options)
}
