//! Control of a terminal, through its own file or a pseudo-terminal's master.

use super::job::{self, check, control_of_caller, is_terminal_of_caller};
use super::settings;
use super::tty::Tty;
use crate::mm::user::UserPtr;
use crate::vfs::OpenFile;
use abi::signal::Signal;
use abi::tty::{self as lx, Winsize};
use abi::{Errno, Result};
use alea_tty::termios::{cc, cflag};
use alloc::sync::Arc;

/// What a terminal's own file understands.
pub(super) fn terminal(tty: &Arc<Tty>, f: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
    match cmd {
        lx::FIONREAD => {
            let count = tty.state.lock().discipline.input_count();
            UserPtr::<i32>::new(arg).write(&(count as i32))?;
            Ok(0)
        }
        lx::TIOCSCTTY => set_terminal(tty, f, arg),
        lx::TIOCNOTTY => give_up_terminal(tty),
        lx::TIOCGPGRP | lx::TIOCGSID if !is_terminal_of_caller(tty) => Err(Errno::ENOTTY),
        lx::TIOCSTI => simulate_input(tty, arg),
        lx::TCXONC => flow_control(tty, arg),
        _ => common(tty, cmd, arg),
    }
}

/// What the terminal's file and the master understand alike.
pub(super) fn common(tty: &Arc<Tty>, cmd: u32, arg: u64) -> Result<i64> {
    match cmd {
        lx::TCGETS | lx::TCGETS2 | lx::TCGETA => settings::get(tty, cmd, arg),
        lx::TCSETS
        | lx::TCSETSW
        | lx::TCSETSF
        | lx::TCSETS2
        | lx::TCSETSW2
        | lx::TCSETSF2
        | lx::TCSETA
        | lx::TCSETAW
        | lx::TCSETAF => {
            check(tty, Signal::SIGTTOU)?;
            settings::set(tty, cmd, arg)
        }
        lx::TCSBRK | lx::TCSBRKP => break_line(tty, cmd, arg),
        lx::TCFLSH => flush(tty, arg),
        lx::TIOCGPGRP => {
            // In a statement of its own: the lock must not last until user memory is written.
            let group = tty.state.lock().group;
            // As on Linux, also of one that is gone.
            write_number(arg, group.map_or(0, |group| group.number))
        }
        lx::TIOCSPGRP => set_foreground(tty, arg),
        lx::TIOCGSID => {
            let session = tty.state.lock().session;
            if session == 0 { Err(Errno::ENOTTY) } else { write_number(arg, session) }
        }
        lx::TIOCOUTQ => write_number(arg, i32::try_from(tty.unsent()).unwrap_or(i32::MAX)),
        lx::TIOCGWINSZ => {
            let size = tty.state.lock().winsize;
            UserPtr::<Winsize>::new(arg).write(&size)?;
            Ok(0)
        }
        lx::TIOCSWINSZ => set_winsize(tty, UserPtr::new(arg).read()?),
        lx::TIOCEXCL | lx::TIOCNXCL => {
            tty.state.lock().exclusive = cmd == lx::TIOCEXCL;
            Ok(0)
        }
        lx::TIOCGEXCL => {
            let exclusive = tty.state.lock().exclusive;
            write_number(arg, i32::from(exclusive))
        }
        lx::TIOCGETD => write_number(arg, 0),
        lx::TIOCSETD => match UserPtr::<i32>::new(arg).read()? {
            0 => Ok(0), // N_TTY, the only discipline there is
            _ => Err(Errno::EINVAL),
        },
        lx::TIOCGDEV => write_number(arg, tty.dev.0 as i32),
        lx::TIOCGSOFTCAR => {
            let local = tty.state.lock().discipline.termios().cflag & cflag::CLOCAL != 0;
            write_number(arg, i32::from(local))
        }
        lx::TIOCSSOFTCAR => set_soft_carrier(tty, UserPtr::<i32>::new(arg).read()? != 0),
        lx::TIOCVHANGUP => hang_up(tty),
        _ => Err(Errno::ENOTTY),
    }
}

pub(super) fn write_number(arg: u64, number: i32) -> Result<i64> {
    UserPtr::<i32>::new(arg).write(&number)?;
    Ok(0)
}

/// TCSBRK and TCSBRKP: a break once all is sent, or with an argument to TCSBRK only the wait.
fn break_line(tty: &Tty, cmd: u32, arg: u64) -> Result<i64> {
    check(tty, Signal::SIGTTOU)?;
    tty.wait_until_sent()?;
    match (cmd, arg) {
        (lx::TCSBRK, 0) => tty.send_break(250)?,
        (lx::TCSBRK, _) => {}
        (_, 0) => tty.send_break(250)?,
        (_, tenths) => tty.send_break(tenths.saturating_mul(100))?,
    }
    Ok(0)
}

