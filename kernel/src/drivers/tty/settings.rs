//! Terminal settings: TCGETS and TCSETS in their four layouts and three timings.

use super::end::End;
use super::tty::Tty;
use crate::mm::user;
use abi::Result;
use abi::tty as lx;
use alea_tty::termios::{Termios, cflag};
use alea_tty::{Termio, UserTermios, UserTermios2};

/// When a change takes effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Now,
    /// After written bytes were sent.
    Drained,
    /// As `Drained`, and input that nobody has read is thrown away.
    Flushed,
}

/// Writes the settings to user memory in the layout that `cmd` asks for.
pub(super) fn get(tty: &Tty, cmd: u32, arg: u64) -> Result<i64> {
    let now = *tty.state.lock().discipline.termios();
    match cmd {
        lx::TCGETS => user::write_bytes(arg, &now.to_termios().to_bytes())?,
        lx::TCGETS2 => user::write_bytes(arg, &now.to_termios2().to_bytes())?,
        _ => user::write_bytes(arg, &now.to_termio().to_bytes())?,
    }
    Ok(0)
}

/// Changes the settings from user memory. Job control has been checked.
pub(super) fn set(tty: &Tty, cmd: u32, arg: u64) -> Result<i64> {
    let mut new = *tty.state.lock().discipline.termios();
    let when = match cmd {
        lx::TCSETS | lx::TCSETA | lx::TCSETS2 => When::Now,
        lx::TCSETSW | lx::TCSETAW | lx::TCSETSW2 => When::Drained,
        _ => When::Flushed,
    };
    match cmd {
        lx::TCSETS | lx::TCSETSW | lx::TCSETSF => {
            let mut bytes = [0; UserTermios::SIZE];
            user::read_bytes(arg, &mut bytes)?;
            new.set_from_termios(&UserTermios::from_bytes(&bytes));
        }
        lx::TCSETS2 | lx::TCSETSW2 | lx::TCSETSF2 => {
            let mut bytes = [0; UserTermios2::SIZE];
            user::read_bytes(arg, &mut bytes)?;
            new.set_from_termios2(&UserTermios2::from_bytes(&bytes));
        }
        _ => {
            let mut bytes = [0; Termio::SIZE];
            user::read_bytes(arg, &mut bytes)?;
            new.set_from_termio(&Termio::from_bytes(&bytes));
        }
    }
    if when == When::Flushed {
        tty.flush_input();
    }
    if when != When::Now {
        tty.wait_until_sent()?;
    }
    tty.apply(new);
    Ok(0)
}

impl Tty {
    /// Puts settings in force, as far as the device can do them.
    pub(super) fn apply(&self, mut new: Termios) {
        if self.is_pty() {
            new.cflag = new.cflag & !(cflag::CSIZE | cflag::PARENB) | cflag::CS8 | cflag::CREAD;
        }
        self.with(|discipline, screen| discipline.set_termios(new, screen));
        if let Some(pty) = self.state.lock().end.pty_mut() {
            pty.note_termios(&new);
        }
        // What counts as ready may have changed.
        self.for_input.wake_all();
        self.room_queue().wake_all();
        self.for_output.wake_all();
    }

    /// Throws away input that nobody has read.
    pub(super) fn flush_input(&self) {
        let mut state = self.state.lock();
        state.discipline.flush_input();
        match &mut state.end {
            End::Master(pty) => pty.flush_backlog(),
            End::Device(device) => device.flush_input(),
        }
        drop(state);
        self.input_was_taken();
    }
}
