//! [`Tty`]: one terminal, and who waits for it.
//!
//! Owns the line discipline and the queues of waiters. Locks: `Tty`, one for each terminal, never held over a user
//! copy: signals are sent and the port is driven after it is released; and two sleeping ones, which a read and a write
//! hold from begin to end.

use super::end::End;
use super::events::{Events, Screen};
use crate::drivers::console_device::ConsoleDevice;
use crate::mm::fallible::{TryVec, try_arc};
use crate::sync::{Mutex, SpinLock, WaitQueue, level};
use crate::vfs::DevId;
use crate::vfs::notify::Listeners;
use crate::vfs::object::owner::PidRef;
use abi::tty::Winsize;
use abi::{Errno, Result};
use alea_tty::{LineDiscipline, Termios};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// How many bytes of a write are processed in one go.
const WRITE_CHUNK: usize = 2048;

/// One terminal.
pub struct Tty {
    pub(super) dev: DevId,
    /// Nothing on a pseudo-terminal.
    pub(super) device: Option<&'static dyn ConsoleDevice>,
    pub(super) state: SpinLock<State, level::Tty>,
    /// Who waits for input.
    pub(super) for_input: WaitQueue,
    /// Who waits until more can be typed: the master, or the device's thread.
    pub(super) for_typing: WaitQueue,
    /// Pseudo-terminals: who waits for room towards the master, and the master that waits for output.
    pub(super) for_room: WaitQueue,
    pub(super) for_output: WaitQueue,
    /// Who is told by signals at the terminal, and at the master.
    pub(super) listeners: Listeners,
    pub(super) masters: Listeners,
    /// One read at a time, so that a line goes to one reader.
    pub(super) reading: Mutex<()>,
    /// One write at a time, so that its bytes stay together; the chunk being written.
    pub(super) writing: Mutex<Vec<u8>>,
}

/// What the lock guards.
pub(super) struct State {
    pub(super) discipline: LineDiscipline,
    pub(super) end: End,
    /// The session it controls; 0 is none.
    pub(super) session: i32,
    /// That session's foreground group: nobody who gets its number later.
    pub(super) group: Option<PidRef>,
    pub(super) winsize: Winsize,
    /// Open files, /dev/console's among them.
    pub(super) opens: u32,
    /// Files of an earlier generation are hung up.
    pub(super) generation: u32,
    /// TIOCEXCL: no further opens.
    pub(super) exclusive: bool,
}

impl Tty {
    pub(super) fn new(dev: DevId, termios: Termios, end: End) -> Result<Arc<Self>> {
        let discipline = LineDiscipline::try_new(termios).map_err(|_| Errno::ENOMEM)?;
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(WRITE_CHUNK).map_err(|_| Errno::ENOMEM)?;
        chunk.try_resize(WRITE_CHUNK, 0)?;
        try_arc(Self {
            dev,
            device: end.device(),
            state: SpinLock::new(State {
                discipline,
                end,
                session: 0,
                group: None,
                winsize: Winsize::default(),
                opens: 0,
                generation: 0,
                exclusive: false,
            }),
            for_input: WaitQueue::new(),
            for_room: WaitQueue::new(),
            for_output: WaitQueue::new(),
            listeners: Listeners::new(),
            masters: Listeners::new(),
            for_typing: WaitQueue::new(),
            reading: Mutex::new(()),
            writing: Mutex::new(chunk),
        })
    }

    /// Its device number, as /proc/pid/stat shows it.
    pub fn dev(&self) -> DevId {
        self.dev
    }

    /// The foreground process group.
    pub fn foreground_group(&self) -> Option<PidRef> {
        self.state.lock().group
    }

    pub(super) fn is_pty(&self) -> bool {
        self.device.is_none()
    }

    /// Runs `f` on the discipline, then does what came of it: output, wake-ups, signals.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut LineDiscipline, &mut Screen<'_>) -> R) -> R {
        let mut events = Events::default();
        let mut state = self.state.lock();
        let State { discipline, end, group, .. } = &mut *state;
        let mut screen = Screen::new(end, &mut events);
        let result = f(discipline, &mut screen);
        events.readable = discipline.has_input();
        let group = *group;
        drop(state);
        self.act(events, group);
        result
    }

    /// Feeds bytes that were typed; how many fit.
    pub(super) fn receive(&self, bytes: &[u8]) -> usize {
        self.with(|discipline, screen| discipline.receive(bytes, screen))
    }

    /// Whether more input fits.
    pub(super) fn wants_input(&self) -> bool {
        self.state.lock().discipline.input_count() < alea_tty::BUFFER_SIZE / 2
    }
}

impl State {
    /// Whether a file of this generation was hung up.
    pub(super) fn is_hung_up(&self, generation: u32) -> bool {
        self.generation != generation
    }

    /// A pseudo-terminal whose master is gone.
    pub(super) fn master_is_gone(&self) -> bool {
        self.end.pty().is_some_and(|pty| pty.master_closed)
    }
}
