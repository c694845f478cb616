//! That the primitives which touch user memory find nothing of the kernel's, whatever address they are given.
//!
//! Owns a word. Never runs without `alea.selftest`. Locks: none.

use crate::arch::copy::usercopy;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

static WORD: AtomicU64 = AtomicU64::new(0x1234_5678_9abc_def0);

pub(super) fn check() {
    for addr in [&raw const WORD as u64, crate::base::page::USER_END, 1 << 63] {
        reads(addr);
        writes(addr);
    }
    assert_eq!(WORD.load(Relaxed), 0x1234_5678_9abc_def0);
}

fn reads(addr: u64) {
    let mut to = [0u8; 128];
    // SAFETY: they bound the address themselves, which is what is tested; `to` is whole.
    unsafe {
        assert!(usercopy::get_u16(addr).is_none() && usercopy::get_u32(addr).is_none());
        assert!(usercopy::get_u64(addr).is_none() && usercopy::peek_user(addr).is_none());
        for len in [1, 4, 8, to.len()] {
            assert_eq!(usercopy::copy_from_user(to.as_mut_ptr(), addr, len), len);
        }
        assert!(usercopy::strnlen_user(addr, 8).is_none());
        assert!(usercopy::strncpy_from_user(to.as_mut_ptr(), addr, 8).is_none());
    }
}

fn writes(addr: u64) {
    let from = [0u8; 128];
    // SAFETY: as in `reads`.
    unsafe {
        assert!(!usercopy::put_u16(addr, 1) && !usercopy::put_u32(addr, 1));
        assert!(!usercopy::put_u64(addr, 1) && !usercopy::put_pair(addr, [1, 1]));
        for len in [1, 4, 8, from.len()] {
            assert_eq!(usercopy::copy_to_user(addr, from.as_ptr(), len), len);
            assert_eq!(usercopy::clear_user(addr, len), len);
        }
        assert!(usercopy::atomic_cmpxchg_u32(addr, 0x9abc_def0, 5).is_none());
        assert!(usercopy::atomic_add_u32(addr, 2).is_none());
        assert!(usercopy::atomic_xchg_u32(addr, 9).is_none());
    }
}
