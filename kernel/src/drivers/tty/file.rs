//! An open terminal: what read, write, poll and close do, and how a session gets its terminal at open.

use super::job;
use super::tty::Tty;
use crate::mm::fallible::try_arc;
use crate::mm::{Sink, Source};
use crate::sync::PollTable;
use crate::vfs::object::owner::PidRef;
use crate::vfs::{Abilities, FileOps, OpenFile, PollEvents, Position};
use abi::fs::OpenFlags;
use abi::signal::Signal;
use abi::{Errno, Result};
use alea_tty::termios::lflag;
use alloc::sync::Arc;

/// Below this many unsent bytes poll reports room.
const POLL_BELOW: usize = 256;

/// One open of a terminal.
pub struct TtyFile {
    pub(super) tty: Arc<Tty>,
    /// The terminal's at open: it is hung up when they differ. /dev/console never is.
    generation: Option<u32>,
}

impl TtyFile {
    /// Opens `tty`; `as_console` for /dev/console.
    pub(super) fn open(tty: Arc<Tty>, flags: OpenFlags, as_console: bool) -> Result<Arc<Self>> {
        let admin = job::control().is_none_or(|control| control.caller().is_admin);
        let mut state = tty.state.lock();
        if state.exclusive && !admin {
            return Err(Errno::EBUSY);
        }
        if let Some(pty) = state.end.pty_mut() {
            pty.open_slave()?;
        }
        state.opens += 1;
        let generation = (!as_console).then_some(state.generation);
        drop(state);
        let file = try_arc(Self { tty, generation })?;
        if !as_console && !flags.contains(OpenFlags::NOCTTY) && flags.readable() {
            file.tty.clone().adopt_by_leader();
        }
        Ok(file)
    }

    pub(super) fn is_console(&self) -> bool {
        self.generation.is_none()
    }

    /// The generation to check against: /dev/console's is always the present one.
    pub(super) fn generation(&self) -> u32 {
        self.generation.unwrap_or_else(|| self.tty.state.lock().generation)
    }

    pub(super) fn is_hung_up(&self) -> bool {
        self.generation.is_some_and(|generation| self.tty.state.lock().is_hung_up(generation))
    }
}

impl Tty {
    /// Becomes the controlling terminal of a session leader that has none, if no session has it.
    fn adopt_by_leader(self: Arc<Self>) {
        let Some(control) = job::control() else { return };
        let caller = control.caller();
        if caller.is_session_leader && control.terminal().is_none() {
            self.adopt(caller.session, caller.group);
        }
    }

    /// Becomes the controlling terminal of a session unless another has it.
    pub(super) fn adopt(self: &Arc<Self>, session: i32, group: PidRef) -> bool {
        let mut state = self.state.lock();
        if state.session != 0 {
            return false;
        }
        (state.session, state.group) = (session, Some(group));
        drop(state);
        if let Some(control) = job::control() {
            control.set_terminal(session, Some(self.clone()));
        }
        true
    }
}

impl FileOps for TtyFile {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        if self.is_hung_up() {
            return Ok(0);
        }
        if !self.is_console() {
            job::check(&self.tty, Signal::SIGTTIN)?;
        }
        self.tty.read(self.generation(), f.nonblock(), dst)
    }

    fn write(&self, f: &OpenFile, src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        if self.is_hung_up() {
            return Err(Errno::EIO);
        }
        let stops = self.tty.state.lock().discipline.termios().local(lflag::TOSTOP);
        if stops && !self.is_console() {
            job::check(&self.tty, Signal::SIGTTOU)?;
        }
        self.tty.write(self.generation(), f.nonblock(), src)
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(&self.tty.for_input);
        table.watch(self.tty.room_queue());
        if self.is_hung_up() {
            return PollEvents::ALWAYS | PollEvents::ERR | PollEvents::HUP;
        }
        let state = self.tty.state.lock();
        let mut ready = PollEvents::empty();
        if state.discipline.poll_input() {
            ready |= PollEvents::READABLE;
        }
        if state.master_is_gone() {
            ready |= PollEvents::HUP;
        }
        drop(state);
        if self.tty.unsent() < POLL_BELOW && self.tty.room() > 0 {
            ready |= PollEvents::WRITABLE;
        }
        ready
    }

    fn ioctl(&self, f: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        if self.is_hung_up() {
            return Err(if cmd == abi::tty::TIOCSPGRP { Errno::ENOTTY } else { Errno::EIO });
        }
        super::ioctl::terminal(&self.tty, f, cmd, arg)
    }

    fn signals_changed(&self, f: &OpenFile, fd: Option<i32>) -> Result<()> {
        if fd.is_some() && f.flags().contains(OpenFlags::ASYNC) {
            job::give_owner(f, self.tty.foreground_group())?;
        }
        self.tty.listeners.changed(f, fd)
    }

    fn abilities(&self) -> Abilities {
        Abilities::TELLS | Abilities::SPLICES
    }
}

impl Drop for TtyFile {
    fn drop(&mut self) {
        let mut state = self.tty.state.lock();
        state.opens = state.opens.saturating_sub(1);
        let last = state.opens == 0;
        if last {
            state.exclusive = false;
            if let Some(pty) = state.end.pty_mut() {
                pty.close_slave();
            }
        }
        drop(state);
        if last {
            self.tty.wake_everyone();
        }
    }
}
