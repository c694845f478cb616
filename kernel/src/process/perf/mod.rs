//! perf_event_open(2): events that are counted, of a task, of its children, of a CPU.
//!
//! An [`event::Event`] is one thing that is counted somewhere. It stands in the list of what it is counted of, a
//! [`context::Context`]: a task's, made when the first event is opened on it, or a CPU's. What happens is told by the
//! tracepoints, which are off while there is no event ([`mod@told`]); time is not counted at all, but read off the clock
//! of the task when somebody asks. So nobody who is not looked at pays.
//!
//! [`mod@open`] is the call, [`mod@file`] what its descriptor can do, [`mod@read`] what is read of it, [`mod@life`] what
//! becomes of events when tasks are made, execute and end, [`tracepoint`] those of system calls and of the scheduler, [`breakpoint`] those of debug registers, [`mod@pay`] the signals that samples send, [`mod@part`] what an event holds that knows no event, [`sched`] where the latter are told, [`settings`] what stands below /proc/sys and /sys.
//!
//! Lock order: who changes which events there are, or which are on, holds the mutex of all events, then that of an event's
//! links, then a context's list, then an event's times. What the tracepoints call takes the last two only, with interrupts off.

mod breakpoint;
mod chains;
mod context;
mod emit;
mod event;
mod file;
mod life;
mod locked;
mod long;
mod map;
mod open;
mod part;
mod pay;
mod period;
mod read;
mod record;
mod ring;
mod sampler;
mod sched;
mod settings;
mod told;
mod tracepoint;

pub(in crate::process) use breakpoint::{
    Slots, collect, hit, load as load_breakpoints, with_slots,
};
pub(in crate::process) use context::Watcher;

/// Pages that stay once there has been an event: what each CPU writes samples and notes into.
pub(in crate::process) fn kept_pages() -> u64 {
    long::kept_pages() + sched::kept_pages()
}
pub(in crate::process) use life::{exec_done, forked, inherit, leave, switched};
pub use life::{mapped, named};
pub use open::{Request, check, open};
pub(in crate::process) use pay::{has_switched, pay};
pub(in crate::process) use sched::woken;
pub(in crate::process) use settings::{is_open_to_all, register};
