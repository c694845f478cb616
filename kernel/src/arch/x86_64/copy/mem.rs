//! `memcpy`, `memmove`, `memset`, `memcmp` and `bcmp`, which compiled code calls.
//!
//! Owns mem.s, whose symbols take the place of compiler-builtins' weak ones. Those start three string instructions
//! for each copy, which take some 30 cycles each to start whatever their length, and compare byte by byte. Here up to
//! 64 bytes go through registers, as loads and stores that overlap in the middle, and more with a single string
//! instruction. Nothing here may touch vector registers: they are the user's. No locks.

use core::arch::global_asm;

global_asm!(include_str!("mem.s"));

/// Tries all lengths up to some above the limits, at every distance that matters. For the self-test.
pub(in crate::arch) fn check() {
    const ROOM: usize = 256;
    let pattern: [u8; ROOM] = core::array::from_fn(|n| (n as u8).wrapping_mul(37) ^ 0x5a);
    let is_copied = |bytes: &[u8; ROOM], to: usize, from: usize, len: usize| {
        (0..ROOM).all(|n| {
            let moved = n >= to && n < to + len;
            bytes[n] == if moved { pattern[n - to + from] } else { pattern[n] }
        })
    };
    for len in 0..140 {
        let mut bytes = [0xee_u8; ROOM];
        bytes[3..3 + len].copy_from_slice(&pattern[5..5 + len]);
        let is_outside = |n: usize| n < 3 || n >= 3 + len;
        for (n, &byte) in bytes.iter().enumerate() {
            assert!(byte == if is_outside(n) { 0xee } else { pattern[n + 2] }, "memcpy of {len}");
        }
        bytes[3..3 + len].fill(0x81);
        for (n, &byte) in bytes.iter().enumerate() {
            assert!(byte == if is_outside(n) { 0xee } else { 0x81 }, "memset of {len}");
        }
        for (to, from) in [(40, 40), (40, 41), (41, 40), (40, 47), (47, 40), (40, 95), (95, 40)] {
            let mut bytes = pattern;
            bytes.copy_within(from..from + len, to);
            assert!(is_copied(&bytes, to, from, len), "memmove of {len} from {from} to {to}");
        }
        let mut other = pattern;
        assert!(pattern[1..1 + len] == other[1..1 + len], "memcmp of {len}");
        for at in 1..1 + len {
            for byte in [0, 0xff] {
                other[at] = byte;
                let (a, b) = (&pattern[1..1 + len], &other[1..1 + len]);
                assert!(a.cmp(b) == pattern[at].cmp(&byte), "memcmp of {len}, {at} differs");
            }
            other[at] = pattern[at];
        }
    }
}
