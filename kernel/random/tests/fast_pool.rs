//! The interrupt pool: that it mixes, that it gives away only half, and what it credits.

use alea_random::credit::EntropyBits;
use alea_random::fast_pool::{DRAIN_COUNT, FastPool};
use proptest::prelude::*;

fn drained(events: &[(u64, u64)]) -> [u64; 2] {
    let mut pool = FastPool::new();
    events.iter().for_each(|&(time, what)| pool.stir(time, what));
    pool.drain().0
}

#[test]
fn credit_is_one_bit_for_64_interrupts_and_bounded() {
    for (events, bits) in [(0, 0), (63, 0), (64, 1), (DRAIN_COUNT, 16), (1_000_000, 128)] {
        let events = if cfg!(miri) { events.min(2000) } else { events };
        let mut pool = FastPool::new();
        (0..events).for_each(|n| pool.stir(u64::from(n), 1));
        assert_eq!(pool.count(), events);
        let bits = if cfg!(miri) { events / 64 } else { bits };
        assert_eq!(pool.drain().1, EntropyBits(bits));
        assert_eq!(pool.drain().1, EntropyBits(0));
    }
}

#[test]
fn successive_drains_differ_without_new_events() {
    let mut pool = FastPool::new();
    pool.stir(1, 2);
    let (first, _) = pool.drain();
    let (second, _) = pool.drain();
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
