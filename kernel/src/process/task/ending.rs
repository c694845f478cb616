//! How far a process is with its end: exiting, ending, a zombie, reaped; and the exec of one thread, which ends the others.
//!
//! Owns the meaning of the bits in the process's word. Each step is taken once, by one atomic operation. Locks: none.

use super::process::Process;
use super::task::Task;
use crate::base::cpu;
use crate::process::tree::exit::Status;
use core::sync::atomic::Ordering;

const EXITING: u32 = 1 << 16;
const ZOMBIE: u32 = 1 << 17;
const REAPED: u32 = 1 << 18;
/// A thread is making itself the only one, for exec.
const EXECING: u32 = 1 << 19;
/// The last thread tells the parent; `ZOMBIE` follows at once.
const ENDING: u32 = 1 << 20;
/// A thread writes a core; the others stand until that is done.
const DUMPING: u32 = 1 << 21;
/// In the status: a core was written.
const DUMPED: u32 = 0x80;
const STATUS: u32 = 0xffff;

impl Process {
    /// Begins the end of all threads; the first call decides the status. True if it was this one.
    pub(in crate::process) fn begin_exit(&self, status: Status) -> bool {
        let new = EXITING | u32::from(status.raw());
        // AcqRel: pairs with the Acquire in `exit_flags`.
        let order = Ordering::AcqRel;
        self.exit
            .fetch_update(order, Ordering::Acquire, |old| (old & EXITING == 0).then_some(new))
            .is_ok()
    }

    /// Begins the end of all threads by a signal, with a core; false if the process ends already, or a thread of it calls
    /// exec.
    pub(in crate::process) fn begin_dump(&self, status: Status) -> bool {
        let new = EXITING | DUMPING | u32::from(status.raw());
        let free = |old: u32| (old & (EXITING | EXECING) == 0).then_some(new);
        // AcqRel: as in `begin_exit`.
        self.exit.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).is_ok()
    }

    /// The core is written, or is not going to be.
    pub(in crate::process) fn end_dump(&self) {
        // Release: as in `set_zombie`.
        self.exit.fetch_and(!DUMPING, Ordering::Release);
    }

    /// Whether one of its threads writes a core.
    pub(in crate::process) fn is_dumping(&self) -> bool {
        self.exit_flags() & DUMPING != 0
    }

    /// A core was written: the status that has been decided says so.
    pub(in crate::process) fn set_dumped(&self) {
        // Relaxed: the process is told of its end later, by the same thread.
        self.exit.fetch_or(DUMPED, Ordering::Relaxed);
    }

    /// It was killed while it wrote a core: that is what it ended by.
    pub(in crate::process) fn set_killed(&self, status: Status) {
        let killed = |old: u32| Some(old & !STATUS | u32::from(status.raw()));
        // Relaxed: as in `set_dumped`. The closure always gives a value.
        let _ = self.exit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, killed);
    }

    /// The leader ends; or, by exec, another thread becomes it.
    pub(in crate::process) fn note_leader_left(&self, has_left: bool) {
        // Relaxed: a flag to show.
        self.leader_left.store(has_left, Ordering::Relaxed);
    }

    /// Whether the leader has ended. The process goes on until its last thread ends, whose status it ends with.
    pub(in crate::process) fn has_leader_left(&self) -> bool {
        // Relaxed: see `note_leader_left`.
        self.leader_left.load(Ordering::Relaxed)
    }

    /// Begins exec by thread `tid`; false if another thread is at it or the process ends.
    pub(in crate::process) fn begin_exec(&self, tid: i32) -> bool {
        // AcqRel: as in `begin_exit`.
        let order = Ordering::AcqRel;
        let free = |old: u32| (old & (EXITING | EXECING) == 0).then_some(old | EXECING);
        let begun = self.exit.fetch_update(order, Ordering::Acquire, free).is_ok();
        if begun {
            // Relaxed: only compared with a thread's own number, while the flag is set.
            self.exec_tid.store(tid, Ordering::Relaxed);
        }
        begun
    }

    /// The exec has its process for itself, or gave up.
    pub(in crate::process) fn end_exec(&self) {
        // Release: as in `set_zombie`.
        self.exit.fetch_and(!EXECING, Ordering::Release);
    }

    /// Whether a thread other than `task` makes itself the only one.
    pub(in crate::process) fn is_execing_elsewhere(&self, task: &Task) -> bool {
        // Relaxed: see `begin_exec`.
        self.exit_flags() & EXECING != 0 && self.exec_tid.load(Ordering::Relaxed) != task.tid()
    }

    /// Whether no new thread may join.
    pub(in crate::process) fn is_closing(&self) -> bool {
        self.exit_flags() & (EXITING | EXECING) != 0
    }

    /// The last thread is about to notify the parent.
    pub(in crate::process) fn set_ending(&self) {
        // AcqRel: pairs with the Acquire in `exit_flags`: the status is complete. The tree locks order this
        // against a change of the parent.
        self.exit.fetch_or(ENDING, Ordering::AcqRel);
    }

    /// The last thread is gone, and the parent was notified. Nothing blocks between `set_ending` and this.
    pub(in crate::process) fn set_zombie(&self) {
        // Release: as in `set_ending`.
        self.exit.fetch_or(ZOMBIE, Ordering::Release);
    }

    /// Whether its parent is being notified of its end: it is a zombie within an instant.
    pub(in crate::process) fn is_ending(&self) -> bool {
        self.exit_flags() & (ENDING | ZOMBIE) == ENDING
    }

    /// Whether it is a zombie, spinning for the instant in which the parent is notified. The caller holds no lock.
    pub(in crate::process) fn is_zombie_by_now(&self) -> bool {
        while self.is_ending() {
            cpu::relax();
        }
        self.is_zombie()
    }

    /// Claims a zombie for reaping; true for one caller only.
    pub(in crate::process) fn claim_reap(&self) -> bool {
        // AcqRel: as in `begin_exit`.
        self.exit.fetch_or(REAPED, Ordering::AcqRel) & REAPED == 0
    }

    /// Whether its parent has taken notice of its end, and its number may be another's.
    pub fn is_reaped(&self) -> bool {
        self.exit_flags() & REAPED != 0
    }

    fn exit_flags(&self) -> u32 {
        // Acquire: pairs with the writers above.
        self.exit.load(Ordering::Acquire)
    }

    /// Whether all its threads have been told to end.
    pub fn is_exiting(&self) -> bool {
        self.exit_flags() & EXITING != 0
    }

    /// Whether all its threads have ended.
    pub fn is_zombie(&self) -> bool {
        self.exit_flags() & ZOMBIE != 0
    }

    /// The signal that tells the parent of its end.
    pub fn exit_signal_number(&self) -> u64 {
        // Relaxed: set at creation or by exec.
        self.exit_signal.load(Ordering::Relaxed).max(0) as u64
    }

    /// The status it ends with, once that is decided.
    pub fn exit_status(&self) -> Status {
        Status::from_raw((self.exit_flags() & STATUS) as u16)
    }
}
