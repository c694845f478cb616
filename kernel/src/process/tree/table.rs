//! Numbers: of tasks, processes, groups and sessions, in one space as on Linux.
//!
//! A bitmap says which numbers are in use, a table of chunks who uses them: both lookups are O(1). A number
//! is free again when no task, process, group or session has it, and a chunk goes with its last number, except
//! the one that new numbers come from. Owns which are used. Locks: `PidTable`; never drops anything or
//! calls a visitor under it.

use super::group::{Group, Session};
use crate::mm::fallible::{TryVec, try_box};
use crate::mm::heap::pages_of_room;
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::sync::{SpinLock, level};
use crate::vfs::object::owner::PidRef;
use abi::{Errno, Result};
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

crate::setting! {
    /// Numbers lie below this: kernel.pid_max. What is in use already stays when it is lowered.
    pub static PID_MAX = 32_768, RESERVED + 1..=4_194_304;
}
/// After the first round, small numbers are left to daemons, as on Linux.
const RESERVED: i32 = 300;
/// Numbers of a chunk: those of one word of the bitmap.
const CHUNK: usize = 64;

#[derive(Default)]
struct Entry {
    task: Option<Arc<Task>>,
    process: Option<Arc<Process>>,
    group: Weak<Group>,
    session: Weak<Session>,
}

impl Entry {
    /// Takes out the group and the session if they are gone: a `Weak` keeps their memory.
    fn take_gone(&mut self) -> (Weak<Group>, Weak<Session>) {
        let group = if self.group.strong_count() == 0 { &mut self.group } else { &mut Weak::new() };
        let group = core::mem::take(group);
        let session =
            if self.session.strong_count() == 0 { &mut self.session } else { &mut Weak::new() };
        (group, core::mem::take(session))
    }

    fn is_unused(&self) -> bool {
        self.task.is_none()
            && self.process.is_none()
            && self.group.strong_count() == 0
            && self.session.strong_count() == 0
    }
}

struct Chunk {
    entries: Box<[Entry; CHUNK]>,
    /// Of each number, how many had been given out when it was, last.
    stamps: Box<[u64; CHUNK]>,
}

impl Chunk {
    fn new() -> Result<Self> {
        let entries = try_box(core::array::from_fn(|_| Entry::default()))?;
        Ok(Self { entries, stamps: try_box([0; CHUNK])? })
    }
}

struct Table {
    /// A bit for each number; nobody has those beyond its end.
    used: Vec<u64>,
    chunks: Vec<Option<Chunk>>,
    last: i32,
    tasks: usize,
    /// Numbers ever given out, for /proc/stat.
    given: u64,
}

static TABLE: SpinLock<Table, level::PidTable> =
    SpinLock::new(Table { used: Vec::new(), chunks: Vec::new(), last: 0, tasks: 0, given: 0 });

/// Who is looked for in the table.
#[derive(Clone, Copy)]
pub enum Who {
    /// Whoever has the number now.
    Has(i32),
    /// The one that had it when it was named, if he has it still.
    Had(PidRef),
}

impl From<i32> for Who {
    #[inline]
    fn from(number: i32) -> Self {
        Self::Has(number)
    }
}

impl From<PidRef> for Who {
    #[inline]
    fn from(named: PidRef) -> Self {
        Self::Had(named)
    }
}

impl Table {
    fn entry(&self, number: i32) -> Option<&Entry> {
        let at = usize::try_from(number).ok()?;
        self.chunks.get(at / CHUNK)?.as_ref().map(|chunk| &chunk.entries[at % CHUNK])
    }

    /// Which of those that have had the number it was given to last.
    fn stamp(&self, number: i32) -> Option<u64> {
        let at = usize::try_from(number).ok()?;
        self.chunks.get(at / CHUNK)?.as_ref().map(|chunk| chunk.stamps[at % CHUNK])
    }

    /// The entry of who is looked for.
    #[inline]
    fn find(&self, who: Who) -> Option<&Entry> {
        match who {
            Who::Has(number) => self.entry(number),
            Who::Had(PidRef { number, stamp }) => {
                self.entry(number).filter(|_| self.stamp(number) == Some(stamp))
            }
        }
    }

    fn entry_mut(&mut self, number: i32) -> Option<&mut Entry> {
        let at = usize::try_from(number).ok()?;
        self.chunks.get_mut(at / CHUNK)?.as_mut().map(|chunk| &mut chunk.entries[at % CHUNK])
    }

