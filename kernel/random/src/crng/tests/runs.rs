//! How a long request is split into runs of one key: every place in a key's run and every length, at the real sizes.

use super::*;

/// Never gives the same block twice, and knows nothing else.
struct Numbers(core::cell::Cell<u64>);

impl BlockGenerator for Numbers {
    fn fill(&self, _: &Key, _: u32, out: &mut [Block]) {
        for block in out {
            self.0.set(self.0.get() + 1);
            block.as_chunks_mut().0.fill(self.0.get().to_le_bytes());
        }
    }
}

/// Runs that one piece is split into: each is one key's, they follow each other without a gap, and no key gives a block
/// of its own again or one from its end on, where its successor lies.
fn check(start: u32, count: usize, fault: usize) {
    let numbers = Numbers(core::cell::Cell::new(0));
    let (generation, made_for) = (Generation::of(1), MachineId::NONE);
    let mut stream = Stream { key: Key::new([7; 32]), next_block: start, generation, made_for };
    let (mut made, mut runs, mut last) = (0, 0, ([7; 32], start));
    let whole = stream.runs(&numbers, count, |key, counter, run| {
        let what = (start, count, fault);
        assert_eq!(run.start, made, "a gap: {what:?}");
        assert!(!run.is_empty() && run.len() <= STREAM_REKEY_BLOCKS as usize, "{what:?}");
        assert!(counter as usize + run.len() <= STREAM_REKEY_BLOCKS as usize, "{what:?}");
        let expected = if *key.as_bytes() == last.0 { last.1 } else { 0 };
        assert_eq!(counter, expected, "{what:?}");
        last = (*key.as_bytes(), counter + run.len() as u32);
        made = run.end;
        runs += 1;
        runs - 1 != fault
    });
    assert_eq!(whole, made == count && runs <= fault, "{start}, {count}, {fault}");
    assert!(whole || runs == fault + 1);
    assert_eq!(stream.next_block, last.1, "what was begun counts as made");
    assert_eq!(*stream.key.as_bytes(), last.0);
    let fewest = count.div_ceil(STREAM_REKEY_BLOCKS as usize);
    assert!(fault != usize::MAX || (fewest..=fewest + 1).contains(&runs.max(fewest)));
}

#[test]
#[cfg_attr(miri, ignore = "takes hours, and runs no code that the other tests do not")]
fn every_place_and_length_is_split_without_a_gap_or_a_repetition() {
    let counts = (0..=140).chain(370..=400).chain(500..=530).chain(1000..=1040).chain([5000]);
    for count in counts {
        for start in 0..=STREAM_REKEY_BLOCKS {
            check(start, count, usize::MAX);
        }
        for (start, fault) in [(0, 0), (0, 1), (1, 0), (1, 1), (511, 0), (512, 0), (512, 2)] {
            check(start, count, fault);
        }
    }
}

/// The number that the rest is about, and whoever changes it has to look at what it is for.
#[test]
fn a_key_serves_512_blocks() {
    assert_eq!((STREAM_REKEY, STREAM_REKEY_BLOCKS), (32 * 1024, 512));
    assert_eq!((BATCH_DRAW_MAX, GROUP_WORDS), (256, 64));
}
