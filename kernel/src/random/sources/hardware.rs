//! RDSEED and RDRAND.
//!
//! **Trust**: the CPU's maker and, in a virtual machine, the host. `random.trust_cpu=off` denies credit,
//! the words are mixed in all the same. **Credit**: 64 bits for a word of RDSEED; for RDRAND, whose
//! words stem from a generator with a key of 128 bits, 128 for all words that may stem from one seed of it. Where RDSEED has
//! nothing, RDRAND is asked until it has taken another seed, and again: 256 together. **Cost**: 31 ns for RDRAND and
//! 909 ns for RDSEED on one machine, up to 25 us in some virtual ones; hence never on the draw path.
//!
//! Only the 64-bit form of RDSEED is used (CVE-2025-62626). Each is tested with eight words twice at boot
//! and at every reseed, and every byte that it gives goes through the tests of SP 800-90B ([`WordTests`]), 128 words
//! before the first that counts. One that fails once is never credited again and nothing relies on it any more; four words
//! of it are mixed in at every reseed all the same, which cannot harm. `alea.rdrand=zeros|ones|repeat|cycle|half|silent` (and
//! `alea.rdseed=`) puts a broken part in the place of the CPU's, so that what follows can be tested, `zeros@N` one that
//! breaks after it was asked N times; there is no way to make one look better than it is.
//!
//! Owns which of the two has failed, and their tests. Never credits what has failed. Locks: `Random`, for the tests.

use crate::base::{cpu, tsc};
use crate::cmdline::{self, words};
use crate::random::live::RANDOM;
use crate::random::stats;
use crate::sync::{Once, SpinLock, level};
use crate::time;
use alea_random::credit::EntropyBits;
use alea_random::hardware::{
    HardwareFault, HardwareRng, RDRAND_RESEED_WORDS, RDRAND_SEED_BITS, WordTests, draw, test_words,
};
use alea_random::health::Health;
use alea_random::pool::FRESH_WORDS;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zerocopy::IntoBytes;

/// Words taken from each at boot: 512 bits.
const BOOT_WORDS: usize = 8;

/// Nanoseconds that [`Instruction::pass_a_reseed`] may take.
const MOST_TIME: u64 = 3_000_000;

/// How often RDSEED may have run dry before its start-up tests wait for a reseed.
const DRY: u32 = 32;

/// How a part that shipped broken answers.
#[derive(Clone, Copy)]
enum Kind {
    Zeros,
    Ones,
    Repeat,
    Cycle,
    /// The upper half of each word is zero.
    Half,
    Silent,
}

/// A broken part, played on request from some attempt on.
#[derive(Clone, Copy)]
struct Broken {
    kind: Kind,
    after: u64,
}

/// Bytes that all CPUs share.
pub const MEMORY: usize = 2 * size_of::<Instruction>();

struct Instruction {
    name: &'static str,
    /// The command-line parameter that breaks it.
    knob: words::Word,
    broken: Once<Option<Broken>>,
    source: stats::Source,
    run: fn() -> Option<u64>,
    works: AtomicBool,
    tested: Once<()>,
    tests: SpinLock<WordTests, level::Random>,
    /// Attempts while a broken part is played.
    asked: AtomicU64,
}

impl HardwareRng for &Instruction {
    fn next_u64(&mut self) -> Option<u64> {
        let Some(broken) = self.broken.get().copied().flatten() else { return (self.run)() };
        // Relaxed: a count.
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if asked < broken.after {
            return (self.run)();
        }
        match broken.kind {
            Kind::Zeros => Some(0),
            Kind::Ones => Some(u64::MAX),
            Kind::Repeat => Some(0x0123_4567_89ab_cdef),
            Kind::Cycle => Some(1 + asked % 7),
            Kind::Half => (self.run)().map(|word| word & u64::from(u32::MAX)),
            Kind::Silent => None,
        }
    }
}

static RDSEED: Instruction = Instruction {
    name: "RDSEED",
    knob: words::RDSEED,
    broken: Once::new(),
    source: stats::Source::Rdseed,
    run: cpu::rdseed64,
    works: AtomicBool::new(false),
    tested: Once::new(),
    tests: SpinLock::new(WordTests::new()),
    asked: AtomicU64::new(0),
};

