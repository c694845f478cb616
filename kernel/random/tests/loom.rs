//! Interleavings, explored exhaustively: `RUSTFLAGS="--cfg loom" cargo test --release --test loom`.
//!
//! The block generator is a toy here (a bijection of key and counter), so that the models cover the
//! protocol and not ChaCha20.
#![cfg(loom)]

use std::collections::HashSet;

use alea_random::block::{Block, BlockGenerator, Key};
use alea_random::credit::{Credit, EntropyBits};
use alea_random::crng::{Base, CpuCrng, Crng, Exclusive};
use alea_random::splitmix64::{AtomicSplitMix64, GAMMA, mix, step};
use loom::sync::{Arc, Mutex};
use loom::thread;

struct Lock(Mutex<Base>);

impl Exclusive<Base> for Lock {
    fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

struct Toy;

impl BlockGenerator for Toy {
    fn fill(&self, key: &Key, counter: u32, out: &mut [Block]) {
        let (words, _) = key.as_bytes().as_chunks::<8>();
        let seed = words.iter().fold(0, |seed, word| mix(seed ^ u64::from_le_bytes(*word)));
        let mut state = seed.wrapping_add(GAMMA.wrapping_mul(8 * u64::from(counter)));
        for word in out.as_flattened_mut().as_chunks_mut::<8>().0 {
            let (next, output) = step(state);
            state = next;
            *word = output.to_le_bytes();
        }
    }
}

fn draw(crng: &Crng<Lock>, cpu: &mut CpuCrng) -> u64 {
    let mut word = [0; 8];
    crng.draw(cpu, &Toy, &mut word).unwrap();
    u64::from_le_bytes(word)
}

fn all_differ(words: &[u64]) {
    assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len(), "a word came twice");
}

#[test]
fn exactly_one_seed_wins_and_is_seen_whole() {
    loom::model(|| {
        let generator = Arc::new(AtomicSplitMix64::unseeded());
        let racers: Vec<_> = [11u64, 22]
            .map(|seed| {
                let generator = generator.clone();
                thread::spawn(move || generator.seed(seed).is_ok().then_some(seed))
            })
            .into();
        // A reader sees no generator, or one that starts from a seed: never from the zero state.
        let early = generator.get().map(|seeded| seeded.next_u64());
        let winners: Vec<u64> = racers.into_iter().filter_map(|r| r.join().unwrap()).collect();
        assert_eq!(winners.len(), 1);
        let first = early.unwrap_or_else(|| generator.get().unwrap().next_u64());
        assert_eq!(first, step(winners[0]).1);
    });
}

#[test]
fn concurrent_draws_take_different_steps() {
    loom::model(|| {
        let generator = Arc::new(AtomicSplitMix64::unseeded());
        generator.seed(5).unwrap();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let generator = generator.clone();
                thread::spawn(move || {
                    let generator = generator.get().unwrap();
                    [generator.next_u64(), generator.next_u64()]
                })
            })
            .collect();
        let mut words: Vec<u64> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
        words.push(generator.get().unwrap().next_u64());
        all_differ(&words);
        // Together they are the first five outputs: no step was lost.
        let mut state = 5;
        for _ in 0..5 {
            let (next, output) = step(state);
            state = next;
            assert!(words.contains(&output));
        }
    });
}

#[test]
fn exactly_one_caller_hears_of_a_transition() {
    loom::model(|| {
        let credit = Arc::new(Credit::none());
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let credit = credit.clone();
                thread::spawn(move || credit.add(EntropyBits(128)).is_some())
            })
            .collect();
        let told = threads.into_iter().map(|t| t.join().unwrap());
        assert_eq!(told.filter(|&told| told).count(), 2, "Early once and Ready once");
        assert_eq!(credit.bits(), EntropyBits::READY);
        assert_eq!(credit.add(EntropyBits(1)), None);
    });
}

#[test]
fn cpus_and_a_reseed_never_share_a_word() {
    loom::model(|| {
        let crng = Arc::new(Crng::new(Lock(Mutex::new(Base::vacant()))));
        crng.reseed(&mut Key::new([1; 32]));
        let other = {
            let crng = crng.clone();
            thread::spawn(move || {
                let mut cpu = CpuCrng::vacant();
                [draw(&crng, &mut cpu), draw(&crng, &mut cpu)]
            })
        };
        let reseeder = {
            let crng = crng.clone();
            thread::spawn(move || crng.reseed(&mut Key::new([2; 32])).get())
        };
        let mut cpu = CpuCrng::vacant();
        let mut words = vec![draw(&crng, &mut cpu)];
        assert_eq!(reseeder.join().unwrap(), 2);
        // The reseed has returned: this draw has to come from the new generation.
        words.push(draw(&crng, &mut cpu));
        words.extend(other.join().unwrap());
        all_differ(&words);

        let old = Crng::new(Lock(Mutex::new(Base::vacant())));
        old.reseed(&mut Key::new([1; 32]));
        let mut attackers = [CpuCrng::vacant(), CpuCrng::vacant()];
        let known: Vec<u64> =
            attackers.iter_mut().flat_map(|cpu| [draw(&old, cpu), draw(&old, cpu)]).collect();
        assert!(!known.contains(&words[1]), "a draw after the reseed came from the old key");
    });
}

#[test]
fn a_draw_sees_no_key_or_a_whole_one() {
    loom::model(|| {
        let crng = Arc::new(Crng::new(Lock(Mutex::new(Base::vacant()))));
        let seeder = {
            let crng = crng.clone();
            thread::spawn(move || crng.reseed(&mut Key::new([3; 32])))
        };
        let mut cpu = CpuCrng::vacant();
        let mut word = [0; 8];
        let early = crng.draw(&mut cpu, &Toy, &mut word).is_ok();
        seeder.join().unwrap();
        if !early {
            crng.draw(&mut cpu, &Toy, &mut word).unwrap();
        }
        let same = Crng::new(Lock(Mutex::new(Base::vacant())));
        same.reseed(&mut Key::new([3; 32]));
        assert_eq!(u64::from_le_bytes(word), draw(&same, &mut CpuCrng::vacant()));
    });
}