fn set_soft_carrier(tty: &Tty, on: bool) -> Result<i64> {
    let mut new = *tty.state.lock().discipline.termios();
    new.cflag = new.cflag & !cflag::CLOCAL | if on { cflag::CLOCAL } else { 0 };
    tty.apply(new);
    Ok(0)
}

fn hang_up(tty: &Arc<Tty>) -> Result<i64> {
    if !control_of_caller()?.caller().is_admin {
        return Err(Errno::EPERM);
    }
    tty.hang_up(false);
    Ok(0)
}

fn flush(tty: &Tty, which: u64) -> Result<i64> {
    check(tty, Signal::SIGTTOU)?;
    if which > lx::TCIOFLUSH {
        return Err(Errno::EINVAL);
    }
    if which != lx::TCOFLUSH {
        tty.flush_input();
    }
    if which != lx::TCIFLUSH {
        tty.flush_output();
    }
    Ok(0)
}

fn flow_control(tty: &Tty, what: u64) -> Result<i64> {
    check(tty, Signal::SIGTTOU)?;
    match what {
        lx::TCOOFF | lx::TCOON => {
            tty.with(|discipline, screen| {
                discipline.set_stopped_by_user(what == lx::TCOOFF, screen);
            });
            tty.room_queue().wake_all();
        }
        lx::TCIOFF | lx::TCION => {
            let index = if what == lx::TCIOFF { cc::VSTOP } else { cc::VSTART };
            tty.with(|discipline, screen| {
                use alea_tty::Host;
                let byte = discipline.termios().cc[index];
                if byte != 0 && screen.room() > 0 {
                    screen.put(&[byte]);
                }
            });
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// TIOCSTI: what only a privileged program may do, because it types for others.
fn simulate_input(tty: &Tty, arg: u64) -> Result<i64> {
    if !control_of_caller()?.caller().is_admin {
        return Err(Errno::EIO);
    }
    let byte = UserPtr::<u8>::new(arg).read()?;
    tty.receive(&[byte]);
    Ok(0)
}

/// TIOCSCTTY: a session leader without a terminal takes this one.
fn set_terminal(tty: &Arc<Tty>, f: &OpenFile, arg: u64) -> Result<i64> {
    let control = control_of_caller()?;
    let caller = control.caller();
    let owner = tty.state.lock().session;
    if caller.is_session_leader && owner == caller.session {
        return Ok(0);
    }
    if !caller.is_session_leader || control.terminal().is_some() {
        return Err(Errno::EPERM);
    }
    if owner != 0 {
        if arg != 1 || !caller.is_admin {
            return Err(Errno::EPERM);
        }
        control.set_terminal(owner, None);
        tty.state.lock().session = 0;
    }
    if !f.readable() && !caller.is_admin {
        return Err(Errno::EPERM);
    }
    if tty.adopt(caller.session, caller.group) { Ok(0) } else { Err(Errno::EPERM) }
}

/// TIOCNOTTY.
fn give_up_terminal(tty: &Arc<Tty>) -> Result<i64> {
    if !is_terminal_of_caller(tty) {
        return Err(Errno::ENOTTY);
    }
    let control = control_of_caller()?;
    if control.caller().is_session_leader {
        tty.leave_session(false);
    } else {
        control.detach_caller();
    }
    Ok(0)
}

fn set_foreground(tty: &Arc<Tty>, arg: u64) -> Result<i64> {
    check(tty, Signal::SIGTTOU).map_err(|error| match error {
        Errno::EIO => Errno::ENOTTY,
        other => other,
    })?;
    let group = UserPtr::<i32>::new(arg).read()?;
    if group < 0 {
        return Err(Errno::EINVAL);
    }
    let control = control_of_caller()?;
    let session = control.caller().session;
    if !is_terminal_of_caller(tty) || tty.state.lock().session != session {
        return Err(Errno::ENOTTY);
    }
    let group = control.reference(group).ok_or(Errno::ESRCH)?;
    match control.session_of_group(group) {
        None => Err(Errno::ESRCH),
        Some(of_group) if of_group != session => Err(Errno::EPERM),
        Some(_) => {
            let mut state = tty.state.lock();
            // It may have been hung up, or become another session's, meanwhile.
            if state.session != session {
                return Err(Errno::ENOTTY);
            }
            state.group = Some(group);
            Ok(0)
        }
    }
}

fn set_winsize(tty: &Arc<Tty>, size: Winsize) -> Result<i64> {
    let mut state = tty.state.lock();
    if state.winsize == size {
        return Ok(0);
    }
    state.winsize = size;
    let group = state.group;
    drop(state);
    if let Some(group) = group
        && let Some(control) = job::control()
    {
        control.signal_group(group, Signal::SIGWINCH);
    }
    Ok(0)
}
