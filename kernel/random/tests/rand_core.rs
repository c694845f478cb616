//! A CPU's generator behind the traits of rand_core, 0.9 and 0.10: the same bytes as without them, and no byte before there
//! is a key or after the machine was copied.
#![cfg(not(alea_loom))]

use std::cell::Cell;
use std::sync::Mutex;

use alea_random::block::{Key, Portable};
use alea_random::crng::handle::CpuRng;
use alea_random::crng::twins::{Machine, MachineId};
use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, Generation, NotSeeded};

struct Lock(Mutex<Base>);

impl Exclusive<Base> for Lock {
    fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

fn crng() -> Crng<Lock> {
    Crng::new(Lock(Mutex::new(Base::vacant())))
}

fn seeded() -> Crng<Lock> {
    let crng = crng();
    crng.reseed(&mut Key::new([7; 32]));
    crng
}

/// 4, 8 and 300 bytes, one after the other.
type Bytes = ([u8; 4], [u8; 8], [u8; 300]);

fn directly() -> Bytes {
    let (crng, mut cpu) = (seeded(), CpuCrng::vacant());
    let mut bytes = ([0; 4], [0; 8], [0; 300]);
    for out in [&mut bytes.0[..], &mut bytes.1, &mut bytes.2] {
        crng.draw(&mut cpu, &Portable, out).unwrap();
    }
    bytes
}

macro_rules! through {
    ($traits:ident) => {{
        use $traits::*;
        let (crng, mut cpu) = (seeded(), CpuCrng::vacant());
        let mut rng = CpuRng::new(&crng, &mut cpu, Portable);
        let four = rng.try_next_u32().unwrap().to_le_bytes();
        let eight = rng.try_next_u64().unwrap().to_le_bytes();
        let mut rest = [0; 300];
        rng.try_fill_bytes(&mut rest).unwrap();
        (four, eight, rest)
    }};
}

#[test]
fn the_traits_give_what_the_generator_gives() {
    let bytes = directly();
    assert_ne!(bytes.2[..150], bytes.2[150..]);
    assert_eq!(through!(rand_core_0_9), bytes);
    assert_eq!(through!(rand_core_0_10), bytes);
}

#[test]
fn both_call_it_cryptographic() {
    fn old(_: &impl rand_core_0_9::TryCryptoRng<Error = NotSeeded>) {}
    fn new(_: &impl rand_core_0_10::TryCryptoRng<Error = NotSeeded>) {}
    let (crng, mut cpu) = (crng(), CpuCrng::vacant());
    let rng = CpuRng::new(&crng, &mut cpu, Portable);
    old(&rng);
    new(&rng);
}

#[test]
fn without_a_key_nothing_is_written() {
    let (crng, mut cpu) = (crng(), CpuCrng::vacant());
    let mut rng = CpuRng::new(&crng, &mut cpu, Portable);
    let mut out = [0x55; 300];
    assert_eq!(rand_core_0_9::TryRngCore::try_next_u32(&mut rng), Err(NotSeeded));
    assert_eq!(rand_core_0_10::TryRng::try_next_u64(&mut rng), Err(NotSeeded));
    assert_eq!(rand_core_0_10::TryRng::try_fill_bytes(&mut rng, &mut out), Err(NotSeeded));
    assert_eq!(out, [0x55; 300]);
}

/// A machine that is copied when the test says so, and whose seeds say which copy it is.
struct Copied {
    id: Cell<u64>,
}

impl Machine for Copied {
    fn id(&self) -> MachineId {
        MachineId([self.id.get(), 1])
    }

    fn extract(&self, MachineId([id, _]): MachineId, seed: &mut Key) {
        *seed = Key::new([id as u8; 32]);
    }

    fn publish(&self, _: Generation, _: MachineId) {}
}

#[test]
fn copies_of_the_machine_draw_different_bytes() {
    let drawn = [2, 3].map(|twin| {
        let machine = Copied { id: Cell::new(1) };
        let (crng, mut cpu) = (crng(), CpuCrng::vacant());
        crng.reseed_from(&machine);
        let mut before = [0; 16];
        CpuRng::on(&machine, &crng, &mut cpu, Portable).fill(&mut before).unwrap();
        machine.id.set(twin);
        let mut after = [0; 16];
        CpuRng::on(&machine, &crng, &mut cpu, Portable).fill(&mut after).unwrap();
        (before, after)
    });
    assert_eq!(drawn[0].0, drawn[1].0, "the same machine, before it was copied");
    assert_ne!(drawn[0].1, drawn[1].1);
}
