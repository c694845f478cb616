//! The whole subsystem behind one name: mix, credit, reseed, draw.
//!
//! Owns the pools, the credit and the generator, and the order in which they act on each other: what a credit leads to, what a
//! seed is made of, which machine a draw is for. A kernel says through [`Platform`] what it has; all but its lock and its
//! per-CPU data has a default. It must never credit what [`Service::credit`] was not told of, nor serve before there
//! is a key. Lock rules: the pools' lock and the base's ([`Platform::Lock`]) are never held together, and nothing of the
//! platform is called with one of them held but [`Platform::publish`].
//!
//! ```
//! use std::sync::Mutex;
//! use alea_random::service::*;
//! # use alea_random::{credit::{EntropyBits, State}, hardware::HardwareRng};
//! # struct Instruction;
//! # impl HardwareRng for Instruction {
//! #     fn next_u64(&mut self) -> Option<u64> {
//! #         let mut word = [0; 8];
//! #         std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").ok()?, &mut word).ok()?;
//! #         Some(u64::from_ne_bytes(word))
//! #     }
//! # }
//!
//! struct Lock<T>(Mutex<T>); // a spinlock, with interrupts off
//! impl<T> Exclusive<T> for Lock<T> {
//!     fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R { f(&mut self.0.lock().unwrap()) }
//! }
//!
//! struct Mine { cpu: Lock<CpuCrng> } // here: of the one CPU that there is
//! impl Platform for Mine {
//!     type Lock<T: Send> = Lock<T>;
//!     fn with_cpu<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> { Some(self.cpu.with(f)) }
//! }
//!
//! static RANDOM: Service<Mine> = Service::new(
//!     Mine { cpu: Lock(Mutex::new(CpuCrng::vacant())) },
//!     Lock(Mutex::new(Mixing::new())),
//!     Lock(Mutex::new(Base::vacant())),
//! );
//!
//! let mut bytes = [0; 32];
//! assert!(RANDOM.fill(&mut bytes).is_err(), "not seeded");
//! let state = RANDOM.start(&mut [&mut |_| RANDOM.collect_hardware(&mut Instruction, EntropyBits(64))]);
//! assert_eq!(state, State::Ready, "or there is no source: wait, or refuse");
//! RANDOM.fill(&mut bytes)?;
//! # assert_ne!(bytes, [0; 32]);
//! # Ok::<(), alea_random::crng::NotSeeded>(())
//! ```
//!
//! A timer calls [`Service::on_schedule`], a handler of interrupts [`Service::interrupt`].

use core::time::Duration;

use self::draw::Live;
pub use self::interrupt::{Interrupt, Interrupts, TryExclusive};
#[cfg(feature = "jitter")]
pub use self::jitter::Samples;
pub use self::mixing::Mixing;
pub use crate::crng::{Base, CpuCrng, Exclusive};

use crate::block::wipe::wipe;
use crate::block::{Block, BlockGenerator, Key, Portable};
use crate::boot;
use crate::credit::{Credit, EntropyBits, State, Transition};
use crate::crng::twins::MachineId;
use crate::crng::{Crng, Generation};
use crate::hardware::{self, HardwareRng};
use crate::health::Counter;
use crate::pool::{FRESH_WORDS, POOLS, Trickle};
use crate::reseed::{Cause, interval};
use crate::sync::{AtomicU8, Ordering};

/// What the kernel around a [`Service`] has.
pub trait Platform: Sized {
    /// Its lock, with interrupts off where handlers mix or draw.
    type Lock<T: Send>: Exclusive<T>;

    /// Runs `f` with this CPU's generator, which nobody else can reach meanwhile: preemption is excluded. `None` in a handler
    /// of interrupts, whose draws get a key of their own.
    fn with_cpu<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R>;

    /// As [`with_cpu`](Self::with_cpu), from where no handler runs: for who can do that in fewer instructions.
    #[inline]
    fn with_cpu_in_task<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> {
        self.with_cpu(f)
    }

    /// Makes keystream, as [`BlockGenerator::fill`]: by vector code, if there is any.
    #[inline]
    fn fill_blocks(&self, key: &Key, counter: u32, out: &mut [Block]) {
        Portable.fill(key, counter, out);
    }

