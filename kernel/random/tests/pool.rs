//! The pool: BLAKE2s vectors, the extraction written down a second time, and what must differ.

use alea_random::block::Key;
use alea_random::pool::{POOLS, Pool, Pools, Trickle};
use blake2::digest::{FixedOutput, KeyInit, Update};
use blake2::{Blake2s256, Blake2sMac256, Digest};
use proptest::prelude::*;

fn extract(pool: &mut Pool, fresh: &[u64; 4]) -> [u8; 32] {
    let mut key = Key::vacant();
    pool.extract(fresh, &mut key);
    *key.as_bytes()
}

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Blake2sMac256::new(key.into());
    for part in parts {
        hash.update(part);
    }
    hash.finalize_fixed().into()
}

fn words(fresh: [u64; 4], counter: u64) -> Vec<u8> {
    fresh.iter().chain([&counter]).flat_map(|word| word.to_le_bytes()).collect()
}

/// RFC 7693, appendix B.
#[test]
fn blake2s_of_abc() {
    let digest: [u8; 32] = Blake2s256::digest(b"abc").into();
    let expected = [
        0x50, 0x8c, 0x5e, 0x8c, 0x32, 0x7c, 0x14, 0xe2, 0xe1, 0xa7, 0x2b, 0xa3, 0x4e, 0xeb, 0x45,
        0x2f, 0x37, 0x45, 0x8b, 0x20, 0x9e, 0xd6, 0x3a, 0x29, 0x4d, 0x99, 0x9b, 0x4c, 0x86, 0x67,
        0x59, 0x82,
    ];
    assert_eq!(digest, expected);
}

/// RFC 7693, appendix E: one hash over the hashes of many lengths, keyed and not.
#[test]
#[cfg_attr(miri, ignore = "takes minutes, and runs the code of the test above")]
fn blake2s_self_test() {
    let sequence = |len: usize, seed: u32| -> Vec<u8> {
        let mut a = 0xdead_4badu32.wrapping_mul(seed);
        let mut b = 1u32;
        (0..len)
            .map(|_| {
                let t = a.wrapping_add(b);
                (a, b) = (b, t);
                (t >> 24) as u8
            })
            .collect()
    };
    let mut all = Blake2s256::new();
    for out_len in [16usize, 20, 28, 32] {
        for in_len in [0usize, 3, 64, 65, 255, 1024] {
            let input = sequence(in_len, in_len as u32);
            let key = sequence(out_len, out_len as u32);
            Digest::update(&mut all, variable(&[], &input, out_len));
            Digest::update(&mut all, variable(&key, &input, out_len));
        }
    }
    let expected = [
        0x6a, 0x41, 0x1f, 0x08, 0xce, 0x25, 0xad, 0xcd, 0xfb, 0x02, 0xab, 0xa6, 0x41, 0x45, 0x1c,
        0xec, 0x53, 0xc5, 0x98, 0xb2, 0x4f, 0x4f, 0xc7, 0x87, 0xfb, 0xdc, 0x88, 0x79, 0x7f, 0x4c,
        0x1d, 0xfe,
    ];
    let digest: [u8; 32] = all.finalize().into();
    assert_eq!(digest, expected);
}

fn variable(key: &[u8], input: &[u8], out_len: usize) -> Vec<u8> {
    use blake2::Blake2sMac;
    use blake2::digest::consts::{U16, U20, U28, U32};
    macro_rules! run {
        ($size:ty) => {{
            let key = (!key.is_empty()).then_some(key);
            let mut hash = Blake2sMac::<$size>::new_with_salt_and_personal(key, &[], &[]).unwrap();
            hash.update(input);
            hash.finalize_fixed().to_vec()
        }};
    }
    match out_len {
        16 => run!(U16),
        20 => run!(U20),
        28 => run!(U28),
        _ => run!(U32),
    }
}

#[test]
fn extraction_follows_the_model() {
    let mut pool = Pool::new();
    pool.mix(b"one");
    pool.mix(b"two");
    let fresh = [1, 2, 3, u64::MAX];
    let secret = mac(&[0; 32], &[b"onetwo"]);
    assert_eq!(extract(&mut pool, &fresh), mac(&secret, &[&words(fresh, 1)]));

    let next = mac(&secret, &[&words(fresh, 0)]);
    pool.mix(b"three");
    let secret = mac(&next, &[b"three"]);
    assert_eq!(extract(&mut pool, &[0; 4]), mac(&secret, &[&words([0; 4], 1)]));
    assert_eq!(pool.mixed(), 11);
}

#[test]
fn every_extraction_differs_even_with_nothing_new() {
    let mut pool = Pool::new();
    let keys: Vec<[u8; 32]> =
        (0..if cfg!(miri) { 3 } else { 8 }).map(|_| extract(&mut pool, &[0; 4])).collect();
    for (n, key) in keys.iter().enumerate() {
        assert!(!keys[..n].contains(key));
    }
}

/// One more than the inputs of a case; Miri interprets.
const MOST: usize = if cfg!(miri) { 3 } else { 6 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

    /// One changed bit, anywhere and at any time, changes what is extracted afterwards.
    #[test]
    fn every_bit_counts(
        mut inputs in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..80), 1..MOST),
        which: prop::sample::Index,
        byte: prop::sample::Index,
        bit in 0u8..8,
    ) {
        let run = |inputs: &[Vec<u8>]| {
            let mut pool = Pool::new();
            inputs.iter().for_each(|input| pool.mix(input));
            extract(&mut pool, &[0; 4])
        };
        let before = run(&inputs);
        let which = which.index(inputs.len());
        let byte = byte.index(inputs[which].len());
        inputs[which][byte] ^= 1 << bit;
        prop_assert_ne!(before, run(&inputs));
    }
}

/// What was mixed into any of them, joined or not.
#[test]
fn pools_count_what_was_mixed_into_all_of_them() {
    let mut pools = Pools::new();
    assert_eq!(pools.mixed(), 0);
    pools.mix(&[0; 5]);
    pools.turn();
    (0..POOLS).for_each(|_| pools.spread(Trickle::Jitter, &[0; 3]));
    assert_eq!(pools.mixed(), 5 + 8 * 3);
}
