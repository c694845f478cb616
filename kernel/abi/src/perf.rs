//! perf_event_open(2): the attributes of an event and which of them can be, the forms of what is read, the commands
//! (linux/perf_event.h).
//!
//! Pure: it knows no task and no capability. What only some may ask for is left to who opens the event.

use crate::errno::{Errno, Result};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct perf_event_attr`, of the size that Linux 6.12 knows (PERF_ATTR_SIZE_VER8).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Attr {
    pub kind: u32,
    pub size: u32,
    pub config: u64,
    /// How many there are from sample to sample, or how many samples a second.
    pub period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup: u32,
    pub bp_type: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    pub clockid: i32,
    pub sample_regs_intr: u64,
    pub aux_watermark: u32,
    pub sample_max_stack: u16,
    pub reserved_2: u16,
    pub aux_sample_size: u32,
    pub reserved_3: u32,
    pub sig_data: u64,
    pub config3: u64,
}

const _: () = assert!(size_of::<Attr>() == 136);

/// PERF_ATTR_SIZE_VER0.
pub const SIZE_LEAST: u32 = 64;
/// The largest size that a caller may say.
pub const SIZE_MOST: u32 = 4096;

/// PERF_TYPE_*.
pub mod kind {
    pub const HARDWARE: u32 = 0;
    pub const SOFTWARE: u32 = 1;
    pub const TRACEPOINT: u32 = 2;
    pub const HW_CACHE: u32 = 3;
    pub const RAW: u32 = 4;
    pub const BREAKPOINT: u32 = 5;
}

/// The bits of `flags`.
pub mod bit {
    pub const DISABLED: u64 = 1;
    pub const INHERIT: u64 = 1 << 1;
    pub const PINNED: u64 = 1 << 2;
    pub const EXCLUSIVE: u64 = 1 << 3;
    pub const EXCLUDE_USER: u64 = 1 << 4;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_IDLE: u64 = 1 << 7;
    pub const MMAP: u64 = 1 << 8;
    pub const COMM: u64 = 1 << 9;
    pub const FREQ: u64 = 1 << 10;
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub const TASK: u64 = 1 << 13;
    pub const WATERMARK: u64 = 1 << 14;
    pub const MMAP_DATA: u64 = 1 << 17;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
    pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub const MMAP2: u64 = 1 << 23;
    pub const WRITE_BACKWARD: u64 = 1 << 27;
    pub const USE_CLOCKID: u64 = 1 << 25;
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
    pub const NAMESPACES: u64 = 1 << 28;
    pub const AUX_OUTPUT: u64 = 1 << 31;
    pub const INHERIT_THREAD: u64 = 1 << 35;
    pub const REMOVE_ON_EXEC: u64 = 1 << 36;
    pub const SIGTRAP: u64 = 1 << 37;
    /// Those that nobody knows.
    pub const RESERVED: u64 = !0 << 38;
}

/// The bits of `sample_type`.
pub mod sample {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const RAW: u64 = 1 << 10;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const IDENTIFIER: u64 = 1 << 16;
    /// What samples can have here.
    pub const GIVEN: u64 =
        IP | TID | TIME | ADDR | ID | CPU | PERIOD | STREAM_ID | IDENTIFIER | LONG;
    /// Of that, what may be longer than a few words, and what stands behind it.
    pub const LONG: u64 = READ | CALLCHAIN | RAW | REGS_USER | STACK_USER | NOTHING;
    /// What only hardware could say, and is always the same.
    pub const NOTHING: u64 = WEIGHT | WEIGHT_STRUCT | DATA_SRC | TRANSACTION;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
    pub const KNOWN: u64 = (1 << 25) - 1;
}

/// PERF_MEM_NA: nobody knows where the data came from.
pub const DATA_SRC_UNKNOWN: u64 = 1 | 1 << 5 | 1 << 19 | 1 << 24 | 1 << 26 | 0xf << 33;

/// PERF_CONTEXT_*: what the addresses behind one in a call chain are of.
pub mod context {
    pub const KERNEL: u64 = 128u64.wrapping_neg();
    pub const USER: u64 = 512u64.wrapping_neg();
}

/// PERF_RECORD_*, and the bits of their heads.
pub mod record {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const SWITCH: u32 = 14;
    /// Of the events of a CPU: with the other task.
    pub const SWITCH_CPU_WIDE: u32 = 15;
    pub const KERNEL: u16 = 1;
    pub const USER: u16 = 2;
    /// Of COMM: by exec. Of MMAP: what cannot be executed.
    pub const BY_EXEC: u16 = 1 << 13;
    /// Of SWITCH: the task makes way, and could have gone on.
    pub const SWITCH_OUT: u16 = 1 << 13;
    pub const SWITCH_PREEMPT: u16 = 1 << 14;
}

/// The bits of `read_format`.
pub mod format {
    pub const ENABLED: u64 = 1;
    pub const RUNNING: u64 = 1 << 1;
    pub const ID: u64 = 1 << 2;
    pub const GROUP: u64 = 1 << 3;
    pub const LOST: u64 = 1 << 4;
    pub const KNOWN: u64 = (1 << 5) - 1;
}

/// PERF_FLAG_*.
pub mod open {
    pub const NO_GROUP: u64 = 1;
    pub const OUTPUT: u64 = 1 << 1;
    pub const CGROUP: u64 = 1 << 2;
    pub const CLOEXEC: u64 = 1 << 3;
    pub const KNOWN: u64 = (1 << 4) - 1;
}

/// PERF_EVENT_IOC_*.
pub mod ioctl {
    pub const ENABLE: u32 = 0x2400;
    pub const DISABLE: u32 = 0x2401;
    pub const REFRESH: u32 = 0x2402;
    pub const RESET: u32 = 0x2403;
    pub const PERIOD: u32 = 0x4008_2404;
    pub const SET_OUTPUT: u32 = 0x2405;
    pub const SET_FILTER: u32 = 0x4008_2406;
    pub const ID: u32 = 0x8008_2407;
    pub const SET_BPF: u32 = 0x4004_2408;
    pub const PAUSE_OUTPUT: u32 = 0x4004_2409;
    pub const QUERY_BPF: u32 = 0xc008_240a;
    pub const MODIFY_ATTRIBUTES: u32 = 0x4008_240b;
    /// The argument: the whole group.
    pub const GROUP: u64 = 1;
}

/// The numbers of tracepoints.
pub mod tracepoint {
    /// `sched:sched_process_exec`, and so on: as in Linux 6.12.
    pub const EXEC: u64 = 303;
    pub const FORK: u64 = 304;
    pub const EXIT: u64 = 307;
    pub const SWITCH: u64 = 310;
    pub const WAKEUP_NEW: u64 = 311;
    pub const WAKEUP: u64 = 312;
    /// `raw_syscalls:sys_exit`.
    pub const LEAVE: u64 = 383;
    /// `raw_syscalls:sys_enter`.
    pub const ENTER: u64 = 384;
    /// `syscalls:sys_exit_read`, then `sys_enter_read`, and so on by the numbers of the calls.
    pub const FIRST_CALL: u64 = 1000;
    pub const END: u64 = FIRST_CALL + 2 * 512;
}

/// What the scheduler tells of, and what becomes of tasks (`sched:*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sched {
    /// A CPU goes from one task to another.
    Switch,
    Wakeup,
    /// A new task may run.
    WakeupNew,
    Fork,
    Exec,
    Exit,
}

