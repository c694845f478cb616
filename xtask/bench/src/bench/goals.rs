//! The design's goals, and what a measurement is counted in.

use super::bench::{BOOT, Bench, MEMORY};

/// The design's goals for Alea's share of Linux's time, and of its instructions.
const GOALS: [(&str, f64, Option<f64>); 30] = [
    ("getpid", 0.5, Some(0.3)),
    ("seccomp_getpid_50", 0.5, Some(0.5)),
    ("seccomp_getpid_args_50", 0.5, Some(0.5)),
    ("getrandom_16", 0.4, Some(0.3)),
    ("getrandom_64k", 0.25, Some(0.3)),
    ("vdso_getrandom_16", 0.8, Some(0.8)),
    ("vdso_clock_gettime", 0.8, Some(0.8)),
    ("read_urandom_16", 0.5, Some(0.4)),
    ("fopen_urandom_16", 0.15, Some(0.15)),
    ("pipe_1", 0.5, Some(0.5)),
    ("ctx_switch", 0.5, Some(0.5)),
    ("signal_delivery", 0.5, Some(0.5)),
    ("mmap_touch_64", 0.5, Some(0.5)),
    ("open_close", 0.5, Some(0.5)),
    ("stat", 0.5, Some(0.5)),
    ("getdents_100", 0.5, Some(0.5)),
    ("maps_8000", 1.0, Some(1.0)),
    ("smaps_8000", 1.0, Some(1.0)),
    ("proc_stat", 1.0, Some(1.0)),
    ("proc_status", 1.0, Some(1.0)),
    ("poll_10", 0.5, Some(0.5)),
    ("poll_100", 0.5, Some(0.5)),
    ("select_10", 0.5, Some(0.5)),
    ("select_100", 0.5, Some(0.5)),
    ("fork_exit", 0.15, Some(0.10)),
    ("exec_true", 0.15, Some(0.10)),
    ("shell_noop", 0.20, Some(0.15)),
    ("pipe_grep", 0.25, Some(0.20)),
    ("sed_pipeline", 0.25, Some(0.20)),
    (BOOT, 0.15, None),
];

impl Bench {
    /// The ratio that the design asks for.
    pub(super) fn goal(&self, name: &str) -> Option<f64> {
        let (_, wall, instructions) = GOALS.iter().find(|(goal, ..)| *goal == name)?;
        if self.machine.icount { *instructions } else { Some(*wall) }
    }

    pub(super) fn unit(&self, name: &str) -> &'static str {
        match name {
            MEMORY => "KiB",
            _ if self.machine.icount => "instructions",
            _ => "ns",
        }
    }
}
