//! System calls that are counted: how often each was made, how often it failed, and how long it took.
//!
//! [`mod@hook`] stands around each call of a task that is watched, by a tracer or to be counted; [`counts`] has what all tasks
//! together did, CPU by CPU, and what one process did; [`dispatch`] makes signals of calls; [`switch`] turns either on and off, and each task takes notice on its
//! way to user mode; [`names`] is how this floor learns what calls are called.
//!
//! Nobody who is not watched passes here: the entry code calls the table of calls directly.

mod counts;
mod dispatch;
mod hook;
mod names;
mod switch;

pub use counts::{Line, all};
pub use dispatch::set as set_dispatch;
pub(super) use dispatch::{Dispatch, config as dispatch_config, forget as forget_dispatch};
pub use hook::watched;
pub use names::register_names;
pub(super) use names::{name_of, number_of};
pub(super) use switch::{
    Reason, Watched, inherit, is_for_all, process_text, refresh, set_process, unwatch, watch_all,
    watch_new, watch_task,
};
pub use switch::{set_all, watch_for_tracer};