impl Sched {
    pub const ALL: [Self; 6] =
        [Self::Switch, Self::Wakeup, Self::WakeupNew, Self::Fork, Self::Exec, Self::Exit];

    /// Its number as a tracepoint.
    #[must_use]
    pub const fn id(self) -> u64 {
        match self {
            Self::Switch => tracepoint::SWITCH,
            Self::Wakeup => tracepoint::WAKEUP,
            Self::WakeupNew => tracepoint::WAKEUP_NEW,
            Self::Fork => tracepoint::FORK,
            Self::Exec => tracepoint::EXEC,
            Self::Exit => tracepoint::EXIT,
        }
    }
}

/// Software events that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    CpuClock,
    TaskClock,
    Faults,
    FaultsMinor,
    Switches,
    Migrations,
    /// Entries to system calls, or to this one.
    Enter(Option<u16>),
    /// Returns from system calls, or from this one.
    Leave(Option<u16>),
    /// What the scheduler tells of.
    Sched(Sched),
    /// A breakpoint or a watchpoint in a debug register.
    Breakpoint,
    /// What never happens here: major, alignment and emulation faults, switches of control groups, and what is there only
    /// to carry records.
    Never,
}

impl Software {
    /// By the number in `config`.
    #[must_use]
    pub const fn of(config: u64) -> Option<Self> {
        Some(match config {
            0 => Self::CpuClock,
            1 => Self::TaskClock,
            2 => Self::Faults,
            3 => Self::Switches,
            4 => Self::Migrations,
            5 => Self::FaultsMinor,
            6..=11 => Self::Never,
            _ => return None,
        })
    }

