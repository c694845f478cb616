//! The buddy allocator against a plain set of free frames.

use alea_frames::{Buddy, FrameMeta, MAX_ORDER, Owner};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn metadata(frames: usize) -> Vec<FrameMeta> {
    (0..frames).map(|_| FrameMeta::new()).collect()
}

#[test]
fn all_frames_of_an_odd_range_come_out_once_and_merge_again() {
    let meta = metadata(1003);
    let mut buddy = Buddy::new();
    buddy.add_range(&meta, 3, 1003);
    buddy.check(&meta);
    let mut seen = BTreeSet::new();
    while let Some(frame) = buddy.alloc(&meta, 0) {
        assert!((3..1003).contains(&frame));
        assert!(seen.insert(frame));
    }
    assert_eq!(seen.len(), 1000);
    for frame in seen {
        buddy.free(&meta, frame, 0);
    }
    buddy.check(&meta);
    assert!(buddy.alloc(&meta, 8).is_some(), "256..512 merged back into one block");
}

#[test]
fn an_order_that_is_too_large_is_refused() {
    let meta = metadata(64);
    let mut buddy = Buddy::new();
    buddy.add_range(&meta, 0, 64);
    assert_eq!(buddy.alloc(&meta, MAX_ORDER), None);
    assert_eq!(buddy.alloc(&meta, MAX_ORDER + 1), None);
    assert_eq!(buddy.alloc(&meta, 6), Some(0));
    assert_eq!(buddy.free_frames(), 0);
}

#[test]
#[should_panic(expected = "freed twice")]
fn a_double_free_is_caught() {
    let meta = metadata(8);
    let mut buddy = Buddy::new();
    buddy.add_range(&meta, 0, 8);
    let frame = buddy.alloc(&meta, 0).unwrap();
    let _other = buddy.alloc(&meta, 0).unwrap();
    buddy.free(&meta, frame, 0);
    buddy.free(&meta, frame, 0);
}

#[test]
fn references_count_and_the_last_put_says_so() {
    let meta = FrameMeta::new();
    meta.set_owner(Owner::Anon);
    meta.get();
    assert_eq!((meta.refs(), meta.owner()), (2, Owner::Anon));
    assert!(!meta.put());
    assert!(meta.put());
}

#[derive(Clone, Debug)]
enum Op {
    Alloc(usize),
    Singles(usize),
    Free(usize),
    FreeInPieces(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        (0usize..7).prop_map(Op::Alloc),
        (1usize..20).prop_map(Op::Singles),
        any::<usize>().prop_map(Op::Free),
        any::<usize>().prop_map(Op::FreeInPieces),
    ];
    proptest::collection::vec(op, 1..200)
}

proptest! {
    #[test]
    fn blocks_never_overlap_and_nothing_is_lost(
        start in 0u32..70, len in 1u32..600, hole in 0u32..40, ops in ops(),
    ) {
        let end = start + len;
        let meta = metadata((end + hole + 33) as usize);
        let mut buddy = Buddy::new();
        buddy.add_range(&meta, start, end);
        buddy.add_range(&meta, end + hole, end + hole + 33);
        let total = u64::from(len) + 33;
        let mut held: Vec<(u32, usize)> = Vec::new();
        let mut frames = BTreeSet::new();
        let take = |frame: u32, order: usize, held: &mut Vec<(u32, usize)>,
                        frames: &mut BTreeSet<u32>| {
            meta[frame as usize].set_owner(Owner::Anon);
            held.push((frame, order));
            for inner in frame..frame + (1 << order) {
                assert!((start..end).contains(&inner) || (end + hole..end + hole + 33).contains(&inner));
                assert!(frames.insert(inner), "frame {inner} handed out twice");
            }
        };
        for op in ops {
            match op {
                Op::Alloc(order) => {
                    if let Some(frame) = buddy.alloc(&meta, order) {
                        take(frame, order, &mut held, &mut frames);
                    }
                }
                Op::Singles(count) => {
                    let mut out = vec![0; count];
                    let got = buddy.alloc_singles(&meta, &mut out);
                    for &frame in &out[..got] {
                        take(frame, 0, &mut held, &mut frames);
                    }
                }
                Op::Free(n) | Op::FreeInPieces(n) if !held.is_empty() => {
                    let (frame, order) = held.swap_remove(n % held.len());
                    for inner in frame..frame + (1 << order) {
                        frames.remove(&inner);
                    }
                    if matches!(op, Op::Free(_)) {
                        buddy.free(&meta, frame, order);
                    } else {
                        buddy.free_run(&meta, frame, 1 << order);
                    }
                }
                Op::Free(_) | Op::FreeInPieces(_) => {}
            }
            prop_assert_eq!(buddy.free_frames(), total - frames.len() as u64);
        }
        buddy.check(&meta);
        for (frame, order) in held {
            buddy.free(&meta, frame, order);
        }
        buddy.check(&meta);
        prop_assert_eq!(buddy.free_frames(), total);
    }
}
