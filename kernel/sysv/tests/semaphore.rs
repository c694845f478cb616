//! Sets of semaphores against a model that starts every round anew, and the rules one by one.

use abi::{Errno, Result};
use alea_sysv::semaphore::{Attempt, Call, MOST, Op, Set, Wakes};
use proptest::prelude::*;

const PID: i32 = 7;

fn op(number: u16, delta: i16) -> Op {
    Op { number, delta, no_wait: false, undo: false }
}

fn call(ops: &[Op]) -> Call {
    Call { ops: ops.to_vec(), pid: PID, undo: None }
}

#[derive(Default)]
struct Woken(Vec<(usize, Result<()>)>);

impl Wakes<usize> for Woken {
    fn wake(&mut self, waiter: usize, result: Result<()>) {
        self.0.push((waiter, result));
    }
    fn pace(&mut self) {}
}

/// A set and who was woken, as a kernel would use it.
struct Kernel {
    set: Set<usize, ()>,
    woken: Woken,
}

impl Kernel {
    fn new(count: usize) -> Self {
        Self { set: Set::new(count).unwrap(), woken: Woken::default() }
    }

    fn operate(&mut self, who: usize, call: Call) -> Attempt {
        let result = self.set.attempt(&call);
        match result {
            Attempt::Done => self.set.settle(&call, &mut self.woken),
            Attempt::Wait(at) => self.set.queue(call, at, who).unwrap(),
            Attempt::Failed(_) => {}
        }
        result
    }

    fn values(&self) -> Vec<u16> {
        self.set.semaphores().iter().map(|one| one.value).collect()
    }
}

#[test]
fn all_operations_or_none() {
    let mut kernel = Kernel::new(3);
    assert_eq!(kernel.operate(0, call(&[op(0, 2), op(1, 1), op(2, -1)])), Attempt::Wait(2));
    assert_eq!(kernel.values(), [0, 0, 0]);
    assert_eq!(kernel.operate(1, call(&[op(2, 1)])), Attempt::Done);
    assert_eq!(kernel.values(), [2, 1, 0]);
    assert_eq!(kernel.woken.0, [(0, Ok(()))]);
}

#[test]
fn one_semaphore_several_times_in_a_call() {
    let mut kernel = Kernel::new(1);
    assert_eq!(kernel.operate(0, call(&[op(0, 0), op(0, 1), op(0, -1), op(0, 3)])), Attempt::Done);
    assert_eq!(kernel.values(), [3]);
    assert_eq!(
        kernel.operate(0, call(&[op(0, -3), op(0, 0), op(0, 1), op(0, -2)])),
        Attempt::Wait(3)
    );
    assert_eq!(kernel.values(), [3]);
}

#[test]
fn first_come_first_served() {
    let mut kernel = Kernel::new(1);
    for who in 0..4 {
        kernel.operate(who, call(&[op(0, -1)]));
    }
    kernel.operate(9, call(&[op(0, 2)]));
    assert_eq!(kernel.woken.0, [(0, Ok(())), (1, Ok(()))]);
    // Who wants more is passed over.
    let mut kernel = Kernel::new(1);
    kernel.operate(0, call(&[op(0, -3)]));
    kernel.operate(1, call(&[op(0, -1)]));
    kernel.operate(9, call(&[op(0, 2)]));
    assert_eq!((kernel.woken.0.as_slice(), kernel.values()), (&[(1, Ok(()))][..], vec![1]));
}

#[test]
fn who_waits_for_zero_goes_before_the_value_changes_again() {
    let mut kernel = Kernel::new(2);
    kernel.set.set(0, 1, PID);
    kernel.operate(0, call(&[op(0, 0)]));
    kernel.operate(1, call(&[op(1, -1), op(0, 1)]));
    kernel.operate(9, call(&[op(0, -1), op(1, 1)]));
    assert_eq!(kernel.woken.0, [(0, Ok(())), (1, Ok(()))]);
    assert_eq!(kernel.values(), [1, 0]);
}

#[test]
fn a_zero_inside_a_complex_call_restarts_the_round() {
    let mut kernel = Kernel::new(2);
    kernel.set.set(0, 1, PID);
    kernel.operate(0, call(&[op(0, 0), op(1, 1)]));
    kernel.operate(9, call(&[op(0, -1)]));
    assert_eq!((kernel.woken.0.as_slice(), kernel.values()), (&[(0, Ok(()))][..], vec![0, 1]));
}

#[test]
fn a_waiter_that_would_have_to_wait_where_it_must_not_fails() {
    let mut kernel = Kernel::new(2);
    kernel.operate(0, call(&[op(0, -1), Op { no_wait: true, ..op(1, -1) }]));
    kernel.operate(9, call(&[op(0, 1)]));
    assert_eq!(kernel.woken.0, [(0, Err(Errno::EAGAIN))]);
    assert_eq!(kernel.values(), [1, 0]);
}

#[test]
fn values_and_adjustments_have_ends() {
    let mut kernel = Kernel::new(1);
    kernel.set.set(0, MOST as u16, PID);
    assert_eq!(kernel.operate(0, call(&[op(0, 1)])), Attempt::Failed(Errno::ERANGE));
    kernel.set.add_undo(1, ()).unwrap();
    let undo = |delta| Call { undo: Some(1), ..call(&[Op { undo: true, ..op(0, delta) }]) };
    assert_eq!(kernel.operate(0, undo(-32767)), Attempt::Done);
    kernel.set.set(0, 0, PID);
    // That took the adjustment back to 0.
    assert_eq!(kernel.operate(0, undo(32767)), Attempt::Done);
    kernel.operate(0, call(&[op(0, -1)]));
    assert_eq!(kernel.operate(0, undo(1)), Attempt::Done);
    kernel.operate(0, call(&[op(0, -1)]));
    assert_eq!(kernel.operate(0, undo(1)), Attempt::Failed(Errno::ERANGE));
    assert_eq!(kernel.values(), [32766]);
}

