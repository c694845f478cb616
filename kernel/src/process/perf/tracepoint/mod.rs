//! Tracepoints as events: what is told of one, its filters, and their files in tracefs.
//!
//! [`mod@call`] are those of system calls, [`sched`] those of the scheduler, [`fields`] which fields each has, [`filters`] what PERF_EVENT_IOC_SET_FILTER
//! sets, [`mod@files`] what stands in tracefs. Owns nothing. Never counts: `told` does. Locks: none.

mod arguments;
mod call;
mod fields;
mod files;
mod filters;
mod sched;

pub(super) use call::{Call, find, is_raw, unwatch, watch};
pub(super) use fields::is_one;
pub(super) use files::register;
pub(super) use filters::set_filter;
pub(super) use sched::{Task, Told};

use super::event::Event;
use abi::perf::Attr;

/// What a tracepoint tells of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact<'a> {
    Call(&'a Call<'a>),
    Sched(&'a Told<'a>),
}

impl Fact<'_> {
    /// Whether the filter of an event lets it pass.
    pub fn passes(&self, event: &Event) -> bool {
        filters::passes(event, |values| match self {
            Self::Call(call) => call.fill(values),
            Self::Sched(told) => told.fill(values),
        })
    }

    /// The raw data, as the format in tracefs has it: its length in 32 bits, then itself, in words.
    pub fn raw(&self, attr: &Attr, put: impl FnMut(u64)) {
        match self {
            Self::Call(call) => call.raw(attr, put),
            Self::Sched(told) => told.raw(attr, put),
        }
    }
}
