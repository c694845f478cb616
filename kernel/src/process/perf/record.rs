//! [`Record`]: what is written into a ring, as words. What is long in a sample comes from `long`.
//!
//! Owns nothing but the words of what is no sample. Never allocates: it is made in interrupt handlers. Locks: none.

use super::event::{Event, Subject};
use super::part::{Words, with_length};
use super::tracepoint::Fact;
use crate::base::percpu;
use crate::mm::space::request::{VmFlags, VmaInfo};
use crate::process::task::task::{COMM_LEN, Task};
use crate::time;
use abi::perf::{bit, record as kind, sample};
use arrayvec::ArrayVec;

/// Words of the longest record: a path, and what stands around it.
const WORDS: usize = 96;

/// Bytes of a path that are told.
const PATH: usize = 512;

/// Words of the longest sample that has nothing long in it.
pub(super) const SHORT: usize = 10;

/// One record that is no sample.
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
    /// When it was, since boot in nanoseconds; `None` for now.
    pub when: Option<u64>,
}

/// Two numbers of 32 bits as they lie side by side.
fn pair(low: i32, high: i32) -> u64 {
    u64::from(low as u32) | u64::from(high as u32) << 32
}

/// Who is told of: the process and the thread.
fn who(task: Option<&Task>) -> u64 {
    task.map_or(0, |task| pair(task.process().pid(), task.tid()))
}

/// What a record begins with; its length comes once it is whole.
fn head(kind: u32, misc: u16) -> u64 {
    u64::from(kind) | u64::from(misc) << 32
}

pub(super) fn is_sample(record: &[u64]) -> bool {
    record.first().is_some_and(|head| *head as u32 == kind::SAMPLE)
}

/// Begins a sample of an event, `period` of which have happened since the last one: all of it that is not long.
pub(super) fn sample(
    words: &mut Words<'_>,
    event: &Event,
    task: Option<&Task>,
    place: &Place<'_>,
    period: u64,
) {
    let misc = if place.from_user { kind::USER } else { kind::KERNEL };
    words.put(head(kind::SAMPLE, misc));
    let attr = &event.attr;
    words.put_if(attr.samples(sample::IDENTIFIER), event.first_id());
    words.put_if(attr.samples(sample::IP), place.ip);
    if attr.samples(sample::TID) {
        words.put(who(task));
    }
    if attr.samples(sample::TIME) {
        words.put(event.clock_at(place.when));
    }
    words.put_if(attr.samples(sample::ADDR), place.address);
    words.put_if(attr.samples(sample::ID), event.first_id());
    words.put_if(attr.samples(sample::STREAM_ID), event.id);
    words.put_if(attr.samples(sample::CPU), percpu::cpu_id() as u64);
    words.put_if(attr.samples(sample::PERIOD), period);
}

impl Record {
    fn new(kind: u32, misc: u16) -> Self {
        let mut record = Self { words: ArrayVec::new_const() };
        record.put(head(kind, misc));
        record
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
        let words = self.words.len();
        if let Some(head) = self.words.first_mut() {
            *head = with_length(*head, words);
        }
    }

    pub fn words(&self) -> &[u64] {
        &self.words
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
        self.clock_at(None)
    }

    /// The same of a time since boot.
    fn clock_at(&self, when: Option<u64>) -> u64 {
        let wanted = self.attr.has(bit::USE_CLOCKID).then_some(self.attr.clockid);
        match wanted.and_then(time::ClockId::from_abi) {
            Some(clock) => {
                let ago = when.map_or(0, |when| time::since_boot_ns().saturating_sub(when));
                time::clock_now(clock).0.saturating_sub(ago)
            }
            None => when.unwrap_or_else(time::since_boot_ns),
        }
    }

    /// The number of the event that it is inherited from, or its own.
    pub fn first_id(&self) -> u64 {
        self.parent.as_ref().map_or(self.id, |first| first.id)
    }
}
