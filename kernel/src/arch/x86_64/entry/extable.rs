//! The exception table: instructions that may fault on user memory, and where each goes then.
//!
//! Owns the lookup. The entries are made by `usercopy` in address order, which `check` verifies at
//! boot so that the lookup may bisect. Never uses GS: it runs in any trap. Locks: none.

use super::frame::TrapFrame;
use crate::arch::copy::chacha20;
use crate::base::page::USER_HALF;

#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    fault: u64,
    fixup: u64,
}

unsafe extern "C" {
    static __ex_table_start: Entry;
    static __ex_table_end: Entry;
    static alea_user_iretq: u8;
    static alea_bad_iretq: u8;
    static alea_probe_load: u8;
    static alea_peek_load: u8;
}

fn table() -> &'static [Entry] {
    // SAFETY: the linker script puts both symbols around an array of `Entry` in read-only data.
    unsafe {
        let start = &raw const __ex_table_start;
        let len = (&raw const __ex_table_end as usize - start as usize) / size_of::<Entry>();
        core::slice::from_raw_parts(start, len)
    }
}

fn lookup(rip: u64) -> Option<u64> {
    if rip == &raw const alea_user_iretq as u64 {
        return Some(&raw const alea_bad_iretq as u64);
    }
    let table = table();
    let index = table.binary_search_by_key(&rip, |entry| entry.fault).ok()?;
    Some(table[index].fixup)
}

/// True when a fault at this instruction can be resolved by `fixup`.
pub fn covers(rip: u64) -> bool {
    lookup(rip).is_some()
}

/// Makes the frame resume behind an instruction whose faults nobody resolves; false when it is none of those. They are
/// the probe, which may fault on any address, and the peek's and the keystream's on user memory.
pub(super) fn give_up(frame: &mut TrapFrame, addr: u64) -> bool {
    if frame.rip == &raw const alea_probe_load as u64 {
        return fixup(frame);
    }
    if frame.rip == &raw const alea_peek_load as u64 && addr < USER_HALF {
        return fixup(frame);
    }
    match chacha20::fixup(frame.rip) {
        Some(end) if addr < USER_HALF => {
            frame.rip = end;
            true
        }
        _ => false,
    }
}

/// Makes the frame resume at the fixup of its instruction; false when there is none.
pub fn fixup(frame: &mut TrapFrame) -> bool {
    match lookup(frame.rip) {
        Some(fixup) => {
            frame.rip = fixup;
            true
        }
        None => false,
    }
}

/// Panics when the table is not in address order, which only a build error can cause.
pub(in crate::arch) fn check() {
    assert!(table().is_sorted_by_key(|entry| entry.fault), "the exception table is not sorted");
}
