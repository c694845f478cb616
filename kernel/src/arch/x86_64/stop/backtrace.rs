//! Call traces by frame pointers.
//!
//! Reads stacks through probes that may fail, so a broken chain ends the trace and nothing else.
//!
//! Owns nothing. Never trusts a frame pointer. Locks: none, since a panic uses it.

use core::arch::asm;

use crate::arch::copy::usercopy::probe_kernel;
use crate::base::image::{is_text, linked};
use crate::base::percpu;

const MAX_FRAMES: usize = 32;

/// The caller's frame pointer.
#[inline(always)]
pub fn frame_pointer() -> u64 {
    let rbp: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rbp", out(reg) rbp, options(nomem, nostack, preserves_flags)) };
    rbp
}

/// Calls `visit` with each return address of the chain that starts at `rbp` and stays on the stack that is in use, innermost
/// first, until it says no. What a program had in rbp leads nowhere: only this stack is read.
pub fn walk_stack(mut rbp: u64, mut visit: impl FnMut(u64) -> bool) {
    let mut low = frame_pointer();
    let top = percpu::kernel_stack_top().saturating_sub(8);
    while rbp >= low && rbp < top {
        let (Some(next), Some(address)) = (probe_kernel(rbp), probe_kernel(rbp + 8)) else {
            return;
        };
        if !is_text(address) || !visit(address) {
            return;
        }
        low = rbp + 1;
        rbp = next;
    }
}

/// Calls `visit` with each return address of the chain that starts at `rbp`, innermost first, as the kernel's file has it.
pub fn walk(mut rbp: u64, mut visit: impl FnMut(u64)) {
    for _ in 0..MAX_FRAMES {
        let (Some(next), Some(address)) =
            (probe_kernel(rbp), rbp.checked_add(8).and_then(probe_kernel))
        else {
            return;
        };
        if !is_text(address) {
            return;
        }
        visit(linked(address));
        if next <= rbp {
            return;
        }
        rbp = next;
    }
}
