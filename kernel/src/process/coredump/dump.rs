//! The way of a core: whether there is to be one, where it goes, and what the process's status says of it.
//!
//! Runs in the thread that took the signal, with no lock held, which ends the process afterwards. Owns nothing. Locks: none of
//! its own.

use super::name::{Facts, Name, expand};
use super::notes::Notes;
use super::output::Output;
use super::settings::{CORE_USES_PID, pattern};
use super::target::{self, Maker, Taker};
use super::threads::{Gathered, Thread};
use super::{elf, segments};
use crate::base::percpu;
use crate::mm::fallible::{TryGrow, try_arc};
use crate::process::node;
use crate::process::signal;
use crate::process::task::current::Current;
use crate::process::task::limits::Resource;
use crate::process::tree::exit::Status;
use crate::time;
use crate::vfs::Cred;
use crate::vfs::object::mount;
use abi::signal::{SigInfo, Signal};
use abi::time::NSEC_PER_SEC;
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// How dumpable a process is: PR_SET_DUMPABLE's values and what `fs.suid_dumpable` adds.
const NOT: u32 = 0;
const AS_ROOT: u32 = 2;

/// RLIMIT_CORE of a program that takes a core: if it fails itself, nobody is started for it.
const TAKER_LIMIT: u64 = 1;

/// The running process dies of `signal`: writes its core, if it is to have one. Its status is decided afterwards.
pub(in crate::process) fn dump(task: Current, signal: Signal, info: &SigInfo) {
    let process = task.process();
    // Relaxed: a setting.
    let dumpable = process.dumpable.load(Ordering::Relaxed);
    if dumpable == NOT {
        return;
    }
    // A full queue may have left out the details, but not the signal.
    let mut info = *info;
    info.signo = signal.number();
    let own = Thread::of(task);
    task.signals.block_all();
    let gathered = match Gathered::begin(task, Status::signalled(signal)) {
        Ok(gathered) => gathered,
        Err(Errno::EINTR) => return process.set_killed(Status::signalled(Signal::SIGKILL)),
        Err(_) => return,
    };
    let written = own.and_then(|own| write(task, &info, dumpable, own, &gathered));
    if signal::killed(&task) {
        process.set_killed(Status::signalled(Signal::SIGKILL));
    } else if let Err(error) = written {
        log::debug!("no core of process {}: {error}", process.pid());
    } else {
        process.set_dumped();
    }
}

fn write(
    task: Current,
    info: &SigInfo,
    dumpable: u32,
    own: Thread,
    gathered: &Gathered,
) -> Result<()> {
    let limit = task.process().limits().soft(Resource::Core);
    let mut cred = Cred::clone(&task.cred());
    let as_root = dumpable == AS_ROOT;
    if as_root {
        cred.fsuid = 0;
    }
    let maker = Maker { cred: try_arc(cred)?, as_root };
    match name(task, info, dumpable, limit)? {
        Name::File(name) => {
            let out = target::file(task, &name, &maker, limit)?;
            write_to(task, info, own, gathered, out)
        }
        Name::Pipe(_) if limit == TAKER_LIMIT => Err(Errno::EPERM),
        Name::Pipe(words) => {
            let taker = Taker::start(words, &maker.cred)?;
            let written = write_to(task, info, own, gathered, taker.output());
            taker.finish();
            written
        }
    }
}

fn name(task: Current, info: &SigInfo, dumpable: u32, limit: u64) -> Result<Name> {
    let process = task.process();
    let cred = task.cred_arc();
    let comm = task.comm();
    let comm = comm.split(|&byte| byte == 0).next().unwrap_or_default();
    let exe = match (process.exe(), mount::root()) {
        (Some(exe), Some(root)) => Some(exe.to_absolute(&root)?),
        _ => None,
    };
    let facts = Facts {
        pid: process.pid(),
        tid: task.tid(),
        uid: cred.uid,
        gid: cred.gid,
        dumpable,
        signal: info.signo,
        limit,
        cpu: percpu::cpu_id(),
        time: time::realtime().0 / NSEC_PER_SEC,
        host: &node::hostname(),
        comm,
        exe: exe.as_deref(),
    };
    expand(&pattern(), CORE_USES_PID.get() != 0, &facts)
}

fn write_to(
    task: Current,
    info: &SigInfo,
    own: Thread,
    gathered: &Gathered,
    out: Output,
) -> Result<()> {
    let mut threads = Vec::new();
    threads.try_push(own)?;
    threads.try_extend(gathered.take())?;
    let mm = task.mm();
    // Relaxed: a setting.
    let filter = task.process().coredump_filter.load(Ordering::Relaxed);
    let segments = segments::choose(&mm, filter)?;
    let notes = Notes::new(task, info, &threads, &segments)?;
    // From here on there is a core, as on Linux, though it may be cut short.
    if let Err(error) = elf::write(out, &mm, &segments, &notes) {
        log::debug!("the core of process {} is cut short: {error}", task.process().pid());
    }
    Ok(())
}
