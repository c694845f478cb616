//! What each step wipes, by its size in bytes and in its order.

extern crate std;

use std::cell::RefCell;
use std::sync::Mutex;
use std::vec::Vec;

use crate::block::{BLOCK_LEN, BlockGenerator, GROUP_BLOCKS, KEY_LEN, Key, Portable};
use crate::credit::EntropyBits;
use crate::crng::{Base, CpuCrng, Crng, Exclusive, STREAM_REKEY, Stream};
use crate::device::{DeviceTests, PIECE};
use crate::hardware::HardwareRng;
use crate::pool::{POOLS, Pool, Pools, Trickle};
use crate::reseed::Cause;
use crate::service::{Mixing, Platform, Service};
use crate::splitmix64::SplitMix64;
use crate::tpm;

std::thread_local! {
    static WIPED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn note(bytes: usize) {
    WIPED.with_borrow_mut(|wiped| wiped.push(bytes));
}

/// What was wiped while `f` ran.
fn wiped<R>(f: impl FnOnce() -> R) -> Vec<usize> {
    WIPED.take();
    let _kept = f();
    WIPED.take()
}

struct Lock<T>(Mutex<T>);

impl<T> Exclusive<T> for Lock<T> {
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

struct Bare;

impl Platform for Bare {
    type Lock<T: Send> = Lock<T>;

    fn with_cpu<R>(&self, _: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> {
        None
    }
}

impl HardwareRng for SplitMix64 {
    fn next_u64(&mut self) -> Option<u64> {
        Some(Self::next_u64(self))
    }
}

/// Blocks without a stack to wipe, so that it does not hide what the generator wipes.
struct Plain;

impl BlockGenerator for Plain {
    fn fill(&self, key: &Key, counter: u32, out: &mut [[u8; BLOCK_LEN]]) {
        for (n, block) in out.iter_mut().enumerate() {
            block.fill(key.as_bytes()[0] ^ counter as u8 ^ n as u8 ^ 0x55);
        }
    }
}

fn seeded() -> (Crng<Lock<Base>>, CpuCrng) {
    let crng = Crng::new(Lock(Mutex::new(Base::vacant())));
    crng.reseed(&mut Key::new([1; KEY_LEN]));
    (crng, CpuCrng::vacant())
}

#[test]
fn a_key_is_wiped_when_it_goes() {
    assert_eq!(wiped(|| drop(Key::new([7; KEY_LEN]))), [32]);
}

#[test]
fn a_key_leaves_nothing_where_it_was_made() {
    let (mut key, mut bytes) = (Key::vacant(), [7; KEY_LEN]);
    key.take(&mut bytes);
    assert_eq!((*key.as_bytes(), bytes), ([7; KEY_LEN], [0; KEY_LEN]));
    let mut block = [9; BLOCK_LEN];
    key.take_from(&mut block);
    assert_eq!((*key.as_bytes(), &block[..32]), ([9; KEY_LEN], &[0; KEY_LEN][..]));
}

/// The state, where it began, and the stack of the rounds.
#[test]
fn a_keystream_leaves_no_state() {
    let key = Key::new([7; KEY_LEN]);
    assert_eq!(wiped(|| Portable.fill(&key, 0, &mut [[0; BLOCK_LEN]])), [64, 64, 1024]);
}

#[test]
fn the_pool_leaves_no_state() {
    let mut pool = Pool::new();
    assert_eq!(wiped(|| pool.mix(b"noise")), [2048]);
    // The secret, and the key of the next hash.
    let mut key = Key::vacant();
    assert_eq!(wiped(|| pool.extract(&[0; 4], &mut key)), [32, 32, 2048]);
}

/// The digest of a pool that joins another, and the stack of both hashes; then the other's stack as it is mixed in.
#[test]
fn a_pool_that_joins_leaves_no_digest() {
    let mut pools = Pools::new();
    (0..2).for_each(|_| pools.turn());
    (0..POOLS).for_each(|_| pools.spread(Trickle::Jitter, b"noise"));
    assert_eq!(wiped(|| pools.turn()), [32, 2048]);
}

/// The words of an answer, eight by eight, and those of them that the tests keep.
#[test]
fn the_tests_of_a_device_leave_no_words() {
    let mut answer = [0; 2 * PIECE];
    let mut words = SplitMix64::new(7);
    answer.chunks_mut(8).for_each(|word| word.copy_from_slice(&words.next_u64().to_le_bytes()));
    let mut tests = DeviceTests::new();
    assert_eq!(wiped(|| tests.judge(&answer, answer.len() as u32).is_ok()), [64, 64, 64]);
}

fn service() -> Service<Bare> {
    let locks = (Lock(Mutex::new(Mixing::new())), Lock(Mutex::new(Base::vacant())));
    Service::new(Bare, locks.0, locks.1)
}

/// What a source brings, where it stood: once it is mixed in, and not before.
#[test]
fn a_secret_that_is_mixed_in_is_gone() {
    let service = service();
    let mut bytes = [7; 24];
    assert_eq!(wiped(|| service.mix_secret(&mut bytes)), [2048, 24]);
    assert_eq!((bytes, service.mixed()), ([0; 24], 24));
    let mut bytes = [7; 40];
    assert_eq!(wiped(|| service.spread_secret(Trickle::Jitter, &mut bytes)).last(), Some(&40));
    assert_eq!((bytes, service.mixed()), ([0; 40], 64));
    // The same as without the wipe.
    let [mut mixed, mut secret] = [[0; 64]; 2];
    let [one, other] = [self::service(), self::service()];
    one.mix(&[7; 24]);
    one.fill_unseeded(&mut mixed);
    other.mix_secret(&mut [7; 24]);
    other.fill_unseeded(&mut secret);
    assert_eq!(mixed, secret);
}

/// The words that a reseed took of the hardware: after the hash that they went into, before the new key.
#[test]
fn a_reseed_leaves_no_fresh_words() {
    let service = service();
    let before = wiped(|| service.reseed(Cause::Request));
    assert_eq!(before, [32, 32, 2048, 32, 32, 2048, 32]);
}

/// The buffer of what is drawn unseeded, however the place ends that it was for.
#[test]
fn an_unseeded_draw_leaves_no_block() {
    let service = service();
    assert_eq!(wiped(|| service.fill_unseeded(&mut [0; 300])).last(), Some(&256));
    assert_eq!(wiped(|| service.unseeded_to(300, |_| 7)).last(), Some(&256));
}

/// The answer of a TPM, whatever it says, and the bytes of two once they are handed on.
#[test]
fn a_tpm_leaves_no_answer() {
    struct Tpm(&'static [u8]);
    impl tpm::Interface for Tpm {
        type Broken = ();
        fn send(&mut self, _: &[u8]) -> Result<(), ()> {
            Ok(())
        }
        fn answer(&mut self, out: &mut [u8]) -> Option<Result<usize, ()>> {
            let count = out.len().min(self.0.len());
            out[..count].copy_from_slice(&self.0[..count]);
            Some(if count == 0 { Err(()) } else { Ok(count) })
        }
    }
    const ANSWER: usize = tpm::LONGEST_ANSWER;
    let good = [b"\x80\x01\0\0\0\x2c\0\0\0\0\0\x20", &[7u8; 32][..]].concat().leak();
    let mut out = [0; PIECE];
    let mut asked = tpm::Collector::begin(Tpm(good)).unwrap();
    assert_eq!(wiped(|| asked.look(&mut out)), [ANSWER]);
    assert_eq!(wiped(|| asked.look(&mut out)), [ANSWER, PIECE]);
    assert_eq!(out, [7; PIECE]);
    for bad in [&good[..40], &good[..1], &[]] {
        let mut asked = tpm::Collector::begin(Tpm(bad)).unwrap();
        assert_eq!(wiped(|| asked.look(&mut out)), [ANSWER]);
        assert!(asked.look(&mut out).is_err());
    }
}

/// All words, once they are mixed in.
#[test]
fn a_hardware_generator_leaves_no_words() {
    let service = service();
    let mut words = SplitMix64::new(7);
    let wiped = wiped(|| service.collect_hardware(&mut words, EntropyBits(8)));
    assert_eq!((service.mixed(), wiped.last()), (64, Some(&64)), "{wiped:?}");
}

#[cfg(feature = "jitter")]
#[test]
fn samples_of_jitter_are_gone_once_they_are_mixed_in() {
    let mut samples = crate::service::Samples::new(|_: &[u8]| ());
    assert_eq!(wiped(|| (0..64).for_each(|sample| samples.add(sample))), [512]);
    samples.add(7);
    assert_eq!(wiped(|| drop(samples)), [512]);
}

/// The seed, and the stack of its hash.
#[test]
fn a_reseed_leaves_no_seed() {
    let (crng, _) = seeded();
    let mut seed = Key::new([3; KEY_LEN]);
    assert_eq!(wiped(|| crng.reseed(&mut seed)), [32, 2048]);
    assert_eq!(*seed.as_bytes(), [0; KEY_LEN]);
}

/// What is left of the last word; and a CPU that goes takes its batch and its key with it.
#[test]
fn a_draw_leaves_no_rest() {
    let (crng, mut cpu) = seeded();
    crng.draw(&mut cpu, &Plain, &mut [0; 8]).unwrap();
    assert_eq!(wiped(|| crng.draw(&mut cpu, &Plain, &mut [0; 16])), []);
    assert_eq!(wiped(|| crng.draw(&mut cpu, &Plain, &mut [0; 3])), [8]);
    assert_eq!(wiped(|| drop(cpu)), [GROUP_BLOCKS * BLOCK_LEN, 32]);
}

/// A CPU that takes a new key drops the batch of the old one.
#[test]
fn a_new_key_leaves_no_old_batch() {
    let (crng, mut cpu) = seeded();
    crng.draw(&mut cpu, &Plain, &mut [0; 8]).unwrap();
    crng.reseed(&mut Key::new([2; KEY_LEN]));
    assert_eq!(wiped(|| crng.draw(&mut cpu, &Plain, &mut [0; 8])), [GROUP_BLOCKS * BLOCK_LEN]);
}

/// The block that the next key of a stream was made of.
#[test]
fn a_stream_leaves_no_block_of_its_key() {
    let (crng, mut cpu) = seeded();
    let mut stream = Stream::vacant();
    crng.start(&mut stream, &mut cpu, &Plain).unwrap();
    let run = STREAM_REKEY / BLOCK_LEN;
    let mut piece = |count| {
        let made = |_: &Key, _, _| true;
        wiped(|| crng.stream_piece_by(&mut stream, &mut cpu, &Plain, count, made).is_ok())
    };
    assert_eq!(piece(run), []);
    assert_eq!(piece(1), [BLOCK_LEN]);
    assert_eq!(wiped(|| drop(stream)), [32]);
}
