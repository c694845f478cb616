//! [`Record`]: what is written into a ring, as words. What is long in a sample comes from `long`.
//!
//! Owns nothing but the words. Never allocates: it is made in interrupt handlers. Locks: none.

use super::event::{Event, Subject};
use super::tracepoint::Fact;
use crate::base::percpu;
use crate::mm::space::request::{VmFlags, VmaInfo};
use crate::process::task::task::{COMM_LEN, Task};
use crate::time;
use abi::perf::{bit, record as kind, sample};
use alloc::sync::Arc;
use arrayvec::ArrayVec;

/// Words of the longest record: a path, and what stands around it.
const WORDS: usize = 96;

/// Bytes of a path that are told.
const PATH: usize = 512;

/// One record.
pub(super) struct Record {
    words: ArrayVec<u64, WORDS>,
}

/// Where something happened.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub ip: u64,
    /// The frame pointer.
    pub bp: u64,
    pub address: u64,
    pub from_user: bool,
    /// What a tracepoint tells of it.
    pub fact: Option<Fact<'a>>,
    /// Nanoseconds since it was.
    pub ago: u64,
    /// All events of the context that it is told of in.
    pub all: &'a [Arc<Event>],
}

/// Two numbers of 32 bits as they lie side by side.
fn pair(low: i32, high: i32) -> u64 {
    u64::from(low as u32) | u64::from(high as u32) << 32
}

/// Who is told of: the process and the thread.
fn who(task: Option<&Task>) -> u64 {
    task.map_or(0, |task| pair(task.process().pid(), task.tid()))
}

impl Record {
    /// Nothing yet.
    pub const fn empty() -> Self {
        Self { words: ArrayVec::new_const() }
    }

    fn new(kind: u32, misc: u16) -> Self {
        let mut record = Self::empty();
        record.begin(kind, misc);
        record
    }

    fn begin(&mut self, kind: u32, misc: u16) {
        self.put(u64::from(kind) | u64::from(misc) << 32);
    }

    /// What finds no place is left out; each kind is made so that all has one.
    fn put(&mut self, word: u64) {
        let _full = self.words.try_push(word);
    }

    fn put_if(&mut self, wanted: bool, word: u64) {
        if wanted {
            self.put(word);
        }
    }

    /// Text up to its first NUL, and then at least one.
    fn put_text(&mut self, text: &[u8]) {
        let len = text.iter().position(|&byte| byte == 0).unwrap_or(text.len()).min(PATH - 1);
        let mut left = &text[..len];
        loop {
            let mut word = [0; 8];
            let (now, rest) = left.split_at(left.len().min(8));
            word[..now.len()].copy_from_slice(now);
            self.put(u64::from_ne_bytes(word));
            left = rest;
            if now.len() < 8 {
                return;
            }
        }
    }

    /// The length of all goes into the head: its words, and so many that come behind them.
    pub fn finish(&mut self, behind: usize) {
        let len = ((self.words.len() + behind) * 8) as u64;
        if let Some(head) = self.words.first_mut() {
            *head = (*head & ((1 << 48) - 1)) | (len << 48);
        }
    }

