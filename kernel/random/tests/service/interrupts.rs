//! Interrupts: when they are passed on, and what they are worth.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alea_random::credit::EntropyBits;
use alea_random::health::{Counter, Health};
use alea_random::service::{Base, Interrupt, Interrupts, Mixing, Service};

use crate::platform::{Lock, Mine, service};

const fn interrupt(n: u64, of_device: bool) -> Interrupt {
    // Irregular, as times of devices are.
    Interrupt { cycles: n * n * n % 1_000_003 + 2_000_000 * n, number: 3, of_device }
}

#[test]
fn interrupts_are_passed_on_after_a_thousand_or_a_second() {
    let (service, mut cpu) = (service(), Interrupts::new());
    let mut first = None;
    for n in 1..=1024 {
        let passed_on = service.interrupt(&mut cpu, interrupt(n, false), || Duration::ZERO);
        first = first.or(passed_on.map(|passed_on| (n, passed_on)));
    }
    assert_eq!(first, Some((1024, (16, EntropyBits(0)))), "what a program times is worth nothing");
    assert_eq!(service.mixed(), 16);
    // Once ready only by the clock, however many come.
    service.credit(EntropyBits::READY);
    let mut at = |n, uptime| service.interrupt(&mut cpu, interrupt(n, false), || uptime);
    let just_before = Duration::from_millis(999);
    assert!((0..5000).all(|n| at(n, just_before).is_none()));
    assert!((0..64).any(|n| at(n, Duration::from_secs(1)).is_some()));
    // A second from then on; and the clock is asked every 64 interrupts.
    assert!((0..128).all(|n| at(n, Duration::from_millis(1999)).is_none()));
    assert_eq!((0..64).filter(|&n| at(n, Duration::from_secs(2)).is_some()).count(), 1);
}

#[test]
fn few_interrupts_wait() {
    let (service, mut cpu) = (service(), Interrupts::new());
    let asked = Cell::new(0);
    let mut one = |n| {
        let uptime = || {
            asked.set(asked.get() + 1);
            Duration::from_secs(60)
        };
        service.interrupt(&mut cpu, interrupt(n, false), uptime)
    };
    assert!((0..63).all(|n| one(n).is_none()));
    assert_eq!(asked.get(), 0);
    assert!(one(63).is_some());
    assert_eq!(asked.get(), 1);
}

#[test]
fn the_clock_is_asked_at_every_64th_only() {
    let (service, mut cpu) = (service(), Interrupts::new());
    let mut at = |n, uptime| service.interrupt(&mut cpu, interrupt(n, false), || uptime);
    assert!((1..=64).all(|n| at(n, Duration::ZERO).is_none()));
    let late = Duration::from_secs(60);
    assert_eq!((65..=128).find(|&n| at(n, late).is_some()), Some(128));
}

#[test]
fn devices_count_unless_the_counter_was_refused() {
    let worth = |counter| {
        let (service, mut cpu) = (service(), Interrupts::new());
        service.judge_counter(counter);
        assert_eq!(service.counter(), counter);
        let mut bits = 0;
        for n in 0..8192 {
            let passed_on = service.interrupt(&mut cpu, interrupt(n, true), || Duration::ZERO);
            bits += passed_on.map_or(0, |(_, bits)| bits.0);
        }
        assert_eq!(cpu.failures(), 0);
        assert_eq!(service.credited(), EntropyBits(0), "crediting is the caller's");
        bits
    };
    assert!(worth(Counter::Usable) > 0);
    assert_eq!(worth(Counter::Refused), 0);
}

/// A device whose times are those of a clock is found out, and says so.
#[test]
fn devices_without_jitter_fail_and_are_worth_nothing() {
    let (service, mut cpu) = (service(), Interrupts::new());
    assert_eq!((cpu.failures(), cpu.health()), (0, Health::Starting));
    let mut bits = 0;
    for n in 0..8192 {
        let regular = Interrupt { cycles: n * 4096, number: 3, of_device: true };
        let passed_on = service.interrupt(&mut cpu, regular, || Duration::ZERO);
        bits += passed_on.map_or(0, |(_, bits)| bits.0);
    }
    assert_eq!((bits, cpu.health()), (0, Health::Failed));
    assert!(cpu.failures() > 1, "{} failures", cpu.failures());
}

/// A test on demand: what came before counts no more, and nothing does until as many have come as at start.
#[test]
fn devices_are_tested_again_on_demand() {
    let (service, mut cpu) = (service(), Interrupts::new());
    let worth = |cpu: &mut Interrupts, from| {
        let one = |n| service.interrupt(cpu, interrupt(n, true), || Duration::ZERO);
        (from..from + 1024).filter_map(one).map(|(_, bits)| bits.0).sum::<u32>()
    };
    assert_eq!(worth(&mut cpu, 0), 0);
    assert!(cpu.health() == Health::Healthy && worth(&mut cpu, 1024) > 8);
    for n in 2048..3071 {
        assert!(service.interrupt(&mut cpu, interrupt(n, true), || Duration::ZERO).is_none());
    }
    cpu.test_again();
    assert_eq!(cpu.health(), Health::Starting);
    assert_eq!(worth(&mut cpu, 3071), 0);
    assert_eq!(cpu.health(), Health::Healthy);
    assert!(worth(&mut cpu, 4095) + worth(&mut cpu, 5119) > 8);
}

/// A handler never waits for the pools; what it has is not lost by that.
#[test]
fn busy_pools_get_their_words_later() {
    let pools = Lock::new(Mixing::new());
    let busy = pools.busy.clone();
    let service = Service::new(Mine::default(), pools, Lock::new(Base::vacant()));
    let mut cpu = Interrupts::new();
    busy.store(true, Ordering::Relaxed);
    let mut rounds = |count| {
        let one = |n| service.interrupt(&mut cpu, interrupt(n, true), || Duration::ZERO);
        (0..count).filter_map(one).last()
    };
    assert_eq!(rounds(8192), None);
    busy.store(false, Ordering::Relaxed);
    let (len, bits) = rounds(64).unwrap();
    assert!(len == 16 && bits > EntropyBits(50), "{bits}");
}
