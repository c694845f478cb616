//! SplitMix64: known answers, sharing, seeding once, and the attack that keeps it from secrets.

use std::collections::HashSet;
use std::thread;

use alea_random::splitmix64::{AtomicSplitMix64, SplitMix64, mix, recover_state, step};
use proptest::prelude::*;

/// Outputs of the published reference implementation.
const SEED_0: [u64; 5] = [
    0xe220_a839_7b1d_cdaf,
    0x6e78_9e6a_a1b9_65f4,
    0x06c4_5d18_8009_454f,
    0xf88b_b8a8_724c_81ec,
    0x1b39_896a_51a8_749b,
];
const SEED_1234567: [u64; 5] = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
];

#[test]
fn known_answers() {
    for (seed, expected) in [(0, SEED_0), (1234567, SEED_1234567)] {
        let mut owned = SplitMix64::new(seed);
        let shared = AtomicSplitMix64::unseeded();
        let shared = shared.seed(seed).unwrap();
        for word in expected {
            assert_eq!(owned.next_u64(), word);
            assert_eq!(shared.next_u64(), word);
        }
    }
}

#[test]
fn a_fill_is_little_endian_and_cut_short() {
    let mut bytes = [0; 13];
    SplitMix64::new(0).fill(&mut bytes);
    assert_eq!(bytes[..8], SEED_0[0].to_le_bytes());
    assert_eq!(bytes[8..], SEED_0[1].to_le_bytes()[..5]);
}

#[test]
fn every_eight_bytes_cost_one_step() {
    for (len, steps) in [(0, 0), (1, 1), (8, 1), (9, 2), (16, 2), (4096, 512)] {
        let shared = AtomicSplitMix64::unseeded();
        let shared = shared.seed(99).unwrap();
        shared.fill(&mut vec![0; len]);
        let mut owned = SplitMix64::new(99);
        for _ in 0..steps {
            owned.next_u64();
        }
        assert_eq!(shared.next_u64(), owned.next_u64(), "after {len} bytes");
    }
}

#[test]
fn nobody_draws_before_the_seed_and_nobody_seeds_twice() {
    let generator = AtomicSplitMix64::unseeded();
    assert!(generator.get().is_none());
    let first = generator.seed(5).unwrap().next_u64();
    assert!(generator.seed(5).is_err());
    assert_ne!(generator.get().unwrap().next_u64(), first, "the stream went on");
}

#[test]
fn threads_never_get_the_same_word() {
    let per_thread = if cfg!(miri) { 50 } else { 100_000 };
    let generator = AtomicSplitMix64::unseeded();
    let generator = generator.seed(3).unwrap();
    let draw = move || (0..per_thread).map(|_| generator.next_u64()).collect::<Vec<_>>();
    let words: Vec<u64> = thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(draw));
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    // The output is a bijection of the state: equal words would be equal states.
    assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len());
}

#[test]
fn debug_output_hides_the_state() {
    let secret = 0x1122_3344_5566_7788u64;
    let shared = AtomicSplitMix64::unseeded();
    shared.seed(secret).unwrap();
    let shown = format!("{:?} {:?}", shared, SplitMix64::new(secret));
    assert!(!shown.contains(&secret.to_string()), "{shown}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    /// The known failure of kernels that serve secrets from it: one output, all the others.
    #[test]
    fn eight_bytes_reveal_the_past_and_the_future(state: u64) {
        let (now, seen) = step(state);
        prop_assert_eq!(recover_state(seen), now);
        prop_assert_eq!(recover_state(mix(state)), state);
    }

    #[test]
    fn pieces_of_whole_words_make_the_same_stream(seed: u64, cuts in prop::collection::vec(0usize..9, 0..20)) {
        let mut whole = vec![0; cuts.iter().map(|c| c * 8).sum()];
        SplitMix64::new(seed).fill(&mut whole);
        let mut generator = SplitMix64::new(seed);
        let mut pieces = Vec::new();
        for cut in cuts {
            let mut piece = vec![0; cut * 8];
            generator.fill(&mut piece);
            pieces.extend(piece);
        }
        prop_assert_eq!(pieces, whole);
    }
}
