//! That system calls begin at different places of the stack with `randomize_kstack_offset=on`, and where they always did without.
//!
//! Owns the note of the places. Never runs without `alea.selftest`. Locks: none.

use crate::arch::entry::frame::{SYSCALLS, SyscallTable, TrapFrame};
use crate::arch::entry::shift;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

static CALLS: SyscallTable = [note_place; SYSCALLS];
/// One bit for each place, in steps of 16 bytes.
static PLACES: AtomicU64 = AtomicU64::new(0);

extern "C" fn note_place(_frame: &mut TrapFrame) -> i64 {
    let here = 0u8;
    let place = (&raw const *core::hint::black_box(&here)).addr() / 16 % 64;
    PLACES.fetch_or(1 << place, Relaxed);
    7
}

pub fn check() {
    let entry = shift::table(&CALLS)[0];
    let mut frame = TrapFrame::default();
    for number in 0..1000i64 {
        let result: i64;
        // SAFETY: as the entry of system calls does it: the frame in rdi, the number in rax.
        unsafe {
            asm!(
                "call {entry}",
                entry = in(reg) entry,
                inout("rax") number % SYSCALLS as i64 => result,
                in("rdi") &raw mut frame,
                clobber_abi("C"),
            );
        }
        assert_eq!(result, 7, "a call through the table");
    }
    let places = PLACES.load(Relaxed).count_ones();
    match shift::is_on() {
        true => assert!(places > 40, "a thousand calls at {places} places of the stack"),
        false => assert_eq!(places, 1, "a shift that nobody asked for"),
    }
}
