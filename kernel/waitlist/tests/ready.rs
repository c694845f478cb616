//! [`Ready`] against a model: a `VecDeque` of the queued and a map of all claimed places.
#![cfg(not(alea_loom))]

use alea_waitlist::{Ready, Room};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Debug)]
enum Step {
    Claim,
    Release(usize),
    Back(usize),
    Front(usize),
    Unqueue(usize),
    Rotate(usize),
    Peek,
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Claim),
        1 => any::<usize>().prop_map(Step::Release),
        3 => any::<usize>().prop_map(Step::Back),
        1 => any::<usize>().prop_map(Step::Front),
        1 => any::<usize>().prop_map(Step::Unqueue),
        1 => any::<usize>().prop_map(Step::Rotate),
        1 => Just(Step::Peek),
        1 => Just(Step::Pop),
    ]
}

fn claim(ready: &mut Ready<u64>, value: u64) -> u32 {
    let mut room = ready.wants_room().map(|blocks| Room::new(blocks).unwrap());
    ready.claim(value, &mut room).unwrap()
}

proptest! {
    #[test]
    fn behaves_as_the_model(steps in proptest::collection::vec(step(), 1..300)) {
        let mut ready = Ready::new();
        let (mut claimed, mut queued) = (BTreeMap::new(), VecDeque::new());
        let pick = |claimed: &BTreeMap<u32, u64>, n: usize| {
            (!claimed.is_empty()).then(|| *claimed.keys().nth(n % claimed.len()).unwrap())
        };
        for (value, step) in (0u64..).zip(steps) {
            match step {
                Step::Claim => {
                    let at = claim(&mut ready, value);
                    prop_assert!(claimed.insert(at, value).is_none(), "a place given twice");
                }
                Step::Release(n) => if let Some(at) = pick(&claimed, n) {
                    prop_assert_eq!(ready.release(at), claimed.remove(&at));
                    queued.retain(|other| *other != at);
                    prop_assert_eq!(ready.release(at), None);
                    prop_assert!(!ready.push_back(at));
                },
                Step::Back(n) => if let Some(at) = pick(&claimed, n) {
                    let was_in = queued.contains(&at);
                    prop_assert_eq!(ready.push_back(at), !was_in);
                    if !was_in { queued.push_back(at) }
                },
                Step::Front(n) => if let Some(at) = pick(&claimed, n) {
                    let was_in = queued.contains(&at);
                    prop_assert_eq!(ready.push_front(at), !was_in);
                    if !was_in { queued.push_front(at) }
                },
                Step::Unqueue(n) => if let Some(at) = pick(&claimed, n) {
                    prop_assert_eq!(ready.unqueue(at), queued.contains(&at));
                    queued.retain(|other| *other != at);
                },
                Step::Rotate(n) => if let Some(at) = pick(&claimed, n) {
                    let was_in = queued.contains(&at);
                    prop_assert_eq!(ready.rotate(at), was_in);
                    if was_in {
                        queued.retain(|other| *other != at);
                        queued.push_back(at);
                    }
                },
                Step::Peek => {
                    let expected = queued.front().map(|at| (*at, claimed[at]));
                    prop_assert_eq!(ready.peek(|at, value| (at, *value)), expected);
                }
                Step::Pop => {
                    let expected = queued.pop_front().map(|at| (at, claimed[&at]));
                    prop_assert_eq!(ready.pop(|at, value| (at, *value)), expected);
                }
            }
            prop_assert_eq!(ready.len(), queued.len());
            prop_assert_eq!(ready.is_empty(), queued.is_empty());
        }
    }
}

#[test]
fn places_do_not_grow_while_some_are_free() {
    let mut ready = Ready::new();
    for round in 0..10_000 {
        let at = claim(&mut ready, round);
        assert!(at < 64, "place {at} in round {round}, with none in use");
        ready.push_back(at);
        assert_eq!(ready.release(at), Some(round));
        assert!(ready.is_empty());
    }
}

#[test]
fn without_room_nothing_is_claimed() {
    let mut ready = Ready::new();
    assert_eq!(ready.claim(1, &mut None), None);
    // Room that was found for an earlier state of the list is not enough, and does no harm.
    let mut early = Room::new(0);
    for value in 0..64 {
        claim(&mut ready, value);
    }
    assert_eq!(ready.wants_room(), Some(1));
    assert_eq!(ready.claim(64, &mut early), None);
    assert_eq!(claim(&mut ready, 64), 64);
    assert!(ready.push_back(64));
    assert_eq!(ready.pop(|at, value| (at, *value)), Some((64, 64)));
}