    /// Puts words of the hardware generator in, one for each seed, where it has them. They are wiped afterwards.
    fn fresh_words(&self, _: &mut [u64; FRESH_WORDS]) {}

    /// Called before a key is made: mixes in what slow sources have had to say since; whether one did that is worth something.
    fn look_again(&self) -> bool {
        false
    }

    /// Which of its copies this machine is: see [`Machine::id`](crate::crng::twins::Machine::id).
    #[inline]
    fn id(&self) -> MachineId {
        MachineId::NONE
    }

    /// Shows programs a new generation: see [`Machine::publish`](crate::crng::twins::Machine::publish). The one function that is called with a lock held.
    fn publish(&self, _: Generation, _: MachineId) {}

    /// Something happened that others may have waited for, or that is worth counting.
    fn told(&self, _: Event) {}
}

/// What a [`Service`] tells its [`Platform`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// There is a first key: who waited goes on, and the schedule of reseeds begins. Comes once.
    Ready,
    /// There is a new key, and why; after [`Event::Copied`] it is about to be made.
    Reseeded(Cause),
    /// This machine turned out to be a copy.
    Copied,
    /// So many bytes of a new [`Platform::id`] were mixed in.
    Identified(usize),
}

/// The entropy service of a kernel: one static.
///
/// The order of the fields is fixed, for those who look at a machine's memory from outside.
#[repr(C)]
pub struct Service<P: Platform> {
    crng: Crng<P::Lock<Base>>,
    pools: P::Lock<Mixing>,
    credit: Credit,
    /// A [`Counter`].
    counter: AtomicU8,
    platform: P,
}

impl<P: Platform> Service<P> {
    /// A service that has nothing, with a lock around a new [`Mixing`] and one around a vacant [`Base`].
    #[cfg(not(alea_loom))]
    pub const fn new(platform: P, pools: P::Lock<Mixing>, base: P::Lock<Base>) -> Self {
        let counter = AtomicU8::new(Counter::Usable as u8);
        Self { crng: Crng::new(base), pools, credit: Credit::none(), counter, platform }
    }

    /// A service that has nothing (loom's atomics cannot be made in a constant).
    #[cfg(alea_loom)]
    pub fn new(platform: P, pools: P::Lock<Mixing>, base: P::Lock<Base>) -> Self {
        let counter = AtomicU8::new(Counter::Usable as u8);
        Self { crng: Crng::new(base), pools, credit: Credit::none(), counter, platform }
    }

