//! RDSEED and RDRAND.
//!
//! **Trust**: the CPU's maker and, in a virtual machine, the host. `random.trust_cpu=off` denies credit,
//! the words are mixed in all the same. **Credit**: 64 bits for a word of RDSEED; for RDRAND, whose
//! words stem from a generator with a key of 128 bits, 128 for all words that may stem from one seed of it. Where RDSEED has
//! nothing, RDRAND is asked until it has taken another seed, and again: 256 together. **Cost**: 31 ns for RDRAND and
//! 909 ns for RDSEED on one machine, up to 25 us in some virtual ones; hence never on the draw path.
//!
//! Only the 64-bit form of RDSEED is used (CVE-2025-62626). Each is tested with eight words twice at boot
//! and at every reseed; one that fails once is not asked again. `alea.rdrand=zeros|ones|repeat|cycle|silent` (and
//! `alea.rdseed=`) puts a broken part in the place of the CPU's, so that what follows can be tested; there
//! is no way to make one look better than it is.
//!
//! Owns which of the two has failed. Never asked again after that. Locks: none.

use crate::base::{cpu, tsc};
use crate::cmdline;
use crate::random::{pool, stats};
use crate::sync::{Once, SpinLock, level};
use crate::time;
use alea_random::credit::EntropyBits;
use alea_random::hardware::{
    HardwareFault, HardwareRng, RDRAND_RESEED_WORDS, RDRAND_SEED_BITS, SelfTest, draw, gather,
    test_words,
};
use alea_random::pool::FRESH_WORDS;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zerocopy::IntoBytes;
use zeroize::Zeroize;

/// Words taken from each at boot: 512 bits.
const BOOT_WORDS: usize = 8;

/// Nanoseconds that [`Instruction::pass_a_reseed`] may take.
const MOST_TIME: u64 = 3_000_000;

/// A part that shipped broken, played on request.
#[derive(Clone, Copy)]
enum Broken {
    Zeros,
    Ones,
    Repeat,
    Cycle,
    Silent,
}

struct Instruction {
    name: &'static str,
    /// The command-line parameter that breaks it.
    knob: &'static str,
    broken: Once<Option<Broken>>,
    source: stats::Source,
    run: fn() -> Option<u64>,
    works: AtomicBool,
    tested: Once<()>,
    test: SpinLock<SelfTest, level::Random>,
}

impl HardwareRng for &Instruction {
    fn next_u64(&mut self) -> Option<u64> {
        match self.broken.get().copied().flatten() {
            None => (self.run)(),
            Some(Broken::Zeros) => Some(0),
            Some(Broken::Ones) => Some(u64::MAX),
            Some(Broken::Repeat) => Some(0x0123_4567_89ab_cdef),
            Some(Broken::Cycle) => {
                static NEXT: AtomicU64 = AtomicU64::new(0);
                // Relaxed: a count.
                Some(1 + NEXT.fetch_add(1, Ordering::Relaxed) % 7)
            }
            Some(Broken::Silent) => None,
        }
    }
}

static RDSEED: Instruction = Instruction {
    name: "RDSEED",
    knob: "alea.rdseed",
    broken: Once::new(),
    source: stats::Source::Rdseed,
    run: cpu::rdseed64,
    works: AtomicBool::new(false),
    tested: Once::new(),
    test: SpinLock::new(SelfTest::new()),
};

static RDRAND: Instruction = Instruction {
    name: "RDRAND",
    knob: "alea.rdrand",
    broken: Once::new(),
    source: stats::Source::Rdrand,
    run: cpu::rdrand64,
    works: AtomicBool::new(false),
    tested: Once::new(),
    test: SpinLock::new(SelfTest::new()),
};

impl Instruction {
    /// Whether the CPU has it and it has never failed a test.
    fn works(&'static self) -> bool {
        self.tested.call_once(|| {
            let features = cpu::features();
            let there = if self.source == stats::Source::Rdseed {
                features.rdseed
            } else {
                features.rdrand
            };
            // Relaxed: `tested` orders the first value; later it only ever becomes false.
            self.works.store(there, Ordering::Relaxed);
            if there {
                self.broken.call_once(|| self.ordered());
                // Twice: what repeats itself is found before anything is credited.
                self.test();
                self.test();
            }
        });
        self.works.load(Ordering::Relaxed)
    }

