//! Random calls against a model: a list of all waiters in the order in which they stand.
#![cfg(not(alea_loom))]

use alea_futexq::{Entry, Exclusive, Key, Kind, Line, Place, Table, Taken, Waiter, WrongKind};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

const QUEUES: usize = 4;
const WORDS: usize = 10;
const TASKS: usize = 40;

/// Words 0 to 3 have a queue each, 4 to 7 share one, 8 and 9 share even their hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word(usize);

impl Key for Word {
    fn hash(&self) -> u64 {
        match self.0 {
            word @ 0..4 => (word as u64) << 48,
            word @ 4..8 => word as u64,
            _ => u64::MAX,
        }
    }
}

struct Inner {
    number: usize,
    place: Place,
}

#[derive(Clone)]
struct Task(Rc<Inner>);

impl Waiter for Task {
    fn place(&self) -> &Place {
        &self.0.place
    }
}

struct Lock(RefCell<Line<Word, Task>>);

impl Exclusive<Line<Word, Task>> for Lock {
    fn with<R>(&self, f: impl FnOnce(&mut Line<Word, Task>) -> R) -> R {
        f(&mut self.0.borrow_mut())
    }
}

#[derive(Clone, Debug)]
enum Call {
    Queue { task: usize, word: usize, kind: Kind<Word>, bitset: u32 },
    Wake { word: usize, count: usize, bitset: u32 },
    Requeue { from: usize, to: usize, wakes: usize, moves: usize },
    Leave { task: usize },
}

fn call() -> impl Strategy<Value = Call> {
    let kind = prop_oneof![
        20 => Just(Kind::Plain),
        1 => Just(Kind::Pi),
        1 => (0..WORDS).prop_map(|word| Kind::ForPi(Word(word))),
    ];
    let bitset = prop_oneof![Just(1), Just(2), Just(3), Just(u32::MAX)];
    let count = || prop_oneof![0..4usize, Just(usize::MAX)];
    prop_oneof![
        6 => (0..TASKS, 0..WORDS, kind, bitset.clone())
            .prop_map(|(task, word, kind, bitset)| Call::Queue { task, word, kind, bitset }),
        2 => (0..WORDS, count(), bitset)
            .prop_map(|(word, count, bitset)| Call::Wake { word, count, bitset }),
        3 => (0..WORDS, 0..WORDS, count(), count())
            .prop_map(|(from, to, wakes, moves)| Call::Requeue { from, to, wakes, moves }),
        2 => (0..TASKS).prop_map(|task| Call::Leave { task }),
    ]
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Standing {
    task: usize,
    word: usize,
    kind: Kind<Word>,
    bitset: u32,
}

#[derive(Default)]
struct Model(Vec<Standing>);

impl Model {
    fn at(&self, word: usize) -> impl Iterator<Item = (usize, Standing)> + '_ {
        self.0.iter().copied().enumerate().filter(move |(_, s)| s.word == word)
    }

    fn wake(&mut self, word: usize, count: usize, bitset: u32, woken: &mut Vec<usize>) -> bool {
        let mut passed = 0;
        while woken.len() < count {
            let Some((at, next)) = self.at(word).nth(passed) else { break };
            if next.kind != Kind::Plain {
                return false;
            }
            if next.bitset & bitset != 0 {
                woken.push(self.0.remove(at).task);
            } else {
                passed += 1;
            }
        }
        true
    }

    fn requeue(&mut self, from: usize, to: usize, moves: usize) -> Option<usize> {
        let there = self.at(from).count();
        let mut moved = 0;
        while moved < moves.min(there) {
            let (at, next) = self.at(from).next()?;
            if next.kind != Kind::Plain {
                return None;
            }
            let mut entry = self.0.remove(at);
            entry.word = to;
            self.0.push(entry);
            moved += 1;
        }
        Some(moved)
    }
}

fn task_numbers(taken: Taken<Word, Task>) -> Vec<usize> {
    let mut numbers = Vec::new();
    taken.drain(|task| numbers.push(task.0.number));
    numbers
}

