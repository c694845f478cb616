//! White-box tests of the generator: what is left in memory after bytes were handed out.

extern crate std;

use blake2::Blake2sMac256;
use blake2::digest::{FixedOutput, KeyInit, Update};
use std::sync::Mutex;
use std::vec::Vec;

use super::*;
use crate::block::Portable;

mod runs;

struct Lock(Mutex<Base>);

impl Exclusive<Base> for Lock {
    fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

fn seeded() -> Crng<Lock> {
    let crng = Crng::new(Lock(Mutex::new(Base::vacant())));
    crng.reseed(&mut Key::new([1; 32]));
    crng
}

/// Everything the subsystem remembers of one CPU and of the base.
fn memory(crng: &Crng<Lock>, cpu: &CpuCrng) -> Vec<u8> {
    let mut all = cpu.group.as_flattened().to_vec();
    all.extend(cpu.key.as_bytes());
    crng.base.with(|base| all.extend(base.key.as_bytes()));
    all
}

fn contains(hay: &[u8], needle: &[u8]) -> bool {
    hay.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn handed_out_bytes_and_used_keys_are_gone() {
    let crng = seeded();
    let mut cpu = CpuCrng::vacant();
    let lens: &[usize] =
        if cfg!(miri) { &[7, 16, 480] } else { &[1, 7, 8, 16, 33, 64, 256, 480, 1000] };
    for &len in lens {
        let base_key = crng.base.with(|base| *base.key.as_bytes());
        let cpu_key = *cpu.key.as_bytes();
        let generation = cpu.generation;
        let refills = cpu.refills;
        let mut out = std::vec![0; len];
        crng.draw(&mut cpu, &Portable, &mut out).unwrap();
        let memory = memory(&crng, &cpu);
        for word in out.chunks_exact(8) {
            assert!(!contains(&memory, word), "{len} bytes: still there");
        }
        if generation != cpu.generation {
            assert!(!contains(&memory, &base_key), "the base key that made the CPU key");
        }
        if refills != cpu.refills && cpu_key != [0; 32] {
            assert!(!contains(&memory, &cpu_key), "the key that made the batch");
        }
    }
}

/// The shortest way wipes, too.
#[test]
fn ready_words_are_gone() {
    let crng = seeded();
    let mut cpu = CpuCrng::vacant();
    crng.draw(&mut cpu, &Portable, &mut [0; 16]).unwrap();
    let words = crng.ready::<4>(&mut cpu).unwrap();
    let memory = memory(&crng, &cpu);
    assert!(!words.iter().any(|word| contains(&memory, word)));
}

/// Whoever takes all memory at some moment can compute the future (until a reseed) but nothing of
/// the past: no key found there regenerates what was drawn.
#[test]
fn the_past_cannot_be_computed_from_the_present() {
    let crng = seeded();
    let mut cpu = CpuCrng::vacant();
    let mut out = [0; 480];
    crng.draw(&mut cpu, &Portable, &mut out).unwrap();
    let memory = memory(&crng, &cpu);
    // Fewer under Miri, which takes a minute for all of them.
    let step = if cfg!(miri) { 128 } else { 8 };
    for at in (0..memory.len() - 31).step_by(step) {
        let candidate = Key::new(memory[at..at + 32].try_into().unwrap());
        let mut stream = [[0; BLOCK_LEN]; GROUP_BLOCKS];
        Portable.fill(&candidate, 0, &mut stream);
        assert!(!contains(stream.as_flattened(), &out[..16]));
    }
}

#[test]
fn a_new_generation_drops_the_batch() {
    let crng = seeded();
    let mut cpu = CpuCrng::vacant();
    crng.draw(&mut cpu, &Portable, &mut [0; 16]).unwrap();
    let waiting = cpu.group.as_flattened()[48..64].to_vec();
    crng.reseed(&mut Key::new([2; 32]));
    let mut out = [0; 16];
    crng.draw(&mut cpu, &Portable, &mut out).unwrap();
    assert_ne!(waiting, out);
    assert!(!contains(&memory(&crng, &cpu), &waiting));
}

#[test]
fn a_stream_replaces_its_key() {
    let crng = seeded();
    let mut cpu = CpuCrng::vacant();
    let mut stream = Stream::vacant();
    crng.start(&mut stream, &mut cpu, &Portable).unwrap();
    let first = *stream.key.as_bytes();
    let mut piece = std::vec![[0; BLOCK_LEN]; 4096 / BLOCK_LEN];
    for _ in 0..STREAM_REKEY / 4096 {
        assert_eq!(*stream.key.as_bytes(), first);
        crng.stream_piece(&mut stream, &mut cpu, &Portable, &mut piece).unwrap();
    }
    crng.stream_piece(&mut stream, &mut cpu, &Portable, &mut piece).unwrap();
    assert_ne!(*stream.key.as_bytes(), first);
}

#[test]
fn generations_skip_the_special_values() {
    assert_eq!(Generation::NONE.next(), Generation::of(1));
    assert_eq!(Generation::of(u64::MAX - 1).next(), Generation::of(1));
    assert_ne!(Generation::of(u64::MAX - 2).next(), Generation::VACANT);
}

/// Who knows the old key does not know the new one without the seed, nor who knows the seed without the old key.
#[test]
fn a_new_base_key_is_made_of_the_old_one_and_the_seed() {
    let base_key = |crng: &Crng<Lock>| crng.base.with(|base| *base.key.as_bytes());
    let crng = seeded();
    let other = seeded();
    other.reseed(&mut Key::new([9; 32]));
    assert_ne!(base_key(&crng), base_key(&other));
    let mut seed = Key::new([2; 32]);
    let mut hash = Blake2sMac256::new(&base_key(&crng).into());
    hash.update(&[2; 32]);
    let expected: [u8; 32] = hash.finalize_fixed().into();
    crng.reseed(&mut seed);
    assert_eq!(base_key(&crng), expected);
    assert_eq!(*seed.as_bytes(), [0; 32], "wiped");
    other.reseed(&mut Key::new([2; 32]));
    assert_ne!(base_key(&crng), base_key(&other), "the same seed on another key");
}
