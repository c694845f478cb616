//! Does the time of ChaCha20 and BLAKE2s depend on their secrets? `cargo bench -p alea-tests --bench timing`.
//!
//! Each routine is called with one fixed secret and with random ones, in random order, and the two classes are compared
//! ([`alea_tests::timing`]). A routine fails if they differ in each of [`ROUNDS`] rounds: with four cuts of the times, chance does that once in 10^13 runs.
//! A comparison that ends at the first difference is the control, and has to be found at once. That nothing is found proves nothing;
//! and what a host does when it is busy is the reason why this is not among the tests.
#![cfg(target_arch = "x86_64")]

use std::arch::{global_asm, x86_64};
use std::hint::black_box;
use std::process::ExitCode;

use alea_random::block::{BlockGenerator, GROUP_BLOCKS, Key, Portable};
use alea_random::pool::Pool;
use alea_random::splitmix64::SplitMix64;
use alea_tests::timing::{Sample, THRESHOLD, leakage};

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

/// Measurements of a round.
const SAMPLES: usize = 100_000;

/// Rounds that have to differ before a routine is one whose time depends on its secret.
const ROUNDS: usize = 3;

type Secret = [u8; 32];

/// What the fixed secret and the random ones are made of.
const SEED: u64 = 0x7173;

fn main() -> ExitCode {
    let mut sound = true;
    for (name, mut run) in routines() {
        let (rounds, differs) = rounds(&mut *run);
        sound &= !differs;
        println!("{}  {name:24} |t| {}", if differs { "LEAKS" } else { "ok   " }, shown(&rounds));
    }
    let (rounds, found) = rounds(&mut leaky);
    let word = if found { "ok   " } else { "BLIND" };
    println!("{word}  {:24} |t| {}", "control, which leaks", shown(&rounds));
    if sound && found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn shown(rounds: &[f64]) -> String {
    let rounds: Vec<String> = rounds.iter().map(|t| format!("{t:.1}")).collect();
    rounds.join(", ")
}

/// |t| of each round, up to the first in which the classes do not differ; whether there is none.
fn rounds(run: &mut dyn FnMut(&Secret)) -> (Vec<f64>, bool) {
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        let t = leakage(&measure(run, round as u64));
        all.push(t);
        if t < THRESHOLD {
            return (all, false);
        }
    }
    (all, true)
}

/// One round: secrets first, so that nothing but the routine runs between the two looks at the clock.
fn measure(run: &mut dyn FnMut(&Secret), round: u64) -> Vec<Sample> {
    let mut fixed = [0; 32];
    SplitMix64::new(SEED).fill(&mut fixed);
    let mut random = SplitMix64::new(SEED + 1 + round);
    let classes: Vec<bool> = (0..SAMPLES).map(|_| random.next_u64() & 1 == 0).collect();
    let secret = |&is_fixed: &bool| {
        let mut secret = [0; 32];
        random.fill(&mut secret);
        if is_fixed { fixed } else { secret }
    };
    let secrets: Vec<Secret> = classes.iter().map(secret).collect();
    // The first calls warm caches and predictors.
    secrets.iter().take(SAMPLES / 100).for_each(|secret| run(black_box(secret)));
    let once = |(&fixed, secret): (&bool, &Secret)| {
        let secret = black_box(*secret);
        let start = ticks();
        run(&secret);
        Sample { fixed, ticks: ticks().wrapping_sub(start) }
    };
    classes.iter().zip(&secrets).map(once).collect()
}

/// The time stamp counter, with nothing moved across it.
fn ticks() -> u64 {
    // SAFETY: SSE2 is part of the target, and every CPU has the counter.
    unsafe {
        x86_64::_mm_lfence();
        let ticks = x86_64::_rdtsc();
        x86_64::_mm_lfence();
        ticks
    }
}

type Run = Box<dyn FnMut(&Secret)>;

fn routines() -> Vec<(&'static str, Run)> {
    let mut all: Vec<(&'static str, Run)> = vec![
        ("chacha20, portable", Box::new(portable)),
        ("chacha20, sse2", vector(alea_chacha20_sse2)),
    ];
    if is_x86_feature_detected!("avx2") {
        all.push(("chacha20, avx2 shift", vector(alea_chacha20_avx2_shift)));
        all.push(("chacha20, avx2 shuffle", vector(alea_chacha20_avx2_shuffle)));
    }
    if is_x86_feature_detected!("avx512vl") {
        all.push(("chacha20, avx512", vector(alea_chacha20_avx512)));
    }
    all.push(("blake2s, what is mixed", Box::new(mixed)));
    all.push(("blake2s, fresh words", Box::new(fresh)));
    all
}

fn portable(secret: &Secret) {
    let mut out = [[0; 64]; GROUP_BLOCKS];
    Portable.fill(&Key::new(*secret), 0, &mut out);
    black_box(&out);
}

fn vector(routine: Routine) -> Run {
    let mut out = vec![0u8; 512];
    Box::new(move |secret: &Secret| {
        // SAFETY: `routines` checked the instructions; key and out are whole.
        unsafe { routine(secret.as_ptr(), 0, black_box(out.as_mut_ptr()), 1) };
    })
}

fn mixed(secret: &Secret) {
    let (mut pool, mut key) = (Pool::new(), Key::vacant());
    pool.mix(secret);
    pool.extract(&[1; 4], &mut key);
    black_box(&key);
}

fn fresh(secret: &Secret) {
    let (mut pool, mut key) = (Pool::new(), Key::vacant());
    let (words, _) = secret.as_chunks();
    let mut fresh = [0; 4];
    fresh.iter_mut().zip(words).for_each(|(to, word)| *to = u64::from_le_bytes(*word));
    pool.extract(&fresh, &mut key);
    black_box(&key);
}

/// Looks for the first byte that differs, as a comparison of keys must not: the fixed secret is the one that it knows.
fn leaky(secret: &Secret) {
    let mut known = [0; 32];
    SplitMix64::new(SEED).fill(&mut known);
    let same = secret.iter().zip(&known).take_while(|(a, b)| black_box(a) == black_box(b));
    black_box(same.count());
}
