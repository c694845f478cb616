//! Signals: numbers, sets, `siginfo_t`, `struct sigaction`, the alternate stack and the signal frame.
//!
//! Layouts are those of x86_64 Linux (arch/x86/include/uapi/asm/{signal,sigcontext,ucontext}.h).

use bitflags::bitflags;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A signal number, 1 to 64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Signal(u8);

/// What happens to a process that left a signal at its default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultAction {
    Terminate,
    CoreDump,
    Ignore,
    Stop,
    Continue,
}

macro_rules! signals {
    ($($name:ident = $number:literal $action:ident;)*) => {
        impl Signal {
            $(pub const $name: Self = Self($number);)*

            /// The symbolic name, or `None` for a real-time signal.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// What the kernel does when the program left the signal at `SIG_DFL`.
            pub const fn default_action(self) -> DefaultAction {
                match self.0 {
                    $($number => DefaultAction::$action,)*
                    _ => DefaultAction::Terminate,
                }
            }
        }
    };
}

signals! {
    SIGHUP = 1 Terminate;
    SIGINT = 2 Terminate;
    SIGQUIT = 3 CoreDump;
    SIGILL = 4 CoreDump;
    SIGTRAP = 5 CoreDump;
    SIGABRT = 6 CoreDump;
    SIGBUS = 7 CoreDump;
    SIGFPE = 8 CoreDump;
    SIGKILL = 9 Terminate;
    SIGUSR1 = 10 Terminate;
    SIGSEGV = 11 CoreDump;
    SIGUSR2 = 12 Terminate;
    SIGPIPE = 13 Terminate;
    SIGALRM = 14 Terminate;
    SIGTERM = 15 Terminate;
    SIGSTKFLT = 16 Terminate;
    SIGCHLD = 17 Ignore;
    SIGCONT = 18 Continue;
    SIGSTOP = 19 Stop;
    SIGTSTP = 20 Stop;
    SIGTTIN = 21 Stop;
    SIGTTOU = 22 Stop;
    SIGURG = 23 Ignore;
    SIGXCPU = 24 CoreDump;
    SIGXFSZ = 25 CoreDump;
    SIGVTALRM = 26 Terminate;
    SIGPROF = 27 Terminate;
    SIGWINCH = 28 Ignore;
    SIGIO = 29 Terminate;
    SIGPWR = 30 Terminate;
    SIGSYS = 31 CoreDump;
}

impl Signal {
    /// The first real-time signal, as the kernel counts them.
    pub const RT_MIN: u8 = 32;
    /// The highest signal number.
    pub const MAX: u8 = 64;

    /// A signal from its number; `None` outside 1..=64.
    #[inline]
    pub const fn new(number: i32) -> Option<Self> {
        if number >= 1 && number <= Self::MAX as i32 { Some(Self(number as u8)) } else { None }
    }

    /// The number, 1 to 64.
    #[inline]
    pub const fn number(self) -> i32 {
        self.0 as i32
    }

    /// Index into a table of 64.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize - 1
    }

    /// Real-time signals queue; the others are pending once at most.
    #[inline]
    pub const fn is_realtime(self) -> bool {
        self.0 >= Self::RT_MIN
    }
}

/// A set of signals: bit `n - 1` is signal `n`.
#[derive(
    Clone, Copy, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(transparent)]
pub struct SigSet(pub u64);

impl SigSet {
    pub const EMPTY: Self = Self(0);
    pub const ALL: Self = Self(u64::MAX);
    /// What can be neither blocked, ignored nor caught.
    pub const UNBLOCKABLE: Self = Self::of(&[Signal::SIGKILL, Signal::SIGSTOP]);
    /// Signals whose default action stops.
    pub const STOPS: Self =
        Self::of(&[Signal::SIGSTOP, Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU]);
    /// Raised by the running instruction: delivered before all others.
    pub const SYNCHRONOUS: Self = Self::of(&[
        Signal::SIGSEGV,
        Signal::SIGBUS,
        Signal::SIGILL,
        Signal::SIGTRAP,
        Signal::SIGFPE,
        Signal::SIGSYS,
    ]);

    /// The set of the given signals.
    pub const fn of(signals: &[Signal]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < signals.len() {
            bits |= 1 << signals[i].index();
            i += 1;
        }
        Self(bits)
    }

    #[inline]
    pub const fn contains(self, signal: Signal) -> bool {
        self.0 & (1 << signal.index()) != 0
    }

    #[inline]
    pub fn insert(&mut self, signal: Signal) {
        self.0 |= 1 << signal.index();
    }

