//! Code that is chosen at boot: goes over the places that `copy::site`'s macros list and leaves there what the CPU needs.
//!
//! A place holds what is needed, and becomes no-ops on a CPU that does not need it; or it holds what most CPUs run, and
//! becomes a jump to something longer on one that needs that. So either way nobody asks as the code runs.
//!
//! Owns the moments at which kernel text is written; runs before interrupts and other CPUs exist, and never again.
//! Locks: none.

use super::super::copy::site_list::{self, Need};
use crate::base::{cpu, isolation, speculation};
use core::arch::asm;

/// Whether the CPU has the need.
pub(in crate::arch) fn needed(need: Need) -> bool {
    let done = speculation::done();
    match need {
        Need::Smap => cpu::features().smap,
        Need::FenceUser => done.fences_user,
        Need::FenceKernel => done.fences_kernel,
        Need::Clear => done.clears,
        Need::Fill => done.fills,
        Need::History => done.predictors.clears_history,
        Need::Isolation => isolation::is_on(),
    }
}

/// What is known from the start: no exception can be told of before.
pub(super) fn choose_by_features() {
    choose(|need| need == Need::Smap);
}

/// What the command line has a say in.
pub(super) fn choose_by_flaws() {
    choose(|need| need != Need::Smap);
}

/// Goes over the places of some needs.
fn choose(which: impl Fn(Need) -> bool) {
    for site in site_list::all().iter().filter(|site| which(site.need())) {
        let Some(code) = site.change(needed(site.need())) else { continue };
        // SAFETY: the linker lists places of whole instructions in kernel text. Write protection is off for just these
        // writes, on the only CPU, with interrupts off; the code is not being executed and is fetched anew after the CR0
        // write.
        unsafe {
            let cr0: u64;
            asm!("mov {}, cr0", out(reg) cr0, options(nomem, nostack));
            asm!("mov cr0, {}", in(reg) cr0 & !(1 << 16), options(nostack));
            for (place, byte) in (site.address()..).zip(&code[..site.len()]) {
                (place as *mut u8).write_volatile(*byte);
            }
            asm!("mov cr0, {}", in(reg) cr0, options(nostack));
        }
    }
}