#[test]
fn what_ends_is_taken_back_as_far_as_values_go() {
    let mut kernel = Kernel::new(2);
    kernel.set.add_undo(5, ()).unwrap();
    let ops = [Op { undo: true, ..op(0, 3) }, Op { undo: true, ..op(1, 1) }];
    kernel.operate(0, Call { undo: Some(5), ..call(&ops) });
    kernel.operate(0, call(&[op(0, -2)]));
    kernel.operate(1, call(&[op(1, 0)]));
    assert!(kernel.set.apply_undo(5, 99));
    assert_eq!(kernel.values(), [0, 0]);
    assert_eq!(kernel.set.semaphores()[0].pid, 99);
    assert!(kernel.set.settle_all(&mut kernel.woken));
    assert_eq!(kernel.woken.0, [(1, Ok(()))]);
    assert!(!kernel.set.apply_undo(5, 99) && !kernel.set.has_undo(5));
}

#[test]
fn removal_fails_all_who_wait() {
    let mut kernel = Kernel::new(1);
    kernel.operate(0, call(&[op(0, -1)]));
    kernel.set.add_undo(3, ()).unwrap();
    let mut owners = Vec::new();
    kernel.set.remove(&mut kernel.woken, |key, owner| owners.push((key, owner)));
    assert_eq!(owners, [(3, ())]);
    assert_eq!(kernel.woken.0, [(0, Err(Errno::EIDRM))]);
}

#[test]
fn who_waits_where_is_counted() {
    let mut kernel = Kernel::new(2);
    kernel.set.set(1, 5, PID);
    kernel.operate(0, call(&[op(0, -1), op(1, 0)]));
    kernel.operate(1, call(&[op(1, 0)]));
    let counts = |kernel: &Kernel, n, zero| kernel.set.waiting_at(n, zero, || ());
    assert_eq!([counts(&kernel, 0, false), counts(&kernel, 1, true)], [1, 1]);
    // The first one waits at its second operation now.
    kernel.operate(9, call(&[op(0, 1)]));
    assert_eq!([counts(&kernel, 0, false), counts(&kernel, 1, true)], [0, 2]);
    kernel.set.leave(|&who| who == 0);
    assert_eq!(counts(&kernel, 1, true), 1);
}

/// The plainest thing that can be right: every success begins the round anew, zeros first.
#[derive(Default)]
struct Model {
    values: Vec<i32>,
    waiting: Vec<(usize, Vec<Op>)>,
    woken: Vec<(usize, Result<()>)>,
}

impl Model {
    fn attempt(&mut self, ops: &[Op]) -> Attempt {
        let mut values = self.values.clone();
        for (at, op) in ops.iter().enumerate() {
            let value = &mut values[usize::from(op.number)];
            let new = *value + i32::from(op.delta);
            if new < 0 || (op.delta == 0 && *value != 0) {
                return if op.no_wait { Attempt::Failed(Errno::EAGAIN) } else { Attempt::Wait(at) };
            }
            if new > MOST {
                return Attempt::Failed(Errno::ERANGE);
            }
            *value = new;
        }
        self.values = values;
        Attempt::Done
    }

    fn operate(&mut self, who: usize, ops: Vec<Op>) -> Attempt {
        let result = self.attempt(&ops);
        match result {
            Attempt::Wait(_) => self.waiting.push((who, ops)),
            Attempt::Done => self.settle(),
            Attempt::Failed(_) => {}
        }
        result
    }

    fn settle(&mut self) {
        let alters = |ops: &[Op]| ops.iter().any(|op| op.delta != 0);
        'again: loop {
            for wanted in [false, true] {
                for at in 0..self.waiting.len() {
                    let (who, ops) = self.waiting[at].clone();
                    if alters(&ops) != wanted {
                        continue;
                    }
                    let result = match self.attempt(&ops) {
                        Attempt::Wait(_) => continue,
                        Attempt::Done => Ok(()),
                        Attempt::Failed(error) => Err(error),
                    };
                    self.waiting.remove(at);
                    self.woken.push((who, result));
                    continue 'again;
                }
            }
            return;
        }
    }
}

fn any_op() -> impl Strategy<Value = Op> {
    (0u16..3, prop_oneof![3 => -3i16..=3, 1 => Just(0)], 0u8..8)
        .prop_map(|(number, delta, rare)| Op { no_wait: rare == 0, ..op(number, delta) })
}

/// Calls; those that only wait for zeros wait at each: Linux asks these again only when a value has reached zero, and so lets
/// one sleep on that would fail now.
fn any_calls() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let call = proptest::collection::vec(any_op(), 1..4).prop_map(|mut ops| {
        if ops.iter().all(|op| op.delta == 0) {
            ops.iter_mut().for_each(|op| op.no_wait = false);
        }
        ops
    });
    proptest::collection::vec(call, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn as_if_every_round_began_anew(calls in any_calls()) {
        let mut kernel = Kernel::new(3);
        let mut model = Model { values: vec![0; 3], ..Model::default() };
        for (who, ops) in calls.into_iter().enumerate() {
            prop_assert_eq!(kernel.operate(who, call(&ops)), model.operate(who, ops));
            prop_assert_eq!(kernel.values().into_iter().map(i32::from).collect::<Vec<_>>(), model.values.clone());
            let (mut ours, mut theirs) = (kernel.woken.0.clone(), model.woken.clone());
            ours.sort_by_key(|one| one.0);
            theirs.sort_by_key(|one| one.0);
            prop_assert_eq!(ours, theirs);
        }
    }
}
