//! Kernel threads: tasks without user memory.
//!
//! Owns the bodies that have not started. Never gives a thread user memory. Locks: `Leaf`, for the bodies.
#![expect(clippy::disallowed_methods, reason = "boot: before any user")]

use crate::arch::task::Machine;
use crate::base::{cpu, percpu};
use crate::mm::KernelStack;
use crate::process::sched::{self, Entity};
use crate::process::signal::{PartOfActions, ProcessSignals, SignalActions, TaskSignals};
use crate::process::sysv::Part;
use crate::process::task::limits;
use crate::process::task::process::{Parts as ProcessParts, Process, root_cred};
use crate::process::task::task::{Parts as TaskParts, Task, comm_of};
use crate::process::tree::group::{Group, Session};
use crate::process::tree::{exit, table};
use crate::sync::{SpinLock, level};
use abi::signal::SigSet;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Bodies of threads that have not started: the number passed to the first code is the task's own.
static BODIES: SpinLock<Vec<(i32, fn())>, level::Leaf> = SpinLock::new(Vec::new());

/// Starts a thread that runs `body` in the kernel and ends when it returns.
pub fn spawn_kernel_thread(name: &str, body: fn()) -> Result<Arc<Task>> {
    sched::reserve(table::count().saturating_add(2))?;
    let stack = KernelStack::alloc()?;
    let tid = table::allocate()?;
    let machine = Machine::kernel(stack, None, begin, tid as usize);
    let task = build(name, tid, machine, Entity::new(percpu::cpu_id()));
    if !task.process().tree().lock().threads.push(task.clone()) {
        table::give_back(tid);
        return Err(Errno::ENOMEM);
    }
    BODIES.lock().push((tid, body));
    table::insert(&task);
    sched::start(task.clone(), false);
    Ok(task)
}

extern "C" fn begin(tid: usize) -> ! {
    sched::finish_switch();
    cpu::irq_enable();
    let body = {
        let mut bodies = BODIES.lock();
        let at = bodies.iter().position(|(t, _)| *t as usize == tid);
        at.map(|at| bodies.swap_remove(at).1)
    };
    if let Some(body) = body {
        body();
    }
    exit::do_exit(exit::Status::exited(0))
}

/// A task that is a process of its own, with no parent, files or memory.
pub(super) fn build(
    name: &str,
    tid: i32,
    machine: Machine<KernelStack>,
    sched: Entity,
) -> Arc<Task> {
    let session = Session::new(0).expect("no memory for a session");
    let process = Arc::new(Process::new(ProcessParts {
        pid: tid,
        group: Group::new(0, session).expect("no memory for a group"),
        limits: limits::initial_limits(),
        program: None,
        signals: ProcessSignals::new(PartOfActions::first(Arc::new(SignalActions::new()))),
    }));
    Arc::new(Task::new(
        TaskParts {
            tid,
            process,
            machine,
            sched,
            // Nothing that users send reaches a kernel thread.
            signals: TaskSignals::new(SigSet::ALL),
            mm: None,
            files: None,
            fs: None,
            cred: root_cred(),
            comm: comm_of(name.as_bytes()),
            sysv: Part::new(None),
            sleep_room: crate::time::TimerRoom::new().expect("no memory for a timer"),
        },
        None,
    ))
}
