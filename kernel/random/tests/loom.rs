//! Interleavings, explored exhaustively: `RUSTFLAGS="--cfg alea_loom" cargo test --release --test loom`.
//!
//! The block generator is a toy here (a bijection of key and counter), so that the models cover the
//! protocol and not ChaCha20.
#![cfg(alea_loom)]

use std::cell::Cell;
use std::collections::HashSet;

use alea_random::block::{Block, BlockGenerator, Key};
use alea_random::credit::{Credit, EntropyBits};
use alea_random::crng::twins::{Machine, MachineId};
use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, Generation};
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

/// A machine of which a copy may be made at any moment: its id, and a toy of a pool behind a lock as the kernel's.
struct Live {
    // A lock, because no CPU runs while the hypervisor writes: all see the new id at once.
    id: Mutex<u64>,
    pool: Mutex<(u64, u64)>,
    /// Generation and machine, as programs see them.
    shown: Mutex<(u64, u64)>,
}

/// One CPU's view, which notes what the last comparison was with.
struct OnCpu<'a> {
    live: &'a Live,
    seen: Cell<u64>,
}

impl Live {
    fn new() -> Self {
        Self { id: Mutex::new(0), pool: Mutex::new((77, 0)), shown: Mutex::new((0, 0)) }
    }

    /// A seed that depends on `id`.
    fn seed(&self, id: u64) -> u64 {
        let mut pool = self.pool.lock().unwrap();
        if pool.1 != id {
            *pool = (mix(pool.0 ^ id), id);
        }
        pool.0 = mix(pool.0 + 1);
        mix(pool.0 ^ 0x5eed)
    }

    fn on_cpu(&self) -> OnCpu<'_> {
        OnCpu { live: self, seen: Cell::new(0) }
    }
}

impl Machine for OnCpu<'_> {
    fn id(&self) -> MachineId {
        let id = *self.live.id.lock().unwrap();
        self.seen.set(id);
        MachineId([id, 0])
    }

    fn extract(&self, id: MachineId, seed: &mut Key) {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.live.seed(id.0[0]).to_le_bytes());
        *seed = Key::new(bytes);
    }

    fn publish(&self, generation: Generation, made_for: MachineId) {
        *self.live.shown.lock().unwrap() = (generation.get(), made_for.0[0]);
    }
}

/// The machine that comparisons found, and the word that was used then.
type Drawn = (u64, u64);

/// What both CPUs drew in each interleaving of `run`, in which the machine becomes the one with this id at any moment.
/// Loom explores in the same order whatever the id is, so two ids give the draws of twins, pair by pair.
fn explore(id: u64, run: fn(u64) -> Vec<Drawn>) -> Vec<Vec<Drawn>> {
    let all = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    let results = all.clone();
    model.check(move || results.lock().unwrap().push(run(id)));
    let drawn = std::mem::take(&mut *all.lock().unwrap());
    drawn
}

/// In how many of the interleavings twins used a word in common.
fn shared_words(run: fn(u64) -> Vec<Drawn>) -> usize {
    let [one, two] = [111, 222].map(|id| explore(id, run));
    assert_eq!(one.len(), two.len(), "the twins were not explored in the same order");
    assert!(one.len() > 500, "only {} interleavings", one.len());
    let of_twin = |drawn: &[Drawn], id| -> HashSet<u64> {
        drawn.iter().filter(|(seen, _)| *seen == id).map(|(_, word)| *word).collect()
    };
    let share = |(one, two): &(&Vec<Drawn>, &Vec<Drawn>)| {
        !of_twin(one, 111).is_disjoint(&of_twin(two, 222))
    };
    one.iter().zip(&two).filter(share).count()
}

