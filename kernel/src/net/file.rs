//! A [`NetSocket`] as an open file.

use super::control::stamp;
use super::option::more;
use super::socket::{NetSocket, Outgoing};
use crate::mm::user::UserPtr;
use crate::mm::{Sink, Source};
use crate::sync::PollTable;
use crate::time;
use crate::vfs::{Abilities, FileOps, OpenFile, PollEvents, Position};
use abi::net::{AF_NETLINK, siocs};
use abi::socket::{MsgFlags, SOCK_STREAM};
use abi::tty::FIONREAD;
use abi::{Errno, Result};
use alloc::sync::Arc;

const TIOCOUTQ: u32 = 0x5411;

/// The open file.
pub struct NetFile(Arc<dyn NetSocket>);

impl NetFile {
    pub fn new(socket: Arc<dyn NetSocket>) -> Self {
        Self(socket)
    }
}

/// The socket behind a file: ENOTSOCK if there is none.
pub fn of_file(file: &OpenFile) -> Result<&Arc<dyn NetSocket>> {
    file.downcast::<NetFile>().map(|file| &file.0).ok_or(Errno::ENOTSOCK)
}

impl FileOps for NetFile {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        Ok(self.0.receive(dst, MsgFlags::empty(), f.nonblock())?.bytes)
    }

    fn write(&self, f: &OpenFile, src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        let flags = MsgFlags::empty();
        self.0.send(src, &Outgoing { to: None, control: &[], flags, nonblock: f.nonblock() })
    }

    fn raises_sigpipe(&self) -> bool {
        self.0.kind() == SOCK_STREAM
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        self.0.poll(table)
    }

    fn ioctl(&self, _f: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        let count = match cmd {
            FIONREAD => self.0.readable_bytes()?,
            TIOCOUTQ => self.0.unsent_bytes()?,
            siocs::ATMARK => self.0.at_mark()?.into(),
            siocs::GSTAMP | siocs::GSTAMPNS | siocs::GSTAMP_NEW | siocs::GSTAMPNS_NEW
                if self.0.domain() != AF_NETLINK =>
            {
                let last = self.0.options().stamps.last(time::realtime().0);
                let fine = matches!(cmd, siocs::GSTAMPNS | siocs::GSTAMPNS_NEW);
                let form = if fine { more::TIMESTAMPNS } else { more::TIMESTAMP };
                UserPtr::new(arg).write(&stamp(form, last.ok_or(Errno::ENOENT)?))?;
                return Ok(0);
            }
            _ => return Err(Errno::ENOTTY),
        };
        UserPtr::<i32>::new(arg).write(&i32::try_from(count).unwrap_or(i32::MAX))?;
        Ok(0)
    }

    fn signals_changed(&self, f: &OpenFile, fd: Option<i32>) -> Result<()> {
        self.0.options().listeners.changed(f, fd)
    }

    fn release(&self, _f: &OpenFile) {
        self.0.close();
    }

    fn abilities(&self) -> Abilities {
        Abilities::TELLS | Abilities::SPLICES
    }
}
