//! Terminals: the line discipline of the tty crate with processes on one side and a device on the other.
//!
//! [`Tty`] is one terminal, serial or pseudo; `read` and `write` are what programs do with it, `job` who may,
//! `ioctl` and `settings` how they control it, `file` what an open of it is, `pty` and `devpts` the
//! pseudo-terminals, `console` the devices in /dev. Lock level: `Tty`, one lock per terminal, never held over
//! a user copy; signals are sent and the port is driven after it is released.
#![forbid(unsafe_code)]

mod console;
mod devpts;
mod events;
mod file;
mod hangup;
mod ioctl;
mod job;
mod pty;
mod read;
mod settings;
mod write;

use crate::mm::fallible::{TryVec, try_arc};
pub use console::{init, run_input};
pub use hangup::session_leader_exits;
pub use job::{Caller, JobControl, register_job_control};
pub use pty::open_peer;

use crate::fs::DevId;
use crate::sync::{Mutex, SpinLock, WaitQueue, level};
use abi::tty::Winsize;
use abi::{Errno, Result};
use alea_tty::{LineDiscipline, Termios};
use alloc::sync::Arc;
use alloc::vec::Vec;
use events::{Events, Screen};
use pty::PtyState;

/// How many bytes of a write are processed in one go.
const WRITE_CHUNK: usize = 2048;

/// One terminal.
pub struct Tty {
    dev: DevId,
    state: SpinLock<State, level::Tty>,
    /// Who waits for input.
    for_input: WaitQueue,
    /// Who waits until more can be typed: the master, or the serial port's thread.
    for_typing: WaitQueue,
    /// Pseudo-terminals: who waits for room towards the master, and the master that waits for output.
    for_room: WaitQueue,
    for_output: WaitQueue,
    /// One read at a time, so that a line goes to one reader.
    reading: Mutex<()>,
    /// One write at a time, so that its bytes stay together; the chunk being written.
    writing: Mutex<Vec<u8>>,
}

/// What the lock guards.
struct State {
    discipline: LineDiscipline,
    /// `None` on the serial port.
    pty: Option<PtyState>,
    /// The session it controls and that session's foreground group; 0 is none.
    session: i32,
    group: i32,
    winsize: Winsize,
    /// Open files, /dev/console's among them.
    opens: u32,
    /// Files of an earlier generation are hung up.
    generation: u32,
    /// TIOCEXCL: no further opens.
    exclusive: bool,
}

impl Tty {
    fn new(dev: DevId, termios: Termios, pty: Option<PtyState>) -> Result<Arc<Self>> {
        let discipline = LineDiscipline::try_new(termios).map_err(|_| Errno::ENOMEM)?;
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(WRITE_CHUNK).map_err(|_| Errno::ENOMEM)?;
        chunk.try_resize(WRITE_CHUNK, 0)?;
        try_arc(Self {
            dev,
            state: SpinLock::new(State {
                discipline,
                pty,
                session: 0,
                group: 0,
                winsize: Winsize::default(),
                opens: 0,
                generation: 0,
                exclusive: false,
            }),
            for_input: WaitQueue::new(),
            for_room: WaitQueue::new(),
            for_output: WaitQueue::new(),
            for_typing: WaitQueue::new(),
            reading: Mutex::new(()),
            writing: Mutex::new(chunk),
        })
    }

    /// Its device number, as /proc/pid/stat shows it.
    pub fn dev(&self) -> DevId {
        self.dev
    }

    /// The foreground process group; 0 is none.
    pub fn foreground_group(&self) -> i32 {
        self.state.lock().group
    }

    fn is_pty(&self) -> bool {
        self.dev.major() != console::SERIAL_MAJOR
    }

    /// Runs `f` on the discipline, then does what came of it: output, wake-ups, signals.
    fn with<R>(&self, f: impl FnOnce(&mut LineDiscipline, &mut Screen<'_>) -> R) -> R {
        let mut events = Events::default();
        let mut state = self.state.lock();
        let State { discipline, pty, group, .. } = &mut *state;
        let mut screen = Screen::new(pty.as_mut(), &mut events);
        let result = f(discipline, &mut screen);
        events.readable = discipline.has_input();
        let group = *group;
        drop(state);
        self.act(events, group);
        result
    }

    /// Feeds bytes that were typed; how many fit.
    fn receive(&self, bytes: &[u8]) -> usize {
        self.with(|discipline, screen| discipline.receive(bytes, screen))
    }

    /// Whether more input fits.
    fn wants_input(&self) -> bool {
        self.state.lock().discipline.input_count() < alea_tty::BUFFER_SIZE / 2
    }
}

impl State {
    /// Whether a file of this generation was hung up.
    fn is_hung_up(&self, generation: u32) -> bool {
        self.generation != generation
    }

    /// A pseudo-terminal whose master is gone.
    fn master_is_gone(&self) -> bool {
        self.pty.as_ref().is_some_and(|pty| pty.master_closed)
    }
}
