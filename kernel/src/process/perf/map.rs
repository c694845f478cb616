//! The buffers of events: which one an event has, and what a mapping of its descriptor is.
//!
//! Owns nothing. Never makes a buffer that its user may not have (`locked`). Locks: the mutex of all events, while buffers change.

use super::event::{Event, Subject, changes};
use super::locked::Locked;
use super::ring::{Mapped, Ring, Wakeup};
use super::settings::{MLOCK_KB, PARANOID};
use crate::base::PAGE_SIZE;
use crate::base::page::USER_END;
use crate::mm::fallible::try_arc;
use crate::process::task::current::current;
use crate::vfs::{MapRange, MapTarget, OpenFile};
use abi::perf::bit;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// What a mapping of an event's descriptor shows; the first makes the buffer.
pub(super) fn target(
    event: &Arc<Event>,
    file: &Arc<OpenFile>,
    range: &MapRange,
) -> Result<MapTarget> {
    if range.len > USER_END {
        return Err(Errno::ENOMEM);
    }
    let inherits = event.cpu.is_none() && event.attr.has(bit::INHERIT);
    let pages = (range.len / PAGE_SIZE as u64).saturating_sub(1);
    let is_good = pages == 0 || pages.is_power_of_two();
    if inherits || !range.shared || range.offset != 0 || !is_good {
        return Err(Errno::EINVAL);
    }
    // Not under the mutex: the last mapping to go closes the event with that of the space held.
    let in_space = current().mm().usage().locked;
    let _changes = changes();
    let old = event.ring.lock().clone().filter(|ring| ring.is_wanted());
    let ring = match old {
        Some(ring) if ring.pages() as u64 == pages => ring,
        Some(_) => return Err(Errno::EINVAL),
        None => {
            let free = u64::from(MLOCK_KB.get().unsigned_abs()) << 10;
            let locked = Locked::new(pages + 1, in_space, free, PARANOID.get() < 0)?;
            let pages = usize::try_from(pages).map_err(|_| Errno::ENOMEM)?;
            let ring = Ring::new(pages, wakeup(event), !range.writable, locked)?;
            let old = event.ring.lock().replace(ring.clone());
            drop(old);
            ring
        }
    };
    Ok(MapTarget::File(try_arc(Mapped::new(ring, file.clone()))?))
}

fn wakeup(event: &Event) -> Wakeup {
    let number = event.attr.wakeup;
    if event.attr.has(bit::WATERMARK) { Wakeup::Bytes(number) } else { Wakeup::Samples(number) }
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
