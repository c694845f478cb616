//! What seccomp(2) sets: strict mode, and filters, for the caller or for all threads of its process.
//!
//! The lock of the process's tree is held from the check to the change, so that no thread comes or takes another filter
//! between; memory is found before.

use super::call::asked;
use super::filter::{Calls, Filter, Known, Parts};
use super::notify::Notifier;
use super::part::{Mode, be_watched};
use super::{listener, log};
use crate::arch::entry::trap;
use crate::mm::fallible::{Room, TryCollect, TryGrow, TryVec};
use crate::mm::user::{self, UserPtr};
use crate::process::task::current::{Current, current};
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::vfs::Capability;
use abi::seccomp::{FilterProgram, flag};
use abi::{Errno, Result};
use alea_bpf::{Insn, MAX_LEN, Program, Refusal};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// Whether filters can have this action.
pub fn has_action(action: u32) -> bool {
    log::ACTIONS.iter().any(|(_, known)| *known == action)
}

/// Strict mode: read, write, exit and return from a signal, and no RDTSC.
///
/// # Errors
/// `EINVAL` if the task has filters.
pub fn install_strict() -> Result<()> {
    let task = current();
    let tree = task.process().tree().lock();
    if !matches!(task.seccomp.mode(), Mode::Off | Mode::Strict) {
        return Err(Errno::EINVAL);
    }
    task.seccomp.set_mode(Mode::Strict);
    drop(tree);
    task.forbid_tsc(true);
    be_watched(task);
    task.filter_predictors();
    Ok(())
}

const KNOWN: u32 = flag::TSYNC
    | flag::LOG
    | flag::SPEC_ALLOW
    | flag::NEW_LISTENER
    | flag::TSYNC_ESRCH
    | flag::WAIT_KILLABLE_RECV;

/// Adds the filter at user address `addr`: 0, the descriptor of its listener, or the number of a thread that has other
/// filters.
///
/// # Errors
/// `EINVAL`, `EFAULT`, `EACCES` without `no_new_privs`, `EBUSY` for a second listener, `ESRCH`, `ENOMEM`, `EMFILE`.
pub fn install_filter(flags: u32, addr: u64) -> Result<i64> {
    let has = |one: u32| flags & one != 0;
    let conflict = has(flag::TSYNC) && has(flag::NEW_LISTENER) && !has(flag::TSYNC_ESRCH);
    let alone = has(flag::WAIT_KILLABLE_RECV) && !has(flag::NEW_LISTENER);
    if flags & !KNOWN != 0 || conflict || alone {
        return Err(Errno::EINVAL);
    }
    let calls = Calls { all: trap::system_calls(), asked };
    let task = current();
    let program = read_program(task, addr)?;
    let known = Known::of(&program, task.seccomp.count(), calls)?;
    let notifier = match has(flag::NEW_LISTENER) {
        true => Some(Notifier::new(has(flag::WAIT_KILLABLE_RECV))?),
        false => None,
    };
    let files = task.files();
    let reserve = || files.reserve(true, task.process().nofile_limit());
    let listener = match &notifier {
        Some(notifier) => Some((reserve()?, listener::open(notifier)?)),
        None => None,
    };
    let parts = Parts { program, known, logs: has(flag::LOG), notifier };
    let done = attach(task, parts, flags, calls);
    if done.is_ok() && !has(flag::SPEC_ALLOW) {
        task.filter_predictors();
    }
    match done? {
        Done::Attached => Ok(listener.map_or(0, |(number, file)| number.install(file).0.into())),
        Done::Diverged(tid) if !has(flag::TSYNC_ESRCH) => Ok(tid.into()),
        Done::Diverged(_) => Err(Errno::ESRCH),
    }
}

fn read_program(task: Current, addr: u64) -> Result<Program> {
    let head: FilterProgram = UserPtr::new(addr).read()?;
    let len = usize::from(head.len);
    if len == 0 || len > MAX_LEN {
        return Err(Errno::EINVAL);
    }
    // Relaxed: the thread's own setting, or one that came with a filter.
    let locked = task.settings.no_new_privs.load(Ordering::Relaxed);
    if !locked && !task.cred().capable(Capability::SYS_ADMIN) {
        return Err(Errno::EACCES);
    }
    read_instructions(&head, Program::new)
}

