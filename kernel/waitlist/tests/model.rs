//! Queues, sleepers and registrations against models, one thread at a time and several; also under Miri.
#![cfg(not(alea_loom))]

use alea_waitlist::{Exclusion, List, Queue, Registering, Registrations, Wake};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

struct Lock(Mutex<List>);

// SAFETY: a mutex around one list.
unsafe impl Exclusion for Lock {
    fn new(list: List) -> Self {
        Self(Mutex::new(list))
    }
    fn with<R>(&self, f: impl FnOnce(&mut List) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

fn queue() -> Queue<Lock> {
    Queue::new(Lock::new(List::new()))
}

/// Counts its wake-ups, and uses them or not.
struct Bell {
    rung: AtomicUsize,
    uses: AtomicBool,
}

impl Bell {
    fn new(uses: bool) -> Arc<Self> {
        Arc::new(Self { rung: AtomicUsize::new(0), uses: AtomicBool::new(uses) })
    }
    fn rung(&self) -> usize {
        self.rung.swap(0, Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(&self, _events: u32) -> bool {
        self.rung.fetch_add(1, Ordering::SeqCst);
        self.uses.load(Ordering::SeqCst)
    }
}

fn register(bell: &Arc<Bell>, exclusive: bool, queues: &[&Queue<Lock>]) -> Registrations<Lock> {
    let mut registering = Registering::new(bell.clone(), exclusive, 1);
    queues.iter().for_each(|queue| registering.watch(queue));
    registering.finish().unwrap()
}

#[test]
fn a_registration_outlives_its_queue() {
    let (bell, first, second) = (Bell::new(true), queue(), queue());
    let registrations = register(&bell, false, &[&first, &second, &first]);
    drop(first);
    second.wake(0, 1);
    assert_eq!(bell.rung(), 1);
    drop(second);
    drop(registrations);
    assert_eq!(Arc::strong_count(&bell), 1);
}

#[test]
fn a_dropped_registration_is_not_woken() {
    let (bell, queue) = (Bell::new(true), queue());
    let registrations = register(&bell, false, &[&queue, &queue]);
    queue.wake(0, 1);
    assert_eq!(bell.rung(), 2);
    drop(registrations);
    assert!(!queue.wake(0, 1));
    assert_eq!(bell.rung(), 0);
}

#[test]
fn an_exclusive_wake_up_that_is_not_used_goes_on() {
    let queue = queue();
    let bells = [Bell::new(false), Bell::new(true), Bell::new(true)];
    let _all = bells.each_ref().map(|bell| register(bell, true, &[&queue]));
    queue.wake(0, 1);
    assert_eq!(bells.each_ref().map(|bell| bell.rung()), [1, 1, 0]);
    queue.wake(0, usize::MAX);
    assert_eq!(bells.each_ref().map(|bell| bell.rung()), [1, 1, 1]);
}

#[test]
fn a_sleeper_leaves_as_it_is_woken_unless_it_is_awake() {
    let (queue, awake, asleep) = (queue(), Bell::new(false), Bell::new(true));
    queue.sleeper(&*awake, true, |awake_place| {
        awake_place.enter();
        queue.sleeper(&*asleep, true, |place| {
            assert!(!place.leave(), "it has not entered");
            place.enter();
            place.enter();
            assert!(queue.wake(0, 1));
            assert!(!place.leave(), "the wake-up took it out");
            assert!(!queue.wake(0, 1));
            place.enter();
            assert!(place.leave());
        });
        assert!(awake_place.leave(), "it was awake, so the wake-up was not for it");
    });
    assert!(!queue.wake(0, 1));
    assert_eq!((awake.rung(), asleep.rung()), (2, 1));
}

#[test]
fn sleepers_come_before_registrations_and_share_what_is_exclusive() {
    let (queue, sleeper, watcher) = (queue(), Bell::new(true), Bell::new(true));
    let _registrations = register(&watcher, true, &[&queue]);
    queue.sleeper(&*sleeper, true, |place| {
        place.enter();
        assert!(queue.wake(0, 1));
        assert_eq!((sleeper.rung(), watcher.rung()), (1, 0));
        assert!(!queue.wake(0, 1));
        assert_eq!((sleeper.rung(), watcher.rung()), (0, 1));
        place.enter();
        assert!(queue.wake_sleepers(0, usize::MAX));
        assert_eq!((sleeper.rung(), watcher.rung()), (1, 0));
    });
}

#[test]
fn many_registrations_of_one_queue_end_one_by_one() {
    let (bell, queue) = (Bell::new(true), queue());
    let count = if cfg!(miri) { 200 } else { 50_000 };
    let mut registering = Registering::new(bell.clone(), false, 10);
    (0..count).for_each(|_| registering.watch(&queue));
    let all = registering.finish().unwrap();
    let last = register(&bell, false, &[&queue]);
    queue.wake(0, 1);
    assert_eq!(bell.rung(), count + 1);
    drop(all);
    queue.wake(0, 1);
    assert_eq!(bell.rung(), 1);
    drop(last);
}

#[derive(Clone, Debug)]
enum Step {
    Register { exclusive: bool, uses: bool, on: Vec<usize> },
    End(usize),
    EndQueue(usize),
    Wake { at: usize, most: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let on = proptest::collection::vec(0..3usize, 0..5);
    prop_oneof![
        3 => (any::<bool>(), any::<bool>(), on)
            .prop_map(|(exclusive, uses, on)| Step::Register { exclusive, uses, on }),
        2 => any::<usize>().prop_map(Step::End),
        1 => (0..3usize).prop_map(Step::EndQueue),
        3 => (0..3usize, 0..3usize).prop_map(|(at, most)| Step::Wake { at, most }),
    ]
}

/// A registered bell, and the queues (each with its generation) that it is registered with.
struct Held {
    bell: Arc<Bell>,
    exclusive: bool,
    on: Vec<(usize, usize)>,
    _registrations: Registrations<Lock>,
}

/// How often each bell is to ring: all shared registrations, then exclusive ones until `most` were used. A bell's own
/// registrations in one queue follow each other.
fn expected(held: &[Held], queue: (usize, usize), mut most: usize) -> Vec<usize> {
    let mut rings = vec![0; held.len()];
    for exclusive in [false, true] {
        for (at, one) in held.iter().enumerate().filter(|(_, one)| one.exclusive == exclusive) {
            for _ in one.on.iter().filter(|on| **on == queue) {
                if exclusive && most == 0 {
                    continue;
                }
                rings[at] += 1;
                most -= usize::from(exclusive && one.bell.uses.load(Ordering::SeqCst));
            }
        }
    }
    rings
}

proptest! {
    #[test]
    fn behaves_as_the_model(steps in proptest::collection::vec(step(), 1..80)) {
        let mut queues: Vec<_> = (0..3).map(|_| queue()).collect();
        let mut generations = [0; 3];
        let mut held: Vec<Held> = Vec::new();
        for step in steps {
            match step {
                Step::Register { exclusive, uses, on } => {
                    let bell = Bell::new(uses);
                    let on_queues: Vec<_> = on.iter().map(|at| &queues[*at]).collect();
                    let registrations = register(&bell, exclusive, &on_queues);
                    let on = on.into_iter().map(|at| (at, generations[at])).collect();
                    held.push(Held { bell, exclusive, on, _registrations: registrations });
                }
                Step::End(n) => if !held.is_empty() {
                    held.remove(n % held.len());
                },
                Step::EndQueue(at) => {
                    queues[at] = queue();
                    generations[at] += 1;
                }
                Step::Wake { at, most } => {
                    queues[at].wake(0, most);
                    let rung: Vec<_> = held.iter().map(|one| one.bell.rung()).collect();
                    prop_assert_eq!(rung, expected(&held, (at, generations[at]), most));
                }
            }
        }
    }
}

/// Threads register, end, wake and let queues go at once; nothing is left, and Miri finds no bad access.
#[test]
fn registrations_end_while_queues_end_and_wake() {
    let rounds = if cfg!(miri) { 20 } else { 2_000 };
    for _ in 0..rounds {
        let queue = Arc::new(queue());
        let bells: Vec<_> = (0..2).map(|_| Bell::new(true)).collect();
        thread::scope(|scope| {
            for bell in &bells {
                let queue = queue.clone();
                scope.spawn(move || {
                    let one = register(bell, false, &[&queue, &queue]);
                    drop(queue);
                    drop(one);
                });
            }
            let waker = queue.clone();
            scope.spawn(move || {
                waker.wake(0, 1);
                drop(waker);
            });
        });
        drop(queue);
        assert!(bells.iter().all(|bell| Arc::strong_count(bell) == 1));
    }
}
