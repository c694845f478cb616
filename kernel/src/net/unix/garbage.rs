//! Descriptors in flight (SCM_RIGHTS) that nobody can ever receive: the garbage collector of AF_UNIX sockets.
//!
//! A socket may travel through itself, or two through each other; when their descriptors are closed, the queues
//! keep them alive for ever. [`collect`] finds such cycles: a passed socket is alive if something other than the
//! queues of passed sockets refers to its file, or if it waits in the queue of one that is alive. Chains of sockets
//! in sockets are dropped one by one ([`release`]), not by recursion on the kernel stack.
//!
//! Owns the list of passed sockets and the queues to be dropped. Never drops a file under a lock.
//!
//! Locks: `Passing`, held over a whole search and taken before the state of sockets. Who has taken files out of a queue
//! takes and releases it ([`wait_for_search`]) before the references can go anywhere else, so that counts and queues agree during a search.

use super::queue::Message;
use super::unix::{Role, Socket, of_file};
use crate::mm::fallible::{TryGrow, TryVec};
use crate::mm::heap::pages_of_room;
use crate::sync::{SpinLock, level};
use crate::vfs::OpenFile;
use abi::Result;
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The sockets that were passed and may still be on their way.
struct Passed {
    files: Vec<Weak<OpenFile>>,
    /// When there are more than this, a search is due.
    due: usize,
}

static PASSED: SpinLock<Passed, level::Passing> =
    SpinLock::new(Passed { files: Vec::new(), due: FIRST_LOOK });
/// Relaxed: hints for when to look, and marks that one task searches or releases; all data is under locks.
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicUsize = AtomicUsize::new(0);
static COLLECTING: AtomicBool = AtomicBool::new(false);
static RELEASING: AtomicBool = AtomicBool::new(false);
/// Queues to be dropped. There is always room for that of each socket: a drop can neither wait for memory nor
/// recurse.
static RELEASED: SpinLock<Vec<VecDeque<Message>>, level::Leaf> = SpinLock::new(Vec::new());

const FIRST_LOOK: usize = 256;
/// Sockets that are closed between two searches, at least.
const CLOSES: usize = 64;

/// Notes files that are about to be passed; `ENOMEM`.
pub(super) fn note(files: &[Arc<OpenFile>]) -> Result<()> {
    let mut full = false;
    for file in files.iter().filter(|file| of_file(file).is_ok()) {
        let mut passed = PASSED.lock();
        passed.files.try_push(Arc::downgrade(file))?;
        IN_FLIGHT.store(passed.files.len(), Ordering::Relaxed);
        full |= passed.files.len() > passed.due;
    }
    if full {
        collect();
    }
    Ok(())
}

/// A socket was closed: looks for garbage now and then, while something is on its way.
pub(super) fn closed() {
    let passed = IN_FLIGHT.load(Ordering::Relaxed);
    if passed != 0 && CLOSED.fetch_add(1, Ordering::Relaxed) >= CLOSES + passed / 2 {
        CLOSED.store(0, Ordering::Relaxed);
        collect();
    }
}

/// Collects all garbage now: sockets in sockets may need several searches.
pub fn collect_all() {
    loop {
        let before = IN_FLIGHT.load(Ordering::Relaxed);
        collect();
        if IN_FLIGHT.load(Ordering::Relaxed) >= before {
            return;
        }
    }
}

/// Waits until no search is under way.
pub(super) fn wait_for_search() {
    drop(PASSED.lock());
}

/// There are `sockets` sockets now: makes room for the queues of all, or `ENOMEM`.
pub(super) fn make_room(sockets: usize) -> Result<()> {
    // A queue in there is that of a socket which is gone, or whose queue is empty now.
    RELEASED.lock().try_room(sockets)
}

/// Pages of that room, which never gets less.
pub fn kept_pages() -> u64 {
    pages_of_room::<VecDeque<Message>>(RELEASED.lock().capacity())
}

/// Drops messages and the files in them.
pub(super) fn release(queue: VecDeque<Message>) {
    if queue.iter().all(|message| message.ancillary.files.is_empty()) {
        return;
    }
    wait_for_search();
    #[expect(
        clippy::disallowed_methods,
        reason = "each socket's queue has its place: see `make_room`"
    )]
    RELEASED.lock().push(queue);
    // What is closed in here comes back to `release`, which then only adds to the list.
    while !RELEASED.lock().is_empty() && !RELEASING.swap(true, Ordering::Relaxed) {
        loop {
            let next = RELEASED.lock().pop();
            let Some(next) = next else { break };
            drop(next);
        }
        RELEASING.store(false, Ordering::Relaxed);
    }
}

/// Empties the queues of passed sockets that nobody can reach.
fn collect() {
    if COLLECTING.swap(true, Ordering::Relaxed) {
        return;
    }
    let garbage = find_garbage();
    COLLECTING.store(false, Ordering::Relaxed);
    garbage.into_iter().for_each(release);
}

/// From here on a count of this value says that somebody can reach the file.
const ALIVE: usize = usize::MAX;

/// A search: the files that were passed, in the order of their addresses. One reference to each is the search's own.
struct Search {
    files: Vec<Arc<OpenFile>>,
    /// How often a file was found in queues of passed sockets; [`ALIVE`] once somebody can reach it.
    seen: Vec<usize>,
    /// Files that were found alive, and whose queues are to be looked at.
    open: Vec<usize>,
    /// How often a file was found in the queues of those that are not alive.
    inside: Vec<usize>,
}

