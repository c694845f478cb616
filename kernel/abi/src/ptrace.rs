//! Tracing: ptrace(2)'s requests, options, events and structures (linux/ptrace.h, asm/ptrace-abi.h).

use bitflags::bitflags;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

bitflags! {
    /// PTRACE_O_*.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Options: u32 {
        /// A stop at a system call has 0x80 in its signal.
        const SYSGOOD = 1;
        const FORK = 1 << Event::Fork as u32;
        const VFORK = 1 << Event::Vfork as u32;
        const CLONE = 1 << Event::Clone as u32;
        const EXEC = 1 << Event::Exec as u32;
        const VFORK_DONE = 1 << Event::VforkDone as u32;
        const EXIT = 1 << Event::Exit as u32;
        const SECCOMP = 1 << Event::Seccomp as u32;
        /// SIGKILL when the tracer ends.
        const EXITKILL = 1 << 20;
        const SUSPEND_SECCOMP = 1 << 21;
    }
}

/// PTRACE_EVENT_*: why a tracee stopped, in the third byte of its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Event {
    Fork = 1,
    Vfork = 2,
    Clone = 3,
    Exec = 4,
    VforkDone = 5,
    Exit = 6,
    Seccomp = 7,
    Stop = 128,
}

impl Event {
    /// The option that asks for it.
    pub const fn option(self) -> Options {
        match self {
            Self::Stop => Options::empty(),
            event => Options::from_bits_truncate(1 << event as u32),
        }
    }
}

/// The requests of ptrace(2).
pub mod request {
    pub const TRACEME: i64 = 0;
    pub const PEEKTEXT: i64 = 1;
    pub const PEEKDATA: i64 = 2;
    pub const PEEKUSR: i64 = 3;
    pub const POKETEXT: i64 = 4;
    pub const POKEDATA: i64 = 5;
    pub const POKEUSR: i64 = 6;
    pub const CONT: i64 = 7;
    pub const KILL: i64 = 8;
    pub const SINGLESTEP: i64 = 9;
    pub const GETREGS: i64 = 12;
    pub const SETREGS: i64 = 13;
    pub const GETFPREGS: i64 = 14;
    pub const SETFPREGS: i64 = 15;
    pub const ATTACH: i64 = 16;
    pub const DETACH: i64 = 17;
    pub const OLD_SETOPTIONS: i64 = 21;
    pub const SYSCALL: i64 = 24;
    pub const ARCH_PRCTL: i64 = 30;
    pub const SYSEMU: i64 = 31;
    pub const SYSEMU_SINGLESTEP: i64 = 32;
    pub const SINGLEBLOCK: i64 = 33;
    pub const SETOPTIONS: i64 = 0x4200;
    pub const GETEVENTMSG: i64 = 0x4201;
    pub const GETSIGINFO: i64 = 0x4202;
    pub const SETSIGINFO: i64 = 0x4203;
    pub const GETREGSET: i64 = 0x4204;
    pub const SETREGSET: i64 = 0x4205;
    pub const SEIZE: i64 = 0x4206;
    pub const INTERRUPT: i64 = 0x4207;
    pub const LISTEN: i64 = 0x4208;
    pub const PEEKSIGINFO: i64 = 0x4209;
    pub const GETSIGMASK: i64 = 0x420a;
    pub const SETSIGMASK: i64 = 0x420b;
    pub const SECCOMP_GET_FILTER: i64 = 0x420c;
    pub const SECCOMP_GET_METADATA: i64 = 0x420d;
    pub const GET_SYSCALL_INFO: i64 = 0x420e;
    pub const GET_RSEQ_CONFIGURATION: i64 = 0x420f;
    pub const SET_SYSCALL_USER_DISPATCH_CONFIG: i64 = 0x4210;
    pub const GET_SYSCALL_USER_DISPATCH_CONFIG: i64 = 0x4211;
}

/// `struct ptrace_sud_config`: what PR_SET_SYSCALL_USER_DISPATCH sets.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DispatchConfig {
    pub mode: u64,
    pub selector: u64,
    pub offset: u64,
    pub len: u64,
}

impl DispatchConfig {
    pub const OFF: u64 = 0;
    pub const ON: u64 = 1;
}

/// Kinds of registers, for GETREGSET and SETREGSET.
pub mod regset {
    pub const PRSTATUS: u64 = 1;
    pub const PRFPREG: u64 = 2;
    pub const X86_XSTATE: u64 = 0x202;
}

/// `struct user_regs_struct`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Regs {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub orig_rax: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
    pub fs_base: u64,
    pub gs_base: u64,
    pub ds: u64,
    pub es: u64,
    pub fs: u64,
    pub gs: u64,
}

/// Words of [`Regs`].
pub const REGS: usize = size_of::<Regs>() / 8;

/// Bytes of the kernel's `struct user`, and where its eight debug registers begin and end.
pub const USER_SIZE: u64 = 928;
pub const USER_DEBUGREG: u64 = 848;
pub const USER_DEBUGREG_END: u64 = 912;

/// `struct __ptrace_peeksiginfo_args`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PeekSigInfo {
    /// How many signals are passed over.
    pub off: u64,
    pub flags: u32,
    /// How many are read.
    pub nr: i32,
}

impl PeekSigInfo {
    /// The signals that are pending for the whole process.
    pub const SHARED: u32 = 1;
}

/// `struct ptrace_syscall_info`; an exit has 33 bytes, an entry 80.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SyscallInfo {
    pub op: u8,
    pub pad: [u8; 3],
    /// AUDIT_ARCH_X86_64.
    pub arch: u32,
    pub rip: u64,
    pub rsp: u64,
    /// Number and arguments; or result, and whether it is an error.
    pub words: [u64; 7],
    pub seccomp: u64,
}

impl SyscallInfo {
    pub const NONE: u8 = 0;
    pub const ENTRY: u8 = 1;
    pub const EXIT: u8 = 2;
    pub const SECCOMP: u8 = 3;
}

/// `struct ptrace_rseq_configuration`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RseqConfiguration {
    pub area: u64,
    pub size: u32,
    pub signature: u32,
    pub flags: u32,
    pub pad: u32,
}

const _: () = {
    assert!(size_of::<Regs>() == 216);
    assert!(size_of::<PeekSigInfo>() == 16);
    assert!(size_of::<SyscallInfo>() == 88);
    assert!(size_of::<RseqConfiguration>() == 24);
};