    #[inline]
    pub fn remove(&mut self, signal: Signal) {
        self.0 &= !(1 << signal.index());
    }

    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The signal to deliver first: synchronous ones, then the lowest number.
    #[inline]
    pub fn first(self) -> Option<Signal> {
        let urgent = self.0 & Self::SYNCHRONOUS.0;
        let bits = if urgent != 0 { urgent } else { self.0 };
        (bits != 0).then(|| Signal(bits.trailing_zeros() as u8 + 1))
    }
}

/// `SI_*` and per-signal codes that say where a signal came from.
pub mod code {
    pub const SI_USER: i32 = 0;
    pub const SI_KERNEL: i32 = 0x80;
    pub const SI_QUEUE: i32 = -1;
    pub const SI_TIMER: i32 = -2;
    pub const SI_MESGQ: i32 = -3;
    pub const SI_SIGIO: i32 = -5;
    pub const SI_TKILL: i32 = -6;
    pub const POLL_IN: i32 = 1;
    pub const POLL_OUT: i32 = 2;
    pub const POLL_MSG: i32 = 3;
    pub const POLL_ERR: i32 = 4;
    pub const POLL_PRI: i32 = 5;
    pub const POLL_HUP: i32 = 6;
    pub const ILL_ILLOPN: i32 = 2;
    pub const FPE_INTDIV: i32 = 1;
    pub const FPE_FLTINV: i32 = 7;
    pub const SEGV_MAPERR: i32 = 1;
    pub const SEGV_ACCERR: i32 = 2;
    pub const BUS_ADRALN: i32 = 1;
    pub const BUS_ADRERR: i32 = 2;
    pub const TRAP_BRKPT: i32 = 1;
    pub const TRAP_TRACE: i32 = 2;
    pub const TRAP_HWBKPT: i32 = 4;
    pub const TRAP_PERF: i32 = 6;
    pub const CLD_EXITED: i32 = 1;
    pub const CLD_KILLED: i32 = 2;
    pub const CLD_DUMPED: i32 = 3;
    pub const CLD_TRAPPED: i32 = 4;
    pub const CLD_STOPPED: i32 = 5;
    pub const CLD_CONTINUED: i32 = 6;
}

/// `siginfo_t`: 128 bytes; the meaning of `fields` depends on signal and code.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SigInfo {
    pub signo: i32,
    pub errno: i32,
    pub code: i32,
    pad: i32,
    /// The union: see the constructors for what stands where.
    pub fields: [u64; 14],
}

impl SigInfo {
    /// A signal without further data.
    #[inline]
    pub const fn new(signal: Signal, code: i32) -> Self {
        Self { signo: signal.number(), errno: 0, code, pad: 0, fields: [0; 14] }
    }

    /// `kill(2)` and friends: sender's pid and uid.
    #[inline]
    pub const fn sent_by(signal: Signal, code: i32, pid: i32, uid: u32) -> Self {
        let mut info = Self::new(signal, code);
        info.fields[0] = pid as u32 as u64 | (uid as u64) << 32;
        info
    }

    /// A fault: the address.
    pub const fn fault(signal: Signal, code: i32, addr: u64) -> Self {
        let mut info = Self::new(signal, code);
        info.fields[0] = addr;
        info
    }

    /// `SIGCHLD`: child, its uid, status, and times in clock ticks.
    #[inline]
    pub const fn child(code: i32, pid: i32, uid: u32, status: i32, utime: i64, stime: i64) -> Self {
        let mut info = Self::sent_by(Signal::SIGCHLD, code, pid, uid);
        info.fields[1] = status as u32 as u64;
        info.fields[2] = utime as u64;
        info.fields[3] = stime as u64;
        info
    }

    /// An event was sampled that sends SIGTRAP: the address, the event's data and kind, and whether the signal is blocked.
    pub const fn perf(addr: u64, data: u64, kind: u32, is_blocked: bool) -> Self {
        let mut info = Self::fault(Signal::SIGTRAP, code::TRAP_PERF, addr);
        info.fields[1] = data;
        info.fields[2] = kind as u64 | (is_blocked as u64) << 32;
        info
    }

    /// A POSIX timer's expiry: timer id, overrun count, value.
    pub const fn timer(signal: Signal, id: i32, overrun: i32, value: u64) -> Self {
        let mut info = Self::new(signal, code::SI_TIMER);
        info.fields[0] = id as u32 as u64 | (overrun as u32 as u64) << 32;
        info.fields[1] = value;
        info
    }

    /// A message came to an empty POSIX queue: whose it was, and the value that was asked for.
    pub const fn message(signal: Signal, pid: i32, uid: u32, value: u64) -> Self {
        let mut info = Self::sent_by(signal, code::SI_MESGQ, pid, uid);
        info.fields[1] = value;
        info
    }

