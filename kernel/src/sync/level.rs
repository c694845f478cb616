//! The one ordered list of spinlock levels.
//!
//! A thread that holds a lock may only take locks further down this list (a greater rank). Levels with
//! `irq` disable interrupts while held and may be taken in interrupt handlers; they rank after all
//! others, so that an interrupt can never find its own lock held below it. Debug builds check both.

/// What a lock's type says about it.
#[cfg_attr(not(debug_assertions), expect(dead_code, reason = "only debug builds check the order"))]
pub trait Level {
    /// Position in the order; locks are taken in ascending rank.
    const RANK: u8;
    /// Name for the lock-order panic, docs/locking.md and the tracepoint of waits.
    const NAME: &'static str;
    /// Whether holding the lock disables interrupts.
    const IRQ_OFF: bool;
    /// Whether a second lock of the same level may be taken inside (the holder argues the order).
    const NESTS: bool = false;
}

macro_rules! levels {
    ($( $(#[$doc:meta])* $name:ident $(: $flag:ident $(+ $flag2:ident)?)?;)*) => {
        #[derive(Clone, Copy)]
        #[repr(u8)]
        enum Order { $($name,)* }
        $(
            $(#[$doc])*
            pub enum $name {}
            impl Level for $name {
                const RANK: u8 = Order::$name as u8;
                const NAME: &'static str = stringify!($name);
                const IRQ_OFF: bool = levels!(@irq $($flag $($flag2)?)?);
                const NESTS: bool = levels!(@nests $($flag $($flag2)?)?);
            }
        )*
        /// Name of a rank, for messages.
        #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "only debug builds check the order"))]
        pub fn name(rank: u8) -> &'static str {
            [$(stringify!($name)),*].get(rank as usize).copied().unwrap_or("?")
        }
    };
    (@irq) => { false };
    (@irq irq $($rest:ident)?) => { true };
    (@irq nests $($rest:ident)?) => { false };
    (@nests) => { false };
    (@nests irq) => { false };
    (@nests irq nests) => { true };
    (@nests nests) => { true };
}

levels! {
    /// The mount tree.
    MountTable;
    /// The table of a directory's entries. Two at once: a rename, and the end of a file system.
    Dentry;
    /// Where a directory entry is, and its name. Two at once: an exchange.
    DentryLink;
    /// An inode's attributes and directory contents.
    Inode: nests;
    /// A table of open files.
    FdTable: nests;
    /// File locks.
    FileLocks;
    /// Sockets on their way through sockets: held while the circles among them are looked for.
    Passing;
    /// Pipes, sockets, eventfds: the small state of a stream.
    Stream: nests;
    /// A table of System V objects of one kind.
    SysvTable;
    /// A System V shared memory segment: who has it attached, whose it is.
    SysvSegment;
    /// A page cache's tree.
    PageCache;
    /// Who watches which object (inotify); a watcher's own state is taken inside.
    Marks;
    /// Other leaf state that never meets an interrupt.
    Leaf;
    /// A terminal's state: only threads touch it, the UART's interrupt feeds one of them.
    Tty;
    /// Queues of futexes (two may be held, in index order).
    Futex: irq + nests;
    /// The table of processes, groups and sessions: signals are sent from interrupts too.
    PidTable: irq;
    /// A process's tree links: parent, children, threads; members of a group.
    ProcessTree: irq + nests;
    /// Small per-process tables: rlimits, names.
    ProcessState: irq + nests;
    /// A value that a task owns and others read.
    Owned: irq;
    /// What is between a tracer and one it traces.
    Trace: irq;
    /// A process's interval timers: armed and fired under it.
    Itimer: irq;
    /// Signal state of a task or process.
    Signal: irq + nests;
    /// How many queued signals each user has.
    SignalTally: irq;
    /// The events of a task or a CPU, and the times of one; nothing is woken while it is held.
    Perf: irq + nests;
    /// A timerfd's settings.
    TimerFile: irq;
    /// What clocks show, and the discipline of the clock.
    Clock: irq;
    /// Timer queues.
    Timer: irq;
    /// Waiters of a wait queue; waking one epoll wakes another inside.
    WaitQueue: irq + nests;
    /// Epoll's ready list; nothing is woken while it is held.
    EpollReady: irq;
    /// Run queues, in CPU order.
    RunQueue: irq + nests;
    /// Wake-ups that were not told of yet.
    Woken: irq;
    /// Entropy pool and base key.
    Random: irq;
    /// Slab and large allocations.
    Heap: irq;
    /// The frame allocator.
    Frames: irq;
    /// Kernel log and console output.
    Log: irq;
    /// The UART's transmit side.
    Uart: irq;
}
