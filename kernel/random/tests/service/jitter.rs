//! Jitter: mixed in whatever comes of it, and credited by the caller.

use std::cell::{Cell, RefCell};

use alea_random::credit::{EntropyBits, State};
use alea_random::health::Counter;
use alea_random::jitter::CycleCounter;
use alea_random::service::Samples;

use crate::platform::service;

struct Clock {
    now: u64,
    state: u64,
    even: bool,
}

impl CycleCounter for Clock {
    fn now(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(99);
        self.now += if self.even { 40 } else { 40 + (self.state >> 56) };
        self.now
    }
}

#[test]
fn a_counter_that_fails_is_refused_until_it_succeeds() {
    let service = service();
    let mut clock = Clock { now: 0, state: 1, even: true };
    assert!(service.collect_jitter(&mut clock).is_err());
    assert_eq!(service.counter(), Counter::Refused);
    assert!(service.mixed() > 0, "mixed in all the same");
    let before = service.mixed();
    clock.even = false;
    let report = service.collect_jitter(&mut clock).unwrap();
    assert_eq!((service.counter(), report.credit), (Counter::Usable, EntropyBits::READY));
    assert_eq!(service.mixed() - before, u64::from(report.samples) * 8);
    assert_eq!(service.state(), State::Empty, "crediting is the caller's");
}

#[test]
fn samples_wait_for_more_and_none_is_lost() {
    let mixed = RefCell::new(Vec::new());
    let mut samples = Samples::new(|bytes: &[u8]| mixed.borrow_mut().push(bytes.to_vec()));
    (0..100).for_each(|n| samples.add(n));
    assert_eq!(mixed.borrow().len(), 1);
    drop(samples);
    let all: Vec<u8> = (0..100u64).flat_map(u64::to_le_bytes).collect();
    assert_eq!(mixed.borrow().len(), 2);
    assert_eq!(mixed.into_inner().concat(), all);
}

#[test]
fn no_samples_are_no_bytes() {
    let calls = Cell::new(0);
    let mut samples = Samples::new(|_: &[u8]| calls.set(calls.get() + 1));
    (0..64).for_each(|n| samples.add(n));
    drop(samples);
    assert_eq!(calls.get(), 1);
}
