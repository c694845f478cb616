//! The queue beside a model, a list that is searched by hand, and a CPU that is simulated for a while.
#![cfg(not(alea_loom))]

use alea_runq::queue::UNDISTURBED_NS;
use alea_runq::share::{FAIR_NS, PERIOD_NS};
use alea_runq::{NORMAL_RANK, PIECE, Place, Preempts, RunQueue, Standing};
use proptest::prelude::*;
use std::collections::VecDeque;

fn standing(rank: u32, vruntime: u64) -> Standing {
    Standing { rank, vruntime }
}

#[derive(Clone, Debug)]
enum Op {
    Push { rank: u32, vruntime: u64, head: bool },
    Pop,
    Remove(usize),
    Take { parity: u32 },
}

fn op() -> impl Strategy<Value = Op> {
    let rank = prop::sample::select(vec![0, 40, 41, NORMAL_RANK]);
    prop_oneof![
        4 => (rank, 0..50u64, any::<bool>())
            .prop_map(|(rank, vruntime, head)| Op::Push { rank, vruntime, head }),
        3 => Just(Op::Pop),
        1 => any::<usize>().prop_map(Op::Remove),
        1 => (0..2u32).prop_map(|parity| Op::Take { parity }),
    ]
}

/// Lines of real-time tasks by rank, and normal tasks by run time and arrival.
#[derive(Default)]
struct Model {
    lines: std::collections::BTreeMap<u32, VecDeque<u32>>,
    normal: Vec<(u64, i64, u32)>,
    heads: i64,
    tails: i64,
}

impl Model {
    fn push(&mut self, task: u32, rank: u32, vruntime: u64, head: bool) {
        if rank == NORMAL_RANK {
            let place = if head {
                self.heads -= 1;
                self.heads
            } else {
                self.tails += 1;
                self.tails
            };
            self.normal.push((vruntime, place, task));
        } else if head {
            self.heads -= 1;
            self.lines.entry(rank).or_default().push_front(task);
        } else {
            self.tails += 1;
            self.lines.entry(rank).or_default().push_back(task);
        }
    }

    fn pop(&mut self) -> Option<u32> {
        self.lines.retain(|_, line| !line.is_empty());
        if let Some((_, line)) = self.lines.iter_mut().next() {
            return line.pop_front();
        }
        let at = (0..self.normal.len()).min_by_key(|&at| self.normal[at])?;
        Some(self.normal.remove(at).2)
    }

    fn remove(&mut self, task: u32) {
        self.lines.values_mut().for_each(|line| line.retain(|&one| one != task));
        self.normal.retain(|one| one.2 != task);
    }