    /// The lowest free number in `from..end`.
    fn free_from(&self, from: i32, end: i32) -> Option<i32> {
        // Number 0 is the idle tasks'.
        let from = from.max(1) as usize;
        let mut skip = (1u64 << (from % 64)) - 1;
        let mut word = from / 64;
        let number = loop {
            let taken = self.used.get(word).copied().unwrap_or(0) | skip;
            if taken != u64::MAX {
                break (word * 64 + taken.trailing_ones() as usize) as i32;
            }
            skip = 0;
            word += 1;
        };
        (number < end).then_some(number)
    }

    fn set_used(&mut self, number: i32, used: bool) {
        let (word, bit) = (number as usize / 64, 1u64 << (number % 64));
        if used {
            self.used[word] |= bit;
        } else {
            self.used[word] &= !bit;
        }
    }

    /// Frees a number that nobody has any more: a chunk to be dropped, if it was the last one there.
    #[must_use]
    fn free_if_unused(&mut self, number: i32) -> Option<Chunk> {
        if !self.entry(number).is_none_or(Entry::is_unused) {
            return None;
        }
        self.set_used(number, false);
        let chunk = number as usize / CHUNK;
        if chunk == self.last as usize / CHUNK { None } else { self.take_if_empty(chunk) }
    }

    fn take_if_empty(&mut self, chunk: usize) -> Option<Chunk> {
        if self.used[chunk] == 0 { self.chunks.get_mut(chunk)?.take() } else { None }
    }
}

/// Takes a free number; `EAGAIN` if there is none, `ENOMEM`.
pub(in crate::process) fn allocate() -> Result<i32> {
    let mut table = TABLE.lock();
    let end = PID_MAX.get();
    let next = if table.last + 1 >= end { RESERVED } else { table.last + 1 };
    let number = table.free_from(next, end).or_else(|| table.free_from(RESERVED, end));
    let number = number.ok_or(Errno::EAGAIN)?;
    let chunk = number as usize / CHUNK;
    if table.chunks.len() <= chunk {
        let more = chunk + 1 - table.chunks.len();
        table.chunks.try_reserve(more).map_err(|_| Errno::ENOMEM)?;
        #[expect(clippy::disallowed_methods, reason = "there is room")]
        table.chunks.resize_with(chunk + 1, || None);
    }
    if table.used.len() <= chunk {
        table.used.try_resize(chunk + 1, 0)?;
    }
    if table.chunks[chunk].is_none() {
        table.chunks[chunk] = Some(Chunk::new()?);
    }
    let before = core::mem::replace(&mut table.last, number) as usize / CHUNK;
    table.given += 1;
    let stamp = table.given;
    if let Some(chunk) = &mut table.chunks[chunk] {
        chunk.stamps[number as usize % CHUNK] = stamp;
    }
    table.set_used(number, true);
    let empty = if before == chunk { None } else { table.take_if_empty(before) };
    drop(table);
    drop(empty);
    Ok(number)
}

/// Pages of the table's room, which never gets less.
pub(in crate::process) fn kept_pages() -> u64 {
    let table = TABLE.lock();
    pages_of_room::<u64>(table.used.capacity())
        + pages_of_room::<Option<Chunk>>(table.chunks.capacity())
}

/// Gives back a number that nobody has used yet.
pub(in crate::process) fn give_back(number: i32) {
    let empty = TABLE.lock().free_if_unused(number);
    drop(empty);
}

/// Enters a task under its number, and its process if it is the leader.
pub(in crate::process) fn insert(task: &Arc<Task>) {
    let process = task.is_leader().then(|| task.process().clone());
    let mut table = TABLE.lock();
    table.tasks += 1;
    if let Some(entry) = table.entry_mut(task.tid()) {
        entry.task = Some(task.clone());
        if process.is_some() {
            entry.process = process;
        }
    }
}

/// Takes a task out.
pub(in crate::process) fn remove_task(tid: i32) {
    let mut table = TABLE.lock();
    let old = table.entry_mut(tid).and_then(|entry| entry.task.take());
    if old.is_some() {
        table.tasks -= 1;
    }
    let empty = table.free_if_unused(tid);
    drop(table);
    drop((old, empty));
}

/// exec by a thread that is not the leader: it takes the number of the leader, which is returned.
pub(in crate::process) fn take_over(task: &Arc<Task>, pid: i32) -> Option<Arc<Task>> {
    let mut table = TABLE.lock();
    let own = table.entry_mut(task.tid()).and_then(|entry| entry.task.take());
    let empty = table.free_if_unused(task.tid());
    let mut old = None;
    if let Some(entry) = table.entry_mut(pid) {
        old = entry.task.replace(task.clone());
    }
    if old.is_some() {
        table.tasks -= 1;
    }
    task.set_tid(pid);
    drop(table);
    drop((own, empty));
    old
}

