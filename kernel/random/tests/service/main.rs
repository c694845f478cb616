//! The service as a kernel has it.
#![cfg(not(alea_loom))]

mod draws;
mod interrupts;
#[cfg(feature = "jitter")]
mod jitter;
mod platform;

use std::sync::atomic::Ordering;
use std::time::Duration;

use alea_random::block::BLOCK_LEN;
use alea_random::credit::{EntropyBits, State};
use alea_random::crng::{Generation, NotSeeded, Stream};
use alea_random::hardware::HardwareRng;
use alea_random::pool::{POOLS, Trickle};
use alea_random::reseed::Cause;
use alea_random::service::{Base, Event, Interrupts, Mixing, Platform, Service};

use platform::{Bare, Lock, REQUEST, drawn, ready, service, unseeded};

#[test]
fn an_unseeded_draw_goes_on_until_its_place_ends() {
    let service = service();
    let mut pieces = Vec::new();
    let done = service.unseeded_to(600, |bytes| {
        pieces.push(bytes.to_vec());
        bytes.len()
    });
    assert_eq!((done, pieces.iter().map(Vec::len).collect()), (600, vec![256, 256, 88]));
    assert_ne!(pieces[0], pieces[1]);
    assert_eq!(service.unseeded_to(600, |bytes| bytes.len().min(200)), 200, "no more is taken");
    assert_eq!(service.unseeded_to(0, |_| panic!("nothing was asked for")), 0);
    let mut out = [0; 600];
    service.fill_unseeded(&mut out);
    assert!(out.chunks(8).all(|word| word != [0; 8]));
}

/// What a platform has that says nothing of it: no news before a reseed.
#[test]
fn a_platform_without_slow_sources_has_no_news() {
    assert!(!Bare.look_again());
}

#[test]
fn nothing_is_served_before_there_is_a_key() {
    let service = service();
    assert_eq!((service.state(), service.credited()), (State::Empty, EntropyBits(0)));
    assert_eq!(service.fill(&mut [0; 16]), Err(NotSeeded));
    assert_eq!(service.fill_words(&mut [[0; 8]; 2]), Err(NotSeeded));
    assert_eq!(service.fill_apart(&mut [0; 16]), Err(NotSeeded));
    assert_eq!(service.ready::<2>(), None);
    assert!(!service.top_up::<2>());
    let mut stream = Stream::vacant();
    assert_eq!(service.start_stream(&mut stream), Err(NotSeeded));
    assert_eq!(service.fill_from(&mut stream, &mut [[0; BLOCK_LEN]]), Err(NotSeeded));
    assert_eq!(service.make_from(&mut stream, 1, |_, _, _| true), Err(NotSeeded));
    assert_eq!(service.generation(), Generation::NONE);
    service.show();
    assert_eq!(*service.platform().shown.lock().unwrap(), []);
}

#[test]
fn credit_leads_to_an_early_key_and_then_to_the_first_one() {
    let service = service();
    service.mix(b"half");
    service.credit(EntropyBits(127));
    assert_eq!(service.state(), State::Empty);
    service.credit(EntropyBits(1));
    assert_eq!(service.state(), State::Early);
    assert_eq!(service.fill(&mut [0; 16]), Err(NotSeeded));
    assert_eq!(service.platform().take_told(), []);
    service.credit(EntropyBits(128));
    assert_eq!((service.state(), service.credited()), (State::Ready, EntropyBits(256)));
    assert_eq!(service.generation().get(), 1);
    let told = [Event::Reseeded(Cause::Ready), Event::Ready];
    assert_eq!(service.platform().take_told(), told);
    service.credit(EntropyBits(1000));
    assert_eq!(service.platform().take_told(), [], "ready comes once");
    assert_ne!(drawn(&service), [0; 32]);
}

/// With half of the credit there is a key of its own: what is mixed in later does not show.
#[test]
fn an_early_key_hides_what_comes_later() {
    let early = |later: &[u8]| {
        let service = service();
        service.mix(b"half");
        service.credit(EntropyBits::EARLY);
        service.mix(later);
        unseeded(&service)
    };
    assert_eq!(early(b"one"), early(b"two"));
    let without = |later: &[u8]| {
        let service = service();
        service.mix(later);
        unseeded(&service)
    };
    assert_ne!(without(b"one"), without(b"two"), "before, everything is needed");
}

#[test]
fn unseeded_bytes_never_come_twice() {
    let service = service();
    let [mut long, mut again] = [[0; 600]; 2];
    service.fill_unseeded(&mut long);
    service.fill_unseeded(&mut again);
    for pair in long.chunks_exact(16).zip(again.chunks_exact(16)) {
        assert_ne!(pair.0, pair.1);
    }
    assert!(!long[256..].windows(16).any(|window| window == &long[..16]), "a piece came twice");
    assert!(long[590..].iter().any(|&byte| byte != 0), "the end was not written");
}

