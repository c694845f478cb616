//! The scheduler: the switch (`schedule`), each CPU's queue (`queue`, `entity`), which CPU (`place`), sleeping and idling.

pub mod entity;
mod idle;
pub(super) mod load;
mod place;
mod queue;
pub(super) mod schedule;
pub(super) mod settings;
pub mod sleep;

pub use entity::Policy;
pub(super) use entity::{Entity, State};
pub(super) use idle::run_idle;
pub(super) use load::{load_average, runnable};
pub(super) use place::{ask_to_look, has_looked, kick, start};
pub(super) use queue::{kept_pages, reserve};
pub use schedule::{
    affinity_changed, cond_resched, sampled, set_policy, slice_ended, slice_nanos, yield_now,
};
pub(super) use schedule::{
    begin_slice, die, finish_switch, idle_ns, idle_task, lend_rank, prepare_cpu, schedule,
    schedule_timeout, switches, system_ns,
};
pub(super) use sleep::Sleeper;
