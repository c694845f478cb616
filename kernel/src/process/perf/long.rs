//! What is long in a sample: counts, the call chain, the registers and the stack of the program.
//!
//! Owns a room on each CPU for samples with any of it, since a sample is taken on whatever stack is in use, and there on all CPUs once an event wants
//! any of it. Kernel frames are followed on the stack that is in use, and user memory is read only where it is present, so nothing is
//! waited for: whatever was interrupted goes on as if nothing had been. Never shows a register of the kernel: it may hold a key.
//! Locks: `Perf`, of the room of the CPU in use, which nobody else ever has: whoever takes a sample has interrupts off.

use super::chains::MAX_CONTEXTS;
use super::event::Event;
use super::part::Words;
use super::record::{self, Place};
use crate::arch::entry::frame::TrapFrame;
use crate::arch::stop::backtrace;
use crate::base::page::USER_END;
use crate::base::percpu;
use crate::mm::fallible::{TryGrow, TryVec};
use crate::mm::heap::pages_of_room;
use crate::mm::user::peek;
use crate::process::task::current::{TASKS, current};
use crate::process::task::task::Task;
use crate::sync::{Once, SpinLock, level};
use abi::Result;
use abi::perf::{Attr, DATA_SRC_UNKNOWN, bit, context, format, sample};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// Words of the longest record, whose length has 16 bits.
const WORDS: usize = u16::MAX as usize / 8;

/// What comes last, and is always the same.
const LAST: [(u64, u64); 3] = [
    (sample::WEIGHT | sample::WEIGHT_STRUCT, 0),
    (sample::DATA_SRC, DATA_SRC_UNKNOWN),
    (sample::TRANSACTION, 0),
];

/// PERF_SAMPLE_REGS_ABI_64.
const REGS_OF_64: u64 = 2;

static ROOMS: Once<Vec<SpinLock<Vec<u64>, level::Perf>>> = Once::new();

/// Makes the rooms, once there is an event that wants any of this.
pub(super) fn prepare(attr: &Attr) -> Result<()> {
    if attr.samples(sample::LONG) && ROOMS.get().is_none() {
        let mut rooms = Vec::new();
        for _ in 0..percpu::cpus_online() {
            let mut words = Vec::with_room(WORDS)?;
            words.try_resize(WORDS, 0)?;
            rooms.try_push(SpinLock::new(words))?;
        }
        ROOMS.call_once(|| rooms);
    }
    Ok(())
}

/// Pages of the rooms, which stay.
pub(super) fn kept_pages() -> u64 {
    let rooms = ROOMS.get().map(Vec::as_slice).unwrap_or_default();
    pages_of_room::<u64>(WORDS) * rooms.len() as u64
}

