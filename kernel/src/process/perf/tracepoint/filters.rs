//! PERF_EVENT_IOC_SET_FILTER: what of a tracepoint is to be counted.
//!
//! Owns nothing: a filter is its event's. Never keeps one that was not checked. Locks: `Perf`, of a filter.

use super::fields::{self, MOST, is_one};
use crate::mm::fallible::TryVec;
use crate::mm::user;
use crate::process::perf::event::Event;
use crate::process::task::current::current;
use abi::filter::{self, Step};
use abi::{Errno, Result};
use alloc::vec::Vec;

/// Steps of the longest filter.
const STEPS: usize = 256;

/// The longest text of one.
const TEXT: usize = 4096;

/// Whether the filter of an event lets pass what `fill` fills in, behind the common fields.
pub(super) fn passes(event: &Event, fill: impl FnOnce(&mut [i64])) -> bool {
    let first = event.parent.as_deref().unwrap_or(event);
    let filter = first.filter.lock();
    if filter.is_empty() {
        return true;
    }
    let mut values = [0; MOST];
    values[0] = event.attr.config.cast_signed();
    values[3] = current().tid().into();
    fill(&mut values);
    filter::passes(&filter, &values)
}

/// Sets the filter of an event.
pub(in crate::process::perf) fn set_filter(event: &Event, text: u64) -> Result<()> {
    if !is_one(event.what) {
        return Err(Errno::EINVAL);
    }
    let text = user::read_cstr(text, TEXT).map_err(|error| match error {
        Errno::ENAMETOOLONG => Errno::EINVAL,
        error => error,
    })?;
    let text = core::str::from_utf8(&text).map_err(|_| Errno::EINVAL)?;
    let mut steps = Vec::new();
    steps.try_resize(STEPS, Step::EMPTY)?;
    let used = filter::parse(text, &fields::known(event.what), &mut steps)?;
    steps.truncate(used);
    let old = core::mem::replace(&mut *event.filter.lock(), steps);
    drop(old);
    Ok(())
}
