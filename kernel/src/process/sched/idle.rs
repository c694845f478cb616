//! What a CPU does when nothing is runnable: zero free frames ahead, then halt.

use super::super::work;
use super::schedule;
use crate::arch::cpu;
use crate::mm;

/// The body of an idle task; never returns.
pub(in crate::process) fn run_idle() -> ! {
    let task = super::super::current();
    loop {
        while !task.has_work(work::RESCHED) && mm::zero_one_frame_when_idle() {}
        cpu::irq_disable();
        if !task.has_work(work::RESCHED) {
            // Interrupts come on with the halt, so a wake-up between check and halt is not lost.
            cpu::wait_for_interrupt();
        }
        cpu::irq_enable();
        schedule();
    }
}
