//! No (key, counter) pair makes a block twice: every sequence of operations up to a length is played, with a generator
//! that refuses to.
//!
//! The generator is ideal: each block that it makes is made of words that were never made before. So a key that is equal
//! to an earlier one, or a word that is handed out twice, is the protocol's doing and nothing else's, and a handed-out
//! word that is part of a key is seen. `ALEA_PROOFS=long` plays longer ones, for which a release build is needed.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Mutex;

use alea_random::block::{BLOCK_LEN, Block, BlockGenerator, Key};
use alea_random::crng::twins::{Machine, MachineId};
use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, Generation, NotSeeded, Stream};
use alea_random::vdso::{Shared, State, UseSystemCall};

/// How long the sequences are, an operation for each place: one more if that is asked for.
fn depth(usual: usize) -> usize {
    match std::env::var("ALEA_PROOFS").as_deref() {
        Ok("long") => usual + 1,
        Ok("short") => usual - 1,
        _ => usual,
    }
}

struct Lock(Mutex<Base>);

impl Exclusive<Base> for Lock {
    fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

/// What was made, and what was handed out.
#[derive(Default)]
struct Record {
    /// Of each key the runs of counters that were used.
    used: HashMap<[u8; 32], Vec<Range<u64>>>,
    key_words: HashSet<u64>,
    handed_out: HashSet<u64>,
    words: u64,
}

#[derive(Default)]
struct Ideal(RefCell<Record>);

impl Ideal {
    /// Notes that the blocks `counter .. counter + blocks` of `key` are made, or panics.
    fn note(&self, key: &Key, counter: u32, blocks: usize) {
        let mut record = self.0.borrow_mut();
        for word in key.as_bytes().as_chunks().0 {
            let word = u64::from_le_bytes(*word);
            assert!(!record.handed_out.contains(&word), "a key has a word that was handed out");
            record.key_words.insert(word);
        }
        let run = u64::from(counter)..u64::from(counter) + blocks as u64;
        assert!(run.end <= 1 << 32, "the counter wraps");
        let used = record.used.entry(*key.as_bytes()).or_default();
        let apart = |other: &Range<u64>| run.end <= other.start || other.end <= run.start;
        assert!(used.iter().all(apart), "a key and a counter make a block again: {run:?}");
        used.push(run);
    }

    /// Notes that bytes left the generator; the rest of a word cannot be told from others and is left out.
    fn hand_out(&self, bytes: &[u8]) {
        let mut record = self.0.borrow_mut();
        for word in bytes.as_chunks().0 {
            let word = u64::from_le_bytes(*word);
            assert!(word > FIRST_WORD, "a word that nobody made: {word}");
            assert!(!record.key_words.contains(&word), "a word of a key was handed out");
            assert!(record.handed_out.insert(word), "a word was handed out twice");
        }
    }
}

/// Above it lie the words of blocks.
const FIRST_WORD: u64 = 1 << 32;

impl BlockGenerator for Ideal {
    fn fill(&self, key: &Key, counter: u32, out: &mut [Block]) {
        self.note(key, counter, out.len());
        let mut record = self.0.borrow_mut();
        for word in out.as_flattened_mut().as_chunks_mut().0 {
            record.words += 1;
            *word = (FIRST_WORD + record.words).to_le_bytes();
        }
    }
}

/// A machine whose pool gives a new seed each time.
struct Live {
    id: Cell<u64>,
    seeds: Cell<u64>,
    shown: Shared,
}

impl Machine for Live {
    fn id(&self) -> MachineId {
        MachineId([self.id.get(), 0])
    }

    fn extract(&self, MachineId([id, _]): MachineId, seed: &mut Key) {
        self.seeds.set(self.seeds.get() + 1);
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.seeds.get().to_le_bytes());
        bytes[8..16].copy_from_slice(&id.to_le_bytes());
        *seed = Key::new(bytes);
    }

    fn publish(&self, generation: Generation, _: MachineId) {
        self.shown.publish(generation.get());
    }
}

