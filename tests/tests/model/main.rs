//! Three CPUs, a reseed, programs' states and a hypervisor that clones the machine, in every interleaving.
//!
//! `tests/loom.rs` of `alea-random` explores the code itself, on two CPUs and with a bound on preemptions; this explores a
//! model of it ([`protocol`]), on three CPUs and without one. The rules of the protocol are parameters of the model, and
//! each of three is shown to be needed: without it there is a way to share a word.

mod protocol;

use std::time::Instant;

use protocol::{Action, Compare, Fault, Job, Machine, NO_FAULT, Order, Protocol};
use stateright::{Checker, Model};

/// What the kernel does today.
const TODAY: Order =
    Order { absorb: true, look_again: true, compare: Compare::OwnKey, generation_first: true };

/// What it did once: a seed replaces the key whenever it comes, and each CPU compares with the id that it has seen.
const ONCE: Order =
    Order { absorb: false, look_again: false, compare: Compare::Seen, generation_first: true };

/// What each CPU does, in this order.
type Programs = [&'static [Job]; 3];

/// Two draws, a reseed by the clock, and a program's draw.
const MIXED: Programs = [&[Job::Draw, Job::Draw], &[Job::Reseed], &[Job::Vdso]];
/// Two reseeds at once beside draws.
const RESEEDS: Programs = [&[Job::Draw, Job::Draw], &[Job::Reseed], &[Job::Reseed]];
/// Draws on two CPUs beside a reseed.
const DRAWS: Programs = [&[Job::Draw], &[Job::Reseed], &[Job::Draw]];

/// More of each, for `ALEA_PROOFS=long`: minutes in a release build.
const LONG_MIXED: Programs =
    [&[Job::Draw, Job::Draw], &[Job::Reseed, Job::Draw], &[Job::Vdso, Job::Vdso]];
const LONG_RESEEDS: Programs =
    [&[Job::Draw, Job::Draw], &[Job::Reseed, Job::Draw], &[Job::Reseed, Job::Draw]];

/// `long` if that was asked for.
fn chosen(short: Programs, long: Programs) -> Programs {
    let asked = std::env::var("ALEA_PROOFS").is_ok_and(|how| how == "long");
    if asked { long } else { short }
}

fn explore(order: Order, programs: Programs, clones: u8) -> Protocol {
    Protocol { order, programs, clones }
}

/// The shortest way to a fault, if there is any.
fn way_to_fault(protocol: Protocol) -> Option<(Fault, Vec<Action>)> {
    let checker = protocol.checker().threads(2).spawn_bfs().join();
    let path = checker.discovery(NO_FAULT)?;
    let fault = path.last_state().fault.expect("a state with a fault");
    Some((fault, path.into_actions()))
}

/// No fault anywhere, all programs end wherever the machine is cloned, and there was something to see.
fn holds(protocol: Protocol, at_least: usize) {
    let start = Instant::now();
    let checker = protocol.checker().threads(2).spawn_dfs().join();
    checker.assert_properties();
    let states = checker.unique_state_count();
    println!("{states} states in {:.1} s", start.elapsed().as_secs_f64());
    assert!(states >= at_least, "only {states} states");
}

#[test]
fn no_word_is_shared_with_a_twin() {
    holds(explore(TODAY, chosen(MIXED, LONG_MIXED), 1), 50_000);
}

#[test]
fn nor_beside_two_reseeds() {
    holds(explore(TODAY, chosen(RESEEDS, LONG_RESEEDS), 1), 10_000);
}

/// The id changes again while the first change is being learnt.
#[test]
fn nor_with_two_changes_of_the_id() {
    holds(explore(TODAY, chosen(DRAWS, MIXED), 2), 50_000);
}

/// The race that there was: a seed is extracted before the machine is cloned, and installed after another CPU has learnt
/// of it; everything that is drawn from there on is drawn by the twins as well.
#[test]
fn the_old_order_shares_words() {
    let (fault, way) = way_to_fault(explore(ONCE, RESEEDS, 1)).expect("the race is not found");
    assert_eq!(fault, Fault::SharedWord);
    let cloned = way.iter().position(|action| *action == Action::Clone).expect("never cloned");
    let by = |cpu| move |action: &Action| *action == Action::Step(cpu);
    let [before, after] = [&way[..cloned], &way[cloned..]];
    let across = |cpu| before.iter().any(by(cpu)) && after.iter().any(by(cpu));
    assert!(across(1) || across(2), "no reseed was in the middle: {way:?}");
    assert!(after.iter().any(by(0)), "nobody else learnt of the clone: {way:?}");
}

/// Comparing with what the whole machine has learnt, instead of with what the bytes' key was made for.
#[test]
fn comparing_with_what_another_cpu_learnt_shares_words() {
    let order = Order { compare: Compare::Known, ..TODAY };
    let found = way_to_fault(explore(order, DRAWS, 1)).map(|(fault, _)| fault);
    assert_eq!(found, Some(Fault::SharedWord));
}

/// Programs see the new id before the new generation: a state of the old one looks right.
#[test]
fn showing_the_id_before_the_generation_shares_words() {
    let order = Order { generation_first: false, ..TODAY };
    let found = way_to_fault(explore(order, MIXED, 1)).map(|(fault, _)| fault);
    assert_eq!(found, Some(Fault::SharedWord));
}

/// The model starts where the kernel does: a key of the first generation, and nobody has a key of it yet.
#[test]
fn a_machine_without_programs_has_one_state() {
    let states = explore(TODAY, [&[]; 3], 0).checker().spawn_bfs().join().unique_state_count();
    assert_eq!((states, Machine::new(&[&[]; 3], 0).fault), (1, None));
}
