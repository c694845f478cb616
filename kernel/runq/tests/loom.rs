//! Interleavings, explored exhaustively: `RUSTFLAGS="--cfg alea_loom" cargo test --release --test loom`.
//!
//! CPUs that run out of work while others queue tasks: at the end no task waits beside a CPU that halted and was not told.
#![cfg(alea_loom)]

use alea_runq::{IdleCpus, Length, NORMAL_RANK, Place, RunQueue, Standing};
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

const NORMAL: Standing = Standing { rank: NORMAL_RANK, vruntime: 0 };

/// One queue, of a busy CPU 0, and two more CPUs that look for work in it.
struct Machine {
    queue: Mutex<RunQueue<u32>>,
    length: Length,
    idle: IdleCpus,
    /// The interrupt that makes a halted CPU look again.
    told: [AtomicBool; 3],
    halted: [AtomicBool; 3],
    ran: AtomicUsize,
}

impl Machine {
    fn new() -> Arc<Self> {
        let mut queue = RunQueue::new();
        queue.reserve(8).unwrap();
        Arc::new(Self {
            queue: Mutex::new(queue),
            length: Length::new(),
            idle: IdleCpus::new(),
            told: [AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false)],
            halted: [AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false)],
            ran: AtomicUsize::new(0),
        })
    }

    /// CPU 0, which goes on with something else, leaves a task waiting.
    fn leave(&self, task: u32) {
        let mut queue = self.queue.lock().unwrap();
        queue.push(task, NORMAL, Place::Tail);
        self.length.publish(queue.len());
        drop(queue);
        let idle = self.idle.after_queueing();
        if idle != 0 {
            let cpu = idle.trailing_zeros() as usize;
            if self.idle.claim(cpu) {
                self.told[cpu].store(true, Ordering::SeqCst);
            }
        }
    }

    fn take(&self) -> bool {
        if self.length.get() == 0 {
            return false;
        }
        let mut queue = self.queue.lock().unwrap();
        let taken = queue.pop(0).is_some();
        self.length.publish(queue.len());
        taken
    }

    /// A CPU has nothing of its own: it looks, and halts if there is nothing.
    fn idles(&self, cpu: usize) {
        self.idle.mark_and_look(cpu);
        if self.take() {
            self.idle.claim(cpu);
            self.ran.fetch_add(1, Ordering::SeqCst);
        } else {
            self.halted[cpu].store(true, Ordering::SeqCst);
        }
    }

    /// A task that waits, and a CPU that halted before all told: one of those must have been told.
    fn check(&self, cpus: &[usize]) {
        let waiting = self.queue.lock().unwrap().len();
        let halted = |cpu: &&usize| self.halted[**cpu].load(Ordering::SeqCst);
        let asleep = cpus.iter().filter(halted).count();
        let told = cpus.iter().filter(halted).filter(|cpu| self.told[**cpu].load(Ordering::SeqCst));
        assert!(told.count() >= waiting.min(asleep), "a task waits beside a CPU that halted");
    }
}

#[test]
fn a_cpu_that_halts_and_one_that_leaves_a_task_do_not_miss_each_other() {
    loom::model(|| {
        let machine = Machine::new();
        let other = {
            let machine = machine.clone();
            thread::spawn(move || machine.idles(1))
        };
        machine.leave(7);
        other.join().unwrap();
        machine.check(&[1]);
    });
}

#[test]
fn one_task_and_two_cpus_that_halt() {
    // Three threads: all interleavings with up to three forced switches.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let machine = Machine::new();
        let others: Vec<_> = [1, 2]
            .map(|cpu| {
                let machine = machine.clone();
                thread::spawn(move || machine.idles(cpu))
            })
            .into_iter()
            .collect();
        machine.leave(7);
        for other in others {
            other.join().unwrap();
        }
        machine.check(&[1, 2]);
    });
}

#[test]
fn a_claim_has_one_winner() {
    loom::model(|| {
        let machine = Machine::new();
        machine.idle.mark(1);
        let other = {
            let machine = machine.clone();
            thread::spawn(move || machine.idle.claim(1))
        };
        let mine = machine.idle.claim(1);
        assert!(mine != other.join().unwrap());
    });
}
