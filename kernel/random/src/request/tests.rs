//! Splitting, at a small size: every length, every way in which the pieces can end, every answer to the question
//! after signals.

extern crate std;

use std::vec::Vec;

use super::*;

/// Small enough to try everything: a piece of three, and at most five of them.
const PIECE: usize = 3;
const MAX_LEN: usize = 15;

/// What the other side does, choice by choice: a tree that is walked from leaf to leaf.
#[derive(Default)]
struct Choices {
    taken: Vec<(usize, usize)>,
    next: usize,
}

impl Choices {
    /// One of `0 .. of`.
    fn choose(&mut self, of: usize) -> usize {
        if self.next == self.taken.len() {
            self.taken.push((0, of));
        }
        self.next += 1;
        self.taken[self.next - 1].0
    }

    /// The next leaf, if there is one.
    fn advance(&mut self) -> bool {
        self.next = 0;
        while let Some((choice, of)) = self.taken.pop() {
            if choice + 1 < of {
                self.taken.push((choice + 1, of));
                return true;
            }
        }
        false
    }
}

/// Linux's rule, written down from the other end: what is reported, by what happened to each piece.
fn expected(len: usize, moved: &[usize], signalled: bool) -> Result<usize, Refusal> {
    let done: usize = moved.iter().sum();
    let faulted = done < len.min(MAX_LEN) && !signalled;
    if faulted && done == 0 { Err(Refusal::Fault) } else { Ok(done) }
}

#[test]
fn every_request_in_every_way() {
    let mut ways = 0;
    for len in 0..=MAX_LEN + 2 {
        let mut choices = Choices::default();
        loop {
            ways += 1;
            let (mut moved, mut asked) = (Vec::new(), 0);
            let cell = core::cell::RefCell::new(&mut choices);
            let mut signalled = false;
            let result = serve_by::<PIECE, MAX_LEN>(
                len,
                |at, piece| {
                    assert_eq!(at, moved.iter().sum::<usize>(), "a gap or a repetition");
                    assert_eq!(piece, (len.min(MAX_LEN) - at).min(PIECE), "{len} at {at}");
                    // One more than was asked for: a transfer that lies is not believed.
                    let done = cell.borrow_mut().choose(piece + 2);
                    moved.push(done.min(piece));
                    done
                },
                || {
                    asked += 1;
                    signalled = cell.borrow_mut().choose(2) == 1;
                    signalled
                },
            );
            let done: usize = moved.iter().sum();
            assert_eq!(result, expected(len, &moved, signalled), "{len}: {moved:?}");
            // After each whole piece that is not the last, and never after a fault.
            let whole = moved.iter().filter(|&&moved| moved == PIECE).count();
            assert_eq!(
                asked,
                whole
                    - usize::from(
                        whole > 0 && done == len.min(MAX_LEN) && done.is_multiple_of(PIECE)
                    )
            );
            assert!(moved[..moved.len().saturating_sub(1)].iter().all(|&moved| moved == PIECE));
            if !choices.advance() {
                break;
            }
        }
    }
    assert!(ways > 500, "{ways}");
}

/// What makes the small size as good as the real one: a request ends at a whole piece or at its own end.
#[test]
fn the_longest_request_is_whole_pieces() {
    const { assert!(super::MAX_LEN.is_multiple_of(super::PIECE) && MAX_LEN.is_multiple_of(PIECE)) };
}
