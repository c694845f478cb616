//! The process table as procfs asks for it, and who may look into a process.
//!
//! Owns the list of files that each process has. Never shows what `access` refuses. Locks: none of its own.

use super::{memory, misc, objects, phases, shown, stat, status, symbols, totals};
use crate::fs::procfs::{
    PidFile, ProcessTable, SomeTasks, TextBuf, Totals, register_process_table, register_setting,
};
use crate::mm::{Sink, Source};
use crate::process::exec::{LEGACY_VA_LAYOUT, RANDOMIZE_VA_SPACE};
use crate::process::memory::{KILL_ALLOCATING_TASK, PANIC_ON_OOM};
use crate::process::ptrace::access::may_look_into;
use crate::process::sched::settings;
use crate::process::task::current::current;
use crate::process::task::limits::{NR_OPEN, threads_max_setting};
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use crate::process::tree::table;
use crate::process::watch;
use crate::vfs::{Capability, FdTable, FsContext, Owner, Path};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// Fills the slot.
pub(in crate::process) fn register() {
    static PROCESSES: Processes = Processes;
    register_process_table(&PROCESSES);
    register_setting("fs/nr_open", &NR_OPEN).expect("no memory for files of /proc");
    register_setting("vm/oom_kill_allocating_task", &KILL_ALLOCATING_TASK)
        .expect("no memory for files of /proc");
    register_setting("vm/panic_on_oom", &PANIC_ON_OOM).expect("no memory for files of /proc");
    register_setting("vm/legacy_va_layout", &LEGACY_VA_LAYOUT)
        .expect("no memory for files of /proc");
    register_setting("kernel/randomize_va_space", &RANDOMIZE_VA_SPACE)
        .expect("no memory for files of /proc");
    register_setting("kernel/pid_max", &table::PID_MAX).expect("no memory for files of /proc");
    register_setting("kernel/threads-max", threads_max_setting())
        .expect("no memory for files of /proc");
    settings::register().expect("no memory for files of /proc");
    phases::register().expect("no memory for files of /proc");
    symbols::register().expect("no memory for files of /proc");
    objects::register().expect("no memory for files of /proc");
}

struct Processes;

const fn file(name: &'static str, mode: u32, per_task: bool, guarded: bool) -> PidFile {
    PidFile { name, mode, per_task, guarded }
}

/// The files in a process directory, and who makes each.
static FILES: [PidFile; 32] = [
    file("cmdline", 0o444, true, false),
    file("comm", 0o644, true, false),
    file("stat", 0o444, true, false),
    file("statm", 0o444, true, false),
    file("status", 0o444, true, false),
    file("maps", 0o444, true, true),
    file("smaps", 0o444, true, true),
    file("smaps_rollup", 0o444, false, true),
    file("environ", 0o400, true, true),
    file("auxv", 0o400, true, true),
    file("mem", 0o600, true, true),
    file("limits", 0o444, true, false),
    file("oom_score", 0o444, true, false),
    file("oom_score_adj", 0o644, true, false),
    file("oom_adj", 0o644, true, false),
    file("personality", 0o400, true, true),
    file("wchan", 0o444, true, false),
    file("syscall", 0o400, true, true),
    file("stack", 0o400, true, true),
    file("schedstat", 0o444, true, false),
    file("loginuid", 0o644, true, false),
    file("sessionid", 0o444, true, false),
    file("cgroup", 0o444, true, false),
    file("io", 0o400, true, true),
    file("uid_map", 0o644, true, false),
    file("gid_map", 0o644, true, false),
    file("projid_map", 0o644, true, false),
    file("setgroups", 0o644, false, false),
    file("timerslack_ns", 0o666, false, false),
    file("coredump_filter", 0o644, false, false),
    file("alea/syscalls", 0o600, false, true),
    file("alea/fail_nth", 0o600, true, true),
];

fn task(tid: u32) -> Result<Arc<Task>> {
    let tid = i32::try_from(tid).map_err(|_| Errno::ESRCH)?;
    table::lookup_task(tid).ok_or(Errno::ESRCH)
}