    /// What the command line wants of it.
    fn ordered(&self) -> Option<Broken> {
        let broken = match cmdline::value(self.knob)? {
            "zeros" => Broken::Zeros,
            "ones" => Broken::Ones,
            "repeat" => Broken::Repeat,
            "cycle" => Broken::Cycle,
            "silent" => Broken::Silent,
            other => {
                log::warn!("random: {}={other} is not known", self.knob);
                return None;
            }
        };
        log::warn!("random: {} is broken on request", self.name);
        Some(broken)
    }

    fn test(&'static self) {
        // Relaxed: as below.
        if !self.works.load(Ordering::Relaxed) {
            return;
        }
        match test_words(&mut &*self).and_then(|words| self.test.lock().judge(&words)) {
            Ok(()) => {}
            // RDSEED may run dry under load without being broken.
            Err(HardwareFault::NoData) if self.source == stats::Source::Rdseed => {}
            Err(fault) => {
                // Relaxed: whoever reads the old value uses a word that is hashed with others.
                self.works.store(false, Ordering::Relaxed);
                stats::failed(self.source);
                log::error!("random: {} is not reliable, disabled: {fault}", self.name);
            }
        }
    }

    /// Mixes in what it delivers and says how many words that were.
    fn mix(&'static self) -> usize {
        self.mix_up_to(BOOT_WORDS)
    }

    fn mix_up_to(&'static self, most: usize) -> usize {
        if !self.works() {
            return 0;
        }
        let mut words = [0u64; BOOT_WORDS];
        let count = gather(&mut &*self, &mut words[..most]);
        let bytes = words[..count].as_bytes();
        stats::mixed(self.source, bytes.len());
        pool::mix(bytes);
        words.zeroize();
        count
    }
}

/// Mixes in what the instructions deliver at boot; what it is worth.
pub fn collect() -> EntropyBits {
    let trusted = cmdline::switch("random.trust_cpu").unwrap_or(true);
    let seeds = EntropyBits(RDSEED.mix() as u32 * u64::BITS);
    let mut from_rdrand = RDRAND.mix_of_one_seed();
    // Where RDSEED has nothing, words of a second seed make up for it.
    if trusted && seeds < EntropyBits::READY && RDRAND.pass_a_reseed() {
        from_rdrand = from_rdrand.saturating_add(RDRAND.mix_of_one_seed());
    }
    if !is_there() {
        log::info!("random: no RDRAND or RDSEED that works");
    }
    if !trusted {
        return EntropyBits(0);
    }
    stats::credited(stats::Source::Rdseed, seeds);
    stats::credited(stats::Source::Rdrand, from_rdrand);
    seeds.saturating_add(from_rdrand)
}

impl Instruction {
    /// Words that may all stem from one seed of RDRAND's generator, mixed in; what they are worth.
    fn mix_of_one_seed(&'static self) -> EntropyBits {
        EntropyBits(self.mix() as u32 * u64::BITS).min(RDRAND_SEED_BITS)
    }

    /// Has RDRAND's generator take a new seed, by asking for as many words as it gives of one; false if it has failed, or
    /// takes longer than a boot should: some virtual machines leave to the host for each word.
    fn pass_a_reseed(&'static self) -> bool {
        let deadline = time::since_boot_ns().saturating_add(MOST_TIME);
        (0..RDRAND_RESEED_WORDS / BOOT_WORDS + 1).all(|round| {
            let left = RDRAND_RESEED_WORDS - round * BOOT_WORDS;
            let words = left.min(BOOT_WORDS);
            self.mix_up_to(words) == words && time::since_boot_ns() < deadline
        })
    }
}

/// Whether the CPU has one of them, and it has never failed.
pub fn is_there() -> bool {
    RDSEED.works() || RDRAND.works()
}

/// One accepted word of RDRAND.
pub fn hardware_word() -> Option<u64> {
    RDRAND.works().then(|| draw(&mut &RDRAND).ok()).flatten()
}

/// What goes into an extraction besides the pool: RDSEED, else RDRAND, else the time. Both are tested
/// again.
pub fn fresh_words() -> [u64; FRESH_WORDS] {
    for instruction in [&RDSEED, &RDRAND] {
        if instruction.works() {
            instruction.test();
        }
    }
    core::array::from_fn(|_| {
        let from = |instruction: &'static Instruction| {
            instruction.works().then(|| draw(&mut &*instruction).ok()).flatten()
        };
        from(&RDSEED).or_else(|| from(&RDRAND)).unwrap_or_else(tsc::read)
    })
}
