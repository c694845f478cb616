//! Recovery: who knew all state once and sees all output loses the trail, even where little is new.
//!
//! The attacker knows every state at time 0, sees every output from then on, and knows or chooses all that is mixed in
//! but `rate` bits a second. Whenever a key is made he searches for the bits in it that he does not know: if they are at
//! most [`SEARCH`], he finds them, and knows all state that they went into. The model asks the real [`Pools`] where what is
//! mixed in goes, and which pools join.

use alea_random::block::Key;
use alea_random::pool::{POOLS, Pools, Trickle};

/// What an attacker can search for: far more than anybody can.
const SEARCH: f64 = 128.0;

/// Seconds between two keys, once the machine has run for two minutes.
const PERIOD: u64 = 60;

/// Seconds in which the model gives each pool one event.
const STEP: u64 = 10;

/// How the machine uses its pools.
#[derive(Clone, Copy, PartialEq)]
enum Machine {
    /// As Linux: one pool.
    OnePool,
    Spread,
}

/// Seconds after which the attacker has lost the trail, within `limit`.
fn lost_after(machine: Machine, rate: f64, limit: u64, seed_turns: u64) -> Option<u64> {
    let mut pools = Pools::new();
    let mut key = Key::vacant();
    // The moment of the leak can be any one of the schedule.
    (0..seed_turns + 1).for_each(|_| pools.turn());
    pools.extract(&[0; 4], &mut key);
    let mut unknown = [0.0; POOLS];
    for second in (STEP..=limit).step_by(STEP as usize) {
        for _ in 0..POOLS {
            let before = pools.waiting();
            match machine {
                Machine::OnePool => pools.mix(&[0; 8]),
                Machine::Spread => pools.spread(Trickle::Jitter, &[0; 8]),
            }
            let after = pools.waiting();
            let went = (0..POOLS).find(|&n| after[n] > before[n]).expect("it went somewhere");
            unknown[went] += rate * STEP as f64 / POOLS as f64;
        }
        if !second.is_multiple_of(PERIOD) {
            continue;
        }
        pools.turn();
        let waiting = pools.waiting();
        for n in 1..POOLS {
            if waiting[n] == 0 {
                unknown[0] += std::mem::take(&mut unknown[n]);
            }
        }
        pools.extract(&[0; 4], &mut key);
        if std::mem::take(&mut unknown[0]) > SEARCH {
            return Some(second);
        }
    }
    None
}

/// What docs/random.md promises: twice the shortest period of a pool that collects [`SEARCH`] bits within it, where each
/// pool gets an eighth.
fn promised(rate: f64) -> u64 {
    let collects = |period: &u64| *period as f64 * rate / POOLS as f64 > SEARCH;
    let period = (0..POOLS as u32).map(|n| PERIOD * 3u64.pow(n)).find(collects);
    2 * period.expect("a rate that the last pool is enough for")
}

/// Bits a second: of what the kernel orders of jitter, 128 samples a second, at the rate at which it is credited (1 bit
/// for 64), at the least that NIST's estimators found in any (0.073 bits), and much less than either.
const CREDITED: f64 = 2.0;
const ESTIMATED: f64 = 9.0;
const TRICKLE: f64 = 0.25;

/// Miri interprets.
const HOURS: u64 = if cfg!(miri) { 1 } else { 12 };
const RATES: &[f64] = if cfg!(miri) { &[40.0] } else { &[TRICKLE, CREDITED, ESTIMATED, 0.7, 40.0] };
const LEAKS: &[u64] = if cfg!(miri) { &[7] } else { &[0, 1, 7, 26] };

#[test]
fn with_one_pool_the_attacker_keeps_up_for_ever() {
    for rate in [TRICKLE, CREDITED] {
        assert_eq!(lost_after(Machine::OnePool, rate, HOURS * 3600, 0), None, "{rate}");
    }
}

/// The figures of docs/random.md.
#[test]
fn with_pools_he_loses_within_what_is_promised() {
    assert_eq!([TRICKLE, CREDITED, ESTIMATED].map(promised), [9_720, 1_080, 360]);
    for rate in RATES {
        for leak in LEAKS {
            let lost = lost_after(Machine::Spread, *rate, 10_000, *leak);
            let lost = lost.unwrap_or_else(|| panic!("{rate} bits/s, leak after {leak}: never"));
            assert!(lost <= promised(*rate), "{rate} bits/s, leak after {leak}: {lost} s");
        }
    }
}

