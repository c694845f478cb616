//! Deliberate faults, chosen by `alea.crash=` on the command line, so that tests can see the panic
//! path work: `panic`, `ud2`, `null`, `write-text`, `stack`, `nx`; and broken rules that only the checking kernel
//! notices: `lock-order`, `block-locked`, `block-pinned`, `freed-write`, `sysret`, and those that upper floors have.
//!
//! Owns two locks that nothing else takes. Never called but at the end of boot. Locks: `Leaf` and `MountTable`, in the
//! wrong order for `lock-order`.

use crate::sync::{SpinLock, level};
use core::alloc::Layout;
use core::arch::asm;
use core::sync::atomic::AtomicU32;

/// Faults of upper floors, by name.
pub type Others<'a> = &'a [(&'a str, fn())];

/// Commits the named fault; returns when the name is unknown.
pub fn commit(kind: &str, others: Others<'_>) {
    // SAFETY: none of it is sound; the user asked for a broken kernel.
    unsafe {
        match kind {
            "panic" => panic!("alea.crash=panic"),
            "ud2" => asm!("ud2"),
            "null" => core::ptr::null_mut::<u64>().write_volatile(1),
            "write-text" => (commit as *mut u8).write_volatile(0xc3),
            "stack" => overflow_stack(0),
            "nx" => {
                let code = [0xc3u8; 16];
                let code: extern "C" fn() = core::mem::transmute(code.as_ptr());
                code();
            }
            "lock-order" => {
                let _leaf = LEAF.lock();
                let _tree = TREE.lock();
            }
            "freed-write" => {
                let layout = Layout::new::<[u64; 8]>();
                let object = alloc::alloc::alloc(layout).cast::<u64>();
                alloc::alloc::dealloc(object.cast(), layout);
                object.add(4).write_volatile(1);
                core::hint::black_box(alloc::alloc::alloc(layout));
            }
            "block-locked" => {
                let _leaf = LEAF.lock();
                crate::sync::cond_resched();
            }
            "block-pinned" => USED.with(|_| crate::sync::cond_resched()),
            "sysret" => crate::arch::entry::syscall::sysret_of_changed_frame(),
            _ => match others.iter().find(|(name, _)| *name == kind) {
                Some((_, fault)) => fault(),
                None => log::warn!("alea.crash={kind}: no such fault"),
            },
        }
    }
}

static LEAF: SpinLock<(), level::Leaf> = SpinLock::new(());
static TREE: SpinLock<(), level::MountTable> = SpinLock::new(());
crate::per_cpu! { static USED: AtomicU32 = AtomicU32::new(0); }

#[allow(unconditional_recursion, reason = "that is the fault")]
#[inline(never)]
fn overflow_stack(depth: u64) {
    let mut page = [depth; 128];
    core::hint::black_box(&mut page);
    overflow_stack(depth.wrapping_add(page[0]));
    core::hint::black_box(&mut page);
}
