//! The table against a plain sorted map.

use alea_names::Names;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

#[derive(Clone, Debug)]
enum Op {
    /// A name with one of few hashes, so that many share one.
    Insert(u32),
    Remove(usize),
    RemoveFirst,
    Replace(usize),
}

/// By cursor: hash and child.
type Model = BTreeMap<u64, (u32, u32)>;

fn nth(model: &Model, n: usize) -> Option<u64> {
    model.keys().copied().nth(n % model.len().max(1))
}

/// The children from a cursor on, with theirs.
fn listed(names: &Names<u32>, from: u64) -> Vec<(u64, u32)> {
    let mut listed = Vec::new();
    let outcome = names.visit(from, |cursor, &child| {
        listed.push((cursor, child));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(outcome, ControlFlow::Continue(()));
    assert_eq!(
        names.visit(from, |cursor, _| ControlFlow::Break(cursor)).break_value(),
        listed.first().map(|first| first.0)
    );
    listed
}

fn check(names: &Names<u32>, model: &Model, from: u64) {
    assert_eq!(names.is_empty(), model.is_empty());
    let listed = listed(names, from);
    let expected: Vec<_> =
        model.range(from..).map(|(&cursor, &(_, child))| (cursor, child)).collect();
    assert_eq!(listed, expected);
    for &(hash, child) in model.values() {
        assert_eq!(names.find(hash, |&other| other == child), Some(&child));
        assert_eq!(names.find(hash.wrapping_add(1 << 20), |&other| other == child), None);
    }
}

fn run(ops: Vec<Op>) {
    let (mut names, mut model) = (Names::new(), Model::new());
    for (child, op) in (0u32..).zip(ops) {
        match op {
            Op::Insert(hash) => {
                let cursor = names.insert(hash, child).expect("there is memory");
                assert!(model.keys().all(|&other| other < cursor) && cursor + 1 == names.end());
                model.insert(cursor, (hash, child));
            }
            Op::Remove(n) => {
                let cursor = nth(&model, n).unwrap_or(5);
                assert_eq!(names.remove(cursor), model.remove(&cursor).map(|(_, child)| child));
                assert_eq!(names.remove(cursor), None);
            }
            Op::RemoveFirst => {
                assert_eq!(names.remove_first(), model.pop_first().map(|(_, (_, child))| child));
            }
            Op::Replace(n) => {
                let cursor = nth(&model, n).unwrap_or(5);
                let old = model.get_mut(&cursor).map(|(_, old)| std::mem::replace(old, child));
                assert_eq!(names.replace(cursor, child), old);
            }
        }
        check(&names, &model, 0);
        check(&names, &model, u64::from(child) / 2);
    }
    check(&names, &model, u64::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn behaves_like_a_sorted_map(
        ops in proptest::collection::vec(prop_oneof![
            6 => prop_oneof![0u32..8, any::<u32>()].prop_map(Op::Insert),
            3 => any::<usize>().prop_map(Op::Remove),
            1 => Just(Op::RemoveFirst),
            1 => any::<usize>().prop_map(Op::Replace),
        ], 1..300),
    ) {
        run(ops);
    }
}

#[test]
fn a_hundred_thousand_come_and_go_in_any_order() {
    let mut names = Names::new();
    let hash = |n: u32| n.wrapping_mul(0x9e37_79b9).rotate_left(15);
    let cursors: Vec<_> =
        (0..100_000).map(|n| names.insert(hash(n), n).expect("there is memory")).collect();
    for n in (0..100_000).step_by(7) {
        let mut tried = 0;
        let found = names.find(hash(n), |&child| {
            tried += 1;
            child == n
        });
        assert_eq!((found, tried), (Some(&n), 1));
    }
    for n in (0..100_000).rev().step_by(2) {
        assert_eq!(names.remove(cursors[n as usize]), Some(n));
    }
    assert!(listed(&names, 0).into_iter().map(|(_, n)| n).eq((0..100_000).step_by(2)));
    assert!((0..100_000).step_by(2).all(|n| names.remove_first() == Some(n)));
    assert!(names.is_empty() && names.remove_first().is_none());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "room that another has taken")]
fn room_is_for_one() {
    let mut names = Names::new();
    let room = names.reserve().unwrap();
    names.insert(0, 1).unwrap();
    names.insert_reserved(room, 0, 2);
}
