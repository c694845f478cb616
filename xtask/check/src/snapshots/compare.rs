//! What twins may have in common, and what they have.
//!
//! A call that had returned when the snapshot was taken gave the same to both, and so did one that was interrupted after
//! its bytes had been compared with the id: whole pieces at its beginning, or all of it. Everything else counts: eight
//! equal bytes anywhere are a fault.

use std::collections::HashSet;

use super::rig::Log;

/// Bytes that must not be found in both twins, at any offset.
const WINDOW: usize = 8;

/// The kernel compares a long request piece by piece, and any other once.
pub const PIECE: usize = 4096;

/// One thread of the twins.
pub struct Thread<'a> {
    pub twins: [&'a Log; 2],
    /// Calls that had returned when the snapshot was taken.
    pub returned: usize,
    /// Whether another had been begun, and so may have compared its bytes.
    pub in_call: bool,
}

/// What twins have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// Bytes of the interrupted call that had been compared before.
    pub compared: usize,
    /// Bytes of the interrupted call.
    pub of: usize,
    /// Places of eight equal bytes in anything else.
    pub windows: usize,
}

/// Compares the twins' bytes.
pub fn compare(threads: &[Thread<'_>]) -> Common {
    let mut common = Common::default();
    let all_of_second: HashSet<&[u8]> =
        threads.iter().flat_map(|thread| thread.twins[1]).flat_map(|b| b.windows(WINDOW)).collect();
    for thread in threads {
        let [one, two] = thread.twins;
        let mut rest = one.iter().skip(thread.returned);
        if thread.in_call
            && let (Some(first), Some(second)) = (rest.next(), two.get(thread.returned))
        {
            common.of = first.len();
            common.compared = compared(first, second);
            common.windows += windows(&first[common.compared..], &all_of_second);
        }
        common.windows += rest.map(|bytes| windows(bytes, &all_of_second)).sum::<usize>();
    }
    common
}

fn windows(bytes: &[u8], others: &HashSet<&[u8]>) -> usize {
    bytes.windows(WINDOW).filter(|window| others.contains(window)).count()
}

/// The length of the equal pieces at the beginning.
fn compared(one: &[u8], two: &[u8]) -> usize {
    let pieces = one.chunks(PIECE).zip(two.chunks(PIECE));
    pieces.take_while(|(one, two)| one == two).map(|(one, _)| one.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(seed: u8, len: usize) -> Vec<u8> {
        (0..len).map(|n| (n as u8).wrapping_mul(31).wrapping_add(seed) ^ (n >> 8) as u8).collect()
    }

    fn of(one: &Log, two: &Log, returned: usize, in_call: bool) -> Common {
        compare(&[Thread { twins: [one, two], returned, in_call }])
    }

    #[test]
    fn what_had_returned_is_shared_and_nothing_else() {
        let (old, one, two) = (bytes(1, 16), vec![1; 16], vec![2; 16]);
        let twins = [vec![old.clone(), one.clone()], vec![old.clone(), two]];
        assert_eq!(of(&twins[0], &twins[1], 1, false).windows, 0);
        assert_eq!(of(&twins[0], &twins[1], 0, false).windows, 9);
        // Not even later than the other.
        let late = [vec![one.clone(), old.clone()], vec![old.clone(), vec![2; 16]]];
        assert_eq!(of(&late[0], &late[1], 1, false).windows, 9);
    }

    #[test]
    fn a_call_that_was_interrupted_shares_whole_pieces_at_its_beginning() {
        let short = vec![bytes(1, 16)];
        assert_eq!(of(&short, &short, 0, true), Common { compared: 16, of: 16, windows: 0 });
        let long = |last: u8| vec![[bytes(1, 4096), vec![last; 4096]].concat()];
        let shared = of(&long(1), &long(2), 0, true);
        assert_eq!(shared, Common { compared: 4096, of: 8192, windows: 0 });
        let half = |last: u8| vec![[bytes(1, 64), vec![last; 64]].concat()];
        assert_eq!(of(&half(1), &half(2), 0, true), Common { compared: 0, of: 128, windows: 57 });
    }
}
