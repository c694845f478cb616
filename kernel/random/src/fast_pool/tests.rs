//! White-box tests of the interrupt pool: it is SipHash inside, and a drain cannot be undone.

extern crate std;

use std::hash::{DefaultHasher, Hasher};
use std::vec::Vec;

use super::*;

/// SipHash-1-3 with a zero key, ended on the state that the pool has reached.
fn finished(mut pool: FastPool, len: u64) -> u64 {
    pool.state[3] ^= len << 56;
    pool.round();
    pool.state[0] ^= len << 56;
    pool.state[2] ^= 0xff;
    (0..3).for_each(|_| pool.round());
    pool.state.iter().fold(0, |hash, word| hash ^ word)
}

#[test]
fn stirring_is_siphash() {
    let events: Vec<(u64, u64)> = (0..20u64).map(|n| (n * n * 0x1234_5677 + 3, n << 7)).collect();
    for count in 0..events.len() {
        let (mut pool, mut known) = (FastPool::new(), DefaultHasher::new());
        for &(time, what) in &events[..count] {
            pool.stir(time, what);
            known.write(&time.to_le_bytes());
            known.write(&what.to_le_bytes());
        }
        assert_eq!(finished(pool, 16 * count as u64), known.finish(), "{count} events");
    }
}

/// The permutation backwards.
fn undone(state: [u64; 4]) -> [u64; 4] {
    let [mut a, mut b, mut c, mut d] = state;
    c = c.rotate_right(32);
    b = (b ^ c).rotate_right(17);
    c = c.wrapping_sub(b);
    d = (d ^ a).rotate_right(21);
    a = a.wrapping_sub(d);
    d = (d ^ c).rotate_right(16);
    c = c.wrapping_sub(d);
    a = a.rotate_right(32);
    b = (b ^ a).rotate_right(13);
    a = a.wrapping_sub(b);
    [a, b, c, d]
}

#[test]
fn what_stays_does_not_tell_what_was_passed_on() {
    let mut pool = FastPool::new();
    pool.stir(0x1234_5678_9abc, 0x31);
    let before = pool.state;
    pool.round();
    assert_eq!(undone(pool.state), before, "the attack undoes a round");
    let (passed, _) = pool.drain(Counter::Usable);
    let mut state = pool.state;
    for _ in 0..8 {
        assert!(!passed.iter().any(|word| state.contains(word)), "computed from what stays");
        state = undone(state);
    }
}

/// Half of the state is passed on, and what stays is three rounds further, added to what was.
#[test]
fn a_drain_passes_half_on_and_goes_three_rounds_further() {
    let mut pool = FastPool::new();
    pool.stir(0x1234_5678_9abc, 0x31);
    let mut further = FastPool { state: pool.state, ..FastPool::new() };
    (0..3).for_each(|_| further.round());
    let before = pool.state;
    let (passed, _) = pool.drain(Counter::Usable);
    assert_eq!(passed, [before[0], before[1]]);
    for (word, (before, after)) in pool.state.iter().zip(before.iter().zip(further.state)) {
        assert_eq!(*word, before.wrapping_add(after));
    }
}
