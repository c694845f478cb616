//! Signals: pending queues, actions, delivery and job control.
//!
//! Senders work from any context (interrupt handlers included) and only queue, flag and wake; all that
//! happens to a task because of a signal happens in that task, on its way to user mode ([`deliver`]).
//!
//! Lock order within [`level::Signal`](crate::sync::level::Signal): job state, then the process's
//! queue, then a thread's queue, then the action table.

mod actions;
mod change;
mod charge;
mod deliver;
mod dnotify;
pub mod fd;
mod force;
mod frame;
mod pending;
mod queue;
mod restart;
mod send;
mod sigio;
mod state;
mod stop;
pub mod wait;

pub(super) use actions::{PartOfActions, SignalActions};
pub(super) use change::{reset_for_exec, set_mask_of};
pub use change::{set_action, set_altstack, set_blocked};
pub(super) use charge::{Counted, queued};
pub(super) use deliver::exit_to_user;
pub use dnotify::notify;
pub(super) use force::{force, force_fault};
pub use frame::sigreturn;
pub(super) use pending::{dies, killed, pending};
pub use restart::{sigsuspend, with_mask};
pub(super) use send::{make_look, notify_parent, peek, stop_at_start};
pub(super) use send::{retarget, send_sigchld, send_timer, send_to_group, terminate_threads};
pub use send::{send_to_process, send_to_task};
pub use sigio::{sigurg, tell};
pub(super) use state::{ProcessSignals, TaskSignals};
