//! The queue beside a model: a list of what was sent, searched by hand; and nothing counted is ever lost or kept.
#![cfg(not(alea_loom))]

use abi::signal::{SigInfo, SigSet, Signal, code};
use alea_sigq::{Pushed, Queue};
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

/// Counts while it lives; equal are two of one timer.
#[derive(Debug)]
struct Charge {
    count: Rc<Cell<usize>>,
    timer: Option<u8>,
}

impl Charge {
    fn new(count: &Rc<Cell<usize>>, timer: Option<u8>) -> Self {
        count.set(count.get() + 1);
        Self { count: count.clone(), timer }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
    }
}

impl PartialEq for Charge {
    fn eq(&self, other: &Self) -> bool {
        self.timer.is_some() && self.timer == other.timer
    }
}

#[derive(Clone, Debug)]
enum Op {
    Send { signal: u8, code: i32, value: u64 },
    Timer { timer: u8, value: u64 },
    Take(u64),
    Discard(u64),
}

fn op() -> impl Strategy<Value = Op> {
    // Few signals, so that they meet; SIGKILL, SIGSEGV and real-time ones among them.
    let signal = prop::sample::select(vec![9u8, 10, 11, 14, 17, 34, 35, 64]);
    let code =
        prop::sample::select(vec![code::SI_USER, code::SI_QUEUE, code::SI_TKILL, code::SI_TIMER]);
    let few = prop::sample::select(vec![u64::MAX, 1 << 33, 1 << 34 | 1 << 13, 1 << 8 | 1 << 10]);
    prop_oneof![
        4 => (signal, code, any::<u64>()).prop_map(|(signal, code, value)| Op::Send { signal, code, value }),
        2 => (0..3u8, any::<u64>()).prop_map(|(timer, value)| Op::Timer { timer, value }),
        3 => few.clone().prop_map(Op::Take),
        1 => few.prop_map(Op::Discard),
    ]
}

fn signal(number: u8) -> Signal {
    Signal::new(number.into()).unwrap()
}

/// Two timers share SIGALRM, the third has a real-time signal.
fn timer_signal(timer: u8) -> Signal {
    signal(if timer < 2 { 14 } else { 34 })
}

fn info(signal: Signal, code: i32, value: u64) -> SigInfo {
    let mut info = SigInfo::new(signal, code);
    info.fields[1] = value;
    info
}

/// One entry as the model keeps it: the signal, its value, and the timer that sent it.
type Kept = (u8, u64, Option<u8>);

#[derive(Default)]
struct Model {
    set: u64,
    kept: Vec<Kept>,
}

impl Model {
    fn bit(number: u8) -> u64 {
        1 << (number - 1)
    }

    fn send(&mut self, number: u8, code: i32, value: u64, limit: usize) -> Pushed {
        let realtime = number >= 32;
        if !realtime && self.set & Self::bit(number) != 0 {
            return Pushed::Merged;
        }
        if number != 9 {
            if self.kept.len() < limit {
                self.kept.push((number, value, None));
            } else if realtime && code != code::SI_USER {
                return Pushed::Refused;
            }
        }
        self.set |= Self::bit(number);
        Pushed::Pending
    }

    fn timer(&mut self, number: u8, timer: u8, value: u64) -> Pushed {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.2 == Some(timer)) {
            kept.1 = value;
            return Pushed::Merged;
        }
        self.kept.push((number, value, Some(timer)));
        self.set |= Self::bit(number);
        Pushed::Pending
    }

    fn take(&mut self, wanted: u64) -> Option<Kept> {
        let number = SigSet(self.set & wanted).first()?.number() as u8;
        let at = self.kept.iter().position(|kept| kept.0 == number);
        let kept = at.map_or((number, 0, None), |at| self.kept.remove(at));
        if !self.kept.iter().any(|kept| kept.0 == number) {
            self.set &= !Self::bit(number);
        }
        Some(kept)
    }

    fn discard(&mut self, set: u64) {
        self.set &= !set;
        self.kept.retain(|kept| Self::bit(kept.0) & set == 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn queue_is_the_model(ops in prop::collection::vec(op(), 1..80), limit in 0..6usize) {
        let count = Rc::new(Cell::new(0));
        let mut queue = Queue::new();
        let mut model = Model::default();
        for op in ops {
            match op {
                Op::Send { signal: number, code, value } => {
                    let charge = || (count.get() < limit).then(|| Charge::new(&count, None));
                    let pushed = queue.push(signal(number), info(signal(number), code, value), charge);
                    prop_assert_eq!(pushed, model.send(number, code, value, limit));
                }
                Op::Timer { timer, value } => {
                    let of = timer_signal(timer);
                    let charge = Charge::new(&count, Some(timer));
                    let pushed = queue.push_timer(of, info(of, code::SI_TIMER, value), charge);
                    prop_assert_eq!(pushed, model.timer(of.number() as u8, timer, value));
                }
                Op::Take(wanted) => {
                    let taken = queue.take(SigSet(wanted)).map(|taken| {
                        assert_eq!(taken.info.signo, taken.signal.number());
                        let timer = taken.charge.as_ref().and_then(|charge| charge.timer);
                        (taken.signal.number() as u8, taken.info.fields[1], timer)
                    });
                    prop_assert_eq!(taken, model.take(wanted));
                }
                Op::Discard(set) => {
                    queue.discard(SigSet(set));
                    model.discard(set);
                }
            }
            prop_assert_eq!(queue.set().0, model.set);
            prop_assert_eq!(queue.len(), model.kept.len());
            prop_assert_eq!(count.get(), queue.len(), "each entry is counted once");
        }
        drop(queue);
        prop_assert_eq!(count.get(), 0);
    }
}

#[test]
fn a_kill_needs_neither_room_nor_count() {
    let mut queue: Queue<Charge> = Queue::new();
    let kill = Signal::SIGKILL;
    let pushed = queue.push(kill, SigInfo::new(kill, code::SI_USER), || unreachable!("counted"));
    assert_eq!(pushed, Pushed::Pending);
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.take(SigSet::ALL).map(|taken| taken.signal), Some(kill));
    assert!(queue.is_empty());
}
