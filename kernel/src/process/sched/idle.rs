//! What a CPU does when nothing is runnable: zero free frames ahead, give back what is too much, take samples
//! of jitter that are ordered, look for other CPUs' work, then halt.

use super::place;
use super::schedule::schedule;
use crate::base::{cpu, percpu};
use crate::mm;
use crate::process::task::work;
use crate::random;

/// The body of an idle task; never returns.
pub(in crate::process) fn run_idle() -> ! {
    let task = crate::process::task::current::current();
    let cpu = percpu::cpu_id();
    loop {
        while !task.has_work(work::RESCHED) && mm::zero_one_frame_when_idle() {}
        while !task.has_work(work::RESCHED) && mm::trim_when_idle() {}
        while !task.has_work(work::RESCHED) && random::sample_when_idle() {}
        cpu::irq_disable();
        if !task.has_work(work::RESCHED) && !place::steal(cpu) {
            // Interrupts come on with the halt, so a wake-up between check and halt is not lost.
            cpu::wait_for_interrupt();
        }
        cpu::irq_enable();
        schedule();
    }
}
