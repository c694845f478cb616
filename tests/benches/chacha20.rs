//! The kernel's ChaCha20 routines on this host, 4096 bytes at a time: `cargo bench -p alea-tests`.
#![cfg(target_arch = "x86_64")]

use std::arch::global_asm;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};

global_asm!(
    include_str!("../../kernel/vdso/src/keystream.s"),
    include_str!("../../kernel/src/arch/x86_64/copy/chacha20.s"),
);

unsafe extern "sysv64" {
    fn alea_chacha20_sse2(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    fn alea_chacha20_avx2_shift(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    fn alea_chacha20_avx2_shuffle(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    fn alea_chacha20_avx512(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
}

type Routine = unsafe extern "sysv64" fn(*const u8, u32, *mut u8, usize) -> u32;

fn main() {
    divan::main();
}

/// Runs `routine` if this host can.
fn measure(bencher: Bencher, routine: Routine, can: bool) {
    const GROUPS: usize = 8;
    let (key, mut out) = ([7u8; 32], vec![0u8; GROUPS * 512]);
    if can {
        // SAFETY: the CPU has the instructions; key and out are whole.
        let once = || unsafe { routine(key.as_ptr(), 0, black_box(out.as_mut_ptr()), GROUPS) };
        bencher.counter(BytesCount::new(GROUPS * 512)).bench_local(once);
    }
}

#[divan::bench]
fn sse2(bencher: Bencher) {
    measure(bencher, alea_chacha20_sse2, true);
}

#[divan::bench]
fn avx2_shift(bencher: Bencher) {
    measure(bencher, alea_chacha20_avx2_shift, is_x86_feature_detected!("avx2"));
}

#[divan::bench]
fn avx2_shuffle(bencher: Bencher) {
    measure(bencher, alea_chacha20_avx2_shuffle, is_x86_feature_detected!("avx2"));
}

#[divan::bench]
fn avx512(bencher: Bencher) {
    measure(bencher, alea_chacha20_avx512, is_x86_feature_detected!("avx512vl"));
}
