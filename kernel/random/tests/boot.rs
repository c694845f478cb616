//! A kernel around the crate, with everything that it has to bring: boots, early draws, and copies of it.

use std::cell::{Cell, RefCell};
use std::sync::Mutex;

use alea_random::block::{Block, Key, Portable};
use alea_random::boot;
use alea_random::credit::{Credit, EntropyBits, State};
use alea_random::crng::twins::{Machine, MachineId};
use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, Generation};
use alea_random::pool::Pool;

struct Lock(Mutex<Base>);

impl Exclusive<Base> for Lock {
    fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

/// What the machine has, and what it showed to programs last.
struct Live {
    pool: RefCell<Pool>,
    id: Cell<u64>,
    /// The id becomes this one after so many more looks at it.
    clone_after: Cell<Option<(u32, u64)>>,
    shown: Cell<(u64, u64)>,
    copies: Cell<u32>,
}

impl Machine for Live {
    fn id(&self) -> MachineId {
        if let Some((looks, id)) = self.clone_after.get() {
            self.clone_after.set((looks > 0).then(|| (looks - 1, id)));
            if looks == 0 {
                self.id.set(id);
            }
        }
        MachineId([self.id.get(), 0])
    }

    fn extract(&self, id: MachineId, seed: &mut Key) {
        let mut pool = self.pool.borrow_mut();
        pool.mix(&id.0[0].to_le_bytes());
        pool.extract(&[1; 4], seed);
    }

    fn publish(&self, generation: Generation, made_for: MachineId) {
        self.shown.set((generation.get(), made_for.0[0]));
    }

    fn copied(&self) {
        self.copies.set(self.copies.get() + 1);
    }
}

struct Kernel {
    live: Live,
    credit: Credit,
    crng: Crng<Lock>,
    cpu: RefCell<CpuCrng>,
}

impl Kernel {
    fn new() -> Self {
        let live = Live {
            pool: RefCell::new(Pool::new()),
            id: Cell::new(0),
            clone_after: Cell::new(None),
            shown: Cell::new((0, 0)),
            copies: Cell::new(0),
        };
        Self {
            live,
            credit: Credit::none(),
            crng: Crng::new(Lock(Mutex::new(Base::vacant()))),
            cpu: RefCell::new(CpuCrng::vacant()),
        }
    }

    fn mix(&self, bytes: &[u8]) {
        self.live.pool.borrow_mut().mix(bytes);
    }

    fn credit(&self, bits: u32) {
        match self.credit.add(EntropyBits(bits)).map(|step| step.to) {
            Some(State::Early) => self.crng.seed_early(&self.live),
            Some(State::Ready) => drop(self.crng.reseed_from(&self.live)),
            Some(State::Empty) | None => {}
        }
    }

    fn draw(&self) -> [u8; 16] {
        let mut out = [0; 16];
        let mut cpu = self.cpu.borrow_mut();
        let draw = || self.crng.draw(&mut cpu, &Portable, &mut out);
        self.crng.unshared(&self.live, draw).unwrap();
        out
    }

