//! What becomes of a call: the look at its number, and each action.
//!
//! Runs in the task itself, before the call, with interrupts on and no lock held; may sleep, and may not return.

use super::filter::{Filter, Verdict};
use super::log;
use super::notify::Answer;
use super::part::Mode;
use crate::arch::entry::frame::{SYSCALLS, SyscallTable, TrapFrame};
use crate::arch::entry::trap;
use crate::base::speculation::clamp;
use crate::process::task::current::{Current, current};
use crate::process::tree::exit;
use crate::process::{coredump, ptrace, signal, watch};
use abi::Errno;
use abi::seccomp::{ARCH_X86_64, ret};
use abi::signal::{SigInfo, Signal};
use alea_bpf::{DATA_WORDS, Data, Word};
use alloc::sync::Arc;

/// The greatest error that a filter can give.
const MAX_ERRNO: u32 = 4095;

/// What strict mode lets pass: read, write, rt_sigreturn, exit.
const STRICT: [u32; 4] = [0, 1, 15, 60];

/// A call of the running task that its filters have to be asked about: what it returns.
pub(super) extern "C" fn asked(frame: &mut TrapFrame) -> i64 {
    let calls = trap::system_calls();
    let task = current();
    if task.tracing.is_traced() {
        return watched(frame, calls);
    }
    let own = task.own_filter();
    let Some(filter) = &*own else {
        drop(own);
        return watched(frame, calls);
    };
    let refused = verdict_of(filter, frame);
    drop(own);
    if refused.is_none_or(|verdict| act(task, frame, verdict, false)) {
        // As at the entry: the low half, and the last entry for what is too great.
        calls[clamp((frame.orig_rax as u32 as usize).min(SYSCALLS - 1), SYSCALLS)](frame)
    } else {
        frame.return_value()
    }
}

#[cold]
#[inline(never)]
fn watched(frame: &mut TrapFrame, calls: &SyscallTable) -> i64 {
    watch::watched(frame, calls)
}

/// Whether the running task makes the call that its registers ask for; if not, its result is in them.
#[inline]
pub(in crate::process) fn may_be_made(task: Current, frame: &mut TrapFrame) -> bool {
    if !task.seccomp.is_on() {
        return true;
    }
    let number = frame.orig_rax as u32;
    // Its own reference: another thread may give it a newer one meanwhile.
    let looked = task.seccomp.look(|filter| match filter {
        Some(filter) if filter.passes(number) => Look::Passes,
        filter => Look::Judge(filter.cloned()),
    });
    match looked {
        Look::Passes => true,
        Look::Judge(filter) => ptrace::suspends_seccomp(&task) || judge(task, frame, false, filter),
    }
}

/// What the number alone tells.
enum Look {
    Passes,
    Judge(Option<Arc<Filter>>),
}

fn judge(task: Current, frame: &mut TrapFrame, again: bool, filter: Option<Arc<Filter>>) -> bool {
    let verdict = match task.seccomp.mode() {
        Mode::Off => return true,
        Mode::Strict if STRICT.contains(&(frame.orig_rax as u32)) => return true,
        Mode::Strict => {
            task.seccomp.set_mode(Mode::Dead);
            log::tell(frame, Signal::SIGKILL.number(), ret::KILL_THREAD, true);
            exit::do_exit(exit::Status::signalled(Signal::SIGKILL))
        }
        Mode::Filter | Mode::Dead => {
            let Some(filter) = filter else { return false };
            match verdict_of(&filter, frame) {
                Some(verdict) => verdict,
                None => return true,
            }
        }
    };
    act(task, frame, verdict, again)
}

#[inline(always)]
fn verdict_of(filter: &Filter, frame: &TrapFrame) -> Option<Verdict> {
    filter.judge(frame.orig_rax as u32, &InFrame(frame))
}

/// `struct seccomp_data` as it lies in the registers.
struct InFrame<'a>(&'a TrapFrame);

impl Data for InFrame<'_> {
    #[inline(always)]
    fn word(&self, word: Word) -> u32 {
        let frame = self.0;
        let both = match word.index() / 2 {
            0 => u64::from(frame.orig_rax as u32) | u64::from(ARCH_X86_64) << 32,
            1 => frame.rip,
            2 => frame.rdi,
            3 => frame.rsi,
            4 => frame.rdx,
            5 => frame.r10,
            6 => frame.r8,
            _ => frame.r9,
        };
        (both >> (word.index() % 2 * 32)) as u32
    }
}

/// The same as words.
fn data_of(frame: &TrapFrame) -> [u32; DATA_WORDS] {
    let low = |word: u64| word as u32;
    let high = |word: u64| (word >> 32) as u32;
    let [a, b, c, d, e, f] = frame.syscall_args();
    let (number, ip) = (frame.orig_rax as u32, frame.rip);
    [
        number,
        ARCH_X86_64,
        low(ip),
        high(ip),
        low(a),
        high(a),
        low(b),
        high(b),
        low(c),
        high(c),
        low(d),
        high(d),
        low(e),
        high(e),
        low(f),
        high(f),
    ]
}

#[cold]
fn act(task: Current, frame: &mut TrapFrame, verdict: Verdict, again: bool) -> bool {
    let Verdict { said, logs, notifier } = verdict;
    let (action, data) = (said & ret::ACTION, said & ret::DATA);
    match action {
        ret::ALLOW => return true,
        ret::LOG => {
            log::tell(frame, 0, action, true);
            return true;
        }
        ret::ERRNO => frame.set_return(-i64::from(data.min(MAX_ERRNO))),
        ret::TRAP => {
            // A handler sees the registers as they were.
            frame.set_return(frame.orig_rax as i64);
            signal::force(&task, Signal::SIGSYS, trap_info(frame, data));
        }
        ret::TRACE if again => return true,
        ret::TRACE => match ptrace::seccomp_stop(task, frame, data) {
            Some(()) => return may_go_on(task, frame),
            None => frame.set_return(Errno::ENOSYS.to_return()),
        },
        ret::USER_NOTIF => match notifier.map(|notifier| notifier.ask(task, data_of(frame))) {
            Some(Answer::Continue) => return true,
            Some(Answer::Result(result)) => frame.set_return(result),
            None => frame.set_return(Errno::ENOSYS.to_return()),
        },
        _ => {
            // One that nobody knows ends the process, too.
            task.seccomp.set_mode(Mode::Dead);
            log::tell(frame, Signal::SIGSYS.number(), action, true);
            let status = exit::Status::signalled(Signal::SIGSYS);
            if action == ret::KILL_THREAD && task.process().thread_count() > 1 {
                exit::do_exit(status);
            }
            // A core has the registers as they were.
            frame.set_return(frame.orig_rax as i64);
            coredump::dump(task, Signal::SIGSYS, &trap_info(frame, data));
            exit::do_group_exit(status);
        }
    }
    log::tell(frame, 0, action, logs);
    false
}

/// After a stop the tracer may have made another call of it, which is judged anew.
fn may_go_on(task: Current, frame: &mut TrapFrame) -> bool {
    !signal::killed(&task)
        && frame.orig_rax as i32 >= 0
        && judge(task, frame, true, task.seccomp.filter())
}

/// SYS_SECCOMP.
const CODE: i32 = 1;

fn trap_info(frame: &TrapFrame, data: u32) -> SigInfo {
    let mut info = SigInfo::fault(Signal::SIGSYS, CODE, frame.rip);
    info.errno = data as i32;
    info.fields[1] = u64::from(frame.orig_rax as u32) | u64::from(ARCH_X86_64) << 32;
    info
}
