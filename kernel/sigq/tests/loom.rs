//! Interleavings, explored exhaustively: `RUSTFLAGS="--cfg alea_loom" cargo test --release --test loom`.
//!
//! A process of one or two threads is sent a signal while a thread changes its mask. What must hold at the end is always
//! the same: if the signal is pending and some thread lets it through, that thread has been told, or has seen it itself.
#![cfg(alea_loom)]

use abi::signal::{SigInfo, SigSet, Signal, code};
use alea_sigq::{Blocked, PendingSet, Pushed, Queue};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

const TERM: Signal = Signal::SIGTERM;
const OPEN: SigSet = SigSet::EMPTY;
const CLOSED: SigSet = SigSet::of(&[TERM]);

/// A thread: its mask, and whether it will look at its signals before it runs on.
struct Thread {
    blocked: Blocked,
    told: AtomicBool,
}

impl Thread {
    fn new(blocked: SigSet) -> Self {
        Self { blocked: Blocked::new(blocked), told: AtomicBool::new(false) }
    }

    fn lets_through(&self) -> bool {
        !self.blocked.get().contains(TERM)
    }

    fn tell(&self) {
        self.told.store(true, Ordering::SeqCst);
    }
}

/// What a kernel has of a process: a queue under its lock, the word beside it, the threads.
struct Process {
    queue: Mutex<Queue<()>>,
    pending: PendingSet,
    threads: Vec<Thread>,
}

impl Process {
    fn new(masks: &[SigSet]) -> Arc<Self> {
        let threads = masks.iter().map(|&mask| Thread::new(mask)).collect();
        Arc::new(Self { queue: Mutex::new(Queue::new()), pending: PendingSet::new(), threads })
    }

    /// kill: queue, publish, then choose a thread that lets the signal through.
    fn send(&self) {
        let mut queue = self.queue.lock().unwrap();
        let pushed = queue.push(TERM, SigInfo::new(TERM, code::SI_USER), || Some(()));
        self.pending.publish(queue.set());
        drop(queue);
        if pushed == Pushed::Pending
            && let Some(thread) = self.threads.iter().find(|thread| thread.lets_through())
        {
            thread.tell();
        }
    }

    /// sigprocmask of thread `me`: replace, hand on what is blocked from now on, look at what is let through.
    fn change_mask(&self, me: usize, mask: SigSet) {
        let thread = &self.threads[me];
        let old = thread.blocked.replace(mask);
        if mask.minus(old).contains(TERM)
            && self.pending.get().contains(TERM)
            && let Some(other) = (0..self.threads.len())
                .filter(|&other| other != me)
                .map(|other| &self.threads[other])
                .find(|other| other.lets_through())
        {
            other.tell();
        }
        if !mask.contains(TERM) && self.pending.get().contains(TERM) {
            thread.tell();
        }
    }

    /// A thread on its way to user mode: takes what it lets through.
    fn deliver(&self, me: usize) -> bool {
        let thread = &self.threads[me];
        thread.told.store(false, Ordering::SeqCst);
        let open = SigSet::ALL.minus(thread.blocked.get());
        if !self.pending.get().intersects(open) {
            return false;
        }
        let mut queue = self.queue.lock().unwrap();
        let taken = queue.take(open);
        self.pending.publish(queue.set());
        drop(queue);
        taken.is_some()
    }

    /// Nobody who would take the signal is left in the dark.
    fn check(&self) {
        if !self.pending.get().contains(TERM) {
            return;
        }
        let mut takers = self.threads.iter().filter(|thread| thread.lets_through()).peekable();
        if takers.peek().is_some() {
            assert!(
                takers.any(|thread| thread.told.load(Ordering::SeqCst)),
                "a signal is pending, a thread would take it, and nobody was told"
            );
        }
    }
}

#[test]
fn a_sender_and_a_thread_that_opens_its_mask_do_not_miss_each_other() {
    loom::model(|| {
        let process = Process::new(&[CLOSED]);
        let sender = {
            let process = process.clone();
            thread::spawn(move || process.send())
        };
        process.change_mask(0, OPEN);
        sender.join().unwrap();
        process.check();
    });
}

#[test]
fn a_signal_left_to_a_thread_that_closes_its_mask_is_handed_on() {
    loom::model(|| {
        let process = Process::new(&[OPEN, OPEN]);
        let sender = {
            let process = process.clone();
            thread::spawn(move || process.send())
        };
        process.change_mask(0, CLOSED);
        sender.join().unwrap();
        process.check();
    });
}

#[test]
fn two_threads_that_change_their_masks_at_once_leave_no_signal_behind() {
    loom::model(|| {
        let process = Process::new(&[OPEN, CLOSED]);
        let sender = {
            let process = process.clone();
            thread::spawn(move || process.send())
        };
        let second = {
            let process = process.clone();
            thread::spawn(move || process.change_mask(1, OPEN))
        };
        process.change_mask(0, CLOSED);
        second.join().unwrap();
        sender.join().unwrap();
        process.check();
    });
}

#[test]
fn a_signal_is_taken_once_however_many_look() {
    loom::model(|| {
        let process = Process::new(&[OPEN, OPEN]);
        process.send();
        let other = {
            let process = process.clone();
            thread::spawn(move || process.deliver(1))
        };
        let mine = process.deliver(0);
        let theirs = other.join().unwrap();
        assert!(mine != theirs, "one of two that look takes it");
        assert!(process.pending.get().is_empty());
    });
}

#[test]
fn a_signal_sent_while_another_is_taken_is_not_lost() {
    loom::model(|| {
        let process = Process::new(&[OPEN]);
        process.send();
        let sender = {
            let process = process.clone();
            thread::spawn(move || process.send())
        };
        let taken = process.deliver(0);
        assert!(taken);
        sender.join().unwrap();
        process.check();
    });
}