fn first(table: &Table<Lock, QUEUES>, word: usize) -> Option<usize> {
    table.first(Word(word), |entry: Option<&Entry<Word, Task>>| Some(entry?.waiter().0.number))
}

proptest! {
    #[test]
    fn the_queues_do_what_lists_would(calls in prop::collection::vec(call(), 1..200)) {
        let table = Table::new([(); QUEUES].map(|()| Lock(RefCell::new(Line::new()))));
        let tasks: Vec<Task> =
            (0..TASKS).map(|number| Task(Rc::new(Inner { number, place: Place::new() }))).collect();
        let mut model = Model::default();
        for call in calls {
            let mut expected = Vec::new();
            let mut taken = Taken::new();
            match call {
                Call::Queue { task, word, kind, bitset } => {
                    if tasks[task].place().is_queued() {
                        continue;
                    }
                    let entry = Entry::try_new(Word(word), kind, bitset, tasks[task].clone());
                    table.queue(entry.unwrap());
                    model.0.push(Standing { task, word, kind, bitset });
                }
                Call::Wake { word, count, bitset } => {
                    let result = table.wake(Word(word), count, bitset, &mut taken);
                    let good = model.wake(word, count, bitset, &mut expected);
                    prop_assert_eq!(result, if good { Ok(()) } else { Err(WrongKind) });
                }
                Call::Requeue { from, to, wakes, moves } => {
                    let words = (Word(from), Word(to));
                    let result = table.requeue(words, (wakes, moves), &mut taken);
                    let good = model.wake(from, wakes, u32::MAX, &mut expected);
                    let moved = if good { model.requeue(from, to, moves) } else { None };
                    prop_assert_eq!(result, moved.ok_or(WrongKind));
                }
                Call::Leave { task } => {
                    let entry = table.leave::<Word, Task>(&tasks[task]);
                    let at = model.0.iter().position(|s| s.task == task);
                    prop_assert_eq!(entry.is_some(), at.is_some());
                    if let (Some(entry), Some(at)) = (entry, at) {
                        let standing = model.0.remove(at);
                        prop_assert_eq!(entry.key(), Word(standing.word));
                        prop_assert_eq!(entry.kind(), standing.kind);
                    }
                }
            }
            prop_assert_eq!(task_numbers(taken), expected);
            for task in &tasks {
                let waits = model.0.iter().any(|s| s.task == task.0.number);
                prop_assert_eq!(task.place().is_queued(), waits);
            }
            for word in 0..WORDS {
                let has_pi = model.at(word).any(|(_, s)| s.kind == Kind::Pi);
                prop_assert_eq!(table.any(Word(word), |kind| kind == Kind::Pi), has_pi);
                prop_assert_eq!(first(&table, word), model.at(word).next().map(|(_, s)| s.task));
            }
        }
    }
}

#[test]
fn ten_thousand_waiters_leave_from_any_place_and_the_rest_keep_their_order() {
    const MANY: usize = 10_000;
    let table = Table::new([(); QUEUES].map(|()| Lock(RefCell::new(Line::new()))));
    let tasks: Vec<Task> =
        (0..MANY).map(|number| Task(Rc::new(Inner { number, place: Place::new() }))).collect();
    for task in &tasks {
        table.queue(Entry::try_new(Word(4), Kind::Plain, 1, task.clone()).unwrap());
    }
    for task in tasks.iter().filter(|task| task.0.number % 3 == 1) {
        assert!(table.leave::<Word, Task>(task).is_some());
        assert!(table.leave::<Word, Task>(task).is_none());
    }
    let mut taken = Taken::new();
    assert_eq!(table.requeue((Word(4), Word(0)), (0, usize::MAX), &mut taken), Ok(6667));
    table.wake(Word(0), usize::MAX, 1, &mut taken).unwrap();
    let order: Vec<usize> = (0..MANY).filter(|number| number % 3 != 1).collect();
    assert_eq!(task_numbers(taken), order);
}
