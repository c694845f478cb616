//! [`Set`]: a set of semaphores, the operations that wait for it, and what is taken back when a process ends.
//!
//! All operations of one call are done together or none is. Who waits is asked in the order of arrival, those that only
//! wait for zeros first; a completed operation that may have helped an earlier waiter begins the round anew. The order
//! and the results are Linux's (`ipc/sem.c`); where it starts a round again that can find nothing, this does not.
//!
//! Owns values, waiters and adjustments. Wakes nobody: what has been decided is handed to the caller. A round is as long
//! as there are waiters, so each step calls `pace`, which may give the CPU away while the caller keeps its lock.

use abi::{Errno, Result};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The highest value, and the farthest that an adjustment goes up; it goes one farther down.
pub const MOST: i32 = 32767;

/// One semaphore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Semaphore {
    pub value: u16,
    /// The process that changed it or waited for it successfully last.
    pub pid: i32,
}

/// One operation of a call. `number` is below the number of semaphores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub number: u16,
    pub delta: i16,
    /// The call fails with `EAGAIN` rather than wait here.
    pub no_wait: bool,
    /// It is taken back when the process ends.
    pub undo: bool,
}

/// A call: its operations, its process, and by which key its adjustments are known, if it makes any.
#[derive(Debug)]
pub struct Call {
    pub ops: Vec<Op>,
    pub pid: i32,
    pub undo: Option<u64>,
}

impl Call {
    fn alters(&self) -> bool {
        self.ops.iter().any(|op| op.delta != 0)
    }
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Done,
    /// The operation at this index has to wait.
    Wait(usize),
    /// `EAGAIN`, `ERANGE`.
    Failed(Errno),
}

/// Somebody who waits.
struct Waiting<W> {
    call: Call,
    /// The operation at which it waits.
    at: usize,
    waiter: W,
}

/// What is to be added when the processes that share `key` have ended.
struct Undo<L> {
    key: u64,
    owner: L,
    adjust: Vec<i16>,
}

/// A set. `W` is who waits, `L` whose an adjustment is.
pub struct Set<W, L> {
    semaphores: Vec<Semaphore>,
    /// Those who change something, and those who only wait for zeros: in the order of arrival.
    altering: VecDeque<Waiting<W>>,
    looking: VecDeque<Waiting<W>>,
    /// Of `altering`, those with more than one operation.
    complex: usize,
    /// By key.
    undos: Vec<Undo<L>>,
}

/// Told who need not wait any longer, and why; and called between two steps.
pub trait Wakes<W> {
    fn wake(&mut self, waiter: W, result: Result<()>);
    fn pace(&mut self);
}

impl<W, L> Set<W, L> {
    /// `count` semaphores of value 0; `ENOMEM`.
    pub fn new(count: usize) -> Result<Self> {
        let mut semaphores = Vec::new();
        semaphores.try_reserve_exact(count).map_err(|_| Errno::ENOMEM)?;
        semaphores.resize(count, Semaphore::default());
        Ok(Self {
            semaphores,
            altering: VecDeque::new(),
            looking: VecDeque::new(),
            complex: 0,
            undos: Vec::new(),
        })
    }

    pub fn semaphores(&self) -> &[Semaphore] {
        &self.semaphores
    }

    /// Tries a call, which nobody is ahead of: as on Linux a newcomer that need not wait does not.
    pub fn attempt(&mut self, call: &Call) -> Attempt {
        attempt(&mut self.semaphores, &mut self.undos, call)
    }

    /// Queues a call that has to wait at operation `at`; `ENOMEM`.
    pub fn queue(&mut self, call: Call, at: usize, waiter: W) -> Result<()> {
        let alters = call.alters();
        let queue = if alters { &mut self.altering } else { &mut self.looking };
        queue.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        self.complex += usize::from(alters && call.ops.len() > 1);
        queue.push_back(Waiting { call, at, waiter });
        Ok(())
    }

    /// Takes out who does not wait any longer.
    pub fn leave(&mut self, is_it: impl Fn(&W) -> bool) {
        if let Some(at) = self.altering.iter().position(|one| is_it(&one.waiter)) {
            self.take_altering(at);
        } else if let Some(at) = self.looking.iter().position(|one| is_it(&one.waiter)) {
            self.looking.remove(at);
        }
    }

