//! Interleavings, explored exhaustively: `RUSTFLAGS="--cfg alea_loom" cargo test --release --test loom`.
#![cfg(alea_loom)]

use alea_waitlist::{Exclusion, List, Queue, Registering, Wake};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

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

/// A thread that can be told to wake: it is asleep while the flag is set. What it owns is touched by each wake-up, so
/// that loom finds one that comes after the thread has gone.
struct Task {
    asleep: AtomicBool,
    woken: AtomicUsize,
    stack: UnsafeCell<u32>,
}

impl Task {
    fn new() -> Self {
        Self {
            asleep: AtomicBool::new(false),
            woken: AtomicUsize::new(0),
            stack: UnsafeCell::new(0),
        }
    }
}

impl Wake for Task {
    fn wake(&self, _events: u32) -> bool {
        self.stack.with(|value| {
            // SAFETY: loom checks that nobody writes meanwhile.
            assert_eq!(unsafe { *value }, 0);
        });
        let was_asleep = self.asleep.swap(false, Ordering::AcqRel);
        self.woken.fetch_add(usize::from(was_asleep), Ordering::Relaxed);
        was_asleep
    }
}

// SAFETY: the cell is only read by wake-ups, and written when loom shows that none can come.
unsafe impl Sync for Task {}
// SAFETY: as above.
unsafe impl Send for Task {}

/// The place is gone: no wake-up may touch the thread any more.
fn gone(task: &Task) {
    task.stack.with_mut(|value| {
        // SAFETY: loom checks that nobody reads meanwhile.
        unsafe { *value = 1 }
    });
}

#[test]
fn a_wake_up_is_not_lost_between_the_look_and_the_sleep() {
    loom::model(|| {
        let (queue, ready) = (Arc::new(queue()), Arc::new(AtomicBool::new(false)));
        let waker = {
            let (queue, ready) = (queue.clone(), ready.clone());
            thread::spawn(move || {
                ready.store(true, Ordering::Relaxed);
                queue.wake(0, 1);
            })
        };
        let task = Task::new();
        let waker = queue.sleeper(&task, false, |place| {
            task.asleep.store(true, Ordering::Relaxed);
            place.enter();
            if ready.load(Ordering::Relaxed) {
                place.leave();
                return Some(waker);
            }
            waker.join().unwrap();
            assert!(!task.asleep.load(Ordering::Acquire), "asleep, and nobody will wake it");
            assert!(!place.leave(), "woken, and still in the queue");
            None
        });
        gone(&task);
        waker.map(|waker| waker.join().unwrap());
    });
}

#[test]
fn one_wake_up_reaches_one_of_two_exclusive_sleepers() {
    loom::model(|| {
        let queue = Arc::new(queue());
        let waker = {
            let queue = queue.clone();
            thread::spawn(move || queue.wake(0, 1))
        };
        let (one, two) = (Task::new(), Task::new());
        queue.sleeper(&one, true, |first| {
            one.asleep.store(true, Ordering::Relaxed);
            first.enter();
            queue.sleeper(&two, true, |second| {
                two.asleep.store(true, Ordering::Relaxed);
                second.enter();
            });
            gone(&two);
            let told = waker.join().unwrap();
            let woken = one.woken.load(Ordering::Relaxed) + two.woken.load(Ordering::Relaxed);
            assert_eq!(woken, usize::from(told));
        });
        gone(&one);
    });
}

#[test]
fn a_registration_hears_or_sees_and_ends_beside_the_wake_up() {
    loom::model(|| {
        let (queue, ready) = (Arc::new(queue()), Arc::new(AtomicBool::new(false)));
        let waker = {
            let (queue, ready) = (queue.clone(), ready.clone());
            thread::spawn(move || {
                ready.store(true, Ordering::Relaxed);
                queue.wake(0, 1);
            })
        };
        let task = std::sync::Arc::new(Task::new());
        task.asleep.store(true, Ordering::Relaxed);
        let mut registering = Registering::new(task.clone(), false, 1);
        registering.watch(&queue);
        let sees = ready.load(Ordering::Relaxed);
        let registrations = registering.finish().unwrap();
        if !sees {
            waker.join().unwrap();
            assert_eq!(task.woken.load(Ordering::Relaxed), 1, "neither seen nor heard");
            drop(registrations);
        } else {
            drop(registrations);
            task.stack.with_mut(|value| {
                // SAFETY: loom checks that no wake-up reads it: the registration has ended.
                unsafe { *value = 1 }
            });
            waker.join().unwrap();
        }
    });
}

#[test]
fn two_first_registrations_share_one_list() {
    loom::model(|| {
        let queue = Arc::new(queue());
        let task = std::sync::Arc::new(Task::new());
        let other = {
            let (queue, task) = (queue.clone(), task.clone());
            thread::spawn(move || {
                let mut registering = Registering::new(task, false, 1);
                registering.watch(&queue);
                registering.finish().unwrap()
            })
        };
        let mut registering = Registering::new(task.clone(), false, 1);
        registering.watch(&queue);
        let own = registering.finish().unwrap();
        let others = other.join().unwrap();
        task.asleep.store(true, Ordering::Relaxed);
        queue.wake(0, 1);
        assert_eq!(task.woken.load(Ordering::Relaxed), 1);
        drop((own, others));
        task.asleep.store(true, Ordering::Relaxed);
        queue.wake(0, 1);
        assert!(task.asleep.load(Ordering::Relaxed), "a registration that has ended was woken");
    });
}

#[test]
fn the_queue_ends_while_its_registration_does() {
    loom::model(|| {
        let queue = queue();
        let task = std::sync::Arc::new(Task::new());
        let mut registering = Registering::new(task.clone(), false, 1);
        registering.watch(&queue);
        let registrations = registering.finish().unwrap();
        let other = thread::spawn(move || drop(queue));
        drop(registrations);
        other.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&task), 1);
    });
}
