//! Which fields a tracepoint has: the common ones, those of system calls, those of the scheduler.
//!
//! Raw data, formats and filters are all made from these lists. Owns nothing. Never looks at a value. Locks: none.

use super::arguments;
use crate::process::watch;
use abi::perf::{Sched, Software};
use arrayvec::ArrayVec;

/// What every one begins with.
pub(super) const COMMON: [&str; 4] =
    ["common_type", "common_flags", "common_preempt_count", "common_pid"];

/// The most fields that one has, with the common ones.
pub(super) const MOST: usize = COMMON.len() + 8;

/// How a field lies in the raw data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A name of 16 bytes.
    Name,
    /// 32 bits, with a sign.
    Int,
    /// 64 bits, with a sign.
    Long,
    /// 32 bits that say where a text of any length stands behind all fields.
    Text,
}

impl Form {
    pub const fn size(self) -> usize {
        match self {
            Self::Name => 16,
            Self::Int | Self::Text => 4,
            Self::Long => 8,
        }
    }
}

/// A field: its declaration, its name, its form.
pub(super) type Field = (&'static str, &'static str, Form);

const PREV_COMM: Field = ("char prev_comm[16]", "prev_comm", Form::Name);
const COMM: Field = ("char comm[16]", "comm", Form::Name);
const PID: Field = ("pid_t pid", "pid", Form::Int);
const PRIO: Field = ("int prio", "prio", Form::Int);

const SWITCH: [Field; 7] = [
    PREV_COMM,
    ("pid_t prev_pid", "prev_pid", Form::Int),
    ("int prev_prio", "prev_prio", Form::Int),
    ("long prev_state", "prev_state", Form::Long),
    ("char next_comm[16]", "next_comm", Form::Name),
    ("pid_t next_pid", "next_pid", Form::Int),
    ("int next_prio", "next_prio", Form::Int),
];
const WAKEUP: [Field; 4] = [COMM, PID, PRIO, ("int target_cpu", "target_cpu", Form::Int)];
const FORK: [Field; 4] = [
    ("char parent_comm[16]", "parent_comm", Form::Name),
    ("pid_t parent_pid", "parent_pid", Form::Int),
    ("char child_comm[16]", "child_comm", Form::Name),
    ("pid_t child_pid", "child_pid", Form::Int),
];
const EXEC: [Field; 3] = [
    ("__data_loc char[] filename", "filename", Form::Text),
    PID,
    ("pid_t old_pid", "old_pid", Form::Int),
];
const EXIT: [Field; 3] = [COMM, PID, PRIO];

/// Those of the scheduler's, behind the common ones.
pub(super) fn of_sched(what: Sched) -> &'static [Field] {
    match what {
        Sched::Switch => &SWITCH,
        Sched::Wakeup | Sched::WakeupNew => &WAKEUP,
        Sched::Fork => &FORK,
        Sched::Exec => &EXEC,
        Sched::Exit => &EXIT,
    }
}

/// Whether it is a tracepoint.
pub(in crate::process::perf) fn is_one(what: Software) -> bool {
    what.is_call() || what.is_sched()
}

/// The names that filters of an event know, each in the place of its value. What is no number has none.
pub(super) fn known(what: Software) -> Known {
    let mut all = Known::new();
    put(&mut all, COMMON);
    match what {
        Software::Enter(None) => put(&mut all, ["id"]),
        Software::Leave(None) => put(&mut all, ["id", "ret"]),
        Software::Enter(Some(number)) => {
            let point = arguments::point_name(watch::name_of(number.into()));
            put(&mut all, ["__syscall_nr"]);
            put(&mut all, arguments::of(point).map(arguments::name));
        }
        Software::Leave(Some(_)) => put(&mut all, ["__syscall_nr", "ret"]),
        Software::Sched(what) => {
            let is_number = |form| matches!(form, Form::Int | Form::Long);
            let names = of_sched(what).iter();
            put(&mut all, names.map(|(_, name, form)| if is_number(*form) { name } else { "" }));
        }
        _ => {}
    }
    all
}

type Known = ArrayVec<&'static str, MOST>;

/// No tracepoint has more than there is room for: a system call has six arguments at most.
fn put(all: &mut Known, names: impl IntoIterator<Item = &'static str>) {
    for name in names {
        let _full = all.try_push(name);
    }
}