    /// Something happened to the file of a descriptor: the bits of poll(2), and the descriptor.
    pub const fn poll(signal: Signal, code: i32, band: u64, fd: i32) -> Self {
        let mut info = Self::new(signal, code);
        info.fields[0] = band;
        info.fields[1] = fd as u32 as u64;
        info
    }

    /// The sender's pid, for signals sent by processes and for `SIGCHLD`.
    pub const fn pid(&self) -> i32 {
        self.fields[0] as i32
    }

    /// The sender's uid.
    pub const fn uid(&self) -> u32 {
        (self.fields[0] >> 32) as u32
    }
}

bitflags! {
    /// `sa_flags`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SaFlags: u64 {
        const NOCLDSTOP = 1;
        const NOCLDWAIT = 2;
        const SIGINFO = 4;
        const EXPOSE_TAGBITS = 0x800;
        const RESTORER = 0x0400_0000;
        const ONSTACK = 0x0800_0000;
        const RESTART = 0x1000_0000;
        const NODEFER = 0x4000_0000;
        const RESETHAND = 0x8000_0000;
    }
}

/// `SIG_DFL` and `SIG_IGN` as handler addresses.
pub const SIG_DFL: u64 = 0;
pub const SIG_IGN: u64 = 1;

/// The kernel's `struct sigaction`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SigAction {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: SigSet,
}

impl SigAction {
    /// The flags Linux knows; others are kept in `flags` but mean nothing.
    pub fn known_flags(&self) -> SaFlags {
        SaFlags::from_bits_truncate(self.flags)
    }

    /// Whether `signal` has no effect with it.
    pub fn ignores(&self, signal: Signal) -> bool {
        match self.handler {
            SIG_IGN => true,
            SIG_DFL => signal.default_action() == DefaultAction::Ignore,
            _ => false,
        }
    }
}

/// `stack_t`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SigStack {
    pub sp: u64,
    pub flags: i32,
    pub pad: i32,
    pub size: u64,
}

pub const SS_ONSTACK: i32 = 1;
pub const SS_DISABLE: i32 = 2;
pub const SS_AUTODISARM: i32 = i32::MIN;
/// Smallest alternate stack that `sigaltstack` takes.
pub const MINSIGSTKSZ: u64 = 2048;

/// `struct sigcontext` of x86_64.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SigContext {
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub rip: u64,
    pub eflags: u64,
    pub cs: u16,
    pub gs: u16,
    pub fs: u16,
    pub ss: u16,
    pub err: u64,
    pub trapno: u64,
    pub oldmask: u64,
    pub cr2: u64,
    pub fpstate: u64,
    pub reserved: [u64; 8],
}

/// `struct ucontext`.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UContext {
    pub flags: u64,
    pub link: u64,
    pub stack: SigStack,
    pub mcontext: SigContext,
    pub sigmask: SigSet,
}

/// `uc_flags`: extended state present; `ss` saved; `ss` restored as saved.
pub const UC_FP_XSTATE: u64 = 1;
pub const UC_SIGCONTEXT_SS: u64 = 2;
pub const UC_STRICT_RESTORE_SS: u64 = 4;

/// What lies on the user stack when a handler starts; `rsp` points at `pretcode`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RtSigFrame {
    pub pretcode: u64,
    pub uc: UContext,
    pub info: SigInfo,
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::{offset_of, size_of};

    #[test]
    fn layouts_are_linuxs() {
        assert_eq!(size_of::<SigInfo>(), 128);
        assert_eq!(offset_of!(SigInfo, fields), 16);
        assert_eq!(size_of::<SigAction>(), 32);
        assert_eq!(size_of::<SigContext>(), 256);
        assert_eq!(offset_of!(SigContext, fpstate), 184);
        assert_eq!(offset_of!(UContext, sigmask), 296);
        assert_eq!(size_of::<RtSigFrame>(), 8 + 304 + 128);
    }

    #[test]
    fn synchronous_signals_go_first() {
        let set = SigSet::of(&[Signal::SIGHUP, Signal::SIGSEGV]);
        assert_eq!(set.first(), Some(Signal::SIGSEGV));
        assert_eq!(SigSet::of(&[Signal::SIGTERM, Signal::SIGHUP]).first(), Some(Signal::SIGHUP));
        assert_eq!(SigSet::EMPTY.first(), None);
        assert_eq!(SigSet(1 << 63).first().map(Signal::number), Some(64));
    }

    #[test]
    fn numbers_outside_the_range_are_refused() {
        assert!(Signal::new(0).is_none() && Signal::new(65).is_none() && Signal::new(-1).is_none());
        assert!(Signal::new(64).is_some_and(Signal::is_realtime));
        assert_eq!(Signal::SIGCHLD.default_action(), DefaultAction::Ignore);
        assert_eq!(Signal::SIGTTOU.name(), Some("SIGTTOU"));
    }
}
