//! The master side of a pseudo-terminal: the file that /dev/ptmx gives.
//!
//! What it types goes to the discipline, or waits in [`PtyState`] while that has no room; what the terminal writes, it
//! reads.

use super::devpts::{self, PTS_MAJOR, PtsInode};
use super::end::End;
use super::events::Screen;
use super::file::TtyFile;
use super::pty::{PtyState, QUEUE, SETTINGS};
use super::tty::Tty;
use super::{ioctl, job};
use crate::mm::fallible::{TryGrow, try_arc};
use crate::mm::user::UserPtr;
use crate::mm::{Sink, Source};
use crate::sync::{PollTable, cond_resched};
use crate::vfs::admission::admit;
use crate::vfs::{Abilities, DevId, FileOps, OpenFile, Path, PollEvents, Position};
use abi::fs::OpenFlags;
use abi::signal::Signal;
use abi::tty as lx;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// Bytes that are copied in one go.
const CHUNK: usize = 256;

impl Screen<'_> {
    /// Keeps typed bytes for later; how many it had room for.
    fn keep_typed(&mut self, bytes: &[u8]) -> usize {
        let Some(pty) = self.pty() else { return 0 };
        let n = bytes.len().min(QUEUE - pty.backlog.len().min(QUEUE));
        if pty.backlog.try_extend(bytes[..n].iter().copied()).is_ok() { n } else { 0 }
    }

    fn kept(&mut self) -> usize {
        self.pty().map_or(0, |pty| pty.backlog.len())
    }
}

impl Tty {
    /// The master types: the discipline takes what it has room for, the rest is kept; how much was taken.
    fn type_bytes(&self, bytes: &[u8]) -> usize {
        self.with(|discipline, screen| {
            let taken = if screen.kept() == 0 { discipline.receive(bytes, screen) } else { 0 };
            taken + screen.keep_typed(&bytes[taken..])
        })
    }

    /// A reader made room: gives the discipline what was kept.
    pub(super) fn input_was_taken(&self) {
        if self.is_pty() {
            self.with(|discipline, screen| {
                while let Some(pty) = screen.pty() {
                    let mut chunk = [0; CHUNK];
                    let n = pty.backlog.len().min(CHUNK);
                    for (slot, &byte) in chunk.iter_mut().zip(&pty.backlog) {
                        *slot = byte;
                    }
                    let taken = discipline.receive(&chunk[..n], screen);
                    if let Some(pty) = screen.pty() {
                        pty.backlog.drain(..taken);
                    }
                    if n == 0 || taken < n {
                        break;
                    }
                }
            });
        }
        self.for_typing.wake_events(PollEvents::WRITABLE.bits());
        self.masters.tell_room();
    }
}

/// The master side of a pseudo-terminal.
pub(super) struct Master {
    tty: Arc<Tty>,
    inode: Arc<PtsInode>,
}

/// Opens a new pseudo-terminal: /dev/ptmx.
pub(super) fn open_master() -> Result<Arc<dyn FileOps>> {
    if crate::mm::kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    let (tty, inode) = devpts::create(|index| {
        Tty::new(DevId::new(PTS_MAJOR, index), SETTINGS, End::Master(PtyState::new()?))
    })?;
    Ok(try_arc(Master { tty, inode })?)
}

/// TIOCGPTPEER: opens the terminal side of a master, whatever /dev/pts shows. `ENOTTY` if `file` is no
/// master.
pub fn open_peer(file: &OpenFile, flags: u32) -> Result<OpenFile> {
    let master = file.downcast::<Master>().ok_or(Errno::ENOTTY)?;
    let admission = admit()?;
    let flags = OpenFlags::from_bits_retain(flags);
    let ops = TtyFile::open(master.tty.clone(), flags, false)?;
    let path: Path = devpts::path_of(&master.inode)?;
    Ok(OpenFile::new(admission, ops, path, flags))
}

/// What a look at the master's side found.
enum Output {
    Bytes(usize),
    Status(u8),
    Nothing,
    SlaveGone,
}

impl Master {
    fn with_pty<R>(&self, f: impl FnOnce(&mut PtyState) -> R) -> Result<R> {
        self.tty.state.lock().end.pty_mut().map(f).ok_or(Errno::EIO)
    }

    fn take(&self, chunk: &mut [u8]) -> Result<Output> {
        self.with_pty(|pty| {
            if pty.packet && pty.status != 0 {
                return Output::Status(core::mem::take(&mut pty.status));
            }
            if pty.output.is_empty() {
                return if pty.slave_closed { Output::SlaveGone } else { Output::Nothing };
            }
            let n = pty.output.len().min(chunk.len());
            let taken = pty.output.drain(..n);
            for (slot, byte) in chunk.iter_mut().zip(taken) {
                *slot = byte;
            }
            Output::Bytes(n)
        })
    }

    fn has_output(&self) -> bool {
        self.with_pty(|pty| {
            !pty.output.is_empty() || pty.slave_closed || (pty.packet && pty.status != 0)
        })
        .unwrap_or(true)
    }

