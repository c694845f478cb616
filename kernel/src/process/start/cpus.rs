//! Starting the other CPUs: each gets its stacks and its idle task, and idles until there is work.
//!
//! Runs once at boot, before there is anything to share. A CPU that does not come up is left out.

use super::kthread;
use crate::arch::smp::{self, Stacks, Starter};
use crate::arch::task::Machine;
use crate::base::percpu::{self, MAX_CPUS};
use crate::mm::{self, KernelStack};
use crate::process::sched::{self, Entity};
use crate::process::task::current::TASKS;
use crate::process::task::task::Task;
use crate::try_format;
use crate::{cmdline, time};
use abi::Result;
use alloc::sync::Arc;
use x86_64::PhysAddr;

/// Starts all CPUs that the firmware lists, as `maxcpus=` and `nosmp` allow, with the help of some `pages` below
/// 1 MiB.
pub fn start_cpus(pages: Option<PhysAddr>) {
    let most = match cmdline::number(cmdline::words::MAXCPUS)
        .or_else(|| cmdline::number(cmdline::words::NR_CPUS))
    {
        _ if cmdline::flag(cmdline::words::NOSMP) => 1,
        Some(most) => usize::try_from(most).unwrap_or(1).clamp(1, MAX_CPUS),
        None => MAX_CPUS,
    };
    let wanted = || smp::others().take(most - 1);
    if wanted().next().is_none() {
        return;
    }
    let from = time::since_boot_ns();
    let Some(starter) = pages.and_then(|at| Starter::prepare(at, wanted(), time::tsc_hz())) else {
        log::warn!("no memory below 1 MiB: the other CPUs stay off");
        return;
    };
    for apic_id in wanted() {
        let cpu = percpu::cpus_online();
        match start(&starter, apic_id, cpu) {
            Ok(true) => {}
            Ok(false) => log::warn!("the CPU with APIC id {apic_id} does not start"),
            Err(error) => log::warn!("CPU {cpu} stays off: {error}"),
        }
    }
    let took = time::since_boot_ns().saturating_sub(from) / 1000;
    log::info!("{} CPUs, started in {took} us", percpu::cpus_online());
}

fn start(starter: &Starter, apic_id: u32, cpu: usize) -> Result<bool> {
    let idle = KernelStack::alloc()?;
    let mut interrupt = [0; 4];
    for top in &mut interrupt {
        let stack = KernelStack::alloc()?;
        *top = stack.top().as_u64();
        // The CPU's for ever.
        core::mem::forget(stack);
    }
    let stacks = Stacks { idle: idle.top().as_u64(), interrupt };
    let name = try_format!("swapper/{cpu}")?;
    let task = kthread::build(&name, 0, Machine::starting(idle), Entity::new(cpu));
    task.times.resume(time::since_boot_ns());
    time::prepare_cpu(cpu)?;
    sched::prepare_cpu(cpu, task)?;
    Ok(starter.start(apic_id, cpu, stacks, run))
}

/// The new CPU's own code: it becomes its idle task.
fn run() -> ! {
    mm::init_cpu();
    let idle: Arc<Task> = sched::idle_task(percpu::cpu_id());
    TASKS.adopt(idle);
    super::init::run_idle()
}
