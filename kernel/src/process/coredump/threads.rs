//! The threads of a process that dumps core: each leaves its registers behind and stands until the core is written.
//!
//! Owns the list of dumps that are under way. A thread tells its own registers, when it has been told to die: never does one
//! read those of another. It stands before it gives anything up, so that the core shows the process whole. Locks: `Leaf`, for the
//! list and for what was left behind.

use crate::arch::task::fpu::debug_size;
use crate::mm::fallible::{TryVec, try_arc};
use crate::process::ptrace;
use crate::process::signal;
use crate::process::task::current::{Current, current};
use crate::process::task::process::Process;
use crate::process::tree::exit::Status;
use crate::sync::{SpinLock, WaitQueue, level};
use crate::vfs::grow;
use abi::ptrace::Regs;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a thread leaves behind.
pub(super) struct Thread {
    pub tid: i32,
    pub is_leader: bool,
    pub regs: Regs,
    /// The image of XSAVE, or of FXSAVE.
    pub vectors: Vec<u8>,
    pub pending: u64,
    pub blocked: u64,
    pub utime_ns: u64,
    pub stime_ns: u64,
}

impl Thread {
    /// The running one.
    pub fn of(task: Current) -> Result<Self> {
        let frame = task.user_frame().ok_or(Errno::EINVAL)?;
        let mut vectors = Vec::new();
        vectors.try_resize(debug_size(), 0)?;
        task.vectors().write_debug_image(&mut vectors);
        let usage = task.times.usage();
        Ok(Self {
            tid: task.tid(),
            is_leader: task.is_leader(),
            regs: ptrace::registers(&frame),
            vectors,
            pending: task.signals.pending().0,
            blocked: task.signals.shown_mask().0,
            utime_ns: usage.utime_ns,
            stime_ns: usage.stime_ns,
        })
    }
}

/// A dump that is under way.
struct Dump {
    pid: i32,
    left: SpinLock<Vec<Thread>, level::Leaf>,
    /// How many threads stand. Release when one does, Acquire when the dumper counts: what they left is seen.
    standing: AtomicUsize,
    /// One of them found no memory for what it leaves.
    incomplete: AtomicBool,
    over: AtomicBool,
    /// Those that stand.
    queue: WaitQueue,
}

/// One of each process at most.
static DUMPS: SpinLock<Vec<Arc<Dump>>, level::Leaf> = SpinLock::new(Vec::new());

fn find(pid: i32) -> Option<Arc<Dump>> {
    DUMPS.lock().iter().find(|dump| dump.pid == pid).cloned()
}

fn remove(dump: &Arc<Dump>) {
    let mut dumps = DUMPS.lock();
    let at = dumps.iter().position(|other| Arc::ptr_eq(other, dump));
    // The caller has another reference: nothing is dropped under the lock.
    at.map(|at| dumps.remove(at));
}

/// The other threads of the running process, all of which stand. They go when this does.
pub(super) struct Gathered {
    dump: Arc<Dump>,
    process: Arc<Process>,
}

impl Gathered {
    /// Tells all other threads to die by `status`, and waits until each stands or is gone.
    ///
    /// # Errors
    /// `EAGAIN` if the process ends already, or a thread of it calls exec; `EINTR` if it is told to die meanwhile; `ENOMEM`.
    pub fn begin(task: Current, status: Status) -> Result<Self> {
        let process = task.process().clone();
        let dump = try_arc(Dump {
            pid: process.pid(),
            left: SpinLock::new(Vec::new()),
            standing: AtomicUsize::new(0),
            incomplete: AtomicBool::new(false),
            over: AtomicBool::new(false),
            queue: WaitQueue::new(),
        })?;
        // Threads may fail at once. Under the list's lock, so that those that end find the dump of the one that decides, and none
        // ends the process before that one has decided.
        if !grow::push_if(&DUMPS, dump.clone(), || process.begin_dump(status))? {
            return Err(Errno::EAGAIN);
        }
        let gathered = Self { dump, process };
        signal::terminate_threads(&gathered.process, Some(&task));
        gathered.wait()?;
        if gathered.dump.incomplete.load(Ordering::Acquire) {
            return Err(Errno::ENOMEM);
        }
        Ok(gathered)
    }

    fn wait(&self) -> Result<()> {
        let all = || {
            // Acquire: see `standing`.
            let standing = self.dump.standing.load(Ordering::Acquire);
            self.process.has_live_threads(standing.saturating_add(1)).then_some(())
        };
        self.process.threads_changed.wait_killable(all).map_err(|_| Errno::EINTR)
    }

    /// What they left behind, the last one first.
    pub fn take(&self) -> Vec<Thread> {
        let mut threads = core::mem::take(&mut *self.dump.left.lock());
        threads.reverse();
        threads
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        remove(&self.dump);
        self.process.end_dump();
        // Release: pairs with the Acquire of those that stand.
        self.dump.over.store(true, Ordering::Release);
        self.dump.queue.wake_all();
    }
}

/// The running thread ends while its process dumps core: it leaves its registers and stands until that is done.
#[cold]
pub(in crate::process) fn join() {
    let task = current();
    let process = task.process();
    let Some(dump) = find(process.pid()) else { return };
    let left = Thread::of(task).and_then(|thread| grow::push(&dump.left, thread));
    if left.is_err() {
        dump.incomplete.store(true, Ordering::Release);
    }
    dump.standing.fetch_add(1, Ordering::Release);
    process.threads_changed.wake_all();
    // Acquire: pairs with the Release in `drop`.
    dump.queue.wait(|| dump.over.load(Ordering::Acquire).then_some(()));
}