/// What `check` makes of the instructions that a program has in user memory, for seccomp or for sockets: EINVAL for what it refuses, and for
/// none or too many; EFAULT, ENOMEM.
pub fn read_instructions<T>(
    head: &FilterProgram,
    check: impl FnOnce(Vec<Insn>) -> core::result::Result<T, Refusal>,
) -> Result<T> {
    let len = usize::from(head.len);
    if head.filter == 0 || len == 0 || len > MAX_LEN {
        return Err(Errno::EINVAL);
    }
    let mut bytes = Vec::new();
    bytes.try_resize(len * alea_bpf::insn::SIZE, 0)?;
    user::read_bytes(head.filter, &mut bytes)?;
    let (insns, _) = bytes.as_chunks();
    let insns = insns.iter().map(|bytes| Insn::from_bytes(*bytes)).try_to_vec()?;
    check(insns).map_err(|refusal| match refusal {
        Refusal::NoMemory => Errno::ENOMEM,
        _ => Errno::EINVAL,
    })
}

enum Done {
    Attached,
    /// This thread has filters that the caller has not.
    Diverged(i32),
}

fn attach(task: Current, parts: Parts, flags: u32, calls: Calls) -> Result<Done> {
    let syncs = flags & flag::TSYNC != 0;
    let room = Room::new()?;
    let weight = parts.program.weight();
    let mut ancestors = Ancestors::default();
    loop {
        let newest = task.seccomp.filter();
        if syncs {
            ancestors = Ancestors::of(newest.as_ref())?;
        }
        let tree = task.process().tree().lock();
        if !task.seccomp.look(|now| same(now, newest.as_ref())) {
            // Another thread has given it one meanwhile.
            continue;
        }
        if !matches!(task.seccomp.mode(), Mode::Off | Mode::Filter) {
            return Err(Errno::EINVAL);
        }
        let listens = |newest: &Arc<Filter>| newest.has_listener();
        if parts.notifier.is_some() && newest.as_ref().is_some_and(listens) {
            return Err(Errno::EBUSY);
        }
        if !Filter::has_room(newest.as_ref(), weight) {
            return Err(Errno::ENOMEM);
        }
        let others = || tree.threads.iter().filter(|other| is_other(other, &task));
        let diverged = others().find(|other| syncs && !may_follow(other, &ancestors));
        if let Some(other) = diverged {
            return Ok(Done::Diverged(other.tid()));
        }
        let filter = room.arc(Filter::new(parts, newest, calls));
        let mut old = task.seccomp.assign(&filter);
        if syncs {
            others().for_each(|other| give(other, &task, &filter));
        }
        drop(tree);
        drop(old.take());
        be_watched(task);
        if syncs {
            // Each has the work flag: who is in user mode passes by it now, before it can make another call.
            crate::mm::space::barrier_everywhere();
        }
        return Ok(Done::Attached);
    }
}

fn is_other(other: &Arc<Task>, task: &Task) -> bool {
    !core::ptr::eq(&**other, task) && !other.is_exiting()
}

/// Whether a thread may be given the caller's filters: all that it has are among them. Strict mode it keeps.
fn may_follow(other: &Task, ancestors: &Ancestors) -> bool {
    match other.seccomp.mode() {
        Mode::Off => true,
        Mode::Filter => other.seccomp.look(|filter| ancestors.have(filter)),
        Mode::Strict | Mode::Dead => false,
    }
}

fn same(one: Option<&Arc<Filter>>, other: Option<&Arc<Filter>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}

/// Another thread has the caller's filters from now on. What it had is part of them, and not dropped here.
fn give(other: &Task, task: &Task, filter: &Arc<Filter>) {
    // Relaxed: settings; before the filter, so that who inherits that one inherits this.
    let order = Ordering::Relaxed;
    if task.settings.no_new_privs.load(order) {
        other.settings.no_new_privs.store(true, order);
    }
    let _ancestor = other.seccomp.assign(filter);
    other.set_work(work::SECCOMP);
}

/// The filters of a chain, by address, so that a look for one is short under a lock.
#[derive(Default)]
struct Ancestors(Vec<usize>);

impl Ancestors {
    fn of(newest: Option<&Arc<Filter>>) -> Result<Self> {
        let mut all = Vec::new();
        for filter in newest.iter().flat_map(|newest| newest.chain()) {
            all.try_push(core::ptr::from_ref(filter).addr())?;
        }
        all.sort_unstable();
        Ok(Self(all))
    }

    /// Whether who has this filter has only such as are here.
    fn have(&self, filter: Option<&Arc<Filter>>) -> bool {
        filter.is_none_or(|filter| self.0.binary_search(&Arc::as_ptr(filter).addr()).is_ok())
    }
}
