//! The listener's descriptor: ioctl and poll.
//!
//! Owns nothing but a reference to what it shares with those who ask. Never keeps their filter. Locks: none of its own.

use super::notify::{Gift, Notifier};
use crate::base::PAGE_SIZE;
use crate::mm::fallible::try_arc;
use crate::mm::user::{self, UserPtr};
use crate::process::task::current::current;
use crate::sync::PollTable;
use crate::vfs::anon::anonymous;
use crate::vfs::{Fd, FileOps, OpenFile, PollEvents, Position};
use abi::fs::OpenFlags;
use abi::seccomp::{AddFd, Notification, Response, ioctl};
use abi::{Errno, Result};
use alloc::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

struct Listener(Arc<Notifier>);

/// The file of who answers.
pub(super) fn open(notifier: &Arc<Notifier>) -> Result<Arc<OpenFile>> {
    let ops = try_arc(Listener(notifier.clone()))?;
    try_arc(anonymous(ops, "seccomp notify", OpenFlags::RDWR, false)?)
}

impl FileOps for Listener {
    fn poll(&self, _: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(self.0.changed());
        self.0.ready()
    }

    fn ioctl(&self, _: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        match cmd {
            ioctl::RECV => self.receive(UserPtr::new(arg)),
            ioctl::SEND => self.send(UserPtr::new(arg)),
            ioctl::ID_VALID | ioctl::ID_VALID_WRONG_DIR => {
                let id = UserPtr::<u64>::new(arg).read()?;
                if self.0.waits(id) { Ok(0) } else { Err(Errno::ENOENT) }
            }
            ioctl::SET_FLAGS if arg & !SYNC_WAKE_UP == 0 => Ok(0),
            _ if cmd & !ioctl::EXTENSIBLE == ioctl::ADDFD => {
                self.add_fd(arg, (cmd >> 16 & 0x3fff) as usize)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    fn release(&self, _: &OpenFile) {
        self.0.close();
    }

    fn position(&self) -> Position {
        Position::None
    }
}

/// SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP: a hint where the other side is to run, which changes no result.
const SYNC_WAKE_UP: u64 = 1;

impl Listener {
    fn receive(&self, to: UserPtr<Notification>) -> Result<i64> {
        // It may grow: what is there now has to be zero.
        if to.read()?.as_bytes().iter().any(|&byte| byte != 0) {
            return Err(Errno::EINVAL);
        }
        let taken = self.0.take()?;
        to.write(&taken).inspect_err(|_| self.0.put_back(taken.id))?;
        Ok(0)
    }

    fn send(&self, from: UserPtr<Response>) -> Result<i64> {
        let response = from.read()?;
        let goes_on = response.flags & Response::CONTINUE != 0;
        let unknown = response.flags & !Response::CONTINUE != 0;
        if unknown || (goes_on && (response.error != 0 || response.val != 0)) {
            return Err(Errno::EINVAL);
        }
        self.0.answer(&response).map(|()| 0)
    }

    fn add_fd(&self, from: u64, size: usize) -> Result<i64> {
        let asked = read_growing(from, size)?;
        let has = |flag: u32| asked.flags & flag != 0;
        let unknown = asked.flags & !(AddFd::SETFD | AddFd::SEND) != 0
            || asked.newfd_flags & !OpenFlags::CLOEXEC.bits() != 0;
        if unknown || (asked.newfd != 0 && !has(AddFd::SETFD)) {
            return Err(Errno::EINVAL);
        }
        let file = current().files().get(Fd(asked.srcfd as i32))?;
        let at = has(AddFd::SETFD).then_some(Fd(asked.newfd as i32));
        let gift = Gift::new(file, asked.newfd_flags != 0, at, has(AddFd::SEND))?;
        self.0.give(asked.id, gift).map(|fd| fd.0.into())
    }
}

/// A structure that may be longer than it is known here, if the rest is zero.
fn read_growing(from: u64, size: usize) -> Result<AddFd> {
    const KNOWN: usize = size_of::<AddFd>();
    if !(KNOWN..PAGE_SIZE).contains(&size) {
        return Err(Errno::EINVAL);
    }
    let mut rest = [0; 64];
    let mut at = KNOWN;
    while at < size {
        let piece = &mut rest[..(size - at).min(64)];
        user::read_bytes(from.saturating_add(at as u64), piece)?;
        if piece.iter().any(|&byte| byte != 0) {
            return Err(Errno::E2BIG);
        }
        at += piece.len();
    }
    let mut known = [0; KNOWN];
    user::read_bytes(from, &mut known)?;
    AddFd::read_from_bytes(&known).map_err(|_| Errno::EINVAL)
}
