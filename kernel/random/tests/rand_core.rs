//! The service behind the traits of rand_core, 0.9 and 0.10: the same bytes as without them, and none before there is a key.
#![cfg(not(alea_loom))]

use std::sync::Mutex;

use alea_random::credit::EntropyBits;
use alea_random::crng::NotSeeded;
use alea_random::service::{Base, CpuCrng, Exclusive, Mixing, Platform, Service};

struct Lock<T>(Mutex<T>);

impl<T> Exclusive<T> for Lock<T> {
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

struct Mine(Lock<CpuCrng>);

impl Platform for Mine {
    type Lock<T: Send> = Lock<T>;

    fn with_cpu<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> {
        Some(self.0.with(f))
    }
}

fn service() -> Service<Mine> {
    let lock = |cpu| Lock(Mutex::new(cpu));
    let (mixing, base) = (Lock(Mutex::new(Mixing::new())), Lock(Mutex::new(Base::vacant())));
    Service::new(Mine(lock(CpuCrng::vacant())), mixing, base)
}

/// Always with the same entropy.
fn seeded() -> Service<Mine> {
    let service = service();
    service.credit(EntropyBits::READY);
    service
}

/// 4, 8 and 300 bytes, one after the other.
type Bytes = ([u8; 4], [u8; 8], [u8; 300]);

fn directly() -> Bytes {
    let service = seeded();
    let mut bytes = ([0; 4], [0; 8], [0; 300]);
    for out in [&mut bytes.0[..], &mut bytes.1, &mut bytes.2] {
        service.fill(out).unwrap();
    }
    bytes
}

macro_rules! through {
    ($traits:ident) => {{
        use $traits::*;
        let service = seeded();
        let mut rng = &service;
        let four = rng.try_next_u32().unwrap().to_le_bytes();
        let eight = rng.try_next_u64().unwrap().to_le_bytes();
        let mut rest = [0; 300];
        rng.try_fill_bytes(&mut rest).unwrap();
        (four, eight, rest)
    }};
}

#[test]
fn the_traits_give_what_the_service_gives() {
    let bytes = directly();
    assert_ne!(bytes.2[..150], bytes.2[150..]);
    assert_eq!(through!(rand_core_0_9), bytes);
    assert_eq!(through!(rand_core_0_10), bytes);
}

#[test]
fn both_call_it_cryptographic() {
    fn old(_: impl rand_core_0_9::TryCryptoRng<Error = NotSeeded>) {}
    fn new(_: impl rand_core_0_10::TryCryptoRng<Error = NotSeeded>) {}
    let service = service();
    old(&service);
    new(&service);
}

#[test]
fn without_a_key_nothing_is_written() {
    let service = service();
    let mut rng = &service;
    let mut out = [0x55; 300];
    assert_eq!(rand_core_0_9::TryRngCore::try_next_u32(&mut rng), Err(NotSeeded));
    assert_eq!(rand_core_0_10::TryRng::try_next_u64(&mut rng), Err(NotSeeded));
    assert_eq!(rand_core_0_10::TryRng::try_fill_bytes(&mut rng, &mut out), Err(NotSeeded));
    assert_eq!(out, [0x55; 300]);
}