static RDRAND: Instruction = Instruction {
    name: "RDRAND",
    knob: words::RDRAND,
    broken: Once::new(),
    source: stats::Source::Rdrand,
    run: cpu::rdrand64,
    works: AtomicBool::new(false),
    tested: Once::new(),
    tests: SpinLock::new(WordTests::new()),
    asked: AtomicU64::new(0),
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
                self.start_up();
            }
        });
        self.works.load(Ordering::Relaxed)
    }

    /// What the command line wants of it.
    fn ordered(&self) -> Option<Broken> {
        let text = cmdline::value(self.knob)?;
        let (name, after) = text.split_once('@').unwrap_or((text, "0"));
        let kind = match name {
            "zeros" => Some(Kind::Zeros),
            "ones" => Some(Kind::Ones),
            "repeat" => Some(Kind::Repeat),
            "cycle" => Some(Kind::Cycle),
            "half" => Some(Kind::Half),
            "silent" => Some(Kind::Silent),
            _ => None,
        };
        let (Some(kind), Ok(after)) = (kind, after.parse()) else {
            log::warn!("random: {}={text} is not known", self.knob);
            return None;
        };
        log::warn!("random: {} is broken on request", self.name);
        Some(Broken { kind, after })
    }

    /// Eight words that are used for nothing else.
    fn test(&'static self) {
        // Relaxed: as in `failed`.
        if !self.works.load(Ordering::Relaxed) {
            return;
        }
        match test_words(&mut &*self).and_then(|words| self.tests.lock().judge(&words)) {
            Ok(()) => self.stands(),
            // RDSEED may run dry under load without being broken.
            Err(HardwareFault::NoData) if self.source == stats::Source::Rdseed => {}
            Err(fault) => self.failed(fault),
        }
    }

    /// The start-up tests, over words that are used for nothing else.
    fn start_up(&'static self) {
        let mut dry = 0;
        // Relaxed: as in `failed`.
        while self.works.load(Ordering::Relaxed) && !self.tests.lock().started() && dry < DRY {
            if self.word().is_none() {
                dry += 1;
                core::hint::spin_loop();
            }
        }
        self.stands();
    }

    /// The start-up tests once more, from their beginning.
    fn start_up_again(&'static self) {
        if self.works() {
            *self.tests.lock() = WordTests::new();
            self.test();
            self.start_up();
        }
    }

    /// Notes whether what it gives may be credited.
    fn stands(&self) {
        let started = self.tests.lock().started();
        stats::stands(self.source, if started { Health::Healthy } else { Health::Starting });
    }

    fn failed(&self, fault: HardwareFault) {
        stats::stands(self.source, Health::Failed);
        // Relaxed: whoever reads the old value uses a word that is hashed with others.
        if self.works.swap(false, Ordering::Relaxed) {
            stats::failed(self.source);
            log::error!("random: {} is not reliable, disabled: {fault}", self.name);
        }
    }

    /// An accepted word that has passed the tests.
    fn word(&'static self) -> Option<u64> {
        let word = draw(&mut &*self).ok()?;
        let verdict = self.tests.lock().observe(word);
        match verdict {
            Ok(()) => Some(word),
            Err(fault) => {
                self.failed(fault);
                None
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
        let mut count = 0;
        for place in &mut words[..most] {
            let Some(word) = self.word() else { break };
            *place = word;
            count += 1;
        }
        self.mix_in(&mut words[..count]);
        // What came while the tests are not over, or with a word that failed them, is worth nothing.
        if stats::health(self.source) == Health::Healthy { count } else { 0 }
    }

    /// What a part says that has failed: mixed in, and no more.
    fn mix_failed(&'static self) {
        if stats::health(self.source) == Health::Failed {
            let mut words: [u64; FRESH_WORDS] =
                core::array::from_fn(|_| (&mut &*self).next_u64().unwrap_or(0));
            self.mix_in(&mut words);
        }
    }

    fn mix_in(&self, words: &mut [u64]) {
        stats::mixed(self.source, size_of_val(words));
        RANDOM.mix_secret(words.as_mut_bytes());
    }
}

/// Tests both on demand.
pub fn test() {
    RDSEED.start_up_again();
    RDRAND.start_up_again();
}

/// Mixes in what the instructions deliver at boot; what it is worth.
pub fn collect() -> EntropyBits {
    let trusted = cmdline::switch(words::TRUST_CPU).unwrap_or(true);
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
    RDRAND.works().then(|| RDRAND.word()).flatten()
}

/// Puts in what goes into an extraction besides the pool: RDSEED, else RDRAND, else the time. Both are tested
/// again.
pub fn fresh_words(words: &mut [u64; FRESH_WORDS]) {
    for instruction in [&RDSEED, &RDRAND] {
        if instruction.works() {
            instruction.test();
        } else {
            instruction.mix_failed();
        }
    }
    for place in words {
        let from = |instruction: &'static Instruction| {
            instruction.works().then(|| instruction.word()).flatten()
        };
        *place = from(&RDSEED).or_else(|| from(&RDRAND)).unwrap_or_else(tsc::read);
    }
}