    /// By the number of a tracepoint, as tracefs shows it.
    #[must_use]
    pub fn tracepoint(id: u64) -> Option<Self> {
        match id {
            tracepoint::EXEC..tracepoint::LEAVE => {
                Sched::ALL.into_iter().find(|sched| sched.id() == id).map(Self::Sched)
            }
            tracepoint::ENTER => Some(Self::Enter(None)),
            tracepoint::LEAVE => Some(Self::Leave(None)),
            tracepoint::FIRST_CALL..tracepoint::END => {
                let number = Some(((id - tracepoint::FIRST_CALL) / 2) as u16);
                let leaves = (id - tracepoint::FIRST_CALL).is_multiple_of(2);
                Some(if leaves { Self::Leave(number) } else { Self::Enter(number) })
            }
            _ => None,
        }
    }

    /// Whether it is about system calls.
    #[must_use]
    pub const fn is_call(self) -> bool {
        matches!(self, Self::Enter(_) | Self::Leave(_))
    }

    /// Whether it is about the scheduler.
    #[must_use]
    pub const fn is_sched(self) -> bool {
        matches!(self, Self::Sched(_))
    }

    /// Whether it counts time.
    #[must_use]
    pub const fn is_clock(self) -> bool {
        matches!(self, Self::CpuClock | Self::TaskClock)
    }
}

/// Registers that Linux knows and cannot give: the segments.
const REGS_WITHOUT: u64 = 0xf << 12;
/// Those between the last register and the vectors.
const REGS_RESERVED: u64 = 0xff << 24;
/// The registers of vectors, which no software event has.
const REGS_VECTORS: u64 = !0 << 32;

/// What an event may do with the auxiliary buffer of another one.
const AUX_ACTIONS: u32 = 7;

const BRANCH_PRIVILEGES: u64 = 7;
const BRANCH_KNOWN: u64 = (1 << 20) - 1;

impl Attr {
    #[must_use]
    pub const fn has(&self, bit: u64) -> bool {
        self.flags & bit != 0
    }

    #[must_use]
    pub const fn samples(&self, what: u64) -> bool {
        self.sample_type & what != 0
    }

    /// Whether it samples, beside that it counts.
    #[must_use]
    pub const fn is_sampling(&self) -> bool {
        self.period != 0
    }

    /// What can never be, whoever asks, in the order in which Linux looks.
    ///
    /// # Errors
    /// `EINVAL`.
    pub fn check(&self) -> Result<()> {
        let stack = self.sample_stack_user;
        let wrong = self.has(bit::RESERVED)
            || self.reserved_2 != 0
            || self.reserved_3 & !AUX_ACTIONS != 0
            || self.sample_type & !sample::KNOWN != 0
            || self.read_format & !format::KNOWN != 0
            || self.samples(sample::BRANCH_STACK) && !self.has_good_branches()
            || self.samples(sample::REGS_USER) && !are_registers(self.sample_regs_user)
            || self.samples(sample::STACK_USER)
                && (stack >= u32::from(u16::MAX) || !stack.is_multiple_of(8))
            || self.samples(sample::REGS_INTR) && !are_registers(self.sample_regs_intr)
            || self.samples(sample::WEIGHT) && self.samples(sample::WEIGHT_STRUCT)
            || !self.has(bit::INHERIT) && self.has(bit::INHERIT_THREAD)
            || self.has(bit::REMOVE_ON_EXEC) && self.has(bit::ENABLE_ON_EXEC)
            || self.has(bit::SIGTRAP) && !self.has(bit::REMOVE_ON_EXEC);
        if wrong { Err(Errno::EINVAL) } else { Ok(()) }
    }

