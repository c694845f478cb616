//! [`Event`]: one thing that is counted of one task or CPU, and how it hangs together with others.
//!
//! Owns count and times. Times go by the clock of what is counted: for a task by its CPU time, so they stand while it does
//! not run. Never drops another event with a spinlock held. Locks: `Perf`, for the times; a mutex for the links, inside that
//! of all events ([`Changes`]).

use super::chains::Chains;
use super::context::{self, Context};
use super::long;
use super::part::{Aim, Owed, Times, Totals, Words};
use super::period::Pace;
use super::record::{self, Place, Record};
use super::ring::{Put, Ring};
use super::{sampler, sched};
use crate::mm::fallible::TryGrow;
use crate::process::task::task::Task;
use crate::sync::counted::{Counted, Kind};
use crate::sync::{Mutex, MutexGuard, SpinLock, WaitQueue, level};
use crate::time;
use crate::trace::{Point, Points, Subscriber};
use abi::Result;
use abi::filter::Step;
use abi::perf::{Attr, Software, bit, sample};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Held by who changes which events there are, which are on, and how they hang together.
pub(super) struct Changes(#[expect(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

/// Waits for the mutex of all events.
pub(super) fn changes() -> Changes {
    static ALL: Mutex<()> = Mutex::new(());
    Changes(ALL.lock())
}

/// How many there are. Relaxed: whoever changes what is told of looks again.
static EVENTS: AtomicUsize = AtomicUsize::new(0);
/// And how many of them are about system calls.
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// About the scheduler.
static SCHEDS: AtomicUsize = AtomicUsize::new(0);
/// About a CPU.
static OF_CPUS: AtomicUsize = AtomicUsize::new(0);

/// Whether there is any about a CPU. Relaxed: one that is new is late by a look.
pub(super) fn has_of_cpus() -> bool {
    OF_CPUS.load(Ordering::Relaxed) != 0
}

impl Changes {
    /// Has the tracepoints tell what happens if there is any event, or be silent.
    pub fn subscribe(&self) {
        let mut points = Points::none();
        if EVENTS.load(Ordering::Relaxed) != 0 {
            points = points.with(Point::Switch).with(Point::Fault);
        }
        if SCHEDS.load(Ordering::Relaxed) != 0 {
            points = points.with(Point::Wakeup);
        }
        if SCHEDS.load(Ordering::Relaxed) != 0 || OF_CPUS.load(Ordering::Relaxed) != 0 {
            points = points.with(Point::Fork).with(Point::Exec).with(Point::Exit);
        }
        if sampler::is_wanted() || SCHEDS.load(Ordering::Relaxed) != 0 {
            points = points.with(Point::Tick);
        }
        if CALLS.load(Ordering::Relaxed) != 0 {
            points = points.with(Point::Enter).with(Point::Leave);
        }
        crate::trace::wants(Subscriber::Perf, points);
    }
}

/// What an event is about.
pub(super) enum Subject {
    Task(Weak<Task>),
    Cpu,
}

/// How it hangs together with others.
#[derive(Default)]
pub(super) struct Links {
    /// The leader of its group, if that is another one.
    pub leader: Option<Weak<Event>>,
    /// The others of the group that it leads.
    pub members: Vec<Arc<Event>>,
    /// Those that children of its task have of it.
    pub children: Vec<Weak<Event>>,
}

/// One event.
pub(super) struct Event {
    _counted: Counted,
    pub attr: Attr,
    pub id: u64,
    pub what: Software,
    /// Where it counts; `None` for everywhere.
    pub cpu: Option<usize>,
    pub subject: Subject,
    /// That which it is inherited from, the first of them all.
    pub parent: Option<Arc<Event>>,
    pub links: Mutex<Links>,
    /// Whether it was told to the timers that take samples.
    pub takes_time: bool,
    /// Where a breakpoint's looks.
    pub aim: Aim,
    /// Signals that its samples owe.
    pub owed: Owed,
    /// When samples are taken of it.
    pub pace: Pace,
    /// The number of the leader of its group, or its own.
    pub group: AtomicU64,
    _chains: Option<Chains>,
    /// What is to be counted of a tracepoint; nobody else has any.
    pub filter: SpinLock<Vec<Step>, level::Perf>,
    count: AtomicU64,
    /// Records of it, and of those inherited from it, that found no room. Relaxed: a statistic.
    pub lost: AtomicU64,
    pub times: SpinLock<Times, level::Perf>,
    /// Whether it is switched on.
    pub on: AtomicBool,
    /// Whether it counts: it is on, and so is its group.
    pub counts: AtomicBool,
    /// Its task has ended, or executed what it may not watch.
    over: AtomicBool,
    enable_on_exec: AtomicBool,
    /// Where its records go, and those of the ones inherited from it.
    pub ring: SpinLock<Option<Arc<Ring>>, level::Perf>,
    /// Mappings of its descriptor, and those that are being made.
    pub maps: AtomicUsize,
    /// Who polls its descriptor is woken here when it, or one inherited from it, has ended.
    pub ends: WaitQueue,
    /// It is counted among those that have the calls of all tasks watched. Relaxed: changes with the mutex of all events held.
    pub watches_all: AtomicBool,
    /// What was counted by those that children had of it, and that are over.
    gone: SpinLock<Totals, level::Perf>,
}

impl Event {
    /// One that is not linked anywhere yet, and does not count.
    pub fn new(
        attr: Attr,
        what: Software,
        cpu: Option<usize>,
        subject: Subject,
        parent: Option<Arc<Self>>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only uniqueness matters, and see `EVENTS`.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        EVENTS.fetch_add(1, Ordering::Relaxed);
        CALLS.fetch_add(usize::from(what.is_call()), Ordering::Relaxed);
        SCHEDS.fetch_add(usize::from(what.is_sched()), Ordering::Relaxed);
        OF_CPUS.fetch_add(usize::from(matches!(subject, Subject::Cpu)), Ordering::Relaxed);
        let is_here = cpu.is_none() || matches!(subject, Subject::Cpu);
        let pace = Pace::of(&attr, what);
        let chains = Chains::of(&attr, parent.is_some());
        let taken = pace.taken();
        let times = Times { at: 0, enabled: 0, running: 0, base: 0, is_here, taken };
        Self {
            _counted: Counted::new(Kind::PerfEvent),
            attr,
            id,
            what,
            cpu,
            subject,
            parent,
            links: Mutex::new(Links::default()),
            takes_time: false,
            aim: Aim::of(&attr, what == Software::Breakpoint),
            owed: Owed::new(),
            pace,
            group: AtomicU64::new(id),
            _chains: chains,
            filter: SpinLock::new(Vec::new()),
            count: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            times: SpinLock::new(times),
            on: AtomicBool::new(false),
            counts: AtomicBool::new(false),
            over: AtomicBool::new(false),
            enable_on_exec: AtomicBool::new(attr.has(bit::ENABLE_ON_EXEC)),
            ring: SpinLock::new(None),
            maps: AtomicUsize::new(0),
            ends: WaitQueue::new(),
            watches_all: AtomicBool::new(false),
            gone: SpinLock::new(Totals::default()),
        }
    }

    /// The same, which takes samples of time if it is to.
    pub fn with_samples(mut self) -> Result<Self> {
        long::prepare(&self.attr)?;
        sched::prepare(self.what)?;
        if self.attr.is_sampling() && self.what.is_clock() {
            sampler::enter(self.period_ns());
            self.takes_time = true;
        }
        Ok(self)
    }

    /// Does something with the context that it stands in; nothing once its task is gone.
    pub fn with_context<R>(&self, act: impl FnOnce(&Context) -> R) -> Option<R> {
        match &self.subject {
            Subject::Task(task) => task.upgrade()?.perf.get().map(act),
            Subject::Cpu => context::of_cpu(self.cpu?).ok().map(act),
        }
    }

    /// The task that it is about, while that is there.
    pub fn task(&self) -> Option<Arc<Task>> {
        match &self.subject {
            Subject::Task(task) => task.upgrade(),
            Subject::Cpu => None,
        }
    }

    /// Whether it counts. Relaxed here and below: who must be exact holds the mutex of all events.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Whether nothing will ever be counted again.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether it was to be switched on by the next exec, of which this is the one.
    pub fn take_enable_on_exec(&self) -> bool {
        self.enable_on_exec.swap(false, Ordering::Relaxed)
    }

    /// Counts one more, of `task`, and takes a sample of it if it is time; `all` are those of its context.
    #[inline]
    pub fn count_one(
        &self,
        task: Option<&Task>,
        place: &Place<'_>,
        all: &[Arc<Self>],
        may_wake: bool,
    ) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if self.attr.is_sampling()
            && let Some(period) = self.is_due(1)
        {
            self.sample(task, place, all, period, may_wake);
        }
    }

    /// Counts so many without samples.
    pub fn count_more(&self, number: u64) {
        self.count.fetch_add(number, Ordering::Relaxed);
    }

    /// Writes a sample. Interrupts are off.
    pub fn sample(
        &self,
        task: Option<&Task>,
        place: &Place<'_>,
        all: &[Arc<Self>],
        period: u64,
        may_wake: bool,
    ) {
        let output = |words: &[u64]| self.output(words, task, may_wake);
        if self.attr.samples(sample::LONG) {
            long::make(self, task, (place, all), period, output);
        } else {
            let mut words = [0; record::SHORT];
            let mut words = Words::new(&mut words);
            record::sample(&mut words, self, task, place, period);
            output(words.finish());
        }
        let is_last = self.is_used_up();
        if is_last {
            self.stop();
        }
        if self.attr.has(bit::SIGTRAP) {
            let is_shown = place.from_user || !self.attr.has(bit::EXCLUDE_KERNEL);
            self.owed.owe_trap(if is_shown { place.address } else { 0 });
        }
        self.first().owed.owe(is_last);
    }

    /// The one that has the descriptor.
    pub fn first(&self) -> &Self {
        self.parent.as_deref().unwrap_or(self)
    }

    /// Writes a record where those of the event go.
    pub fn output(&self, record: &[u64], task: Option<&Task>, may_wake: bool) {
        let first = self.first();
        if let Some(ring) = &*first.ring.lock() {
            let every = if self.attr.has(bit::WATERMARK) { 0 } else { self.attr.wakeup };
            let lost = |number| Record::lost(self, task, number);
            match ring.write(record, every, lost, may_wake) {
                Put::Quietly => {}
                Put::Wakes => first.owed.owe(false),
                Put::Nothing => {
                    first.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Where its records go, if that is mapped.
    pub fn mapped_ring(&self) -> Option<Arc<Ring>> {
        self.ring.lock().clone().filter(|ring| ring.is_mapped())
    }

    /// So many were not told of.
    pub fn lose(&self, number: u64) {
        let first = self.first();
        first.lost.fetch_add(number, Ordering::Relaxed);
        if let Some(ring) = &*first.ring.lock() {
            ring.lose(number);
        }
    }

    /// Wakes who waits for records that were written where nobody could be woken.
    pub fn wake_owed(&self) {
        if let Some(ring) = &*self.first().ring.lock() {
            ring.wake_owed();
        }
    }

    pub fn now(&self) -> Option<u64> {
        Some(match &self.subject {
            Subject::Task(task) => {
                let task = task.upgrade()?;
                task.times.cpu_ns()
            }
            Subject::Cpu => time::since_boot_ns(),
        })
    }

    /// Brings the times up to now, and then says whether the task runs on the event's CPU.
    pub fn settle(&self, now: Option<u64>, is_here: Option<bool>) {
        let mut times = self.times.lock();
        times.pass(now, self.is_counting());
        if let Some(is_here) = is_here {
            times.is_here = is_here;
        }
    }

    /// Its task is switched to or from on `cpu`. Interrupts are off.
    pub fn switched(&self, task: &Task, cpu: usize, runs: bool) {
        if self.cpu == Some(cpu) {
            self.settle(Some(task.times.cpu_ns()), Some(runs));
        }
    }

    /// Its task is found running, or not, when the event is linked.
    pub fn settle_where(&self, task: &Task) {
        if let Some(cpu) = self.cpu {
            let here = task.times.is_running() && task.sched.cpu() == cpu;
            self.settle(self.now(), Some(here));
        }
    }

    /// What itself has counted.
    pub fn own(&self) -> Totals {
        self.own_at(if self.is_over() { None } else { self.now() })
    }

    /// The same at a time, which is brought up to.
    pub fn own_at(&self, now: Option<u64>) -> Totals {
        let mut times = self.times.lock();
        times.pass(now, self.is_counting());
        let count = match self.what.is_clock() {
            true => times.running.wrapping_sub(times.base),
            false => self.count.load(Ordering::Relaxed),
        };
        Totals { count, enabled: times.enabled, running: times.running }
    }

    /// What it and those inherited from it have counted.
    pub fn totals(&self, _: &Changes) -> Totals {
        let gone = *self.gone.lock();
        let links = self.links.lock();
        let children = links.children.iter().filter_map(Weak::upgrade);
        children.fold(self.own().add(gone), |sum, child| sum.add(child.own()))
    }

    /// Sets the count back, not the times.
    pub fn reset(&self) {
        self.settle(self.now(), None);
        let mut times = self.times.lock();
        times.base = times.running;
        self.count.store(0, Ordering::Relaxed);
    }

    /// Switches it on or off, and with it its group.
    pub fn set_on(&self, changes: &Changes, on: bool) {
        self.on.store(on, Ordering::Relaxed);
        self.follow(changes);
        for member in &self.links.lock().members {
            member.follow(changes);
        }
    }

    /// Looks whether it counts now.
    pub fn follow(&self, _: &Changes) {
        let leader = self.links.lock().leader.as_ref().and_then(Weak::upgrade);
        let counts = self.is_on() && !self.is_over() && leader.is_none_or(|leader| leader.is_on());
        if counts != self.is_counting() {
            self.settle(self.now(), None);
            self.counts.store(counts, Ordering::Relaxed);
            self.reload();
        }
    }

    /// It and those inherited from it.
    pub fn for_each_heir(&self, changes: &Changes, act: &mut dyn FnMut(&Event, &Changes)) {
        act(self, changes);
        let links = self.links.lock();
        for child in links.children.iter().filter_map(Weak::upgrade) {
            act(&child, changes);
        }
    }

    /// Its leader, or itself.
    pub fn leader(self: &Arc<Self>) -> Arc<Event> {
        let leader = self.links.lock().leader.as_ref().and_then(Weak::upgrade);
        leader.unwrap_or_else(|| self.clone())
    }

    /// Joins a group.
    pub fn join(self: &Arc<Self>, leader: &Arc<Event>, _: &Changes) -> Result<()> {
        leader.links.lock().members.try_push(self.clone())?;
        self.links.lock().leader = Some(Arc::downgrade(leader));
        self.group.store(leader.id, Ordering::Relaxed);
        Ok(())
    }

    /// Leaves its group; those that it led are alone from now on.
    pub fn part(&self, changes: &Changes) {
        let leader = self.links.lock().leader.take().and_then(|leader| leader.upgrade());
        if let Some(leader) = leader {
            let mut links = leader.links.lock();
            let at = links.members.iter().position(|member| core::ptr::eq(&**member, self));
            let own = at.map(|at| links.members.swap_remove(at));
            drop(links);
            drop(own);
        }
        self.group.store(self.id, Ordering::Relaxed);
        let members = core::mem::take(&mut self.links.lock().members);
        for member in &members {
            member.links.lock().leader = None;
            member.group.store(member.id, Ordering::Relaxed);
            member.follow(changes);
        }
    }

    /// It counts nothing more. What it has counted goes to that which it is inherited from.
    pub fn end(&self, changes: &Changes) {
        if self.is_over() {
            return;
        }
        let own = self.own();
        self.over.store(true, Ordering::Relaxed);
        self.follow(changes);
        if let Some(parent) = &self.parent {
            let mut gone = parent.gone.lock();
            *gone = gone.add(own);
            drop(gone);
            let mut links = parent.links.lock();
            let is_own = |child: &Weak<Event>| core::ptr::eq(child.as_ptr(), self);
            let at = links.children.iter().position(is_own);
            if let Some(at) = at {
                drop(links.children.swap_remove(at));
            }
        }
    }

    /// Adds one that is inherited from it.
    pub fn add_child(&self, child: &Arc<Event>, _: &Changes) -> Result<()> {
        let mut links = self.links.lock();
        if links.children.len() == links.children.capacity() {
            links.children.retain(|child| child.strong_count() != 0);
        }
        links.children.try_push(Arc::downgrade(child))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        EVENTS.fetch_sub(1, Ordering::Relaxed);
        CALLS.fetch_sub(usize::from(self.what.is_call()), Ordering::Relaxed);
        SCHEDS.fetch_sub(usize::from(self.what.is_sched()), Ordering::Relaxed);
        OF_CPUS.fetch_sub(usize::from(matches!(self.subject, Subject::Cpu)), Ordering::Relaxed);
        if self.takes_time {
            sampler::leave(self.period_ns());
        }
    }
}
