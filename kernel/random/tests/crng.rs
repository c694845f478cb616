//! The generator from outside: against an independent model, and across CPUs and reseeds.

use std::collections::HashSet;
use std::sync::Mutex;

use alea_random::block::{Key, Portable};
use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, Generation, NotSeeded, Stream};
use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput, KeyInit as _, Update};
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use proptest::prelude::*;

struct Lock(Mutex<Base>);

impl Exclusive<Base> for Lock {
    fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

fn unseeded() -> Crng<Lock> {
    Crng::new(Lock(Mutex::new(Base::vacant())))
}

fn seeded(byte: u8) -> Crng<Lock> {
    let crng = unseeded();
    crng.reseed(&mut Key::new([byte; 32]));
    crng
}

fn draw(crng: &Crng<Lock>, cpu: &mut CpuCrng, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    crng.draw(cpu, &Portable, &mut out).unwrap();
    out
}

fn started(crng: &Crng<Lock>, cpu: &mut CpuCrng) -> Stream {
    let mut stream = Stream::vacant();
    crng.start(&mut stream, cpu, &Portable).unwrap();
    stream
}

/// Fast key erasure, written down a second time on the crate's cipher: key in, key and bytes out.
fn expand(key: &mut [u8; 32], len: usize) -> Vec<u8> {
    let mut stream = vec![0; 32 + len];
    ChaCha20::new(&(*key).into(), &[0; 12].into()).apply_keystream(&mut stream);
    key.copy_from_slice(&stream[..32]);
    stream.split_off(32)
}

/// What the first seed makes of the base key, which is all zeros before.
fn first_base(seed: [u8; 32]) -> [u8; 32] {
    let mut hash = Blake2sMac256::new(&[0; 32].into());
    hash.update(&seed);
    hash.finalize_fixed().into()
}

#[test]
fn nothing_is_generated_before_the_seed() {
    let crng = unseeded();
    let mut cpu = CpuCrng::vacant();
    let mut out = [0x55; 16];
    assert_eq!(crng.draw(&mut cpu, &Portable, &mut out), Err(NotSeeded));
    assert!(crng.start(&mut Stream::vacant(), &mut cpu, &Portable).is_err());
    assert_eq!(out, [0x55; 16]);
    assert_eq!(crng.generation(), Generation::NONE);
}

#[test]
fn draws_follow_the_model() {
    let crng = seeded(9);
    let mut base = first_base([9; 32]);
    let (mut one, mut two) = (CpuCrng::vacant(), CpuCrng::vacant());
    for cpu in [&mut one, &mut two] {
        let mut key: [u8; 32] = expand(&mut base, 32).try_into().unwrap();
        let mut expected = expand(&mut key, 480);
        expected.extend(expand(&mut key, 480));
        let drawn: Vec<u8> =
            [8, 16, 64, 256, 136, 480].iter().flat_map(|&len| draw(&crng, cpu, len)).collect();
        assert_eq!(drawn, expected);
    }
}

#[test]
fn words_and_arrays_are_the_same_bytes() {
    let (bytes, words, arrays) = (seeded(9), seeded(9), seeded(9));
    let mut cpus = [const { CpuCrng::vacant() }; 3];
    let mut missed = 0;
    // Miri interprets: fewer rounds, still several refills.
    for round in 0..if cfg!(miri) { 18 } else { 40 } {
        let expected = draw(&bytes, &mut cpus[0], 7 * 8);
        let mut buffer = [[0; 8]; 7];
        words.draw_words(&mut cpus[1], &Portable, &mut buffer).unwrap();
        assert_eq!(buffer.as_flattened(), expected, "round {round}");
        // What is ready comes as an array; where a refill or a new key is needed, nothing does.
        match arrays.ready::<7>(&mut cpus[2]) {
            Some(array) => assert_eq!(array.as_flattened(), expected, "round {round}"),
            None => {
                assert_eq!(draw(&arrays, &mut cpus[2], 7 * 8), expected, "round {round}");
                missed += 1;
            }
        }
    }
    assert!((2..12).contains(&missed), "{missed} arrays were not ready");
    assert!(unseeded().ready::<2>(&mut CpuCrng::vacant()).is_none());
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes, and runs no code that the other tests do not")]
fn a_stream_follows_the_model() {
    let crng = seeded(3);
    let mut cpu = CpuCrng::vacant();
    let mut stream = started(&crng, &mut cpu);
    let mut base = first_base([3; 32]);
    let mut key: [u8; 32] = expand(&mut base, 32).try_into().unwrap();
    let stream_key: [u8; 32] = expand(&mut key, 32).try_into().unwrap();
    let mut expected = vec![0; 32 * 1024 + 32];
    ChaCha20::new(&stream_key.into(), &[0; 12].into()).apply_keystream(&mut expected);
    let next_key: [u8; 32] = expected.split_off(32 * 1024).try_into().unwrap();
    let mut after = vec![0; 4096];
    ChaCha20::new(&next_key.into(), &[0; 12].into()).apply_keystream(&mut after);
    expected.extend(after);

    let mut drawn: Vec<u8> = Vec::new();
    for _ in 0..9 {
        let mut piece = [[0; 64]; 64];
        crng.stream_piece(&mut stream, &mut cpu, &Portable, &mut piece).unwrap();
        drawn.extend(piece.as_flattened());
    }
    assert!(drawn == expected);
}

#[test]
fn eight_bytes_do_not_give_the_next_eight() {
    // What works on SplitMix64 must not work here: run the recovered state forward.
    let crng = seeded(4);
    let mut cpu = CpuCrng::vacant();
    let words: Vec<u64> = draw(&crng, &mut cpu, 480)
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    for pair in words.windows(2) {
        let state = alea_random::splitmix64::recover_state(pair[0]);
        assert_ne!(alea_random::splitmix64::step(state).1, pair[1]);
    }
}

#[test]
fn no_two_cpus_streams_or_generations_share_a_word() {
    let crng = seeded(5);
    let mut seen = HashSet::new();
    let mut cpus = [const { CpuCrng::vacant() }; 4];
    let (rounds, used) = if cfg!(miri) { (2u8, 2) } else { (6, 4) };
    for round in 0..rounds {
        for cpu in &mut cpus[..used] {
            let mut bytes = draw(&crng, cpu, 600);
            let mut stream = started(&crng, cpu);
            let mut piece = [[0; 64]; if cfg!(miri) { 2 } else { 16 }];
            crng.stream_piece(&mut stream, cpu, &Portable, &mut piece).unwrap();
            bytes.extend(piece.as_flattened());
            for word in bytes.chunks_exact(8) {
                assert!(seen.insert(word.to_vec()), "a word came twice");
            }
        }
        if round % 2 == 1 {
            crng.reseed(&mut Key::new([100 + round; 32]));
        }
    }
}

#[test]
fn a_reseed_cuts_off_who_knows_the_old_keys() {
    let (known, ours) = (seeded(6), seeded(6));
    let (mut attacker, mut cpu) = (CpuCrng::vacant(), CpuCrng::vacant());
    assert_eq!(draw(&known, &mut attacker, 16), draw(&ours, &mut cpu, 16), "full knowledge");
    let mut stream = started(&ours, &mut cpu);
    let mut known_stream = started(&known, &mut attacker);
    ours.reseed(&mut Key::new([0x77; 32]));
    assert_ne!(draw(&known, &mut attacker, 16), draw(&ours, &mut cpu, 16));
    let (mut a, mut b) = ([[0; 64]], [[0; 64]]);
    known.stream_piece(&mut known_stream, &mut attacker, &Portable, &mut a).unwrap();
    ours.stream_piece(&mut stream, &mut cpu, &Portable, &mut b).unwrap();
    assert_ne!(a, b, "a long request goes on under a new key");
}

/// The shortest way obeys a reseed, too: words of the old key are not ready any more.
#[test]
fn a_reseed_ends_what_is_ready() {
    let crng = seeded(6);
    let mut cpu = CpuCrng::vacant();
    draw(&crng, &mut cpu, 16);
    assert!(crng.ready::<2>(&mut cpu).is_some());
    crng.reseed(&mut Key::new([0x77; 32]));
    assert!(crng.ready::<2>(&mut cpu).is_none(), "words of the old key");
    draw(&crng, &mut cpu, 16);
    assert!(crng.ready::<2>(&mut cpu).is_some());
}

/// A batch is topped up under the key that it left, and only when it has not what is wanted.
#[test]
fn topping_up_goes_on_with_the_next_batch() {
    let (crng, other) = (seeded(6), seeded(6));
    let (mut cpu, mut twin) = (CpuCrng::vacant(), CpuCrng::vacant());
    assert!(!crng.top_up(&mut cpu, &Portable, 2), "no key yet");
    draw(&crng, &mut cpu, 480 - 16);
    draw(&other, &mut twin, 480);
    assert!(!crng.top_up(&mut cpu, &Portable, 2), "two words are ready");
    assert!(crng.ready::<2>(&mut cpu).is_some() && crng.ready::<2>(&mut cpu).is_none());
    assert!(crng.top_up(&mut cpu, &Portable, 2));
    let ready = crng.ready::<2>(&mut cpu).unwrap();
    assert_eq!(ready.as_flattened(), draw(&other, &mut twin, 16));
    draw(&crng, &mut cpu, 480 - 16);
    crng.reseed(&mut Key::new([0x77; 32]));
    assert!(!crng.top_up(&mut cpu, &Portable, 2), "an old key");
}

#[test]
fn debug_output_shows_no_secret() {
    let crng = seeded(0xab);
    let mut cpu = CpuCrng::vacant();
    draw(&crng, &mut cpu, 16);
    let stream = started(&crng, &mut cpu);
    let shown = format!("{crng:?} {cpu:?} {stream:?} {:?}", Key::new([0xab; 32]));
    assert!(!shown.contains("171") && !shown.contains("ab, "), "{shown}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

    /// However a CPU's bytes are cut, whole words leave in order and none leaves twice.
    #[test]
    fn cuts_lose_only_the_rest_of_a_word(lens in prop::collection::vec(0usize..300, 1..if cfg!(miri) { 4 } else { 12 })) {
        let crng = seeded(8);
        let mut cpu = CpuCrng::vacant();
        let total = lens.iter().map(|len| len.next_multiple_of(8)).sum();
        let whole = draw(&crng, &mut cpu, total);
        let crng = seeded(8);
        let mut cpu = CpuCrng::vacant();
        let mut at = 0;
        for len in lens {
            let drawn = draw(&crng, &mut cpu, len);
            prop_assert_eq!(&drawn[..], &whole[at..at + len]);
            at += len.next_multiple_of(8);
        }
    }
}

/// A reference to a generator generates, too.
#[test]
fn a_borrowed_generator_is_one() {
    let (ours, theirs) = (seeded(6), seeded(6));
    let mut borrowed = [0; 40];
    ours.draw(&mut CpuCrng::vacant(), &&Portable, &mut borrowed).unwrap();
    assert_eq!(borrowed.to_vec(), draw(&theirs, &mut CpuCrng::vacant(), 40));
}

#[test]
fn refills_are_counted() {
    let (crng, mut cpu) = (seeded(6), CpuCrng::vacant());
    assert_eq!(cpu.refills(), 0);
    for refills in 1..4 {
        draw(&crng, &mut cpu, 480);
        assert_eq!(cpu.refills(), refills);
    }
}