/// Whoever asks for keys all the time, and whoever has interrupts come when he likes, does not slow that down: neither
/// makes a turn, and each trickle goes round by itself.
#[test]
fn draws_and_other_trickles_do_not_steer_the_pools() {
    let places = |disturbed: bool| {
        let (mut pools, mut key) = (Pools::new(), Key::vacant());
        pools.turn();
        let mut places = Vec::new();
        for n in 0..100 {
            if disturbed {
                (0..n % 7).for_each(|_| pools.spread(Trickle::Interrupts, &[1; 16]));
                pools.extract(&[0; 4], &mut key);
                pools.mix(&[2; 16]);
            }
            let before = pools.waiting();
            pools.spread(Trickle::Jitter, &[3; 64]);
            let after = pools.waiting();
            places.push((0..POOLS).find(|&n| after[n] > before[n]).unwrap());
        }
        assert!(pools.waiting()[1..].iter().all(|&bytes| bytes > 0), "a key took a later pool");
        places
    };
    assert_eq!(places(false), places(true));
}

/// The schedule of the pools, written down: which join at which turn.
#[test]
fn pool_n_joins_every_3_to_the_nth_turn() {
    let mut pools = Pools::new();
    pools.turn();
    for turn in 2u64..=3u64.pow(if cfg!(miri) { 2 } else { 7 }) {
        (0..POOLS).for_each(|_| pools.spread(Trickle::Jitter, &[7; 8]));
        pools.turn();
        let waiting = pools.waiting();
        for (n, bytes) in (0..).zip(waiting).skip(1) {
            let joins = turn.is_multiple_of(3u64.pow(n));
            assert_eq!(bytes == 0, joins, "pool {n}, turn {turn}");
        }
        assert!(waiting[0] > 0);
        pools.extract(&[0; 4], &mut Key::vacant());
        assert_eq!(pools.waiting()[0], 0);
    }
    let joined = pools.waiting().iter().filter(|bytes| **bytes == 0).count();
    assert_eq!(joined, if cfg!(miri) { 3 } else { POOLS }, "all join at last");
}

/// Before the first turn nothing is kept back: the first key is made of everything.
#[test]
fn the_first_key_is_made_of_every_trickle() {
    let key_of = |byte: u8| {
        let (mut pools, mut key) = (Pools::new(), Key::vacant());
        (0..20).for_each(|n| pools.spread(Trickle::Jitter, &[if n == 13 { byte } else { 0 }; 8]));
        assert_eq!(pools.waiting(), [160, 0, 0, 0, 0, 0, 0, 0]);
        pools.extract(&[0; 4], &mut key);
        *key.as_bytes()
    };
    assert_ne!(key_of(1), key_of(2));
}

/// What joins is in the next key, bit by bit, and what does not join is not.
#[test]
fn a_pool_that_joins_is_in_the_next_key() {
    let key_of = |byte: u8, turns: u64| {
        let (mut pools, mut key) = (Pools::new(), Key::vacant());
        pools.turn();
        pools.spread(Trickle::Jitter, &[0; 8]);
        pools.spread(Trickle::Jitter, &[byte; 8]);
        (0..turns).for_each(|_| pools.turn());
        pools.extract(&[0; 4], &mut key);
        *key.as_bytes()
    };
    assert_eq!(key_of(1, 1), key_of(2, 1), "the second pool joins at the third turn");
    assert_ne!(key_of(1, 2), key_of(2, 2));
}

/// What an attacker who searches really does, with few enough bits to try all: with one pool he finds each key.
#[test]
fn one_pool_is_searched_key_by_key() {
    let (mut pools, mut key) = (Pools::new(), Key::vacant());
    let mut told: Vec<u8> = Vec::new();
    for secret in [17u8, 200, 3] {
        pools.mix(&[secret]);
        pools.extract(&[0; 4], &mut key);
        let finds = (0..=255).find(|guess| {
            let (mut copy, mut made) = (Pools::new(), Key::vacant());
            for known in told.iter().chain([guess]) {
                copy.mix(&[*known]);
                copy.extract(&[0; 4], &mut made);
            }
            made.as_bytes() == key.as_bytes()
        });
        assert_eq!(finds, Some(secret));
        told.push(secret);
    }
}
