//! The interrupt pool: that it mixes, that it gives away only half, and what it credits.

use alea_random::credit::EntropyBits;
use alea_random::fast_pool::{CHANCES, FastPool};
use alea_random::health::{Counter, Health, STARTUP};
use alea_random::splitmix64::SplitMix64;
use proptest::prelude::*;

fn drained(events: &[(u64, u64)]) -> [u64; 2] {
    let mut pool = FastPool::new();
    events.iter().for_each(|&(time, what)| pool.stir(time, what));
    pool.drain(Counter::Usable).0
}

/// A pool that took `count` interrupts of a device, `apart` after each other.
fn devices(count: u32, mut apart: impl FnMut(u32) -> u64) -> FastPool {
    let (mut pool, mut time) = (FastPool::new(), 0u64);
    for n in 0..count {
        time = time.wrapping_add(apart(n));
        pool.stir_device(time, 0x34);
    }
    pool
}

fn noise(seed: u64) -> impl FnMut(u32) -> u64 {
    let mut noise = SplitMix64::new(seed);
    move |_| 100_000 + noise.next_u64() % 65_536
}

#[test]
fn credit_is_one_bit_for_64_devices_after_start_up_and_bounded() {
    assert_eq!(STARTUP, 1024);
    let cases = [(0, 0), (1024 + 66, 1), (1023, 0), (1024 + 62, 0), (2048 + 8, 16)];
    for &(events, bits) in &cases[..if cfg!(miri) { 2 } else { cases.len() }] {
        let mut pool = devices(events, noise(1));
        assert_eq!(pool.count(), events);
        assert_eq!(pool.counted() / 64, bits);
        assert!(
            pool.counted() <= events.saturating_sub(STARTUP - 1),
            "{} of {events}",
            pool.counted()
        );
        assert_eq!(pool.drain(Counter::Usable).1, EntropyBits(bits), "{events}");
        assert_eq!(pool.drain(Counter::Usable).1, EntropyBits(0), "nothing new");
    }
    if !cfg!(miri) {
        assert_eq!(devices(100_000, noise(2)).drain(Counter::Usable).1, EntropyBits(128));
    }
}

/// Timers and interrupts between CPUs: a program causes and times them.
#[test]
fn what_a_program_causes_is_worth_nothing() {
    let mut pool = FastPool::new();
    let mut noise = noise(3);
    let events = if cfg!(miri) { 200 } else { 1_000_000 };
    (0..events).for_each(|n| pool.stir(u64::from(n) * 1_000_000 + noise(n), 0xec));
    assert_eq!(pool.drain(Counter::Usable).1, EntropyBits(0));
}

/// Not even the noisiest device counts where time is a function of what is executed.
#[test]
fn a_refused_counter_is_worth_nothing() {
    let events = if cfg!(miri) { 1_100 } else { 3_000 };
    assert_eq!(devices(events, noise(4)).drain(Counter::Refused).1, EntropyBits(0));
}

#[test]
fn regular_devices_are_worth_nothing() {
    let credit = |apart: fn(u32) -> u64| {
        let mut pool = devices(if cfg!(miri) { 1_500 } else { 5_000 }, apart);
        (pool.drain(Counter::Usable).1, pool.failures() > 0)
    };
    assert_eq!(credit(|_| 1_000_000), (EntropyBits(0), true), "even");
    assert_eq!(credit(|n| 1_000_000 + u64::from(n % 5)), (EntropyBits(0), true), "a cycle");
    assert_eq!(credit(|n| 1_000 * u64::from(n)), (EntropyBits(0), false), "accelerates evenly");
    assert_eq!(credit(|_| 0), (EntropyBits(0), true), "a counter that stands");
}

/// A device that becomes regular loses what it had, too.
#[test]
fn a_failure_costs_what_was_not_passed_on() {
    let mut noise = noise(5);
    let good = if cfg!(miri) { 1_100 } else { 2_700 };
    let mut pool = devices(good + 300, |n| if n < good { noise(n) } else { 77 });
    assert_eq!(pool.failures(), 1);
    assert_eq!(pool.drain(Counter::Usable).1, EntropyBits(0));
}

#[test]
fn successive_drains_differ_without_new_events() {
    let mut pool = FastPool::new();
    pool.stir(1, 2);
    let (first, _) = pool.drain(Counter::Usable);
    let (second, _) = pool.drain(Counter::Usable);
    assert_ne!(first, second);
}

/// Half of the output bits flip when one input bit does, give or take: no input bit is lost.
#[test]
fn one_bit_in_flips_about_half_of_what_comes_out() {
    for bit in 0..64 {
        let base = [(0x1234_5678, 0x20), (0x9999_9999, 0x21), (0xabcd_ef01, 0x20)];
        let mut other = base;
        other[1].0 ^= 1 << bit;
        let (a, b) = (drained(&base), drained(&other));
        let flipped = (a[0] ^ b[0]).count_ones() + (a[1] ^ b[1]).count_ones();
        assert!((30..=98).contains(&flipped), "bit {bit}: {flipped} of 128");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    /// Order and every value matter.
    #[test]
    fn different_events_drain_differently(
        a in prop::collection::vec(any::<(u64, u64)>(), 1..20),
        b in prop::collection::vec(any::<(u64, u64)>(), 1..20),
    ) {
        prop_assume!(a != b);
        prop_assert_ne!(drained(&a), drained(&b));
    }
}

/// Two failures cost what was not passed on and a new start-up; the third is the last.
#[test]
#[cfg_attr(miri, ignore = "takes minutes, and runs no code that the test above does not")]
fn three_failures_are_for_good() {
    let mut noise = noise(6);
    let (mut pool, mut time) = (FastPool::new(), 0u64);
    let mut take = |pool: &mut FastPool, count: u32, stuck: bool| {
        for n in 0..count {
            time = time.wrapping_add(if stuck { 5_000 } else { noise(n) });
            pool.stir_device(time, 0x34);
        }
    };
    assert_eq!(pool.health(), Health::Starting);
    for failures in 1..=CHANCES {
        take(&mut pool, 1_200, false);
        assert_eq!(pool.health(), Health::Healthy);
        take(&mut pool, 242, true);
        assert_eq!(pool.failures(), failures);
    }
    assert_eq!(pool.health(), Health::Failed);
    take(&mut pool, 5_000, false);
    assert_eq!((pool.health(), pool.drain(Counter::Usable).1), (Health::Failed, EntropyBits(0)));
}