fn process(pid: u32) -> Option<Arc<Process>> {
    table::lookup(i32::try_from(pid).ok()?)
}

impl ProcessTable for Processes {
    fn current(&self) -> Option<(u32, u32)> {
        let task = current();
        Some((task.process().pid().unsigned_abs(), task.tid().unsigned_abs()))
    }

    fn is_capable(&self, capability: Capability) -> bool {
        current().cred().capable(capability)
    }

    fn next_pid(&self, from: u32) -> Option<u32> {
        let from = i32::try_from(from).ok()?;
        table::next_process(from).map(|process| process.pid().unsigned_abs())
    }

    fn process_of(&self, tid: u32) -> Option<u32> {
        task(tid).ok().map(|task| task.process().pid().unsigned_abs())
    }

    fn next_tasks(&self, pid: u32, from: u32) -> SomeTasks {
        let mut tasks = SomeTasks::new();
        let Some(process) = process(pid) else { return tasks };
        shown::for_each_thread(&process, &mut |thread| {
            let tid = thread.tid().unsigned_abs();
            let is_wanted =
                tid >= from && tasks.last().is_none_or(|&last| tid < last || !tasks.is_full());
            if !is_wanted {
                return;
            }
            if tasks.is_full() {
                tasks.pop();
            }
            let at = tasks.partition_point(|&there| there < tid);
            tasks.insert(at, tid);
        });
        tasks
    }

    fn task_count(&self, pid: u32) -> u32 {
        let count = process(pid).map_or(0, |process| shown::thread_count(&process));
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn owner(&self, tid: u32, is_open: bool) -> Owner {
        let Ok(task) = task(tid) else { return Owner::default() };
        // Relaxed: a setting.
        if !is_open && task.process().dumpable.load(Ordering::Relaxed) != 1 {
            return Owner::default();
        }
        let cred = task.cred_arc();
        Owner { uid: cred.euid, gid: cred.egid }
    }

    fn may_access(&self, tid: u32) -> bool {
        task(tid).is_ok_and(|target| may_look_into(&target))
    }

    fn memory(&self, tid: u32) -> u64 {
        let space = task(tid).ok().and_then(|target| target.mm_arc());
        space.map_or(0, |space| space.id())
    }

    fn files(&self, tid: u32) -> Option<Arc<FdTable>> {
        task(tid).ok()?.files_arc()
    }

    fn fs_context(&self, tid: u32) -> Option<Arc<FsContext>> {
        task(tid).ok()?.fs_arc()
    }

    fn exe(&self, tid: u32) -> Option<Path> {
        let task = task(tid).ok()?;
        task.mm_arc().and_then(|_| task.process().exe())
    }

    fn pid_files(&self) -> &'static [PidFile] {
        &FILES
    }

    fn read(&self, tid: u32, in_task: bool, name: &str) -> Result<Vec<u8>> {
        let task = task(tid)?;
        match name {
            "stat" => stat::text(&task, in_task),
            "status" => status::text(&task),
            "statm" => Ok(memory::statm(&task)?),
            "alea/syscalls" => watch::process_text(task.process()),
            "smaps_rollup" => memory::smaps_rollup(&task),
            _ => misc::text(&task, in_task, name),
        }
    }

    fn piece(
        &self,
        tid: u32,
        name: &str,
        from: u64,
        text: &mut TextBuf,
    ) -> Option<Result<Option<u64>>> {
        let piece = match name {
            "maps" => memory::maps,
            "smaps" => memory::smaps,
            _ => return None,
        };
        Some(task(tid).and_then(|task| piece(&task, from, text)))
    }

    fn totals(&self) -> Result<Totals> {
        totals::totals()
    }

    fn write(&self, tid: u32, name: &str, data: &[u8]) -> Result<usize> {
        misc::write(&*task(tid)?, name, data)
    }

    fn read_memory(&self, space: u64, dst: &mut Sink<'_>, pos: u64) -> Result<usize> {
        memory::read_mem(space, dst, pos)
    }

    fn write_memory(&self, space: u64, src: &mut Source<'_>, pos: u64) -> Result<usize> {
        memory::write_mem(space, src, pos)
    }
}
