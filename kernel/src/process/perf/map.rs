//! The buffers of events: which one an event has, and what a mapping of its descriptor is.
//!
//! Owns the count of pages that those who are not capable have. Locks: the mutex of all events, while buffers change.

use super::event::{Event, Subject, changes};
use super::ring::{Mapped, Ring, Wakeup};
use super::settings::{MLOCK_KB, PARANOID};
use crate::base::page::USER_END;
use crate::base::{PAGE_SIZE, percpu};
use crate::mm::fallible::try_arc;
use crate::process::task::current::current;
use crate::process::task::limits::Resource;
use crate::vfs::{Capability, MapRange, MapTarget};
use abi::perf::bit;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// What a mapping of an event's descriptor shows; the first makes the buffer.
pub(super) fn target(event: &Arc<Event>, range: &MapRange) -> Result<MapTarget> {
    if range.len > USER_END {
        return Err(Errno::ENOMEM);
    }
    let inherits = event.cpu.is_none() && event.attr.has(bit::INHERIT);
    let pages = (range.len / PAGE_SIZE as u64).saturating_sub(1);
    let is_good = pages == 0 || pages.is_power_of_two();
    if inherits || !range.shared || range.offset != 0 || !is_good {
        return Err(Errno::EINVAL);
    }
    let _changes = changes();
    let old = event.ring.lock().clone().filter(|ring| ring.is_mapped());
    let ring = match old {
        Some(ring) if ring.pages() as u64 == pages => ring,
        Some(_) => return Err(Errno::EINVAL),
        None => {
            check_limit(pages + 1)?;
            let pages = usize::try_from(pages).map_err(|_| Errno::ENOMEM)?;
            let ring = Ring::new(pages, wakeup(event), !range.writable)?;
            let old = event.ring.lock().replace(ring.clone());
            drop(old);
            ring
        }
    };
    Ok(MapTarget::File(try_arc(Mapped(ring))?))
}

fn wakeup(event: &Event) -> Wakeup {
    let number = event.attr.wakeup;
    if event.attr.has(bit::WATERMARK) { Wakeup::Bytes(number) } else { Wakeup::Samples(number) }
}

/// `kernel.perf_event_mlock_kb` for each CPU, and beyond that what may be locked.
fn check_limit(pages: u64) -> Result<()> {
    let task = current();
    let free = u64::from(MLOCK_KB.get().unsigned_abs()) << 10;
    let free = free.saturating_mul(percpu::cpus_online() as u64);
    let beyond = pages.saturating_mul(PAGE_SIZE as u64).saturating_sub(free);
    let locked = task.mm().usage().locked.saturating_mul(PAGE_SIZE as u64);
    let limit = task.process().limits().soft(Resource::MemLock);
    let may = PARANOID.get() < 0 || task.cred().capable(Capability::IPC_LOCK);
    if beyond != 0 && locked.saturating_add(beyond) > limit && !may {
        return Err(Errno::EPERM);
    }
    Ok(())
}

/// Leads the records of an event into the buffer of another one, or nowhere.
pub(super) fn set_output(event: &Arc<Event>, to: Option<&Arc<Event>>) -> Result<()> {
    let _changes = changes();
    let ring = match to {
        None => None,
        Some(to) => {
            let same_task = match (&event.subject, &to.subject) {
                (Subject::Task(task), Subject::Task(other)) => task.ptr_eq(other),
                _ => true,
            };
            let clock = |event: &Event| (event.attr.has(bit::USE_CLOCKID), event.attr.clockid);
            let apart = event.cpu != to.cpu || event.cpu.is_none() && !same_task;
            if Arc::ptr_eq(event, to) || apart || clock(event) != clock(to) {
                return Err(Errno::EINVAL);
            }
            let ring = to.ring.lock().clone().filter(|ring| ring.is_mapped());
            Some(ring.ok_or(Errno::EINVAL)?)
        }
    };
    let old = core::mem::replace(&mut *event.ring.lock(), ring);
    drop(old);
    Ok(())
}
