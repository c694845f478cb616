//! [`Point`]: what can be watched, and [`Event`]: what is told of it.

/// A place, or several of one kind, in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Point {
    /// A system call begins; only of tasks whose calls are watched (`process::watch`).
    Enter,
    /// It is about to return.
    Leave,
    /// A CPU goes from one task to another.
    Switch,
    /// A task that slept may run.
    Wakeup,
    /// A page fault of a user address.
    Fault,
    /// A part of an exec, or a fork, exit or wait, is over.
    Phase,
    /// Somebody took random bytes.
    Draw,
    /// The generator got a new key.
    Reseed,
    /// Somebody had to wait for a lock of the kernel, and has it.
    Lock,
    /// There is a new task.
    Fork,
    /// A task has another program.
    Exec,
    /// A task ends.
    Exit,
    /// The timer has looked at the running task, some 250 times a second.
    Tick,
}

impl Point {
    /// All that tasks do, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Enter,
        Self::Leave,
        Self::Switch,
        Self::Wakeup,
        Self::Fault,
        Self::Phase,
        Self::Draw,
        Self::Reseed,
        Self::Lock,
        Self::Fork,
        Self::Exec,
        Self::Exit,
    ];
}

/// What the ring has left in a task, to know it again: the session that traces it, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mark(pub u32);

/// What happened. Unless said otherwise it is the running task that did it, and it has just happened. Times are of the
/// time-stamp counter.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    Enter {
        number: u32,
        args: &'a [u64; 6],
    },
    Leave {
        number: u32,
        result: i64,
        /// As they were at the entry.
        args: &'a [u64; 6],
    },
    /// From the running task to the one called `next`; the one that is left `waits` for something, or is only set aside.
    Switch {
        next: i32,
        next_mark: Mark,
        waits: bool,
    },
    /// Task `tid` is made runnable, by the running one or by an interrupt that it met, and belongs to `cpu`.
    Wakeup {
        tid: i32,
        mark: Mark,
        cpu: usize,
    },
    /// `ip` is where the access was, in the program or in the kernel, `bp` the frame pointer there; `code` is the CPU's.
    Fault {
        address: u64,
        ip: u64,
        bp: u64,
        code: u32,
        start: u64,
    },
    Phase {
        name: &'static str,
        start: u64,
        ticks: u64,
    },
    /// By the interface of this name.
    Draw {
        by: &'static str,
        bytes: u64,
    },
    /// Whatever task runs; `cause` may not be its doing.
    Reseed {
        cause: &'static str,
    },
    /// For the lock of this level or kind.
    Lock {
        name: &'static str,
        start: u64,
    },
    /// Task `tid` of process `pid`, a child of the running task or a thread beside it; it has not run.
    Fork {
        tid: i32,
        pid: i32,
    },
    /// `comm` is the new name, `old_tid` the number that the task had before.
    Exec {
        comm: [u8; 16],
        old_tid: i32,
    },
    /// As wait tells it.
    Exit {
        status: u16,
    },
    Tick,
}

impl Event<'_> {
    /// Where it comes from.
    pub const fn point(&self) -> Point {
        match self {
            Self::Enter { .. } => Point::Enter,
            Self::Leave { .. } => Point::Leave,
            Self::Switch { .. } => Point::Switch,
            Self::Wakeup { .. } => Point::Wakeup,
            Self::Fault { .. } => Point::Fault,
            Self::Phase { .. } => Point::Phase,
            Self::Draw { .. } => Point::Draw,
            Self::Reseed { .. } => Point::Reseed,
            Self::Lock { .. } => Point::Lock,
            Self::Fork { .. } => Point::Fork,
            Self::Exec { .. } => Point::Exec,
            Self::Exit { .. } => Point::Exit,
            Self::Tick => Point::Tick,
        }
    }
}
