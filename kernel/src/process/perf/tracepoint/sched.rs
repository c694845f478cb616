//! What the tracepoints of the scheduler tell: the values of their fields, packed as the formats in tracefs have them.
//!
//! Owns nothing. Never allocates: it is made where a CPU switches. Locks: none; a name that is being changed just then is empty.

use super::fields::{COMMON, Form, of_sched};
use crate::process::sched::Policy;
use crate::process::task::current::current;
use crate::process::task::task::{COMM_LEN, Task as Running};
use abi::perf::{Attr, Sched};

/// Who it is about.
#[derive(Clone, Copy, Debug)]
pub(in crate::process::perf) struct Task {
    pub name: [u8; COMM_LEN],
    pub tid: i32,
    pub prio: i32,
}

impl Task {
    pub fn of(task: &Running) -> Self {
        let Policy { priority, .. } = task.sched.policy();
        let prio = match priority {
            0 => 120 + task.sched.nice(),
            priority => 99 - priority.cast_signed(),
        };
        Self { name: task.comm_now().unwrap_or_default(), tid: task.tid(), prio }
    }
}

/// A value of a field.
#[derive(Clone, Copy, Debug)]
enum Value {
    Name([u8; COMM_LEN]),
    Int(i32),
    Long(i64),
    Text,
}

/// One event, with the values of its fields.
#[derive(Debug)]
pub(in crate::process::perf) enum Told<'a> {
    /// The bits of `state` are those of `prev_state`.
    Switch {
        prev: Task,
        state: i64,
        next: Task,
    },
    Wakeup {
        task: Task,
        cpu: usize,
        is_new: bool,
    },
    Fork {
        parent: Task,
        child: Task,
    },
    Exec {
        name: &'a [u8],
        tid: i32,
        old_tid: i32,
    },
    Exit(Task),
}

impl Told<'_> {
    /// Which one it is.
    pub const fn what(&self) -> Sched {
        match self {
            Self::Switch { .. } => Sched::Switch,
            Self::Wakeup { is_new: false, .. } => Sched::Wakeup,
            Self::Wakeup { .. } => Sched::WakeupNew,
            Self::Fork { .. } => Sched::Fork,
            Self::Exec { .. } => Sched::Exec,
            Self::Exit(_) => Sched::Exit,
        }
    }

    /// The values, in the order of the fields.
    fn for_each(&self, mut act: impl FnMut(Value)) {
        match *self {
            Self::Switch { prev, state, next } => {
                act(Value::Name(prev.name));
                act(Value::Int(prev.tid));
                act(Value::Int(prev.prio));
                act(Value::Long(state));
                act(Value::Name(next.name));
                act(Value::Int(next.tid));
                act(Value::Int(next.prio));
            }
            Self::Wakeup { task, cpu, .. } => {
                act(Value::Name(task.name));
                act(Value::Int(task.tid));
                act(Value::Int(task.prio));
                act(Value::Int(cpu as i32));
            }
            Self::Fork { parent, child } => {
                for task in [parent, child] {
                    act(Value::Name(task.name));
                    act(Value::Int(task.tid));
                }
            }
            Self::Exec { tid, old_tid, .. } => {
                act(Value::Text);
                act(Value::Int(tid));
                act(Value::Int(old_tid));
            }
            Self::Exit(task) => {
                act(Value::Name(task.name));
                act(Value::Int(task.tid));
                act(Value::Int(task.prio));
            }
        }
    }

    /// The values that filters know, in the order of `fields`.
    pub fn fill(&self, values: &mut [i64]) {
        let mut places = values.iter_mut().skip(COMMON.len());
        self.for_each(|value| {
            if let Some(place) = places.next() {
                *place = match value {
                    Value::Int(number) => number.into(),
                    Value::Long(number) => number,
                    Value::Name(_) | Value::Text => 0,
                };
            }
        });
    }

    /// The raw data: its length in 32 bits, then itself, in words.
    pub fn raw(&self, attr: &Attr, put: impl FnMut(u64)) {
        let forms = || of_sched(self.what()).iter().map(|(_, _, form)| *form);
        let fixed = 8 + forms().map(Form::size).sum::<usize>();
        let text = match self {
            Self::Exec { name, .. } => name,
            _ => &[][..],
        };
        // What is longer than a path ends there; then a NUL.
        let text = &text[..text.len().min(TEXT)];
        let has_text = forms().any(|form| form == Form::Text);
        let behind = if has_text { text.len() + 1 } else { 0 };
        let size = (4 + fixed + behind).next_multiple_of(8) - 4;
        let mut out = Packer { put, word: 0, used: 0 };
        out.bytes(&(size as u32).to_ne_bytes());
        out.bytes(&(attr.config as u16).to_ne_bytes());
        out.bytes(&[0; 2]);
        out.bytes(&current().tid().to_ne_bytes());
        self.for_each(|value| match value {
            Value::Name(name) => out.bytes(&name),
            Value::Int(number) => out.bytes(&number.to_ne_bytes()),
            Value::Long(number) => out.bytes(&number.to_ne_bytes()),
            Value::Text => out.bytes(&((behind as u32) << 16 | fixed as u32).to_ne_bytes()),
        });
        if has_text {
            out.bytes(text);
        }
        let padding = size.saturating_sub(fixed + behind - usize::from(has_text));
        out.bytes([0; 8].get(..padding).unwrap_or_default());
    }
}

/// The longest text.
const TEXT: usize = 4096;

/// Bytes that become words.
struct Packer<P> {
    put: P,
    word: u64,
    used: u32,
}

impl<P: FnMut(u64)> Packer<P> {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.word |= u64::from(*byte) << (8 * self.used);
            self.used += 1;
            if self.used == 8 {
                (self.put)(self.word);
                (self.word, self.used) = (0, 0);
            }
        }
    }
}