/// Makes a sample with all that is long in it, and has it written. Interrupts are off.
pub(super) fn make(
    event: &Event,
    task: Option<&Task>,
    (place, all): (&Place<'_>, &[Arc<Event>]),
    period: u64,
    write: impl FnOnce(&[u64]),
) {
    let rooms = ROOMS.get().map(Vec::as_slice).unwrap_or_default();
    let Some(room) = rooms.get(percpu::cpu_id()) else { return };
    let mut room = room.lock();
    let mut words = Words::new(&mut room);
    record::sample(&mut words, event, task, place, period);
    let attr = &event.attr;
    let last = LAST.into_iter().filter(|(wanted, _)| attr.samples(*wanted));
    words.put_before(last.clone().count(), |words| words.put_long(event, task, place, all));
    last.for_each(|(_, word)| words.put_if(true, word));
    write(words.finish());
}

/// The registers of the program that runs, if it is `task`.
fn of_program(task: Option<&Task>) -> Option<TrapFrame> {
    let task = task.filter(|task| TASKS.is_active() && core::ptr::eq(*task, &*current()))?;
    task.user_frame()
}

/// How many addresses and marks a chain may have yet.
struct Chain {
    addresses: usize,
    marks: usize,
}

impl Words<'_> {
    fn put_long(
        &mut self,
        event: &Event,
        task: Option<&Task>,
        place: &Place<'_>,
        all: &[Arc<Event>],
    ) {
        let attr = &event.attr;
        if attr.samples(sample::READ) {
            self.put_counts(event, all);
        }
        if attr.samples(sample::CALLCHAIN) {
            self.put_chain(attr, task, place);
        }
        if attr.samples(sample::RAW) {
            // Of what has none, Linux tells four bytes of zeros.
            match place.fact {
                Some(fact) => fact.raw(attr, |word| {
                    self.put(word);
                }),
                None => {
                    self.put(4);
                }
            }
        }
        if attr.samples(sample::REGS_USER) {
            self.put_registers(attr.sample_regs_user, of_program(task).as_ref());
        }
        if attr.samples(sample::STACK_USER) {
            self.put_stack(attr.sample_stack_user, of_program(task).as_ref());
        }
    }

    /// What the event itself has counted, or each of its group, in the form in which it is read.
    fn put_counts(&mut self, event: &Event, all: &[Arc<Event>]) {
        let form = event.attr.read_format;
        let group = event.group.load(Ordering::Relaxed);
        let is_in = |one: &&Arc<Event>| one.group.load(Ordering::Relaxed) == group;
        if form & format::GROUP == 0 {
            self.put_count(event, form, true);
            return;
        }
        let Some(leader) = all.iter().find(|one| one.id == group) else {
            self.put(0);
            return;
        };
        let times = leader.own();
        self.put(all.iter().filter(is_in).count() as u64);
        self.put_if(form & format::ENABLED != 0, times.enabled);
        self.put_if(form & format::RUNNING != 0, times.running);
        self.put_count(leader, form, false);
        for member in all.iter().filter(is_in).filter(|one| one.id != leader.id) {
            self.put_count(member, form, false);
        }
    }

    fn put_count(&mut self, event: &Event, form: u64, with_times: bool) {
        let own = event.own();
        self.put(own.count);
        self.put_if(with_times && form & format::ENABLED != 0, own.enabled);
        self.put_if(with_times && form & format::RUNNING != 0, own.running);
        self.put_if(form & format::ID != 0, event.first_id());
        // Relaxed: see the field.
        self.put_if(form & format::LOST != 0, event.lost.load(Ordering::Relaxed));
    }

    /// How many addresses, and these: the kernel's, if it is in the kernel, then the program's.
    fn put_chain(&mut self, attr: &Attr, task: Option<&Task>, place: &Place<'_>) {
        let marks = MAX_CONTEXTS.get().unsigned_abs() as usize;
        let mut chain = Chain { addresses: attr.sample_max_stack.into(), marks };
        let number = self.used();
        if !self.put(0) {
            return;
        }
        if !place.from_user && !attr.has(bit::EXCLUDE_CALLCHAIN_KERNEL) {
            self.put_mark(&mut chain, context::KERNEL);
            if self.put_address(&mut chain, place.ip) {
                backtrace::walk_stack(place.bp, |address| self.put_address(&mut chain, address));
            }
        }
        let user = match place.from_user {
            _ if attr.has(bit::EXCLUDE_CALLCHAIN_USER) => None,
            // The place is the program's.
            true => Some((place.ip, place.bp)),
            false => of_program(task).map(|program| (program.rip, program.rbp)),
        };
        if let Some((ip, bp)) = user {
            self.put_mark(&mut chain, context::USER);
            self.put_frames(&mut chain, ip, bp);
        }
        self.set(number, (self.used() - number - 1) as u64);
    }

    /// Behind a mark that finds no place nothing may follow.
    fn put_mark(&mut self, chain: &mut Chain, mark: u64) {
        if chain.marks == 0 || !self.put(mark) {
            chain.addresses = 0;
        }
        chain.marks = chain.marks.saturating_sub(1);
    }

    fn put_address(&mut self, chain: &mut Chain, address: u64) -> bool {
        let is_put = chain.addresses != 0 && self.put(address);
        chain.addresses -= usize::from(is_put);
        is_put
    }

    /// The frames of a program that keeps frame pointers. They are the program's own to write: a ring of them ends with the room.
    fn put_frames(&mut self, chain: &mut Chain, mut address: u64, mut frame: u64) {
        while self.put_address(chain, address) {
            let Some(next) = peek(frame) else { return };
            let Some(from) = frame.checked_add(8).and_then(peek) else { return };
            (frame, address) = (next, from);
        }
    }

    /// Of which kind they are, and those that were asked for, in the order of PERF_REG_X86_*.
    fn put_registers(&mut self, wanted: u64, program: Option<&TrapFrame>) {
        let Some(f) = program else {
            self.put(0);
            return;
        };
        self.put(REGS_OF_64);
        let all = [
            f.rax, f.rbx, f.rcx, f.rdx, f.rsi, f.rdi, f.rbp, f.rsp, f.rip, f.rflags, f.cs, f.ss, 0,
            0, 0, 0, f.r8, f.r9, f.r10, f.r11, f.r12, f.r13, f.r14, f.r15,
        ];
        for (number, register) in all.into_iter().enumerate() {
            if wanted >> number & 1 != 0 {
                self.put(register);
            }
        }
    }

    /// How many bytes of the stack stand here, these, and how many of them could be read. What could not is zero.
    fn put_stack(&mut self, wanted: u32, program: Option<&TrapFrame>) {
        let Some(program) = program else {
            self.put(0);
            return;
        };
        let below_end = USER_END.saturating_sub(program.rsp);
        let free = self.left().saturating_sub(2);
        let words = u64::from(wanted).min(below_end).div_ceil(8).min(free as u64);
        self.put(words * 8);
        if words == 0 {
            return;
        }
        let mut read = 0;
        let mut is_there = true;
        for index in (0..WORDS as u64).take(words as usize) {
            let word = is_there.then(|| peek(program.rsp.wrapping_add(index * 8))).flatten();
            is_there = word.is_some();
            read += u64::from(is_there);
            self.put(word.unwrap_or(0));
        }
        self.put(read * 8);
    }
}
