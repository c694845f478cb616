//! Tracing: ptrace(2).
//!
//! A tracee stops in its own context, on its way to user mode or at a few places inside system calls ([`mod@stop`]); what its
//! tracer asks ([`mod@request`]) is done on the copy of the registers that the stop made, and taken over when it goes on.
//! [`mod@tracee`] has what is between the two, [`access`] who may, [`mod@attach`] the beginning and the end, [`event`] who
//! reports what, [`mod@call`] the stops around system calls, [`breakpoints`] the debug registers, [`mod@wait`] what the
//! tracer's wait finds.
//!
//! A task that nobody traces pays for none of this: its calls go past [`mod@call`], and one flag says that it is not traced.
//!
//! Lock order: the list of a tracer's tracees (`Leaf`), then what a task says of its tracer (`Owned`), then what is between
//! the two (`Trace`).

pub(super) mod access;
mod attach;
mod breakpoints;
mod call;
mod event;
mod filters;
mod order;
mod regs;
mod request;
mod stop;
mod told;
mod tracee;
mod vectors;
mod wait;

pub(super) use attach::{leader_replaced, tracer_ends};
pub(super) use breakpoints::{debug_code, load as load_breakpoints};
pub(super) use call::{leave, watched, watches_calls};
pub(super) use event::{CloneKind, Told};
pub(super) use event::{clone_event, exec_done, exiting, process_ended, thread_ended};
pub(super) use event::{has_weak_tracer, is_traced_by_parent};
pub(super) use event::{seccomp_stop, suspends_seccomp};
pub(super) use regs::take as registers;
pub use request::request;
pub(super) use stop::{
    continued, group_stop, handler_stop, hurry, pause_stepping, signal_stop, trap,
};
pub(super) use tracee::{Tracees, Tracing};
pub(super) use wait::{Found, look, reaped};