/// Takes a process out.
pub(super) fn remove_process(pid: i32) {
    let mut table = TABLE.lock();
    let old = table.entry_mut(pid).and_then(|entry| entry.process.take());
    let empty = table.free_if_unused(pid);
    drop(table);
    drop((old, empty));
}

/// Enters a group under its number.
pub(super) fn insert_group(group: &Arc<Group>) {
    if let Some(entry) = TABLE.lock().entry_mut(group.pgid()) {
        entry.group = Arc::downgrade(group);
    }
}

/// Enters a session under its number.
pub(super) fn insert_session(session: &Arc<Session>) {
    if let Some(entry) = TABLE.lock().entry_mut(session.sid()) {
        entry.session = Arc::downgrade(session);
    }
}

/// A group or session that had the number is gone.
pub(super) fn number_left(number: i32) {
    if number == 0 {
        return;
    }
    let mut table = TABLE.lock();
    let gone = table.entry_mut(number).map(Entry::take_gone);
    let empty = table.free_if_unused(number);
    drop(table);
    drop((gone, empty));
}

/// The process of this number or name, zombies included.
pub fn lookup(who: impl Into<Who>) -> Option<Arc<Process>> {
    TABLE.lock().find(who.into())?.process.clone()
}

/// The task of this number or name.
pub fn lookup_task(who: impl Into<Who>) -> Option<Arc<Task>> {
    TABLE.lock().find(who.into())?.task.clone()
}

/// The group of this number or name.
pub fn lookup_group(who: impl Into<Who>) -> Option<Arc<Group>> {
    let weak = TABLE.lock().find(who.into())?.group.clone();
    weak.upgrade()
}

/// Names whoever has this number now, be it a process, a thread, a group or a session.
pub fn reference(number: i32) -> Option<PidRef> {
    let table = TABLE.lock();
    let is_used = table.entry(number).is_some_and(|entry| !entry.is_unused());
    Some(PidRef { number, stamp: table.stamp(number).filter(|_| is_used)? })
}

/// The process with the smallest number that is at least `from`.
pub fn next_process(from: i32) -> Option<Arc<Process>> {
    let table = TABLE.lock();
    let mut at = usize::try_from(from.max(0)).ok()?;
    while let Some(chunk) = table.chunks.get(at / CHUNK) {
        if let Some(chunk) = chunk {
            let found = chunk.entries[at % CHUNK..].iter().find_map(|entry| entry.process.clone());
            if found.is_some() {
                return found;
            }
        }
        at = (at / CHUNK + 1) * CHUNK;
    }
    None
}

/// So many processes are visited before the CPU may be given away: those of a pipeline all have a signal before one of
/// them runs (tests/abi has it as sig_group).
const AT_ONCE: usize = 64;

/// The processes that `next` finds, each by the least number that it may have.
pub(super) fn in_order(
    next: impl Fn(i32) -> Option<Arc<Process>>,
) -> impl Iterator<Item = Arc<Process>> {
    let mut from = 0;
    core::iter::from_fn(move || {
        let process = next(from)?;
        from = process.pid() + 1;
        Some(process)
    })
}

fn visit_all(processes: impl Iterator<Item = Arc<Process>>, visit: &mut dyn FnMut(&Arc<Process>)) {
    for (before, process) in processes.enumerate() {
        if before != 0 && before % AT_ONCE == 0 {
            crate::sync::cond_resched();
        }
        visit(&process);
    }
}

/// Visits every process, zombies included, in order of their numbers.
pub fn for_each_process(visit: &mut dyn FnMut(&Arc<Process>)) {
    visit_all(in_order(next_process), visit);
}

/// Visits every process of a group, in the same order.
pub fn for_each_in_group(who: impl Into<Who>, visit: &mut dyn FnMut(&Arc<Process>)) {
    if let Some(group) = lookup_group(who) {
        for_each_member(&group, visit);
    }
}

/// The same of a group that was looked up.
pub fn for_each_member(group: &Group, visit: &mut dyn FnMut(&Arc<Process>)) {
    visit_all(group.members(), visit);
}

/// How many tasks there are.
pub fn count() -> usize {
    TABLE.lock().tasks
}

/// How many numbers were ever given out, and the last one.
pub fn given() -> (u64, i32) {
    let table = TABLE.lock();
    (table.given, table.last)
}
