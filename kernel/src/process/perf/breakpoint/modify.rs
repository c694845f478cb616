//! Events of breakpoints that are changed while they exist.
//!
//! Owns nothing. Never looks at registers: the event says that its task loads them anew. Locks: the mutex of all events is held.

use super::super::event::{Changes, Event};
use super::super::part::Spot;
use abi::perf::{Attr, bit, kind};
use abi::{Errno, Result};
use alloc::sync::Arc;
use zerocopy::IntoBytes;

/// PERF_EVENT_IOC_MODIFY_ATTRIBUTES: an event, and those inherited from it, look elsewhere, and have other data for SIGTRAP.
pub(in super::super) fn modify(event: &Arc<Event>, attr: &Attr, changes: &Changes) -> Result<()> {
    if attr.kind != event.attr.kind {
        return Err(Errno::EINVAL);
    }
    if attr.kind != kind::BREAKPOINT {
        return Err(Errno::EOPNOTSUPP);
    }
    let mut result = Ok(());
    event.for_each_heir(changes, &mut |event, changes| {
        if result.is_ok() {
            result = modify_one(event, attr, changes);
        }
    });
    result
}

fn modify_one(event: &Event, attr: &Attr, changes: &Changes) -> Result<()> {
    event.aim.set_sig_data(attr.sig_data);
    event.set_on(changes, false);
    let turned = Spot::of(attr).and_then(|spot| {
        let mut same = Attr { sig_data: attr.sig_data, ..event.attr };
        (same.config1, same.config2, same.bp_type) = (attr.config1, attr.config2, attr.bp_type);
        same.flags = same.flags & !bit::DISABLED | attr.flags & bit::DISABLED;
        if same.as_bytes() == attr.as_bytes() { Ok(spot) } else { Err(Errno::EINVAL) }
    });
    if let Ok(spot) = turned {
        event.aim.turn(spot, attr);
    }
    if !event.aim.is_disabled() {
        event.set_on(changes, true);
    }
    turned.map(drop)
}
