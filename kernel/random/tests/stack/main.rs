//! What the README promises adopters: all of it runs on a kernel's stack of 16 KiB.
//!
//! A thread of the standard library needs some of it for itself, and ends the process when it meets its guard page.
#![cfg(all(feature = "jitter", not(miri), not(alea_loom)))]

use std::hint::black_box;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use alea_random::credit::{EntropyBits, State};
use alea_random::hardware::HardwareRng;
use alea_random::jitter::CycleCounter;
use alea_random::pool::Trickle;
use alea_random::service::{Base, CpuCrng, Exclusive, Mixing, Platform, Service};
use alea_random::splitmix64;

const STACK: usize = 16 << 10;

struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }
}

impl<T> Exclusive<T> for Lock<T> {
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

struct OneCpu(Lock<CpuCrng>);

impl Platform for OneCpu {
    type Lock<T: Send> = Lock<T>;

    fn with_cpu<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> {
        Some(self.0.with(f))
    }
}

/// A known source: what it delivers does not matter here.
struct Known(u64);

impl HardwareRng for Known {
    fn next_u64(&mut self) -> Option<u64> {
        let (next, word) = splitmix64::step(self.0);
        self.0 = next;
        Some(word)
    }
}

/// Steps of many lengths.
struct Steps(u64, Known);

impl CycleCounter for Steps {
    fn now(&mut self) -> u64 {
        self.0 += 1000 + (self.1.next_u64().unwrap() & 0xfff);
        self.0
    }
}

static RANDOM: Service<OneCpu> = Service::new(
    OneCpu(Lock::new(CpuCrng::vacant())),
    Lock::new(Mixing::new()),
    Lock::new(Base::vacant()),
);

fn boot_and_draw() {
    let state = RANDOM.start(&mut [
        &mut |_| RANDOM.collect_hardware(&mut Known(1), EntropyBits(16)),
        &mut |_| RANDOM.collect_jitter(&mut Steps(0, Known(2))).unwrap().credit,
    ]);
    assert_eq!(state, State::Ready);
    for minute in 0..10 {
        RANDOM.spread(Trickle::Jitter, &[1; 64]);
        let _until_the_next = RANDOM.on_schedule(Duration::from_secs(60 * minute));
        for length in [1, 32, 256, 1000] {
            RANDOM.fill(black_box(&mut [0; 1000][..length])).unwrap();
        }
    }
}

#[test]
fn sixteen_kilobytes_are_enough() {
    let thread = thread::Builder::new().stack_size(STACK).spawn(boot_and_draw).unwrap();
    thread.join().unwrap();
}