    /// Lets those go on whom a completed call helped.
    pub fn settle(&mut self, call: &Call, wakes: &mut impl Wakes<W>) {
        if self.reached_zero(call) {
            self.serve_looking(wakes);
        }
        if self.helps_altering(call) {
            self.serve_altering(wakes);
        }
    }

    /// Lets all go on that can, after values were set; whether there was one.
    pub fn settle_all(&mut self, wakes: &mut impl Wakes<W>) -> bool {
        let looking = self.serve_looking(wakes);
        self.serve_altering(wakes) || looking
    }

    /// SETVAL: nobody's adjustment of it counts any longer.
    pub fn set(&mut self, number: usize, value: u16, pid: i32) {
        self.semaphores[number] = Semaphore { value, pid };
        self.undos.iter_mut().for_each(|undo| undo.adjust[number] = 0);
    }

    /// SETALL, as `set` with each value.
    pub fn set_all(&mut self, values: &[u16], pid: i32, mut pace: impl FnMut()) {
        for (semaphore, &value) in self.semaphores.iter_mut().zip(values) {
            *semaphore = Semaphore { value, pid };
        }
        for undo in &mut self.undos {
            pace();
            undo.adjust.fill(0);
        }
    }

    /// How many wait at an operation on this semaphore: for zero, or for an increase.
    pub fn waiting_at(&self, number: usize, for_zero: bool, mut pace: impl FnMut()) -> i32 {
        let all = self.altering.iter().chain(&self.looking);
        let mut count = 0;
        for one in all {
            pace();
            let op = one.call.ops[one.at];
            count += i32::from(usize::from(op.number) == number && (op.delta == 0) == for_zero);
        }
        count
    }

    /// Whether adjustments of `key` are kept.
    pub fn has_undo(&self, key: u64) -> bool {
        self.undos.binary_search_by_key(&key, |undo| undo.key).is_ok()
    }

    /// Keeps adjustments of `key`, which are `owner`'s; `ENOMEM`.
    pub fn add_undo(&mut self, key: u64, owner: L) -> Result<()> {
        let Err(at) = self.undos.binary_search_by_key(&key, |undo| undo.key) else { return Ok(()) };
        let mut adjust = Vec::new();
        let count = self.semaphores.len();
        adjust.try_reserve_exact(count).map_err(|_| Errno::ENOMEM)?;
        adjust.resize(count, 0);
        self.undos.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        self.undos.insert(at, Undo { key, owner, adjust });
        Ok(())
    }

    /// The processes of `key` have ended: their adjustments are added, as far as values go. Whether there were any.
    pub fn apply_undo(&mut self, key: u64, pid: i32) -> bool {
        let Some(undo) = self.take_undo(key) else { return false };
        for (semaphore, adjust) in self.semaphores.iter_mut().zip(undo).filter(|&(_, by)| by != 0) {
            let value = i32::from(semaphore.value) + i32::from(adjust);
            *semaphore = Semaphore { value: value.clamp(0, MOST) as u16, pid };
        }
        true
    }

    /// Forgets the adjustments of `key`.
    pub fn take_undo(&mut self, key: u64) -> Option<Vec<i16>> {
        let at = self.undos.binary_search_by_key(&key, |undo| undo.key).ok()?;
        let undo = self.undos.remove(at);
        if self.undos.is_empty() {
            self.undos = Vec::new();
        }
        Some(undo.adjust)
    }

    /// The set is removed: all who wait fail with `EIDRM`; each owner of adjustments, which are gone, is told to `gone`.
    pub fn remove(&mut self, wakes: &mut impl Wakes<W>, mut gone: impl FnMut(u64, L)) {
        for queue in [&mut self.looking, &mut self.altering] {
            for one in core::mem::take(queue) {
                wakes.pace();
                wakes.wake(one.waiter, Err(Errno::EIDRM));
            }
        }
        self.complex = 0;
        self.semaphores = Vec::new();
        for undo in core::mem::take(&mut self.undos) {
            wakes.pace();
            gone(undo.key, undo.owner);
        }
    }

    fn reached_zero(&self, call: &Call) -> bool {
        call.ops.iter().any(|op| self.semaphores[usize::from(op.number)].value == 0)
    }