#[test]
fn a_condemned_machine_stays_empty() {
    let service = service();
    service.condemn();
    service.credit(EntropyBits::READY);
    assert_eq!((service.state(), service.credited()), (State::Empty, EntropyBits(0)));
    assert_eq!(service.fill(&mut [0; 16]), Err(NotSeeded));
}

#[test]
fn start_credits_what_all_sources_gave() {
    let service = service();
    let state = service.start(&mut [
        &mut |so_far| {
            assert_eq!(so_far, EntropyBits(0));
            service.mix(b"one");
            EntropyBits(200)
        },
        &mut |so_far| {
            assert_eq!((so_far, service.credited()), (EntropyBits(200), EntropyBits(0)));
            service.mix(b"two");
            EntropyBits(56)
        },
    ]);
    assert_eq!((state, service.mixed()), (State::Ready, 6));
    assert_eq!(service.start(&mut []), State::Ready);
}

struct Words(u64);

impl HardwareRng for Words {
    fn next_u64(&mut self) -> Option<u64> {
        self.0 = self.0.checked_add(0x1234_5678_9abc_def0 * u64::from(self.0 != 7))?;
        Some(self.0)
    }
}

#[test]
fn hardware_is_tested_before_it_counts() {
    let service = service();
    let bits = service.collect_hardware(&mut Words(1), EntropyBits(3));
    assert_eq!((bits.0 % 3, bits.0 <= 24, service.mixed()), (0, true, u64::from(bits.0 / 3) * 8));
    assert!(bits > EntropyBits(0));
    // Always the same word: mixed in, and worth nothing.
    let before = service.mixed();
    assert_eq!(service.collect_hardware(&mut Words(7), EntropyBits(64)), EntropyBits(0));
    assert_eq!(service.mixed(), before + 64);
}

#[test]
fn a_key_is_made_of_everything_and_of_fresh_words() {
    let [same, again, other] = [&b"a"[..], b"a", b"b"].map(|seed| drawn(&ready(seed)));
    assert_eq!(same, again);
    assert_ne!(same, other);
    let with_fresh = |word| {
        let service = ready(b"a");
        *service.platform().fresh.lock().unwrap() = word;
        service.reseed(Cause::Request);
        drawn(&service)
    };
    assert_eq!(with_fresh(1), with_fresh(1));
    assert_ne!(with_fresh(1), with_fresh(2));
}

#[test]
fn a_reseed_says_why_it_came() {
    let service = ready(b"a");
    service.reseed(Cause::Request);
    assert_eq!(service.platform().take_told(), [REQUEST]);
    assert_eq!(service.on_schedule(Duration::from_secs(30)), Duration::from_secs(15));
    assert_eq!(service.platform().take_told(), [Event::Reseeded(Cause::Schedule)]);
    service.platform().news.store(true, Ordering::Relaxed);
    service.reseed(Cause::Request);
    assert_eq!(service.platform().take_told(), [REQUEST], "asked for, whatever else came");
    let _wait = service.on_schedule(Duration::ZERO);
    assert_eq!(service.platform().take_told(), [Event::Reseeded(Cause::NewSource)]);
    assert_eq!(service.generation().get(), 5);
}

/// The schedule turns the pools, and requests do not.
#[test]
fn only_the_clock_turns_the_pools() {
    let service = ready(b"a");
    let spread = || (0..POOLS).for_each(|_| service.spread(Trickle::Jitter, &[1; 8]));
    spread();
    assert_eq!(service.waiting()[1], 0, "before the first turn all goes into the first pool");
    let _wait = service.on_schedule(Duration::ZERO);
    spread();
    assert_eq!(service.waiting(), [8; POOLS]);
    (0..10).for_each(|_| service.reseed(Cause::Request));
    assert_eq!(service.waiting(), [0, 8, 8, 8, 8, 8, 8, 8]);
    let _wait = service.on_schedule(Duration::ZERO);
    let _wait = service.on_schedule(Duration::ZERO);
    assert_eq!(service.waiting(), [0, 0, 8, 8, 8, 8, 8, 8]);
}

/// Everything but the lock and the CPU's generator may be left out.
#[test]
fn a_platform_may_have_next_to_nothing() {
    let service = Service::new(Bare, Lock::new(Mixing::new()), Lock::new(Base::vacant()));
    service.credit(EntropyBits::READY);
    service.reseed(Cause::Schedule);
    let mut bytes = [[0; 16]; 2];
    bytes.iter_mut().for_each(|bytes| service.fill(bytes).unwrap());
    assert_ne!(bytes[0], bytes[1]);
    assert!(format!("{service:?} {:?} {:?}", Mixing::new(), Interrupts::new()).contains("Ready"));
}
