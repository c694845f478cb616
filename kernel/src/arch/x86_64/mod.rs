//! x86_64, room by room: `entry` (traps and system calls), `irq`, `task` (the switch), `copy` (user memory), `smp`, `time`
//! (the scale of the TSC), `stop` (looking at CPUs, crashes), `boot`, `selftest`. What needs neither locks nor firmware
//! tables is in `base`, below.

pub mod boot;
pub mod copy;
pub mod entry;
pub mod irq;
pub mod selftest;
pub mod smp;
pub mod stop;
pub mod task;
pub mod time;
