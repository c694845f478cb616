//! The buffers of events: which one an event has, and what a mapping of its descriptor is.
//!
//! Owns nothing. Never makes a buffer that its user may not have (`locked`). Locks: the mutex of all events, while
//! buffers are given; `Perf`, of an event's buffer.

use super::event::{Event, Subject, changes};
use super::locked::Locked;
use super::ring::{Ring, Way, count};
use super::settings::{MLOCK_KB, PARANOID};
use crate::base::PAGE_SIZE;
use crate::base::page::USER_END;
use crate::mm::fallible::{try_arc, try_string};
use crate::mm::space::request::{Prot, VmFlags};
use crate::mm::{MapObserver, MapSource, PageCache};
use crate::vfs::{MapRange, MapTarget, OpenFile};
use abi::perf::bit;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

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
    let _changes = changes();
    let mapped = match Mapped::of(event, file) {
        Some(mapped) if mapped.ring.pages() as u64 == pages => mapped,
        Some(_) => return Err(Errno::EINVAL),
        None => {
            let free = u64::from(MLOCK_KB.get().unsigned_abs()) << 10;
            let locked = Locked::new(pages + 1, free, PARANOID.get() < 0)?;
            let pages = usize::try_from(pages).map_err(|_| Errno::ENOMEM)?;
            let way =
                Way { overwrites: !range.writable, backward: event.attr.has(bit::WRITE_BACKWARD) };
            let ring = Ring::new(pages, watermark(event, pages), way, locked)?;
            let mut own = event.ring.lock();
            let old = own.replace(ring.clone());
            let mapped = Mapped::new(event, ring, file);
            drop(own);
            drop(old);
            mapped
        }
    };
    Ok(MapTarget::File(try_arc(mapped)?))
}

/// A buffer behind mappings of an event's descriptor. The event stays open as long.
struct Mapped {
    event: Arc<Event>,
    ring: Arc<Ring>,
    _file: Arc<OpenFile>,
    /// It is counted, and there is no mapping yet. Relaxed: who maps asks once.
    is_promise: AtomicBool,
}

impl Mapped {
    /// The buffer that the event has, if that is mapped.
    fn of(event: &Arc<Event>, file: &Arc<OpenFile>) -> Option<Self> {
        let own = event.ring.lock();
        let ring = own.as_ref().filter(|ring| ring.is_mapped())?;
        Some(Self::new(event, ring.clone(), file))
    }

    /// Counts what is to be mapped. The event's buffer is locked, so that nobody takes it from the event for having no mapping.
    fn new(event: &Arc<Event>, ring: Arc<Ring>, file: &Arc<OpenFile>) -> Self {
        let event = event.clone();
        let mapped = Self { event, ring, _file: file.clone(), is_promise: AtomicBool::new(true) };
        mapped.count(true);
        mapped
    }

    fn count(&self, is_new: bool) {
        self.ring.count_mapping(is_new);
        count(&self.event.maps, is_new);
    }

    /// There is one less. With the last the event has no buffer any more, but for one that it has with others and never had mapped.
    fn leave(&self, was_mapped: bool) {
        let mut own = self.event.ring.lock();
        self.count(false);
        // Relaxed: it becomes 0, and something from there, with the lock held only.
        let is_last = self.event.maps.load(Ordering::Relaxed) == 0;
        let goes = is_last && (was_mapped || !self.ring.is_mapped());
        let gone = if goes { own.take() } else { None };
        drop(own);
        drop(gone);
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if *self.is_promise.get_mut() {
            self.leave(false);
        }
    }
}

impl MapSource for Mapped {
    fn cache(&self) -> &Arc<PageCache> {
        self.ring.cache()
    }
    fn name(&self) -> Result<String> {
        try_string("anon_inode:[perf_event]")
    }
    fn dev_ino(&self) -> (u64, u64) {
        (0, 0)
    }
    fn rights(&self, _: bool, _: Prot) -> Result<VmFlags> {
        Ok(VmFlags::MAY_READ | VmFlags::MAY_WRITE)
    }
    fn punch(&self, _: Range<u64>) -> Result<()> {
        // As on Linux: there is no file behind it.
        Err(Errno::ENODEV)
    }
    fn observer(&self) -> Option<&dyn MapObserver> {
        Some(self)
    }
}

impl MapObserver for Mapped {
    fn mapped(&self) {
        if !self.is_promise.swap(false, Ordering::Relaxed) {
            self.count(true);
        }
    }
    fn unmapped(&self) {
        self.leave(true);
    }
    fn size(&self) -> u64 {
        self.ring.mapped_size()
    }
}

/// After how many bytes who polls is woken: half of the buffer if it is not asked for.
fn watermark(event: &Event, pages: usize) -> u64 {
    let size = (pages * PAGE_SIZE) as u64;
    let wanted = if event.attr.has(bit::WATERMARK) { u64::from(event.attr.wakeup) } else { 0 };
    if wanted == 0 { size / 2 } else { wanted.min(size) }
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
            let way = |event: &Event| event.attr.has(bit::WRITE_BACKWARD);
            let differs = clock(event) != clock(to) || way(event) != way(to);
            if Arc::ptr_eq(event, to) || apart || differs {
                return Err(Errno::EINVAL);
            }
            Some(to.mapped_ring().ok_or(Errno::EINVAL)?)
        }
    };
    let mut own = event.ring.lock();
    // Relaxed: see `Mapped::leave`.
    if event.maps.load(Ordering::Relaxed) != 0 {
        return Err(Errno::EINVAL);
    }
    let old = core::mem::replace(&mut *own, ring);
    drop(own);
    drop(old);
    Ok(())
}
