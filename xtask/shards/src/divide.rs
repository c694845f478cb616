//! Which machine does what: the one rule that every command divides its work by.
//!
//! The longest piece goes first, each to the part that has least so far (by time, then by pieces, then by number). How long pieces
//! take is told by an earlier run; one that it does not know counts as the middle of those that it does. With nothing known all
//! count the same, and the rule deals the names out in turn. It depends on the names and the durations alone, not on the order in
//! which they come: every machine comes to the same parts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use anyhow::{Result, bail};
use sha2::{Digest, Sha256};

use crate::shard::Shard;

/// Seconds by the name of a piece.
pub type Durations = BTreeMap<String, f64>;

/// What `shard` has of `units`, in the order in which they stand there. Two of one name are an error: it could be in two parts.
pub fn part(units: &[String], shard: Shard, durations: &Durations) -> Result<Vec<String>> {
    let names: BTreeSet<&str> = units.iter().map(String::as_str).collect();
    if names.len() != units.len() {
        let twice = |name: &&String| units.iter().filter(|other| other == name).count() > 1;
        bail!("two pieces of one name: {:?}", units.iter().find(twice));
    }
    let usual = middle(&names, durations);
    let cost = |name: &str| durations.get(name).map_or(usual, |seconds| milliseconds(*seconds));
    let mut order: Vec<(Reverse<u64>, &str)> =
        names.iter().map(|name| (Reverse(cost(name)), *name)).collect();
    order.sort_unstable();
    // What each part has so far: time, pieces, number.
    let mut parts: BinaryHeap<_> =
        (0..shard.count() as usize).map(|place| Reverse((0u64, 0u64, place))).collect();
    let mut mine = BTreeSet::new();
    for (Reverse(cost), name) in order {
        let Some(Reverse((time, pieces, place))) = parts.pop() else { break };
        if place == shard.place() {
            mine.insert(name);
        }
        parts.push(Reverse((time.saturating_add(cost), pieces + 1, place)));
    }
    Ok(units.iter().filter(|name| mine.contains(name.as_str())).cloned().collect())
}

/// The middle one of the durations that are known, or one second.
fn middle(names: &BTreeSet<&str>, durations: &Durations) -> u64 {
    let known = names.iter().filter_map(|name| durations.get(*name));
    let mut known: Vec<u64> = known.map(|seconds| milliseconds(*seconds)).collect();
    known.sort_unstable();
    known.get(known.len() / 2).copied().unwrap_or(1000)
}

/// Whole ones: sums do not depend on how a machine rounds. What is negative or no number counts as nothing.
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}

/// The sum of the names of all pieces, in whatever order: whether parts belong together.
pub fn digest<'a>(units: impl Iterator<Item = &'a str>) -> String {
    let sorted: BTreeSet<&str> = units.collect();
    let mut sha = Sha256::new();
    for name in sorted {
        sha.update(name.as_bytes());
        sha.update(b"\n");
    }
    sha.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("test {number}")).collect()
    }

    fn parts(units: &[String], count: u32, durations: &Durations) -> Vec<Vec<String>> {
        Shard::all(count).map(|shard| part(units, shard, durations).unwrap()).collect()
    }

    /// Every piece is in exactly one part, whatever is known of durations.
    #[test]
    fn parts_are_disjoint_and_complete() {
        for count in (1..=40).chain([64, 100, 1000]) {
            for size in [0, 1, 2, 3, 7, 39, 40, 41, 100, 297] {
                let units = names(size);
                // Known of two in three, from nothing to hours.
                let known = units.iter().enumerate().filter(|(at, _)| at % 3 != 0);
                let some: Durations =
                    known.map(|(at, name)| (name.clone(), (at * at % 7919) as f64 / 3.0)).collect();
                for durations in [&Durations::new(), &some] {
                    let parts = parts(&units, count, durations);
                    assert_eq!(parts.len(), count as usize);
                    let mut all: Vec<&String> = parts.iter().flatten().collect();
                    all.sort();
                    let mut want: Vec<&String> = units.iter().collect();
                    want.sort();
                    assert_eq!(all, want, "{size} pieces in {count} parts");
                }
            }
        }
    }

    #[test]
    fn with_nothing_known_parts_differ_by_one_piece_at_most() {
        for count in 1..=30 {
            let sizes: Vec<usize> =
                parts(&names(100), count, &Durations::new()).iter().map(Vec::len).collect();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(most - least <= 1, "{sizes:?}");
        }
    }

    #[test]
    fn the_order_in_which_pieces_come_does_not_matter() {
        let units = names(50);
        let mut turned = units.clone();
        turned.reverse();
        for shard in Shard::all(7) {
            let mut one = part(&units, shard, &Durations::new()).unwrap();
            let mut other = part(&turned, shard, &Durations::new()).unwrap();
            one.sort();
            other.sort();
            assert_eq!(one, other);
        }
        // And a part keeps the order of its pieces.
        let first = part(&units, Shard::at(0, 2), &Durations::new()).unwrap();
        assert!(first.is_sorted_by_key(|name| units.iter().position(|unit| unit == name)));
    }

    #[test]
    fn parts_take_as_long_as_each_other_if_durations_are_known() {
        let units = names(60);
        let durations: Durations =
            units.iter().enumerate().map(|(at, name)| (name.clone(), at as f64)).collect();
        let long: Vec<f64> = parts(&units, 4, &durations)
            .iter()
            .map(|part| part.iter().map(|name| durations[name]).sum())
            .collect();
        let total: f64 = long.iter().sum();
        assert!(long.iter().all(|one| (one - total / 4.0).abs() < total / 40.0), "{long:?}");
        // One that is as long as all others has a part to itself.
        let heavy = [("test 0".into(), 1000.0), ("test 1".into(), 1.0), ("test 2".into(), 1.0)];
        let heavy = Durations::from(heavy);
        let parts = parts(&units, 2, &heavy);
        assert_eq!((parts[0].len(), parts[1].len()), (1, 59));
    }

    #[test]
    fn odd_durations_do_no_harm() {
        let units = names(5);
        let odd = [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0];
        let durations: Durations = units.iter().cloned().zip(odd).collect();
        let parts = parts(&units, 3, &durations);
        assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), 5);
    }

    #[test]
    fn two_of_one_name_are_refused() {
        let units = ["a", "b", "a"].map(String::from);
        let error = part(&units, Shard::WHOLE, &Durations::new()).unwrap_err().to_string();
        assert!(error.contains("\"a\""), "{error}");
    }

    #[test]
    fn the_sum_is_of_the_names_alone() {
        assert_eq!(digest(["a", "b"].into_iter()), digest(["b", "a"].into_iter()));
        assert_ne!(digest(["a", "b"].into_iter()), digest(["ab"].into_iter()));
    }
}