    /// Asks every source at boot, and credits at once what all of them are worth: see [`boot`]. The state then.
    pub fn start(&self, sources: &mut [boot::Source<'_>]) -> State {
        self.credit(boot::collect(sources));
        self.state()
    }

    /// Adds to what an attacker has to know; credits nothing.
    pub fn mix(&self, bytes: &[u8]) {
        self.pools.with(|mixing| mixing.pools.mix(bytes));
    }

    /// As [`mix`](Self::mix), for what nobody else is to learn: once it is mixed in, it is wiped where it stood.
    pub fn mix_secret(&self, bytes: &mut [u8]) {
        self.mix(bytes);
        wipe(bytes);
    }

    /// As [`mix`](Self::mix), for a source that brings a little at a time: see [`Pools::spread`](crate::pool::Pools::spread).
    pub fn spread(&self, from: Trickle, bytes: &[u8]) {
        self.pools.with(|mixing| mixing.pools.spread(from, bytes));
    }

    /// As [`spread`](Self::spread), and as [`mix_secret`](Self::mix_secret) does.
    pub fn spread_secret(&self, from: Trickle, bytes: &mut [u8]) {
        self.spread(from, bytes);
        wipe(bytes);
    }

    /// Tests a hardware generator and mixes eight of its words in; what they are worth, at so much each. Nothing if it fails.
    /// A word of RDSEED is worth its 64 bits; one of RDRAND an eighth of [`RDRAND_SEED_BITS`](hardware::RDRAND_SEED_BITS).
    pub fn collect_hardware(
        &self,
        rng: &mut impl HardwareRng,
        each_word: EntropyBits,
    ) -> EntropyBits {
        let mut words = [0; hardware::SELF_TEST_SAMPLES];
        let sane = hardware::self_test(rng).is_ok();
        let count = hardware::gather(rng, &mut words);
        words[..count].iter().for_each(|word| self.mix(&word.to_le_bytes()));
        wipe(&mut words);
        if sane { EntropyBits(each_word.0.saturating_mul(count as u32)) } else { EntropyBits(0) }
    }

    /// Counts entropy that was mixed in before. Where several sources deliver together, all are mixed in before any is
    /// credited: what reaches 256 bits makes the first key at once.
    pub fn credit(&self, bits: EntropyBits) {
        let Some(Transition { to, .. }) = self.credit.add(bits) else { return };
        match to {
            State::Empty => {}
            State::Early => self.crng.seed_early(&Live(self)),
            State::Ready => {
                self.reseed(Cause::Ready);
                self.platform.told(Event::Ready);
            }
        }
    }

    /// Ends all credit, before there is any: the state stays [`State::Empty`]. For a machine whose ciphers give wrong
    /// answers: see [`known_answers`](crate::known_answers).
    pub fn condemn(&self) {
        self.credit.condemn();
    }

    /// How far the service is. Ready means that there is a key, not only the credit for one.
    #[inline]
    pub fn state(&self) -> State {
        if self.generation() == Generation::NONE {
            self.credit.state().min(State::Early)
        } else {
            State::Ready
        }
    }

    /// The credited bits, 0 to 256.
    pub fn credited(&self) -> EntropyBits {
        self.credit.bits()
    }

    /// What is known of the counter that times jitter and interrupts: nothing that it times is credited once it was refused.
    pub fn counter(&self) -> Counter {
        // Relaxed: whoever reads the old value credits one more bit at most, of times that passed tests of their own.
        match self.counter.load(Ordering::Relaxed) {
            usable if usable == Counter::Usable as u8 => Counter::Usable,
            _ => Counter::Refused,
        }
    }

    /// Says what the tests of the counter have shown.
    pub fn judge_counter(&self, counter: Counter) {
        // Relaxed: as in `counter`.
        self.counter.store(counter as u8, Ordering::Relaxed);
    }

    /// Makes a new key of the old one, of everything that was mixed in and of [`Platform::fresh_words`].
    pub fn reseed(&self, cause: Cause) {
        let news = self.platform.look_again();
        self.crng.reseed_from(&Live(self));
        let cause = if news && cause == Cause::Schedule { Cause::NewSource } else { cause };
        self.platform.told(Event::Reseeded(cause));
    }

    /// A reseed by the clock, for which pools join that have waited: see [`Pools::turn`](crate::pool::Pools::turn). How long
    /// to wait for the next one.
    #[must_use = "arm a timer"]
    pub fn on_schedule(&self, uptime: Duration) -> Duration {
        self.pools.with(|mixing| mixing.pools.turn());
        self.reseed(Cause::Schedule);
        interval(uptime)
    }

    /// For a machine that was told of being a copy: makes keys that its twins do not have. Draws do not need it, they
    /// look at the id themselves; programs that draw in user space may see the news earlier by it.
    pub fn on_copy(&self) {
        self.crng.learn(&Live(self));
    }

    /// Shows programs the generation that there is already.
    pub fn show(&self) {
        self.crng.show(&Live(self));
    }

    /// The generation that draws are served from.
    #[inline]
    pub fn generation(&self) -> Generation {
        self.crng.generation()
    }

    /// Bytes mixed in so far: for statistics.
    pub fn mixed(&self) -> u64 {
        self.pools.with(|mixing| mixing.pools.mixed())
    }

    /// Bytes in each pool that no seed was made of: for statistics.
    pub fn waiting(&self) -> [u64; POOLS] {
        self.pools.with(|mixing| mixing.pools.waiting())
    }

    /// What the platform brought.
    pub const fn platform(&self) -> &P {
        &self.platform
    }
}

mod draw;
mod interrupt;
#[cfg(feature = "jitter")]
mod jitter;
mod mixing;
