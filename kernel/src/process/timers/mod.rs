//! Time of tasks: what they used (`times`, `cpu_clock`), what it is limited to, and the timers that they set.

pub mod cpu_clock;
pub(super) mod cpu_limit;
pub mod itimer;
pub mod posix_timer;
pub mod times;