    /// What stands at the end of every record that is no sample, if it is asked for.
    fn end(&mut self, event: &Event, task: Option<&Task>) {
        let attr = &event.attr;
        if attr.has(bit::SAMPLE_ID_ALL) {
            self.put_if(attr.samples(sample::TID), who(task));
            self.put_if(attr.samples(sample::TIME), event.clock());
            self.put_if(attr.samples(sample::ID), event.first_id());
            self.put_if(attr.samples(sample::STREAM_ID), event.id);
            self.put_if(attr.samples(sample::CPU), percpu::cpu_id() as u64);
            self.put_if(attr.samples(sample::IDENTIFIER), event.first_id());
        }
        self.finish(0);
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub fn is_sample(&self) -> bool {
        self.words.first().is_some_and(|head| *head as u32 == kind::SAMPLE)
    }

    /// Becomes a sample of an event, `period` of which have happened since the last one: in its place, for it would take as long to move it.
    pub fn sample(&mut self, event: &Event, task: Option<&Task>, place: &Place<'_>, period: u64) {
        let record = self;
        let misc = if place.from_user { kind::USER } else { kind::KERNEL };
        record.begin(kind::SAMPLE, misc);
        let attr = &event.attr;
        record.put_if(attr.samples(sample::IDENTIFIER), event.first_id());
        record.put_if(attr.samples(sample::IP), place.ip);
        record.put_if(attr.samples(sample::TID), who(task));
        record.put_if(attr.samples(sample::TIME), event.clock().saturating_sub(place.ago));
        record.put_if(attr.samples(sample::ADDR), place.address);
        record.put_if(attr.samples(sample::ID), event.first_id());
        record.put_if(attr.samples(sample::STREAM_ID), event.id);
        record.put_if(attr.samples(sample::CPU), percpu::cpu_id() as u64);
        record.put_if(attr.samples(sample::PERIOD), period);
        record.finish(0);
    }

    pub fn lost(event: &Event, task: Option<&Task>, number: u64) -> Self {
        let mut record = Self::new(kind::LOST, 0);
        record.put(event.first_id());
        record.put(number);
        record.end(event, task);
        record
    }

    /// A task has another name, by exec or else.
    pub fn comm(event: &Event, task: &Task, name: &[u8; COMM_LEN], by_exec: bool) -> Self {
        let misc = if by_exec { kind::BY_EXEC } else { 0 };
        let mut record = Self::new(kind::COMM, misc);
        record.put(who(Some(task)));
        record.put_text(&name[..COMM_LEN - 1]);
        record.end(event, Some(task));
        record
    }

    /// A mapping of the running task's; the numbers are those of its device.
    pub fn mmap(event: &Event, task: &Task, area: &VmaInfo, device: (u32, u32)) -> Self {
        let long = event.attr.has(bit::MMAP2);
        let data = if area.flags.contains(VmFlags::EXEC) { 0 } else { kind::BY_EXEC };
        let form = if long { kind::MMAP2 } else { kind::MMAP };
        let mut record = Self::new(form, kind::USER | data);
        record.put(who(Some(task)));
        record.put(area.range.start);
        record.put(area.range.end - area.range.start);
        record.put(area.offset);
        if long {
            record.put(u64::from(device.0) | u64::from(device.1) << 32);
            record.put(area.dev_ino.1);
            record.put(0);
            let prot = u64::from(area.flags.bits() & 7);
            let shared = if area.flags.contains(VmFlags::SHARED) { 1 } else { 2 };
            record.put(prot | shared << 32);
        }
        let name = if area.name.is_empty() { "//anon" } else { &area.name };
        record.put_text(name.as_bytes());
        record.end(event, Some(task));
        record
    }

    /// A task makes way for another one, or comes after it, as the bits of the head say.
    pub fn switch(event: &Event, task: &Task, other: &Task, misc: u16) -> Self {
        let of_cpu = matches!(event.subject, Subject::Cpu);
        let form = if of_cpu { kind::SWITCH_CPU_WIDE } else { kind::SWITCH };
        let mut record = Self::new(form, misc);
        record.put_if(of_cpu, who(Some(other)));
        record.end(event, Some(task));
        record
    }

    /// A task is new, or ends: it and the one that made it.
    pub fn life(
        event: &Event,
        begins: bool,
        task: &Task,
        pids: (i32, i32),
        tids: (i32, i32),
    ) -> Self {
        let mut record = Self::new(if begins { kind::FORK } else { kind::EXIT }, 0);
        record.put(pair(pids.0, pids.1));
        record.put(pair(tids.0, tids.1));
        record.put(event.clock());
        record.end(event, Some(task));
        record
    }
}

impl Event {
    /// The time by the clock that was asked for.
    pub fn clock(&self) -> u64 {
        let wanted = self.attr.has(bit::USE_CLOCKID).then_some(self.attr.clockid);
        match wanted.and_then(time::ClockId::from_abi) {
            Some(clock) => time::clock_now(clock).0,
            None => time::since_boot_ns(),
        }
    }

    /// The number of the event that it is inherited from, or its own.
    pub fn first_id(&self) -> u64 {
        self.parent.as_ref().map_or(self.id, |first| first.id)
    }
}
