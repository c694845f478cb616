//! The range map against a plain sorted map.

use alea_ranges::{RangeMap, Span};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
struct Piece {
    start: u64,
    end: u64,
    guard: u64,
}

impl Span for Piece {
    fn start(&self) -> u64 {
        self.start
    }
    fn end(&self) -> u64 {
        self.end
    }
    fn guard(&self) -> u64 {
        self.guard
    }
}

type Model = BTreeMap<u64, Piece>;

fn is_free(model: &Model, start: u64, end: u64) -> bool {
    model.values().all(|p| p.end <= start || p.start >= end)
}

fn gap_ok(model: &Model, at: u64, len: u64) -> bool {
    let above = model.values().find(|p| p.end > at);
    above.is_none_or(|p| p.start.saturating_sub(p.guard) >= at + len)
}

fn highest(model: &Model, len: u64, low: u64, high: u64) -> Option<u64> {
    (low..=high.checked_sub(len)?).rev().find(|&at| gap_ok(model, at, len))
}

fn lowest(model: &Model, len: u64, low: u64, high: u64) -> Option<u64> {
    (low..=high.checked_sub(len)?).find(|&at| gap_ok(model, at, len))
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u64, u64, bool),
    Remove(usize),
    Shrink(usize),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn behaves_like_a_sorted_map(
        ops in proptest::collection::vec(prop_oneof![
            4 => (0u64..2000, 1u64..6, any::<bool>()).prop_map(|(a, l, g)| Op::Insert(a, l, g)),
            1 => any::<usize>().prop_map(Op::Remove),
            1 => any::<usize>().prop_map(Op::Shrink),
        ], 1..700),
        probes in proptest::collection::vec((0u64..2000, 1u64..30, 0u64..2000), 8),
    ) {
        let mut map = RangeMap::new();
        let mut model = Model::new();
        for op in ops {
            match op {
                Op::Insert(start, len, guarded) => {
                    prop_assert_eq!(map.is_free(start, start + len), is_free(&model, start, start + len));
                    if is_free(&model, start, start + len) {
                        let piece = Piece { start, end: start + len, guard: u64::from(guarded) * 3 };
                        let pos = map.insert(piece.clone()).unwrap();
                        prop_assert_eq!(map.get(pos), Some(&piece));
                        model.insert(start, piece);
                    }
                }
                Op::Remove(n) if !model.is_empty() => {
                    let start = *model.keys().nth(n % model.len()).unwrap();
                    let pos = map.find(start).unwrap();
                    prop_assert_eq!(map.remove(pos), model.remove(&start));
                }
                Op::Shrink(n) if !model.is_empty() => {
                    let start = *model.keys().nth(n % model.len()).unwrap();
                    let mut piece = model.remove(&start).unwrap();
                    if piece.end - piece.start > 1 {
                        piece.start += 1;
                    }
                    map.update(map.find(start).unwrap(), |p| *p = piece.clone());
                    model.insert(piece.start, piece);
                }
                Op::Remove(_) | Op::Shrink(_) => {}
            }
        }
        prop_assert_eq!(map.len(), model.len());
        prop_assert!(map.iter().eq(model.values()));
        for (addr, len, high) in probes {
            let holding = model.values().find(|p| p.start <= addr && addr < p.end);
            prop_assert_eq!(map.find(addr).and_then(|p| map.get(p)), holding);
            let after = model.values().find(|p| p.end > addr);
            prop_assert_eq!(map.at_or_after(addr).and_then(|p| map.get(p)), after);
            let before = model.values().rev().find(|p| p.start < addr);
            prop_assert_eq!(map.before(addr).and_then(|p| map.get(p)), before);
            prop_assert_eq!(map.highest_gap(len, addr, high), highest(&model, len, addr, high));
            prop_assert_eq!(map.lowest_gap(len, addr, high), lowest(&model, len, addr, high));
        }
        let mut pos = map.first();
        for piece in model.values() {
            prop_assert_eq!(pos.and_then(|p| map.get(p)), Some(piece));
            pos = pos.and_then(|p| map.next(p));
        }
        prop_assert!(pos.is_none());
        let copy = map.try_clone_with(|p| (p.start % 3 != 0).then(|| p.clone())).unwrap();
        prop_assert!(copy.iter().eq(model.values().filter(|p| p.start % 3 != 0)));
    }
}