    /// Whether its period is less than half of all numbers, or its frequency no more than `rate`.
    #[must_use]
    pub const fn has_good_period(&self, rate: u64) -> bool {
        if self.has(bit::FREQ) { self.period <= rate } else { self.period >> 63 == 0 }
    }

    /// Whether it wants registers of vectors.
    #[must_use]
    pub const fn wants_vectors(&self) -> bool {
        self.samples(sample::REGS_USER) && self.sample_regs_user & REGS_VECTORS != 0
            || self.samples(sample::REGS_INTR) && self.sample_regs_intr & REGS_VECTORS != 0
    }

    /// Whether it wants to stop the auxiliary buffer of another event, or start it.
    #[must_use]
    pub const fn wants_aux(&self) -> bool {
        self.reserved_3 & AUX_ACTIONS != 0
    }

    const fn has_good_branches(&self) -> bool {
        let mask = self.branch_sample_type;
        mask & !BRANCH_KNOWN == 0 && mask & !BRANCH_PRIVILEGES != 0
    }

    /// Bytes of what is read of a group with `members` beside the leader, or of one event.
    #[must_use]
    pub fn read_size(&self, members: usize) -> usize {
        let has = |bit| usize::from(self.read_format & bit != 0);
        let each = 1 + has(format::ID) + has(format::LOST);
        let times = has(format::ENABLED) + has(format::RUNNING);
        let words = if self.read_format & format::GROUP != 0 {
            1 + times + each * (1 + members)
        } else {
            times + each
        };
        words * 8
    }
}

const fn are_registers(mask: u64) -> bool {
    mask != 0 && mask & (REGS_WITHOUT | REGS_RESERVED) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(change: impl FnOnce(&mut Attr)) -> Attr {
        let mut attr = Attr { kind: kind::SOFTWARE, ..Attr::default() };
        change(&mut attr);
        attr
    }

    #[test]
    fn reserved_bits_are_refused() {
        assert_eq!(attr(|_| ()).check(), Ok(()));
        for bit in 38..64 {
            assert_eq!(attr(|attr| attr.flags = 1 << bit).check(), Err(Errno::EINVAL));
        }
        for bit in 25..64 {
            assert_eq!(attr(|attr| attr.sample_type = 1 << bit).check(), Err(Errno::EINVAL));
        }
        for bit in 5..64 {
            assert_eq!(attr(|attr| attr.read_format = 1 << bit).check(), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn a_period_stays_below_half() {
        assert!(attr(|attr| attr.period = i64::MAX as u64).has_good_period(1));
        assert!(!attr(|attr| attr.period = 1 << 63).has_good_period(1));
        let by_frequency = attr(|attr| (attr.period, attr.flags) = (100, bit::FREQ));
        assert!(by_frequency.has_good_period(100) && !by_frequency.has_good_period(99));
    }

    #[test]
    fn sizes_of_what_is_read() {
        assert_eq!(attr(|_| ()).read_size(5), 8);
        assert_eq!(attr(|attr| attr.read_format = format::KNOWN).read_size(0), 48);
        assert_eq!(attr(|attr| attr.read_format = format::KNOWN).read_size(2), 96);
        assert_eq!(attr(|attr| attr.read_format = format::GROUP).read_size(1), 24);
    }

    #[test]
    fn tracepoints_have_numbers() {
        for sched in Sched::ALL {
            assert_eq!(Software::tracepoint(sched.id()), Some(Software::Sched(sched)));
        }
        assert_eq!(Software::tracepoint(305), None);
        assert_eq!(Software::tracepoint(tracepoint::LEAVE), Some(Software::Leave(None)));
        assert_eq!(
            Software::tracepoint(tracepoint::FIRST_CALL + 1),
            Some(Software::Enter(Some(0)))
        );
        assert_eq!(Software::tracepoint(tracepoint::END), None);
    }

    #[test]
    fn segments_are_no_registers() {
        assert!(are_registers(0xff_0fff) && !are_registers(0) && !are_registers(1 << 14));
        assert!(
            attr(|attr| (attr.sample_type, attr.sample_regs_user) = (1 << 12, 1 << 40))
                .wants_vectors()
        );
    }
}