    fn draw_unseeded(&self) -> Block {
        let mut out = [[0; 64]];
        self.crng.fill_unseeded(&self.live, &Portable, &mut out);
        out[0]
    }
}

/// A boot whose RDSEED an attacker knows. Whether sources are credited as they come is what the order was once.
fn boot(rdrand: u64, jitter: u64, as_they_come: bool) -> Kernel {
    let kernel = Kernel::new();
    let deliver = |word: u64, bits: u32| {
        kernel.mix(&word.to_le_bytes());
        if as_they_come {
            kernel.credit(bits);
        }
        EntropyBits(bits)
    };
    let sum = boot::collect(&mut [
        &mut |_| deliver(0x5eed, 512),
        &mut |_| deliver(rdrand, 256),
        &mut |so_far| deliver(jitter, if so_far < EntropyBits::READY { 256 } else { 0 }),
    ]);
    if !as_they_come {
        kernel.credit(sum.0);
    }
    kernel
}

#[test]
fn the_first_key_is_made_of_all_sources() {
    let first = |rdrand, jitter, as_they_come| boot(rdrand, jitter, as_they_come).draw();
    assert_eq!(first(1, 1, true), first(2, 2, true), "the order that was wrong");
    assert_ne!(first(1, 1, false), first(2, 1, false), "RDRAND is not in it");
    assert_ne!(first(1, 1, false), first(1, 2, false), "jitter is not in it");
}

/// From half of the credit on, what is mixed in later stays unseen until the service is ready: who draws between two
/// credits cannot search for each of them alone.
#[test]
fn early_draws_tell_nothing_of_what_comes_later() {
    let [one, two] = [1u8, 2].map(|secret| {
        let kernel = Kernel::new();
        kernel.mix(b"the same");
        kernel.credit(128);
        let mut drawn = vec![kernel.draw_unseeded()];
        for increment in 0..8 {
            kernel.mix(&[secret, increment]);
            kernel.credit(if increment < 7 { 16 } else { 0 });
            drawn.push(kernel.draw_unseeded());
        }
        assert!((1..drawn.len()).all(|n| !drawn[..n].contains(&drawn[n])), "a draw came twice");
        kernel.credit(16);
        (drawn, kernel.draw())
    });
    assert_eq!(one.0, two.0, "early draws show what was mixed in between");
    assert_ne!(one.1, two.1, "and yet it is in the first key");
}

/// Before that, everything that was mixed in is needed at once.
#[test]
fn empty_draws_use_all_there_is() {
    let [one, two] = [1u8, 2].map(|secret| {
        let kernel = Kernel::new();
        kernel.draw_unseeded();
        kernel.mix(&[secret]);
        kernel.credit(127);
        kernel.draw_unseeded()
    });
    assert_ne!(one, two);
}

/// Two copies of a machine that was saved with `before` already drawn, by what they draw afterwards; the copy is made
/// at each of the first looks at the id in turn.
fn twins(before: impl Fn(&Kernel), draw: impl Fn(&Kernel) -> Vec<u8>) {
    for looks in 0..12 {
        let [one, two] = [111, 222].map(|id| {
            let kernel = Kernel::new();
            before(&kernel);
            kernel.live.clone_after.set(Some((looks, id)));
            let drawn: Vec<(u64, Vec<u8>)> =
                (0..16).map(|_| draw(&kernel)).map(|bytes| (kernel.live.id.get(), bytes)).collect();
            let bytes = drawn.into_iter().filter(|(seen, _)| *seen == id).map(|(_, bytes)| bytes);
            (bytes.collect::<Vec<_>>(), kernel.live.shown.get(), kernel.live.copies.get())
        });
        assert!(!one.0.is_empty() && one.0.len() == two.0.len(), "{looks} looks");
        assert!(
            !one.0.iter().any(|bytes| two.0.contains(bytes)),
            "twins share bytes, {looks} looks"
        );
        let (generation, made_for) = one.1;
        assert!(generation == 0 || made_for == 111, "programs are shown another machine");
    }
}

#[test]
fn twins_share_no_byte_wherever_they_part() {
    let ready = |kernel: &Kernel| {
        kernel.credit(256);
        kernel.draw();
    };
    twins(ready, |kernel| kernel.draw().to_vec());
    // A reseed by the clock in the middle.
    twins(ready, |kernel| {
        kernel.crng.reseed_from(&kernel.live);
        kernel.draw().to_vec()
    });
    // Before the service is ready.
    twins(|kernel| kernel.credit(128), |kernel| kernel.draw_unseeded().to_vec());
    twins(|_| (), |kernel| kernel.draw_unseeded().to_vec());
}

#[test]
fn a_copy_is_noticed_once() {
    let kernel = Kernel::new();
    kernel.credit(256);
    kernel.draw();
    let generation = kernel.crng.generation().get();
    kernel.live.id.set(7);
    kernel.draw();
    kernel.draw();
    assert_eq!(kernel.live.copies.get(), 1);
    assert_eq!(kernel.crng.generation().get(), generation + 1);
    assert_eq!(kernel.live.shown.get(), (generation + 1, 7));
}

/// What programs see is shown again on demand, and nothing is shown that is not.
#[test]
fn the_last_reseed_is_shown_on_demand() {
    let kernel = Kernel::new();
    kernel.live.id.set(7);
    kernel.crng.show(&kernel.live);
    assert_eq!(kernel.live.shown.get(), (0, 0), "there was no reseed");
    kernel.credit(128);
    kernel.crng.show(&kernel.live);
    assert_eq!(kernel.live.shown.get(), (0, 0), "early draws are not for programs");
    kernel.credit(128);
    kernel.live.shown.set((0, 0));
    kernel.crng.show(&kernel.live);
    assert_eq!(kernel.live.shown.get(), (1, 7));
}

/// A source that costs time may spare it.
#[test]
fn each_source_is_told_what_those_before_it_are_worth() {
    let told = RefCell::new(Vec::new());
    let source = |worth: u32| {
        let told = &told;
        move |so_far: EntropyBits| {
            told.borrow_mut().push(so_far.0);
            EntropyBits(worth)
        }
    };
    let (mut one, mut two, mut three) = (source(64), source(u32::MAX), source(1));
    let sum = boot::collect(&mut [&mut one, &mut two, &mut three]);
    assert_eq!((sum, told.take()), (EntropyBits(u32::MAX), vec![0, 64, u32::MAX]));
}

/// A clone between the extraction of a seed and the look at the id after it: the seed is not used for the old machine.
#[test]
fn a_seed_that_a_clone_made_old_is_not_installed() {
    let kernel = Kernel::new();
    kernel.credit(256);
    // The first look is the one before the extraction.
    kernel.live.clone_after.set(Some((1, 9)));
    kernel.crng.reseed_from(&kernel.live);
    assert_eq!(kernel.live.shown.get(), (2, 9));
}
