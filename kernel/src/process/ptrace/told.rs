//! What a stop tells a tracer, and what the two exchange about vector registers.

use crate::process::task::task::Task;
use abi::Result;
use abi::ptrace::{Event, SyscallInfo};
use abi::signal::{SigInfo, Signal, code};
use alloc::vec::Vec;

/// What a tracer learns of a stop.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    /// A signal, and the event in the next byte: what `wait` reports in the upper bits of its status.
    pub(super) status: i32,
    /// PTRACE_GETEVENTMSG.
    pub(super) message: u64,
    /// What PTRACE_GETSIGINFO gives; none in a stop of the whole process.
    pub(super) info: Option<SigInfo>,
    /// What PTRACE_GET_SYSCALL_INFO gives: `op` and `words`.
    pub(super) call: (u8, [u64; 7]),
    /// The signal that the tracee gets if there is nobody to say anything: its own, or 0.
    pub(super) own: i32,
    /// The code of the SIGCHLD.
    pub(super) why: i32,
}

impl Stop {
    /// A signal is about to be delivered.
    pub(super) fn signal(signal: Signal, info: SigInfo) -> Self {
        let call = (SyscallInfo::NONE, [0; 7]);
        let status = signal.number();
        Self { status, message: 0, info: Some(info), call, own: status, why: code::CLD_TRAPPED }
    }

    /// The whole process stops, because of `signal`.
    pub(super) fn group(signal: Signal) -> Self {
        let call = (SyscallInfo::NONE, [0; 7]);
        let status = signal.number();
        Self { status, message: 0, info: None, call, own: 0, why: code::CLD_STOPPED }
    }

    /// Something that is no signal: the status stands in the code of what looks like a SIGTRAP.
    pub(super) fn trap(status: i32, message: u64, task: &Task) -> Self {
        let (pid, uid) = (task.tid(), task.cred_arc().uid);
        let mut info = SigInfo::sent_by(Signal::SIGTRAP, status, pid, uid);
        info.signo = status & 0x7f;
        let call = (SyscallInfo::NONE, [0; 7]);
        Self { status, message, info: Some(info), call, own: 0, why: code::CLD_TRAPPED }
    }

    pub(super) fn event(event: Event, message: u64, task: &Task) -> Self {
        Self::trap(Signal::SIGTRAP.number() | (event as i32) << 8, message, task)
    }

    /// A system call begins or ends: `message` and `call` tell which. With PTRACE_O_TRACESYSGOOD it tells itself from a
    /// SIGTRAP.
    pub(super) fn call(good: bool, op: u8, words: [u64; 7], task: &Task) -> Self {
        let status = Signal::SIGTRAP.number() | if good { 0x80 } else { 0 };
        let mut stop = Self::trap(status, op.into(), task);
        if let (true, Some(info)) = (good, &mut stop.info) {
            info.signo = Signal::SIGTRAP.number();
        }
        // Linux tells the two from other stops by this option's bit only.
        stop.call = if good { (op, words) } else { stop.call };
        stop
    }
}

/// What a tracer asks, and what it is told.
#[derive(Default)]
pub(super) enum Exchange {
    #[default]
    Nothing,
    /// The image is wanted.
    Wanted,
    /// The image is to be this one.
    Offered(Vec<u8>),
    /// The answer: the image as it is now.
    Answered(Result<Vec<u8>>),
}

impl Exchange {
    pub(super) fn is_asked(&self) -> bool {
        matches!(self, Self::Wanted | Self::Offered(_))
    }
}
