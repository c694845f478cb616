//! Fault injection: `alea.fail_alloc=EVERY_N[,SEED[,GENERATION]]` makes about one in N allocations fail, from the start of init on;
//! with 0 for N only those that a thread names, by its file `alea/fail_nth` in /proc: the n-th that it asks for from then on.
//!
//! Owns the setting and its counters. While it is on, no CPU's magazine keeps free objects and no CPU keeps free frames, so
//! that every allocation takes the slow path, which asks [`fails`]; while it is off only the slow paths look at it. Never
//! fails one of process 1 or of the kernel's own threads: process 1 is the harness that must live to tell the result. Nor one of
//! a process that fewer forks than GENERATION lie before: shells that start tests go on so, and the tests have all the failures.
//! Locks: none.

use crate::sync::Once;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Whether it is on. Relaxed throughout: a setting that is made once, and statistics.
static ON: AtomicBool = AtomicBool::new(false);
/// One in how many fails; 0: only what is named.
static EVERY: AtomicU32 = AtomicU32::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);
/// How many forks lie between process 1 and the first whose allocations fail.
static GENERATION: AtomicU32 = AtomicU32::new(1);
static ASKED: AtomicU64 = AtomicU64::new(0);
static FAILED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// What becomes of an allocation of who runs now, when those of a generation before this one are spared; the process floor knows.
static FATE: Once<fn(u32) -> Fate> = Once::new();

/// What becomes of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It does not fail.
    Spared,
    /// It fails if the draw says so.
    Drawn,
    /// It is the one that its thread wanted to fail.
    Named,
}

/// What /proc/alea/fail_alloc says.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub every: u32,
    pub seed: u64,
    /// Allocations that could have failed.
    pub asked: u64,
    /// Those that did, of both kinds.
    pub failed: u64,
    /// Of those the frames.
    pub frames: u64,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// An object of the kernel's heap.
    Heap,
    /// Frames: user memory, page tables, file pages, kernel stacks.
    Frame,
}

/// Begins, if the command line's `setting` says so: `EVERY_N`, a seed, and a generation, of which the last may be left out.
/// False for one that says anything else.
pub fn start(setting: &str, fate: fn(u32) -> Fate) -> bool {
    let (every, rest) = setting.split_once(',').unwrap_or((setting, "1"));
    let (seed, generation) = rest.split_once(',').unwrap_or((rest, "1"));
    let (Ok(every), Ok(seed), Ok(generation)) =
        (every.parse::<u32>(), seed.parse::<u64>(), generation.parse::<u32>())
    else {
        return false;
    };
    GENERATION.store(generation.max(1), Ordering::Relaxed);
    FATE.call_once(|| fate);
    SEED.store(seed, Ordering::Relaxed);
    EVERY.store(every, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
    true
}

/// The setting, and what came of it.
pub fn counts() -> Counts {
    let [heap, frames] = FAILED.each_ref().map(|failed| failed.load(Ordering::Relaxed));
    Counts {
        every: EVERY.load(Ordering::Relaxed),
        seed: SEED.load(Ordering::Relaxed),
        asked: ASKED.load(Ordering::Relaxed),
        failed: heap + frames,
        frames,
    }
}

/// Whether it is on.
#[inline]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether this allocation is to fail.
#[inline]
pub fn fails(kind: Kind) -> bool {
    on() && draw(kind)
}

#[cold]
fn draw(kind: Kind) -> bool {
    let fate = FATE.get().map_or(Fate::Spared, |fate| fate(GENERATION.load(Ordering::Relaxed)));
    if fate == Fate::Spared {
        return false;
    }
    let n = ASKED.fetch_add(1, Ordering::Relaxed);
    let every = u64::from(EVERY.load(Ordering::Relaxed));
    let drawn = mix(n ^ SEED.load(Ordering::Relaxed).rotate_left(32));
    let fails = fate == Fate::Named || every != 0 && drawn.is_multiple_of(every);
    if fails {
        FAILED[kind as usize].fetch_add(1, Ordering::Relaxed);
    }
    fails
}

/// SplitMix64's finish: spreads a counter over all bits.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