    /// Whether a completed call can have helped those who were passed over. One with a single operation waits for a
    /// higher value; what the others need may be a lower one, to which they add their own.
    fn helps_altering(&self, call: &Call) -> bool {
        self.complex > 0 || call.ops.iter().any(|op| op.delta > 0)
    }

    fn take_altering(&mut self, at: usize) -> Option<Waiting<W>> {
        let one = self.altering.remove(at)?;
        self.complex -= usize::from(one.call.ops.len() > 1);
        Some(one)
    }

    /// Those who only wait for zeros: none changes what another waits for.
    fn serve_looking(&mut self, wakes: &mut impl Wakes<W>) -> bool {
        let (mut at, mut any) = (0, false);
        while let Some(one) = self.looking.get_mut(at) {
            wakes.pace();
            let result = match attempt(&mut self.semaphores, &mut self.undos, &one.call) {
                Attempt::Wait(there) => {
                    one.at = there;
                    at += 1;
                    continue;
                }
                Attempt::Done => Ok(()),
                Attempt::Failed(error) => Err(error),
            };
            any |= result.is_ok();
            if let Some(one) = self.looking.remove(at) {
                wakes.wake(one.waiter, result);
            }
        }
        any
    }

    fn serve_altering(&mut self, wakes: &mut impl Wakes<W>) -> bool {
        let (mut at, mut any) = (0, false);
        while let Some(one) = self.altering.get_mut(at) {
            wakes.pace();
            match attempt(&mut self.semaphores, &mut self.undos, &one.call) {
                Attempt::Wait(there) => {
                    one.at = there;
                    at += 1;
                }
                Attempt::Failed(error) => {
                    if let Some(one) = self.take_altering(at) {
                        wakes.wake(one.waiter, Err(error));
                    }
                }
                Attempt::Done => {
                    any = true;
                    let Some(one) = self.take_altering(at) else { break };
                    if self.reached_zero(&one.call) {
                        self.serve_looking(wakes);
                    }
                    if self.helps_altering(&one.call) {
                        at = 0;
                    }
                    wakes.wake(one.waiter, Ok(()));
                }
            }
        }
        any
    }
}

/// Does all operations of a call, or none.
fn attempt<L>(semaphores: &mut [Semaphore], undos: &mut [Undo<L>], call: &Call) -> Attempt {
    let undo = call.undo.and_then(|key| {
        let at = undos.binary_search_by_key(&key, |undo| undo.key).ok()?;
        Some(&mut *undos[at].adjust)
    });
    let adjust = undo.unwrap_or(&mut []);
    let mut result = Attempt::Done;
    let mut done = 0;
    for (at, op) in call.ops.iter().enumerate() {
        match step(semaphores, adjust, op) {
            Ok(true) => done = at + 1,
            Ok(false) if op.no_wait => result = Attempt::Failed(Errno::EAGAIN),
            Ok(false) => result = Attempt::Wait(at),
            Err(error) => result = Attempt::Failed(error),
        }
        if done == at {
            break;
        }
    }
    if result == Attempt::Done {
        for op in &call.ops {
            semaphores[usize::from(op.number)].pid = call.pid;
        }
        return result;
    }
    for op in call.ops[..done].iter().rev() {
        let semaphore = &mut semaphores[usize::from(op.number)];
        semaphore.value = semaphore.value.wrapping_sub_signed(op.delta);
        if op.undo
            && let Some(adjust) = adjust.get_mut(usize::from(op.number))
        {
            *adjust = adjust.wrapping_add(op.delta);
        }
    }
    result
}

/// One operation; `Ok(false)` if it has to wait, `ERANGE`: then nothing has changed.
fn step(semaphores: &mut [Semaphore], adjust: &mut [i16], op: &Op) -> Result<bool> {
    let semaphore = &mut semaphores[usize::from(op.number)];
    if op.delta == 0 && semaphore.value != 0 {
        return Ok(false);
    }
    let value = i32::from(semaphore.value) + i32::from(op.delta);
    if value < 0 {
        return Ok(false);
    }
    if value > MOST {
        return Err(Errno::ERANGE);
    }
    if op.undo
        && let Some(adjust) = adjust.get_mut(usize::from(op.number))
    {
        let new = i32::from(*adjust) - i32::from(op.delta);
        *adjust = i16::try_from(new).map_err(|_| Errno::ERANGE)?;
    }
    semaphore.value = value as u16;
    Ok(true)
}