    fn all(&self) -> Vec<u32> {
        let lines = self.lines.values().flatten().copied();
        lines.chain(self.normal.iter().map(|one| one.2)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn queue_is_the_model(ops in prop::collection::vec(op(), 1..100)) {
        let mut queue = RunQueue::new();
        queue.reserve(100).unwrap();
        let room = queue.capacity();
        let mut model = Model::default();
        for (task, op) in ops.into_iter().enumerate() {
            let task = task as u32;
            match op {
                Op::Push { rank, vruntime, head } => {
                    let place = if head { Place::Head } else { Place::Tail };
                    queue.push(task, standing(rank, vruntime), place);
                    model.push(task, rank, vruntime, head);
                }
                Op::Pop => prop_assert_eq!(queue.pop(0), model.pop()),
                Op::Remove(which) => {
                    let all = model.all();
                    let one = if all.is_empty() { u32::MAX } else { all[which % all.len()] };
                    let removed = queue.remove(|&task| task == one);
                    prop_assert_eq!(removed, (!all.is_empty()).then_some(one));
                    model.remove(one);
                }
                Op::Take { parity } => {
                    let taken = queue.take(usize::MAX, |task| task % 2 == parity);
                    let fits = model.all().iter().any(|task| task % 2 == parity);
                    prop_assert_eq!(taken.is_some(), fits);
                    if let Some(taken) = taken {
                        prop_assert_eq!(taken % 2, parity);
                        model.remove(taken);
                    }
                }
            }
            prop_assert_eq!(queue.len(), model.all().len());
            prop_assert_eq!(queue.capacity(), room, "no room is lost, and none is needed");
        }
        loop {
            let next = queue.pop(0);
            prop_assert_eq!(next, model.pop());
            if next.is_none() { break; }
        }
    }
}

/// Room for many comes in pieces of a page, across which they stand in order; who is taken out of the middle leaves the others so.
#[test]
fn many_wait_in_pieces() {
    const TASKS: u32 = 1000;
    const { assert!(RunQueue::<std::sync::Arc<u64>>::PIECE_BYTES <= 4096) };
    let vruntime = |task: u32| u64::from(task * 7919 % TASKS);
    let mut queue = RunQueue::new();
    queue.reserve(TASKS as usize).unwrap();
    assert_eq!(queue.pieces(), (TASKS as usize).div_ceil(PIECE));
    for task in 0..TASKS {
        queue.push(task, standing(NORMAL_RANK, vruntime(task)), Place::Tail);
    }
    for task in (0..TASKS).step_by(3) {
        assert_eq!(queue.remove(|one| *one == task), Some(task));
    }
    let mut wanted: Vec<u32> = (0..TASKS).filter(|task| task % 3 != 0).collect();
    wanted.sort_by_key(|task| vruntime(*task));
    let found: Vec<u32> = std::iter::from_fn(|| queue.pop(0)).collect();
    assert_eq!(found, wanted);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Real-time tasks that hardly ever sleep beside normal ones that never do, looked at when the queue asks for it, late
    /// by up to a tick, or earlier: in any two periods normal tasks get what they are owed, and little more.
    #[test]
    fn normal_tasks_get_their_share(
        urgent in 1..4usize,
        normal in 1..4usize,
        delays in prop::collection::vec((0..4_000_000u64, 0..20u64), 200..400),
    ) {
        let mut queue = RunQueue::new();
        queue.reserve(16).unwrap();
        let mut vruntime = [0u64; 8];
        let rank_of = |task: usize| if task < urgent { 49 } else { NORMAL_RANK };
        for task in 0..urgent + normal {
            queue.push(task, standing(rank_of(task), 0), Place::Tail);
        }
        let mut now = 5_000_000_000u64;
        let mut running = queue.pop(now).unwrap();
        let mut fair = 0;
        let mut waited_since = None;
        let mut longest = 0;
        let mut since = now;
        let began = now;
        let mut delays = delays.into_iter().cycle();
        while now < began + 4 * PERIOD_NS {
            let (late, how) = delays.next().unwrap();
            let rank = rank_of(running);
            let slice = (rank == NORMAL_RANK).then_some(4_000_000);
            let look = queue.next_look(standing(rank, vruntime[running]), since, slice, now);
            let look = look.expect("somebody waits who must run in the end");
            prop_assert!(look > now, "time goes on");
            // Now and then something else makes the CPU look before.
            let until = if how == 0 { now + ((look - now) / 2).max(100_000) } else { look + late };
            let ran = until - now;
            now = until;
            if rank == NORMAL_RANK {
                fair += ran;
                vruntime[running] += ran;
                waited_since = Some(now);
            } else {
                longest = longest.max(now - *waited_since.get_or_insert(began));
            }
            queue.has_run(|| Some(rank), ran, now);
            if queue.displaces(standing(rank, vruntime[running]), how == 1, now) {
                let place = if how == 1 { Place::Tail } else { Place::Head };
                queue.push(running, standing(rank, vruntime[running]), place);
                running = queue.pop(now).unwrap();
                since = now;
            }
        }
        let periods = (now - began) / PERIOD_NS;
        prop_assert!(fair >= (periods - 1) * FAIR_NS, "{fair} ns in {periods} periods");
        prop_assert!(fair <= (periods + 1) * (FAIR_NS + 8_000_000), "{fair} ns in {periods} periods");
        prop_assert!(longest <= PERIOD_NS + 20_000_000, "{longest} ns without");
    }
}

#[test]
fn equals_alternate_when_they_yield_and_not_otherwise() {
    let mut queue = RunQueue::new();
    queue.reserve(4).unwrap();
    let rank = standing(49, 0);
    queue.push('b', rank, Place::Tail);
    queue.push('-', standing(NORMAL_RANK, 0), Place::Tail);
    assert!(!queue.displaces(rank, false, 0), "an equal does not preempt");
    assert!(queue.displaces(rank, true, 0), "who yields makes way for an equal");
    queue.push('a', rank, Place::Tail);
    assert_eq!(queue.pop(0), Some('b'));
    assert_eq!(queue.preempts(rank, 0, || u64::MAX), Preempts::Never);
    queue.push('b', rank, Place::Head);
    assert_eq!(queue.pop(0), Some('b'), "who was preempted is still the first");
    assert!(queue.displaces(rank, true, 0));
    queue.push('b', rank, Place::Tail);
    assert_eq!(queue.pop(0), Some('a'));
    assert_eq!(queue.pop(0), Some('b'));
    assert!(!queue.displaces(rank, true, 0), "nobody below runs because of a yield");
}

#[test]
fn a_changed_rank_has_its_place() {
    assert_eq!(Place::after_change(49, 59), Place::Head, "lowered");
    assert_eq!(Place::after_change(59, 49), Place::Tail, "raised");
}

#[test]
fn who_feeds_others_is_left_alone_for_a_while() {
    let mut queue = RunQueue::new();
    queue.reserve(4).unwrap();
    let (since, end) = (7, 7 + UNDISTURBED_NS);
    let writer = standing(NORMAL_RANK, 5_000_000);
    let slice = Some(4_000_000);
    queue.push("reader", standing(NORMAL_RANK, 1_000_000), Place::Tail);
    assert_eq!(queue.preempts(writer, since, || since + 1), Preempts::At(end));
    assert_eq!(queue.next_look(writer, since, slice, since + 1), Some(end));
    assert_eq!(queue.preempts(writer, since, || end), Preempts::Now);
    queue.push("urgent", standing(49, 0), Place::Tail);
    assert_eq!(queue.preempts(writer, since, || since + 1), Preempts::Now);
    assert_eq!(queue.pop(since + 1), Some("urgent"));
    assert_eq!(queue.preempts(standing(49, 0), since, || end), Preempts::Never);
    assert_eq!(queue.pop(end), Some("reader"));
    queue.push("equal", standing(NORMAL_RANK, 4_500_000), Place::Tail);
    assert_eq!(queue.preempts(writer, since, || end), Preempts::Never, "hardly behind");
    assert_eq!(queue.next_look(writer, since, slice, end), Some(end + 4_000_000));
}

#[test]
fn who_comes_later_begins_where_the_running_one_is() {
    let mut queue: RunQueue<&str> = RunQueue::new();
    queue.reserve(4).unwrap();
    let (got_cpu, hours_later) = (5_000_000, 9_000_000_000_000);
    assert!(queue.after_sleep(0) < got_cpu);
    queue.runs_on(standing(NORMAL_RANK, hours_later));
    assert!(hours_later - queue.after_sleep(0) <= 5_000_000, "a small lead for its sleep only");
    // Who waits and is behind still has the lead that it had.
    queue.push("behind", standing(NORMAL_RANK, hours_later + 1), Place::Tail);
    queue.runs_on(standing(NORMAL_RANK, 2 * hours_later));
    assert!(queue.after_sleep(0) <= hours_later);
    // A real-time task has no run time that would matter.
    queue.runs_on(standing(49, u64::MAX));
    assert_eq!(queue.with_lead(0), hours_later + 1);
}