impl Search {
    /// The files that are still there; nothing without memory.
    #[expect(clippy::disallowed_methods, reason = "there is room for all that were passed")]
    fn begin(passed: &mut Passed) -> Option<Self> {
        let most = passed.files.len();
        // Before anything is referred to: under the lock no reference may be the last.
        let (mut files, mut seen) = (Vec::with_room(most).ok()?, Vec::with_room(most).ok()?);
        let (open, inside) = (Vec::with_room(most).ok()?, Vec::with_room(most).ok()?);
        files.try_extend(passed.files.iter().filter_map(Weak::upgrade)).ok()?;
        files.sort_unstable_by_key(Arc::as_ptr);
        files.dedup_by(|a, b| Arc::ptr_eq(a, b));
        passed.files.clear();
        passed.files.try_extend(files.iter().map(Arc::downgrade)).ok()?;
        passed.due = files.len().saturating_mul(2).max(FIRST_LOOK);
        IN_FLIGHT.store(files.len(), Ordering::Relaxed);
        seen.resize(files.len(), 0);
        Some(Self { files, seen, open, inside })
    }

    fn index(files: &[Arc<OpenFile>], file: &Arc<OpenFile>) -> Option<usize> {
        files.binary_search_by_key(&Arc::as_ptr(file), Arc::as_ptr).ok()
    }

    /// Counts how often each file is in the queues of those that `wanted` names.
    fn count(files: &[Arc<OpenFile>], counts: &mut [usize], wanted: impl Fn(usize) -> bool) {
        for (_, file) in files.iter().enumerate().filter(|(at, _)| wanted(*at)) {
            each_inside(file, &mut |inner| {
                if let Some(at) = Self::index(files, inner) {
                    counts[at] = counts[at].saturating_add(1);
                }
            });
        }
    }

    /// Finds the files to which something other than the queues of passed sockets refers.
    #[expect(clippy::disallowed_methods, reason = "there is room for all that were passed")]
    fn find_roots(&mut self) {
        Self::count(&self.files, &mut self.seen, |_| true);
        for (at, file) in self.files.iter().enumerate() {
            if Arc::strong_count(file) > self.seen[at].saturating_add(1) {
                self.seen[at] = ALIVE;
                self.open.push(at);
            }
        }
    }

    /// What is in the queue of one that is alive is alive.
    #[expect(clippy::disallowed_methods, reason = "there is room for all that were passed")]
    fn spread(&mut self) {
        let Self { files, seen, open, .. } = self;
        while let Some(at) = open.pop() {
            each_inside(&files[at], &mut |inner| {
                if let Some(at) = Self::index(files, inner)
                    && seen[at] != ALIVE
                {
                    seen[at] = ALIVE;
                    open.push(at);
                }
            });
        }
    }

    /// A file that was counted in the queue of a living socket may have been taken out since, by a receiver who now
    /// waits for this search. So garbage is only what garbage alone refers to: whether a file was found alive by that.
    #[expect(clippy::disallowed_methods, reason = "there is room for all that were passed")]
    fn look_again(&mut self) -> bool {
        let Self { files, seen, open, inside } = self;
        inside.clear();
        inside.resize(files.len(), 0);
        Self::count(files, inside, |at| seen[at] != ALIVE);
        for (at, file) in files.iter().enumerate() {
            if seen[at] != ALIVE && Arc::strong_count(file) > inside[at].saturating_add(1) {
                seen[at] = ALIVE;
                open.push(at);
            }
        }
        !open.is_empty()
    }

    /// Takes the queues of the sockets that nobody can reach.
    #[expect(clippy::disallowed_methods, reason = "there is room for all that were passed")]
    fn take_queues(&self, garbage: &mut Vec<VecDeque<Message>>) {
        for (file, _) in self.files.iter().zip(&self.seen).filter(|(_, seen)| **seen != ALIVE) {
            let Ok(socket) = of_file(file) else { continue };
            let mut state = socket.state.lock();
            garbage.push(state.queue.take_all());
            let Role::Listener { pending, .. } = &state.role else { continue };
            // What was sent over a connection that nobody has accepted goes with the listener; without memory for
            // that, at the next search. The room of the files themselves stays theirs.
            for waiting in pending {
                if garbage.try_room(self.files.len() + 1).is_ok() {
                    garbage.push(waiting.state.lock().queue.take_all());
                }
            }
        }
    }
}

fn find_garbage() -> Vec<VecDeque<Message>> {
    let mut passed = PASSED.lock();
    let mut garbage = Vec::new();
    if garbage.try_reserve_exact(passed.files.len()).is_err() {
        return garbage;
    }
    let Some(mut search) = Search::begin(&mut passed) else { return garbage };
    search.find_roots();
    loop {
        search.spread();
        if !search.look_again() {
            break;
        }
    }
    search.take_queues(&mut garbage);
    drop(passed);
    garbage
}

/// Calls `visit` with every file in a socket's queue, and in those of connections that wait to be accepted.
fn each_inside(file: &OpenFile, visit: &mut dyn FnMut(&Arc<OpenFile>)) {
    let mut visit_queue = |socket: &Socket| {
        let state = socket.state.lock();
        state.queue.iter().flat_map(|message| &message.ancillary.files).for_each(&mut *visit);
        let Role::Listener { pending, .. } = &state.role else { return };
        for waiting in pending {
            // Two sockets are locked: a listener before a connection that waits to be accepted from it.
            let state = waiting.state.lock();
            state.queue.iter().flat_map(|message| &message.ancillary.files).for_each(&mut *visit);
        }
    };
    if let Ok(socket) = of_file(file) {
        visit_queue(socket);
    }
}
