//! The numbered list against a plain sorted map.

use alea_ranges::Numbered;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// With values of this size a piece has four places.
type Wide = [u64; 126];

fn wide(number: u64) -> Wide {
    let mut value = [0; 126];
    value[125] = number;
    value
}

#[derive(Clone, Debug)]
enum Op {
    /// So far below the greatest number ever used, or above it.
    Insert(u64),
    Remove(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..12u64).prop_map(Op::Insert),
        4 => any::<usize>().prop_map(Op::Remove),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn list_is_the_model(ops in prop::collection::vec(op(), 1..200)) {
        let mut list = Numbered::new();
        let mut model = BTreeMap::new();
        let mut used = BTreeSet::new();
        let mut greatest = 10;
        for op in ops {
            match op {
                Op::Insert(at) => {
                    let number = greatest + 2 - at.min(greatest);
                    if used.insert(number) {
                        list.insert(number, wide(number)).unwrap();
                        model.insert(number, wide(number));
                        greatest = greatest.max(number);
                    }
                }
                Op::Remove(which) => {
                    let number = model.keys().copied().nth(which % model.len().max(1));
                    let number = number.unwrap_or(greatest + 1);
                    prop_assert_eq!(list.remove(number), model.remove(&number));
                    prop_assert_eq!(list.remove(number), None);
                    prop_assert_eq!(list.get(number), None);
                }
            }
            for from in [0, greatest / 2, greatest, greatest + 1] {
                let wanted: Vec<u64> = model.range(from..).map(|(number, _)| *number).collect();
                let found: Vec<u64> = list.from(from).map(|value| value[125]).collect();
                prop_assert_eq!(found, wanted);
                prop_assert_eq!(list.get(from).is_some(), model.contains_key(&from));
            }
        }
    }
}

/// Whatever it holds, and whatever went, the list asks for no more than a page at a time, and for few of them.
#[test]
fn no_room_is_more_than_a_page() {
    let mut list = Numbered::new();
    for number in 0..30_000u64 {
        list.insert(number, Box::new(number)).unwrap();
        assert!(list.rooms().all(|bytes| bytes <= 4096), "after {number}");
    }
    // A few that stay keep the others' room only in part.
    for number in (0..30_000u64).filter(|number| number % 300 != 7) {
        assert_eq!(list.remove(number), Some(Box::new(number)));
    }
    assert_eq!(list.from(0).count(), 100);
    assert!(list.rooms().count() <= 4, "{} pieces", list.rooms().count());
}