/// A kernel with two CPUs, a long request and a state of the vDSO.
struct Kernel {
    ideal: Ideal,
    live: Live,
    crng: Crng<Lock>,
    cpus: [CpuCrng; 2],
    stream: Stream,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// Bytes on that CPU.
    Draw(usize, usize),
    /// Two words if they are ready, after which the batch may be topped up.
    Ready,
    StartStream,
    /// So many blocks of the long request on that CPU; the run of that number faults.
    Piece(usize, usize, usize),
    /// A handler's draw, from a key of its own.
    Apart,
    Unseeded,
    /// A seed for early draws, before there is a generation.
    SeedEarly,
    Reseed,
    /// The machine is cloned; the next draw finds out.
    Clone,
    /// That CPU goes offline and comes back.
    Offline,
    /// So many bytes by the vDSO.
    Vdso(usize),
    /// The vDSO's state is lost: a fork, or memory taken away.
    Lose,
}

const NO_FAULT: usize = usize::MAX;

/// Batches that end exactly, early and in the middle; runs that just fit, just do not, and fault.
const OPERATIONS: [Operation; 18] = [
    Operation::Draw(0, 8),
    Operation::Draw(0, 9),
    Operation::Draw(0, 472),
    Operation::Draw(1, 1000),
    Operation::Ready,
    Operation::StartStream,
    Operation::Piece(0, 1, NO_FAULT),
    Operation::Piece(1, 511, NO_FAULT),
    Operation::Piece(0, 1025, NO_FAULT),
    Operation::Piece(0, 513, 0),
    Operation::Piece(1, 1025, 1),
    Operation::Apart,
    Operation::Unseeded,
    Operation::Reseed,
    Operation::Clone,
    Operation::Offline,
    Operation::Vdso(8),
    Operation::Vdso(1600),
];

impl Kernel {
    fn new() -> Self {
        Self {
            ideal: Ideal::default(),
            live: Live { id: Cell::new(0), seeds: Cell::new(0), shown: Shared::not_ready() },
            crng: Crng::new(Lock(Mutex::new(Base::vacant()))),
            cpus: [const { CpuCrng::vacant() }; 2],
            stream: Stream::vacant(),
            state: State::zeroed(),
        }
    }

    /// Draws until the bytes are for this machine: only those leave.
    fn draw(&mut self, cpu: usize, len: usize) -> Result<(), NotSeeded> {
        let (mut out, Self { ideal, live, crng, cpus, .. }) = (vec![0; len], self);
        crng.unshared(live, || crng.draw(&mut cpus[cpu], ideal, &mut out))?;
        ideal.hand_out(&out);
        Ok(())
    }

    /// The kernel has the blocks made in user memory: what was begun may be there, whole or in part, after a fault.
    fn piece(&mut self, cpu: usize, count: usize, fault: usize) {
        let Self { ideal, live, crng, cpus, stream, .. } = self;
        let mut runs = 0;
        let _not_seeded = crng.unshared(live, || {
            let make = |key: &Key, counter, run: Range<usize>| {
                ideal.note(key, counter, run.len());
                runs += 1;
                runs - 1 != fault
            };
            let made = crng.stream_piece_by(stream, &mut cpus[cpu], ideal, count, make);
            made.map(|(_, made_for)| made_for)
        });
    }

    fn vdso(&mut self, len: usize) -> Result<(), UseSystemCall> {
        let (mut out, Self { ideal, live, crng, cpus, state, .. }) = (vec![0; len], self);
        let fresh = |key: &mut [u8; 32]| {
            crng.unshared(live, || crng.draw(&mut cpus[0], ideal, key)).is_ok()
        };
        state.draw(&live.shown, ideal, fresh, &mut out)?;
        ideal.hand_out(&out);
        Ok(())
    }

    fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Draw(cpu, len) => drop(self.draw(cpu, len)),
            Operation::Ready => {
                let Self { ideal, crng, cpus: [cpu, _], .. } = self;
                if let Some(words) = crng.ready::<2>(cpu) {
                    ideal.hand_out(words.as_flattened());
                } else if crng.top_up(cpu, ideal, 2) {
                    ideal.hand_out(crng.ready::<2>(cpu).unwrap().as_flattened());
                }
            }
            Operation::StartStream => {
                let _not_seeded = self.crng.start(&mut self.stream, &mut self.cpus[0], &self.ideal);
            }
            Operation::Piece(cpu, count, fault) => self.piece(cpu, count, fault),
            Operation::Apart => {
                let (mut out, Self { ideal, live, crng, .. }) = ([0; 40], self);
                let draw = || crng.draw(&mut CpuCrng::vacant(), ideal, &mut out);
                if crng.unshared(live, draw).is_ok() {
                    ideal.hand_out(&out);
                }
            }
            Operation::Unseeded => {
                let mut out = [[0; BLOCK_LEN]; 4];
                self.crng.fill_unseeded(&self.live, &self.ideal, &mut out);
                self.ideal.hand_out(out.as_flattened());
            }
            Operation::SeedEarly => self.crng.seed_early(&self.live),
            Operation::Reseed => drop(self.crng.reseed_from(&self.live)),
            Operation::Clone => self.live.id.set(self.live.id.get() + 1),
            Operation::Offline => self.cpus[1] = CpuCrng::vacant(),
            Operation::Vdso(len) => drop(self.vdso(len)),
            Operation::Lose => self.state = State::zeroed(),
        }
    }
}

/// Plays all sequences of `depth` of `operations` after `before`; how many there are.
fn play_all(before: &[Operation], operations: &[Operation], depth: usize) -> u64 {
    let mut digits = vec![0; depth];
    let mut played = 0;
    loop {
        let mut kernel = Kernel::new();
        let sequence = before.iter().copied().chain(digits.iter().map(|&n| operations[n]));
        let sequence: Vec<Operation> = sequence.collect();
        // Said only if it panics.
        let told = Told(&sequence);
        sequence.iter().for_each(|&operation| kernel.run(operation));
        drop(told);
        played += 1;
        let Some(place) = digits.iter().rposition(|&n| n + 1 < operations.len()) else {
            return played;
        };
        digits[place] += 1;
        digits[place + 1..].fill(0);
    }
}

/// Tells the sequence in which a test panicked.
struct Told<'a>(&'a [Operation]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in the sequence {:?}", self.0);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes hours, and runs no code that the other tests do not")]
fn no_sequence_uses_a_key_and_a_counter_twice() {
    let depth = depth(3);
    let played = play_all(&[Operation::Reseed], &OPERATIONS, depth);
    assert_eq!(played, 18u64.pow(depth as u32));
}

/// The same on the way there: without a key, with one for early draws, and with a generation.
#[test]
#[cfg_attr(miri, ignore = "takes hours, and runs no code that the other tests do not")]
fn no_sequence_before_the_first_generation_does() {
    let operations = [
        Operation::Unseeded,
        Operation::SeedEarly,
        Operation::Reseed,
        Operation::Clone,
        Operation::Draw(0, 16),
        Operation::Piece(0, 600, NO_FAULT),
        Operation::Vdso(32),
        Operation::Lose,
    ];
    let depth = depth(4);
    assert_eq!(play_all(&[], &operations, depth), 8u64.pow(depth as u32));
}

/// One way of each kind that goes further than the depth: a key's whole run, with faults and reseeds on the way.
#[test]
#[cfg_attr(miri, ignore = "takes hours, and runs no code that the other tests do not")]
fn long_requests_do_not_either() {
    for piece in 1..=130 {
        let mut kernel = Kernel::new();
        kernel.run(Operation::Reseed);
        for n in 0..1100 / piece {
            kernel.run(Operation::Piece(n % 2, piece, if n % 7 == 6 { 0 } else { NO_FAULT }));
            if n % 50 == 49 {
                kernel.run(Operation::Clone);
            }
        }
    }
}

#[test]
#[should_panic(expected = "a key and a counter make a block again")]
fn a_repeated_pair_is_found() {
    let ideal = Ideal::default();
    ideal.note(&Key::new([1; 32]), 3, 4);
    ideal.note(&Key::new([1; 32]), 7, 1);
    ideal.note(&Key::new([2; 32]), 3, 4);
    ideal.note(&Key::new([1; 32]), 6, 1);
}

#[test]
#[should_panic(expected = "a key has a word that was handed out")]
fn a_key_that_was_handed_out_is_found() {
    let ideal = Ideal::default();
    let mut blocks = [[0; BLOCK_LEN]];
    ideal.fill(&Key::new([1; 32]), 0, &mut blocks);
    ideal.hand_out(&blocks[0][..8]);
    ideal.note(&Key::new(*blocks[0].first_chunk().unwrap()), 0, 1);
}
