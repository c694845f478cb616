//! Which generator serves: the seam that `random.generator=` switches.
//!
//! Owns the choice, made once at boot, and the two weak generators that exist to be compared with. Only
//! ChaCha20 keeps secrets; the others log a warning and are never the default. No locks.

use super::live::{RANDOM, stream_to_user};
use super::sources;
use crate::base::{cpu, tsc};
use crate::cmdline::{self, words};
use alea_random::block::Block;
use alea_random::crng::{NotSeeded, Stream};
use alea_random::hardware::{self, HardwareRng};
use alea_random::splitmix64::AtomicSplitMix64;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// A generator that can serve user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// ChaCha20 with fast key erasure.
    ChaCha20,
    /// SplitMix64: eight bytes of output tell all others.
    SplitMix64,
    /// RDRAND for every word: nothing but the CPU's maker vouches for it, and slow on many machines.
    Rdrand,
}

impl Kind {
    const ALL: [Self; 3] = [Self::ChaCha20, Self::SplitMix64, Self::Rdrand];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChaCha20 => "chacha20",
            Self::SplitMix64 => "splitmix64",
            Self::Rdrand => "rdrand",
        }
    }
}

static KIND: AtomicU8 = AtomicU8::new(Kind::ChaCha20 as u8);

/// Seeded at boot for `random.generator=splitmix64` alone.
static SPLITMIX64: AtomicSplitMix64 = AtomicSplitMix64::unseeded();

/// Cycles of the TSC that each RDRAND for `random.generator=rdrand` is made to take, beside its own.
static RDRAND_COST: AtomicU64 = AtomicU64::new(0);

/// The highest such cost: a draw of a page stays below a second.
const MOST_RDRAND_COST: u64 = 1_000_000;

/// The generator in use.
#[inline]
pub fn kind() -> Kind {
    // Relaxed: set once, before the first draw.
    match KIND.load(Ordering::Relaxed) {
        k if k == Kind::SplitMix64 as u8 => Kind::SplitMix64,
        k if k == Kind::Rdrand as u8 => Kind::Rdrand,
        _ => Kind::ChaCha20,
    }
}

/// Whether it is the default one.
#[inline]
pub fn is_chacha20() -> bool {
    // Relaxed: as in `kind`.
    KIND.load(Ordering::Relaxed) == Kind::ChaCha20 as u8
}

/// Seeds SplitMix64 from one word of the hardware generator, or from jitter, for who asked for it; false if neither gives one.
fn seed_splitmix64() -> bool {
    let seed = match sources::hardware_word() {
        Some(word) => Ok(word),
        None => {
            log::info!("random: no RDRAND, SplitMix64 is seeded from the jitter of the TSC");
            alea_random::jitter::seed_word(&mut sources::Tsc)
        }
    };
    match seed {
        Ok(word) => {
            if let Err(already) = SPLITMIX64.seed(word) {
                log::warn!("random: {already}");
            }
            true
        }
        Err(fault) => {
            log::warn!("random: SplitMix64 cannot be seeded, using chacha20: {fault}");
            false
        }
    }
}

/// Obeys `alea.rdrand_cost=`.
fn set_rdrand_cost() {
    let Some(cycles) = cmdline::number(words::RDRAND_COST) else { return };
    match u64::try_from(cycles) {
        // Relaxed: before the first draw.
        Ok(cycles @ 0..=MOST_RDRAND_COST) => RDRAND_COST.store(cycles, Ordering::Relaxed),
        _ => log::warn!(
            "random: {}={cycles} is not from 0 to {MOST_RDRAND_COST}",
            words::RDRAND_COST
        ),
    }
}

/// Obeys `random.generator=`.
pub fn select() {
    let Some(wanted) = cmdline::value(words::GENERATOR) else { return };
    let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == wanted) else {
        log::warn!("random: unknown generator {wanted:?}, using chacha20");
        return;
    };
    if kind == Kind::Rdrand && sources::hardware_word().is_none() {
        log::warn!("random: this CPU has no usable RDRAND, using chacha20");
        return;
    }
    if kind == Kind::SplitMix64 && !seed_splitmix64() {
        return;
    }
    if kind != Kind::ChaCha20 {
        log::warn!("random: generator {wanted} is for comparison only: it keeps no secrets");
    }
    if kind == Kind::Rdrand {
        set_rdrand_cost();
    }
    // Relaxed: before the first draw.
    KIND.store(kind as u8, Ordering::Relaxed);
}

/// Fills `out` from the selected generator. Meant for up to 256 bytes.
#[inline]
pub fn fill(out: &mut [u8]) -> Result<(), NotSeeded> {
    match kind() {
        Kind::ChaCha20 => RANDOM.fill(out),
        Kind::SplitMix64 => SPLITMIX64.get().map(|seeded| seeded.fill(out)).ok_or(NotSeeded),
        Kind::Rdrand => fill_rdrand(out),
    }
}

/// A long request.
pub enum Bulk {
    /// A keystream of its own.
    ChaCha20(Stream),
    /// Draw by draw.
    Weak,
}

impl Bulk {
    /// The place of one, for [`start`](Self::start): what has a key is not moved any more.
    pub fn vacant() -> Self {
        match kind() {
            Kind::ChaCha20 => Self::ChaCha20(Stream::vacant()),
            Kind::SplitMix64 | Kind::Rdrand => Self::Weak,
        }
    }

    /// Starts it.
    pub fn start(&mut self) -> Result<(), NotSeeded> {
        match self {
            Self::ChaCha20(stream) => RANDOM.start_stream(stream),
            Self::Weak => Ok(()),
        }
    }

    /// The next bytes.
    pub fn fill(&mut self, out: &mut [Block]) -> Result<(), NotSeeded> {
        match self {
            Self::ChaCha20(stream) => RANDOM.fill_from(stream, out),
            Self::Weak => fill(out.as_flattened_mut()),
        }
    }

    /// The next bytes, made in user memory: whole groups at `addr`. False if that cannot be done.
    pub fn fill_user(&mut self, addr: u64, groups: usize) -> Result<bool, NotSeeded> {
        match self {
            Self::ChaCha20(stream) => stream_to_user(stream, addr, groups),
            Self::Weak => Ok(false),
        }
    }
}

struct Rdrand;

impl HardwareRng for Rdrand {
    fn next_u64(&mut self) -> Option<u64> {
        let word = cpu::rdrand64();
        // Relaxed: set once, before the first draw.
        let cost = RDRAND_COST.load(Ordering::Relaxed);
        if cost != 0 {
            let start = tsc::read();
            while tsc::read().wrapping_sub(start) < cost {
                core::hint::spin_loop();
            }
        }
        word
    }
}

/// Word by word from the instruction; ChaCha20 takes over where it fails.
fn fill_rdrand(out: &mut [u8]) -> Result<(), NotSeeded> {
    for piece in out.chunks_mut(8) {
        match hardware::draw(&mut Rdrand) {
            Ok(word) => {
                piece.iter_mut().zip(word.to_le_bytes()).for_each(|(to, byte)| *to = byte);
            }
            // Not from a batch, which getrandom's shortest way would find.
            Err(_) => RANDOM.fill_apart(piece)?,
        }
    }
    Ok(())
}
