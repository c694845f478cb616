//! What the tracepoints call: makes records of events, and writes them to the sessions that see them.
//!
//! Owns nothing. It runs in interrupt handlers and with any lock held, so it takes none. Locks: none.

use super::calls;
use super::emit::{Who, write};
use super::record::{Kind, name};
use super::session::{Session, look, look_at_all};
use crate::process::task::current::{TASKS, current};
use crate::trace::{Event, Mark, Point, Subscriber};

/// Fills the slot of the tracepoints.
pub(super) fn register() {
    crate::trace::register(Subscriber::Ring, told);
}

fn running() -> Who {
    if !TASKS.is_active() {
        return Who { tid: 0, pid: 0, mark: Mark::default() };
    }
    Who::of(&current())
}

fn told(event: &Event<'_>) {
    let who = running();
    let point = event.point();
    let see = |kind, words: &[u64]| to_all(who, Mark::default(), point, kind, words);
    match *event {
        Event::Enter { number, args } => calls::enter(current(), number, args),
        Event::Leave { number, result, args } => calls::leave(current(), number, result, args),
        Event::Switch { next, next_mark, waits } => {
            let words = [of(next), u64::from(waits)];
            to_all(who, next_mark, point, Kind::Switch, &words);
        }
        Event::Wakeup { tid, mark, cpu } => {
            to_all(who, mark, point, Kind::Wakeup, &[of(tid), cpu as u64]);
        }
        Event::Fault { address, ip, code, start, .. } => {
            fault(who, [address, ip, code.into(), start])
        }
        Event::Phase { name: phase, start, ticks } => {
            let [a, b, c] = name(phase.as_bytes());
            see(Kind::Phase, &[start, ticks, a, b, c]);
        }
        Event::Draw { by, bytes } => {
            let [a, b, c] = name(by.as_bytes());
            see(Kind::Draw, &[bytes, a, b, c]);
        }
        Event::Reseed { cause } => see(Kind::Reseed, &name(cause.as_bytes())),
        Event::Lock { name: lock, start } => {
            let [a, b, c] = name(lock.as_bytes());
            see(Kind::Lock, &[start, a, b, c]);
        }
        Event::Fork { tid, pid } => see(Kind::Fork, &[of(tid), of(pid)]),
        Event::Exec { comm, old_tid } => {
            let comm = comm.split(|&byte| byte == 0).next().unwrap_or_default();
            let [a, b, c] = name(comm);
            see(Kind::Exec, &[of(old_tid), a, b, c]);
        }
        Event::Exit { status } => see(Kind::Exit, &[status.into()]),
        // It is no doing of the task, and no session can ask for it.
        Event::Tick => {}
    }
}

fn of(number: i32) -> u64 {
    number.cast_unsigned().into()
}

/// No process has this number.
const NOBODY: i32 = -1;

/// A fault in the kernel tells where only to who may know.
fn fault(who: Who, words: [u64; 4]) {
    let [address, ip, code, start] = words;
    let shown = |session: &Session| {
        let is_hidden = ip >= crate::base::page::USER_END && !session.sees_kernel;
        let ip = if is_hidden { 0 } else { ip };
        write(&session.rings, Kind::Fault, who.tid, &[address, ip, code, start]);
    };
    let see = |session: &Session| {
        if session.wants(Point::Fault) {
            shown(session);
        }
    };
    look(who.mark, see);
    look_at_all(who.pid, see);
}

/// Writes a record to the sessions that see the running task, or the one marked with `other`.
fn to_all(who: Who, other: Mark, point: Point, kind: Kind, words: &[u64]) {
    let see = |session: &Session| {
        if session.wants(point) {
            write(&session.rings, kind, who.tid, words);
        }
    };
    look(who.mark, see);
    if other != who.mark {
        look(other, see);
    }
    // Where a CPU goes to is seen even of who reads: each switch has to fit the one before.
    let pid = if kind == Kind::Switch { NOBODY } else { who.pid };
    look_at_all(pid, see);
}
