//! Interleavings, explored exhaustively: `RUSTFLAGS="--cfg alea_loom" cargo test --release --test loom`.
//!
//! What is at stake: a waiter that gives up while it is moved must find itself, or a wake-up is spent on one
//! that has gone, and one that waits still never gets it.
#![cfg(alea_loom)]

use alea_futexq::{Entry, Exclusive, Key, Kind, Line, Place, Table, Taken, Waiter};
use loom::sync::{Arc, Mutex};
use loom::thread;

const QUEUES: usize = 3;
const ANY: u32 = u32::MAX;

/// A word; its number is that of its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word(usize);

impl Key for Word {
    fn hash(&self) -> u64 {
        (self.0 as u64) << 48
    }
}

#[derive(Clone)]
struct Task(Arc<Place>);

impl Task {
    fn new() -> Self {
        Self(Arc::new(Place::new()))
    }
}

impl Waiter for Task {
    fn place(&self) -> &Place {
        &self.0
    }
}

struct Lock(Mutex<Line<Word, Task>>);

impl Exclusive<Line<Word, Task>> for Lock {
    fn with<R>(&self, f: impl FnOnce(&mut Line<Word, Task>) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

type Queues = Table<Lock, QUEUES>;

fn queues() -> Arc<Queues> {
    Arc::new(Table::new([(); QUEUES].map(|()| Lock(Mutex::new(Line::new())))))
}

fn queue(table: &Queues, word: usize, task: &Task) {
    table.queue(Entry::try_new(Word(word), Kind::Plain, ANY, task.clone()).unwrap());
}

/// Whether the waiter, which gives up, was still there.
fn leaves(table: &Queues, task: &Task) -> bool {
    table.leave::<Word, Task>(task).is_some()
}

fn wake(table: &Queues, word: usize) -> usize {
    let mut taken = Taken::new();
    table.wake(Word(word), 1, ANY, &mut taken).unwrap();
    taken.drain(|task: &Task| assert!(!task.place().is_queued(), "the woken still waits"))
}

fn requeue(table: &Queues, from: usize, to: usize) -> usize {
    let mut taken = Taken::<Word, Task>::new();
    let moved = table.requeue((Word(from), Word(to)), (0, 1), &mut taken).unwrap();
    assert!(taken.is_empty());
    moved
}

/// Ghosts: whoever is still found at any word.
fn left_behind(table: &Queues) -> usize {
    (0..QUEUES).map(|word| wake(table, word)).sum()
}

#[test]
fn who_is_moved_back_and_forth_and_not_woken_leaves_by_itself() {
    loom::model(|| {
        let (table, task) = (queues(), Task::new());
        queue(&table, 1, &task);
        let mover = {
            let table = table.clone();
            thread::spawn(move || {
                requeue(&table, 1, 2);
                requeue(&table, 2, 0);
            })
        };
        assert!(leaves(&table, &task), "a success that nobody caused");
        mover.join().unwrap();
        assert_eq!(left_behind(&table), 0);
    });
}

#[test]
fn a_wake_up_and_a_limit_that_meet_count_once() {
    loom::model(|| {
        let (table, task) = (queues(), Task::new());
        queue(&table, 0, &task);
        let mover = {
            let table = table.clone();
            thread::spawn(move || {
                requeue(&table, 0, 1);
                wake(&table, 1)
            })
        };
        let left = leaves(&table, &task);
        let woken = mover.join().unwrap();
        assert_eq!(woken, usize::from(!left), "a success for each wake-up, and no other");
        assert!(!task.place().is_queued());
        assert_eq!(left_behind(&table), 0);
    });
}

#[test]
fn two_that_move_against_each_other_lose_nobody() {
    loom::model(|| {
        let (table, task) = (queues(), Task::new());
        queue(&table, 0, &task);
        let [up, down] = [(0, 1), (1, 0)].map(|(from, to)| {
            let table = table.clone();
            thread::spawn(move || requeue(&table, from, to))
        });
        up.join().unwrap();
        down.join().unwrap();
        assert_eq!(left_behind(&table), 1);
        assert!(!leaves(&table, &task));
    });
}

#[test]
fn the_woken_sees_what_its_waker_did() {
    use loom::sync::atomic::{AtomicUsize, Ordering};
    loom::model(|| {
        let (table, task) = (queues(), Task::new());
        let word = Arc::new(AtomicUsize::new(0));
        queue(&table, 0, &task);
        let waker = {
            let (table, word) = (table.clone(), word.clone());
            thread::spawn(move || {
                word.store(1, Ordering::Relaxed);
                assert_eq!(wake(&table, 0), 1);
            })
        };
        while task.place().is_queued() {
            thread::yield_now();
        }
        assert_eq!(word.load(Ordering::Relaxed), 1);
        waker.join().unwrap();
    });
}

#[test]
fn who_queues_then_reads_is_seen_or_sees_the_new_word() {
    use loom::sync::atomic::{AtomicUsize, Ordering};
    loom::model(|| {
        let (table, task) = (queues(), Task::new());
        let word = Arc::new(AtomicUsize::new(0));
        let waker = {
            let (table, word) = (table.clone(), word.clone());
            thread::spawn(move || {
                word.store(1, Ordering::Relaxed);
                wake(&table, 0)
            })
        };
        queue(&table, 0, &task);
        let would_sleep = word.load(Ordering::Relaxed) == 0;
        let woken = waker.join().unwrap();
        assert!(!would_sleep || woken == 1, "it sleeps, and nobody wakes it");
    });
}
