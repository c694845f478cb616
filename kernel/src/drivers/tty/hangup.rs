//! Hanging up: the terminal leaves its session, its open files go dead, its processes are told.

use super::tty::Tty;
use super::{job, pty};
use crate::vfs::PollEvents;
use abi::signal::Signal;
use alloc::sync::Arc;

impl Tty {
    /// Hangs the terminal up: open files (but /dev/console's) read end-of-file and write EIO, the session
    /// leader gets SIGHUP and SIGCONT. `leader_exits`: the foreground group gets SIGHUP instead.
    pub(super) fn hang_up(&self, leader_exits: bool) {
        let mut state = self.state.lock();
        let (session, group) = (state.session, state.group);
        state.session = 0;
        state.group = None;
        state.generation = state.generation.wrapping_add(1);
        state.discipline.flush_input();
        drop(state);
        if self.is_pty() {
            self.with(|discipline, screen| discipline.set_termios(pty::SETTINGS, screen));
        }
        if let Some(control) = job::control()
            && session != 0
        {
            control.set_terminal(session, None);
            if !leader_exits {
                control.signal_leader(session, Signal::SIGHUP);
                control.signal_leader(session, Signal::SIGCONT);
            } else if let Some(group) = group {
                control.signal_group(group, Signal::SIGHUP);
            }
        }
        self.listeners.clear();
        self.wake_everyone();
    }

    /// Wakes all that may wait, to look at the terminal again.
    pub(super) fn wake_everyone(&self) {
        let all = PollEvents::READABLE | PollEvents::WRITABLE | PollEvents::HUP | PollEvents::ERR;
        for queue in [&self.for_input, &self.for_room, &self.for_output, &self.for_typing] {
            queue.wake_events(all.bits());
            queue.wake_all();
        }
        if let Some(device) = self.device {
            device.for_room().wake_all();
        }
    }

    /// The session gives the terminal up without a hang-up (TIOCNOTTY by its leader, or a leader's exit
    /// on a pseudo-terminal).
    pub(super) fn leave_session(&self, leader_exits: bool) {
        let mut state = self.state.lock();
        let (session, group) = (state.session, state.group);
        state.session = 0;
        state.group = None;
        drop(state);
        let Some(control) = job::control() else { return };
        if let Some(group) = group {
            control.signal_group(group, Signal::SIGHUP);
            if !leader_exits {
                control.signal_group(group, Signal::SIGCONT);
            }
        }
        if session != 0 {
            control.set_terminal(session, None);
        }
    }
}

/// The leader of the session that `tty` controls exits.
pub fn session_leader_exits(tty: &Arc<Tty>) {
    if tty.is_pty() { tty.leave_session(true) } else { tty.hang_up(true) }
}
