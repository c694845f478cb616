//! Who is told what happens to a task: its events, and those of the CPU that it runs on.
//!
//! Owns nothing. Never tells an event that does not count. Locks: `Perf`, of the lists that it goes through; a mapping's file is
//! asked for its name before.

use super::context::{self, Context};
use super::event::Event;
use super::record::Record;
use crate::base::percpu;
use crate::mm::space::request::{VmFlags, VmaInfo};
use crate::process::task::current::Current;
use crate::process::task::task::Task;
use crate::vfs::DevId;
use abi::perf::record::{SWITCH_OUT, SWITCH_PREEMPT};
use abi::perf::{Attr, bit};

/// Each event that hears of `task`, which runs here, and wants such records.
fn tell(task: &Task, wants: impl Fn(&Attr) -> bool, record: impl Fn(&Event) -> Record) {
    tell_as(task, true, wants, record);
}

/// The same; without `may_wake` who waits for records is woken later.
fn tell_as(
    task: &Task,
    may_wake: bool,
    wants: impl Fn(&Attr) -> bool,
    record: impl Fn(&Event) -> Record,
) {
    let cpu = percpu::cpu_id();
    let of = |context: &Context| {
        context.for_each(|event| {
            let here = event.cpu.is_none_or(|own| own == cpu);
            if here && event.is_counting() && wants(&event.attr) {
                event.output(record(event).words(), Some(task), may_wake);
            }
        });
    };
    if let Some(context) = task.perf.get() {
        of(context);
    }
    if let Ok(context) = context::of_cpu(cpu) {
        of(context);
    }
}

fn wants_tasks(attr: &Attr) -> bool {
    attr.has(bit::TASK | bit::COMM | bit::MMAP | bit::MMAP2 | bit::MMAP_DATA)
}

/// This CPU goes from one task to another; `could_go_on` if the first one waits for nothing. Interrupts are off.
pub(super) fn switched(prev: &Task, next: &Task, could_go_on: bool) {
    let wants = |attr: &Attr| attr.has(bit::CONTEXT_SWITCH);
    let out = SWITCH_OUT | if could_go_on { SWITCH_PREEMPT } else { 0 };
    tell_as(prev, false, wants, |event| Record::switch(event, prev, next, out));
    tell_as(next, false, wants, |event| Record::switch(event, next, prev, 0));
}

/// The running task has made another one.
pub(super) fn forked(maker: &Task, child: &Task) {
    let pids = (child.process().pid(), maker.process().pid());
    let tids = (child.tid(), maker.tid());
    tell(maker, wants_tasks, |event| Record::life(event, true, maker, pids, tids));
}

/// The running task ends.
pub(super) fn ends(task: &Task) {
    let pids = (task.process().pid(), task.process().ppid());
    let tids = (task.tid(), pids.1);
    tell(task, wants_tasks, |event| Record::life(event, false, task, pids, tids));
}

/// The running task has a new name.
pub(super) fn named(task: &Task, by_exec: bool) {
    let name = task.comm();
    let wants = |attr: &Attr| attr.has(bit::COMM);
    tell(task, wants, |event| Record::comm(event, task, &name, by_exec));
}

/// The running task executes another program: all that it has mapped is new.
pub(super) fn mapped_all(task: Current) {
    let each = &mut |area: &VmaInfo| {
        mapped(&task, area);
        Ok(())
    };
    // Who finds no memory to tell of a mapping does not hear of it.
    let _told = task.mm().maps(each);
}

/// The running task has mapped what lies at `addr`.
pub(super) fn mapped_at(task: Current, addr: u64) {
    let each = &mut |area: &VmaInfo| {
        if area.range.contains(&addr) {
            mapped(&task, area);
        }
        Ok(())
    };
    // See above.
    let _told = task.mm().maps(each);
}

fn mapped(task: &Task, area: &VmaInfo) {
    let runs = area.flags.contains(VmFlags::EXEC);
    let kind = if runs { bit::MMAP | bit::MMAP2 } else { bit::MMAP_DATA };
    let device = DevId(area.dev_ino.0);
    let wants = |attr: &Attr| attr.has(kind);
    tell(task, wants, |event| Record::mmap(event, task, area, (device.major(), device.minor())));
}