/// Draws on one CPU, a reseed by the clock and draws on another, and a hypervisor.
fn reseed_and_clone(id: u64) -> Vec<Drawn> {
    let crng = Arc::new(Crng::new(Lock(Mutex::new(Base::vacant()))));
    let live = Arc::new(Live::new());
    crng.reseed_from(&live.on_cpu());
    let draws = |crng: &Crng<Lock>, live: &Live, cpu: &mut CpuCrng, times: usize| -> Vec<Drawn> {
        let mut draw = || {
            let (machine, mut word) = (live.on_cpu(), [0; 8]);
            crng.unshared(&machine, || crng.draw(cpu, &Toy, &mut word)).unwrap();
            (machine.seen.get(), u64::from_le_bytes(word))
        };
        (0..times).map(|_| draw()).collect()
    };
    let mut cpu = CpuCrng::vacant();
    let mut drawn = draws(&crng, &live, &mut cpu, 1);
    let other = {
        let (crng, live) = (crng.clone(), live.clone());
        thread::spawn(move || {
            crng.reseed_from(&live.on_cpu());
            draws(&crng, &live, &mut CpuCrng::vacant(), 1)
        })
    };
    let hypervisor = {
        let live = live.clone();
        thread::spawn(move || *live.id.lock().unwrap() = id)
    };
    drawn.extend(draws(&crng, &live, &mut cpu, 2));
    hypervisor.join().unwrap();
    drawn.extend(other.join().unwrap());
    drawn.extend(draws(&crng, &live, &mut cpu, 1));
    // What programs see at the end is the base's: a state of another machine or generation is never current.
    let shown = *live.shown.lock().unwrap();
    assert_eq!(shown, (crng.generation().get(), id));
    drawn
}

#[test]
fn twins_share_no_word_wherever_they_part() {
    assert_eq!(shared_words(reseed_and_clone), 0);
}

/// The order that was wrong once: a seed replaces the key whenever it comes, and what the key knows is a variable beside
/// it. The model has to find that twins share words then, or the test above shows nothing.
struct OldOrder {
    live: Live,
    base: Mutex<(u64, u64)>,
    known: Mutex<u64>,
}

/// A CPU's key, generation, and the id it has seen.
type OldCpu = (u64, u64, u64);

impl OldOrder {
    fn reseed(&self) {
        let seed = self.live.seed(*self.known.lock().unwrap());
        let mut base = self.base.lock().unwrap();
        *base = (seed, base.1 + 1);
    }

    fn draw(&self, cpu: &mut OldCpu) -> Drawn {
        loop {
            {
                let mut base = self.base.lock().unwrap();
                if cpu.1 != base.1 {
                    (cpu.0, cpu.1) = (mix(base.0 ^ 1), base.1);
                    base.0 = mix(base.0 ^ 2);
                }
            }
            let word = mix(cpu.0 ^ 3);
            cpu.0 = mix(cpu.0 ^ 4);
            let id = *self.live.id.lock().unwrap();
            if id == cpu.2 {
                return (id, word);
            }
            if *self.known.lock().unwrap() != id {
                let seed = self.live.seed(id);
                let mut base = self.base.lock().unwrap();
                *base = (seed, base.1 + 1);
                drop(base);
                *self.known.lock().unwrap() = id;
            }
            cpu.2 = id;
        }
    }
}

fn reseed_and_clone_in_the_old_order(id: u64) -> Vec<Drawn> {
    let (live, base, known) = (Live::new(), Mutex::new((5, 1)), Mutex::new(0));
    let kernel = Arc::new(OldOrder { live, base, known });
    let other = {
        let kernel = kernel.clone();
        thread::spawn(move || kernel.reseed())
    };
    let hypervisor = {
        let kernel = kernel.clone();
        thread::spawn(move || *kernel.live.id.lock().unwrap() = id)
    };
    let mut cpu = (0, 0, 0);
    let mut drawn = vec![kernel.draw(&mut cpu), kernel.draw(&mut cpu)];
    hypervisor.join().unwrap();
    other.join().unwrap();
    drawn.push(kernel.draw(&mut cpu));
    drawn
}

#[test]
fn the_model_finds_the_old_order_wrong() {
    assert!(shared_words(reseed_and_clone_in_the_old_order) > 0);
}
