//! A platform that writes down what it is asked and refuses what it must not be asked, and services on it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use alea_random::block::{Block, BlockGenerator, Key, Portable};
use alea_random::credit::EntropyBits;
use alea_random::crng::Generation;
use alea_random::crng::twins::MachineId;
use alea_random::pool::FRESH_WORDS;
use alea_random::reseed::Cause;
use alea_random::service::{
    Base, CpuCrng, Event, Exclusive, Mixing, Platform, Service, TryExclusive,
};

thread_local! {
    /// Whether this test holds a lock: never two of them.
    static HELD: Cell<bool> = const { Cell::new(false) };
}

pub struct Lock<T> {
    value: Mutex<T>,
    /// Somebody else has it, as far as handlers see.
    pub busy: Arc<AtomicBool>,
}

impl<T> Lock<T> {
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), busy: Arc::default() }
    }
}

impl<T> Exclusive<T> for Lock<T> {
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        assert!(!HELD.replace(true), "two locks at once");
        let result = f(&mut self.value.lock().unwrap());
        HELD.set(false);
        result
    }
}

impl<T> TryExclusive<T> for Lock<T> {
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        (!self.busy.load(Ordering::Relaxed)).then(|| self.with(f))
    }
}

#[derive(Default)]
pub struct Mine {
    pub cpu: Mutex<Option<Box<CpuCrng>>>,
    pub in_handler: AtomicBool,
    pub id: Mutex<u64>,
    /// How often the id was read, and what it becomes before the reading of that number.
    pub readings: Mutex<usize>,
    pub changes: Mutex<Vec<(usize, u64)>>,
    pub fresh: Mutex<u64>,
    pub news: AtomicBool,
    pub groups: Mutex<Vec<usize>>,
    pub told: Mutex<Vec<Event>>,
    pub shown: Mutex<Vec<(u64, u64)>>,
}

impl Mine {
    /// The CPU's own, but in handlers.
    fn with<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> {
        if self.in_handler.load(Ordering::Relaxed) {
            return None;
        }
        let mut cpu = self.cpu.lock().unwrap();
        Some(f(cpu.get_or_insert_with(|| Box::new(CpuCrng::vacant()))))
    }

    pub fn take_told(&self) -> Vec<Event> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

pub fn nothing_held() {
    assert!(!HELD.get(), "called with a lock held");
}

impl Platform for Mine {
    type Lock<T: Send> = Lock<T>;

    fn with_cpu<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> {
        self.with(f)
    }

    fn fill_blocks(&self, key: &Key, counter: u32, out: &mut [Block]) {
        self.groups.lock().unwrap().push(out.len());
        Portable.fill(key, counter, out);
    }

    fn fresh_words(&self, words: &mut [u64; FRESH_WORDS]) {
        nothing_held();
        *words = [*self.fresh.lock().unwrap(); FRESH_WORDS];
    }

    fn look_again(&self) -> bool {
        nothing_held();
        self.news.load(Ordering::Relaxed)
    }

    fn id(&self) -> MachineId {
        let (mut id, mut readings) = (self.id.lock().unwrap(), self.readings.lock().unwrap());
        for &(at, changed) in self.changes.lock().unwrap().iter() {
            if *readings == at {
                *id = changed;
            }
        }
        *readings += 1;
        MachineId([*id, 0])
    }

    fn publish(&self, generation: Generation, made_for: MachineId) {
        self.shown.lock().unwrap().push((generation.get(), made_for.0[0]));
    }

    fn told(&self, event: Event) {
        nothing_held();
        self.told.lock().unwrap().push(event);
    }
}

/// Not of this machine: nothing but what is required.
pub struct Bare;

impl Platform for Bare {
    type Lock<T: Send> = Lock<T>;

    fn with_cpu<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> {
        Some(f(&mut CpuCrng::vacant()))
    }
}

pub fn service() -> Service<Mine> {
    Service::new(Mine::default(), Lock::new(Mixing::new()), Lock::new(Base::vacant()))
}

/// A service whose whole entropy is `seed`.
pub fn ready(seed: &[u8]) -> Service<Mine> {
    let service = service();
    service.mix(seed);
    service.credit(EntropyBits::READY);
    service.platform().take_told();
    service
}

pub fn drawn(service: &Service<Mine>) -> [u8; 32] {
    let mut bytes = [0; 32];
    service.fill(&mut bytes).unwrap();
    bytes
}

pub fn unseeded(service: &Service<Mine>) -> [u8; 32] {
    let mut bytes = [0; 32];
    service.fill_unseeded(&mut bytes);
    bytes
}

pub const REQUEST: Event = Event::Reseeded(Cause::Request);
