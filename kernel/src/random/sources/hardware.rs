//! RDSEED and RDRAND.
//!
//! **Trust**: the CPU's maker and, in a virtual machine, the host. `random.trust_cpu=off` denies credit,
//! the words are mixed in all the same. **Credit**: 64 bits for a word of RDSEED, and for RDRAND, whose
//! words all stem from one state, 64 bits for a word up to 256 in total. **Cost**: 31 ns for RDRAND and
//! 909 ns for RDSEED on one machine, up to 25 us in some virtual ones; hence never on the draw path.
//!
//! Only the 64-bit form of RDSEED is used (CVE-2025-62626). Each is tested with eight words at boot and
//! at every reseed; one that fails once is not asked again. `alea.rdrand=zeros|ones|repeat|silent` (and
//! `alea.rdseed=`) puts a broken part in the place of the CPU's, so that what follows can be tested; there
//! is no way to make one look better than it is.
//!
//! Owns which of the two has failed. Never asked again after that. Locks: none.

use crate::base::{cpu, tsc};
use crate::cmdline;
use crate::random::{pool, stats};
use crate::sync::Once;
use alea_random::credit::EntropyBits;
use alea_random::hardware::{HardwareFault, HardwareRng, draw, gather, self_test};
use alea_random::pool::FRESH_WORDS;
use core::sync::atomic::{AtomicBool, Ordering};
use zerocopy::IntoBytes;
use zeroize::Zeroize;

/// Words taken from each at boot: 512 bits.
const BOOT_WORDS: usize = 8;

/// A part that shipped broken, played on request.
#[derive(Clone, Copy)]
enum Broken {
    Zeros,
    Ones,
    Repeat,
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
}

impl HardwareRng for &Instruction {
    fn next_u64(&mut self) -> Option<u64> {
        match self.broken.get().copied().flatten() {
            None => (self.run)(),
            Some(Broken::Zeros) => Some(0),
            Some(Broken::Ones) => Some(u64::MAX),
            Some(Broken::Repeat) => Some(0x0123_4567_89ab_cdef),
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
};

static RDRAND: Instruction = Instruction {
    name: "RDRAND",
    knob: "alea.rdrand",
    broken: Once::new(),
    source: stats::Source::Rdrand,
    run: cpu::rdrand64,
    works: AtomicBool::new(false),
    tested: Once::new(),
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
        match self_test(&mut &*self) {
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
        if !self.works() {
            return 0;
        }
        let mut words = [0u64; BOOT_WORDS];
        let count = gather(&mut &*self, &mut words);
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
    let mut sum = EntropyBits(0);
    for instruction in [&RDSEED, &RDRAND] {
        let count = instruction.mix();
        let most = if instruction.source == stats::Source::Rdrand { 4 } else { BOOT_WORDS };
        let bits = EntropyBits(count.min(most) as u32 * u64::BITS);
        if trusted && count > 0 {
            stats::credited(instruction.source, bits);
            sum = sum.saturating_add(bits);
        }
    }
    sum
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