    fn control(&self, cmd: u32, arg: u64) -> Result<i64> {
        let number = || UserPtr::<i32>::new(arg).read();
        match cmd {
            lx::TIOCGPTN => ioctl::write_number(arg, self.inode.index() as i32),
            lx::TIOCSPTLCK => {
                let lock = number()? != 0;
                self.with_pty(|pty| pty.locked = lock)?;
                Ok(0)
            }
            lx::TIOCGPTLCK => {
                let locked = self.with_pty(|pty| pty.locked)?;
                ioctl::write_number(arg, i32::from(locked))
            }
            lx::TIOCPKT => {
                let on = number()? != 0;
                self.with_pty(|pty| {
                    if on && !pty.packet {
                        pty.status = 0;
                    }
                    pty.packet = on;
                })?;
                Ok(0)
            }
            lx::TIOCGPKT => {
                let on = self.with_pty(|pty| pty.packet)?;
                ioctl::write_number(arg, i32::from(on))
            }
            lx::TIOCSIG => self.send_signal(arg),
            lx::FIONREAD => {
                let n = self.with_pty(|pty| pty.output.len())?;
                ioctl::write_number(arg, n as i32)
            }
            lx::TIOCSCTTY | lx::TIOCNOTTY => Err(Errno::ENOTTY),
            _ => ioctl::common(&self.tty, cmd, arg),
        }
    }

    /// TIOCSIG: the master raises a signal as a key would.
    fn send_signal(&self, number: u64) -> Result<i64> {
        let signal = i32::try_from(number).ok().and_then(Signal::new).ok_or(Errno::EINVAL)?;
        if ![Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP].contains(&signal) {
            return Err(Errno::EINVAL);
        }
        if let Some(group) = self.tty.foreground_group()
            && let Some(control) = job::control()
        {
            control.signal_group(group, signal);
        }
        Ok(0)
    }
}

impl FileOps for Master {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        let mut got = 0;
        while dst.remaining() > 0 {
            cond_resched();
            let packet = self.with_pty(|pty| pty.packet)? && got == 0;
            let room = dst.remaining() - usize::from(packet);
            let mut chunk = [0; CHUNK];
            let size = room.min(CHUNK);
            match self.take(&mut chunk[..size])? {
                Output::Status(status) if got == 0 => return dst.put(&[status]),
                Output::Status(status) => {
                    self.with_pty(|pty| pty.status |= status)?;
                    break;
                }
                Output::Bytes(n) => {
                    if packet {
                        got += dst.put(&[lx::TIOCPKT_DATA])?;
                    }
                    got += dst.put(&chunk[..n])?;
                    // The room that is free now goes to waiting echo first, then to writers.
                    self.tty.with(|discipline, screen| discipline.process_echo(screen));
                    self.tty.for_room.wake_events(PollEvents::WRITABLE.bits());
                    self.tty.listeners.tell_room();
                }
                _ if got > 0 => break,
                Output::SlaveGone => return Err(Errno::EIO),
                Output::Nothing if f.nonblock() => return Err(Errno::EAGAIN),
                Output::Nothing => {
                    self.tty.for_output.wait_interruptible(|| self.has_output().then_some(()))?;
                }
            }
        }
        Ok(got)
    }

    fn write(&self, f: &OpenFile, src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        let mut done = 0;
        let result = |done: usize, error: Errno| if done > 0 { Ok(done) } else { Err(error) };
        while src.remaining() > 0 {
            cond_resched();
            let mut chunk = [0; CHUNK];
            let n = match src.take(&mut chunk) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) => return result(done, error),
            };
            let mut at = 0;
            while at < n {
                let taken = self.tty.type_bytes(&chunk[at..n]);
                at += taken;
                done += taken;
                if taken > 0 {
                    continue;
                }
                if f.nonblock() {
                    self.tty.masters.lack_room();
                    return result(done, Errno::EAGAIN);
                }
                let room = || self.with_pty(|pty| pty.backlog.len() < QUEUE).unwrap_or(true);
                if let Err(interrupted) =
                    self.tty.for_typing.wait_interruptible(|| room().then_some(()))
                {
                    return result(done, interrupted.into());
                }
            }
        }
        Ok(done)
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn poll(&self, _f: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(&self.tty.for_output);
        table.watch(&self.tty.for_typing);
        let mut ready = PollEvents::empty();
        let look = self.with_pty(|pty| {
            if !pty.output.is_empty() {
                ready |= PollEvents::READABLE;
            }
            if pty.packet && pty.status != 0 {
                ready |= PollEvents::READABLE | PollEvents::PRI;
            }
            if pty.slave_closed {
                ready |= PollEvents::HUP;
            }
            if pty.backlog.len() < QUEUE {
                ready |= PollEvents::WRITABLE;
            }
        });
        if look.is_err() {
            ready |= PollEvents::ERR;
        }
        ready
    }

    fn signals_changed(&self, f: &OpenFile, fd: Option<i32>) -> Result<()> {
        if fd.is_some() && f.flags().contains(OpenFlags::ASYNC) {
            job::give_owner(f, None)?;
        }
        self.tty.masters.changed(f, fd)
    }

    fn ioctl(&self, _f: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        self.control(cmd, arg)
    }

    fn abilities(&self) -> Abilities {
        Abilities::TELLS | Abilities::SPLICES
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        devpts::remove(self.inode.index());
        if let Some(pty) = self.tty.state.lock().end.pty_mut() {
            pty.master_closed = true;
        }
        self.tty.hang_up(false);
    }
}
