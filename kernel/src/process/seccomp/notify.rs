//! [`Notifier`]: calls that wait for what a listener says of them.
//!
//! Owns the calls and their answers; a filter and its listener's open file hold it. Never holds a task or a filter. Who asks queues its call and sleeps on a queue of its own; the listener
//! takes calls, answers, and gives descriptors, which the asking task installs itself. Locks: `Stream` over the calls; woken
//! and dropped with nothing locked.

use crate::mm::fallible::{TryGrow, try_arc};
use crate::process::signal;
use crate::process::task::current::Current;
use crate::random;
use crate::sync::{Once, SpinLock, WaitQueue, level};
use crate::vfs::{Fd, OpenFile, PollEvents};
use abi::seccomp::{Notification, Response};
use abi::{Errno, Result};
use alea_bpf::DATA_WORDS;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What a listener and those who ask share.
pub(in crate::process) struct Notifier {
    state: SpinLock<State, level::Stream>,
    /// The listener sleeps and polls here.
    changed: WaitQueue,
    /// Once a call was taken, only death ends the wait for its answer.
    killable: bool,
}

struct State {
    /// In the order of their numbers.
    calls: Vec<Call>,
    /// As on Linux: calls that came and were not looked for yet, though they may be gone.
    requests: usize,
    next_id: u64,
    /// Nobody has the filter any more.
    orphaned: bool,
    /// The listener is closed.
    closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Asked,
    Taken,
    Answered(Said),
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Said {
    result: i64,
    goes_on: bool,
}

impl Said {
    /// Nobody is there to say anything.
    fn missing() -> Self {
        Self { result: Errno::ENOSYS.to_return(), goes_on: false }
    }
}

struct Call {
    id: u64,
    tid: i32,
    data: [u32; DATA_WORDS],
    step: Step,
    /// Descriptors that it is to have, the last one first.
    gifts: Vec<Arc<Gift>>,
    asker: Arc<WaitQueue>,
}

/// A descriptor for who asks.
pub(super) struct Gift {
    pub(super) file: Arc<OpenFile>,
    pub(super) cloexec: bool,
    /// The number that it is to have.
    pub(super) at: Option<Fd>,
    /// It is the answer, too.
    pub(super) answers: bool,
    done: Once<Result<Fd>>,
    given: WaitQueue,
}

impl Gift {
    pub(super) fn new(
        file: Arc<OpenFile>,
        cloexec: bool,
        at: Option<Fd>,
        answers: bool,
    ) -> Result<Arc<Self>> {
        let (done, given) = (Once::new(), WaitQueue::new());
        try_arc(Self { file, cloexec, at, answers, done, given })
    }

    fn settle(&self, result: Result<Fd>) {
        self.done.call_once(|| result);
        self.given.wake_all();
    }
}

/// Why who asks wakes.
enum Woken {
    Answered(Said),
    Gift(Arc<Gift>),
    Dies,
    /// It is to sleep in the other way.
    Otherwise,
}

/// What becomes of a call that was asked about.
pub(super) enum Answer {
    /// It is made.
    Continue,
    Result(i64),
}

impl State {
    fn find(&mut self, id: u64) -> Option<&mut Call> {
        let at = self.calls.binary_search_by_key(&id, |call| call.id).ok()?;
        self.calls.get_mut(at)
    }

    fn take_out(&mut self, id: u64) -> Option<Call> {
        let at = self.calls.binary_search_by_key(&id, |call| call.id).ok()?;
        Some(self.calls.remove(at))
    }
}

impl Notifier {
    pub(super) fn new(killable: bool) -> Result<Arc<Self>> {
        // As on Linux nobody guesses them; half of all numbers are left, so that they only grow.
        let [first, ..] = random::secret_words::<2>();
        let state = State {
            calls: Vec::new(),
            requests: 0,
            next_id: first >> 1,
            orphaned: false,
            closed: false,
        };
        try_arc(Self { state: SpinLock::new(state), changed: WaitQueue::new(), killable })
    }

    pub(super) fn changed(&self) -> &WaitQueue {
        &self.changed
    }

    /// Nobody has the filter any more: the listener hears that.
    pub(super) fn orphan(&self) {
        self.state.lock().orphaned = true;
        self.changed.wake_all();
    }

    /// The listener is closed: who asks is told that the call is not there.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        for call in &mut state.calls {
            if !matches!(call.step, Step::Answered(_)) {
                call.step = Step::Answered(Said::missing());
            }
            call.asker.wake_all();
        }
    }

    /// What poll tells.
    pub(super) fn ready(&self) -> PollEvents {
        let state = self.state.lock();
        let mut ready = PollEvents::empty();
        for call in &state.calls {
            match call.step {
                Step::Asked => ready |= PollEvents::READABLE,
                Step::Taken => ready |= PollEvents::WRITABLE,
                Step::Answered(_) => {}
            }
        }
        if state.orphaned {
            ready |= PollEvents::HUP;
        }
        ready
    }

    /// Asks about a call of the running task, and sleeps until there is an answer.
    pub(super) fn ask(&self, task: Current, data: [u32; DATA_WORDS]) -> Answer {
        let asked = self.queue(task, data).and_then(|(id, asker)| self.wait(task, id, &asker));
        match asked {
            Ok(Said { goes_on: true, .. }) => Answer::Continue,
            Ok(said) => Answer::Result(said.result),
            Err(error) => Answer::Result(error.to_return()),
        }
    }

    fn queue(&self, task: Current, data: [u32; DATA_WORDS]) -> Result<(u64, Arc<WaitQueue>)> {
        let asker = try_arc(WaitQueue::new())?;
        let mut state = self.state.lock();
        if state.closed {
            return Err(Errno::ENOSYS);
        }
        state.calls.try_room(1)?;
        let id = state.next_id;
        state.next_id = id.wrapping_add(1);
        let (tid, gifts, step) = (task.tid(), Vec::new(), Step::Asked);
        state.calls.try_push(Call { id, tid, data, step, gifts, asker: asker.clone() })?;
        state.requests += 1;
        drop(state);
        self.changed.wake_events(PollEvents::READABLE.bits());
        Ok((id, asker))
    }

    fn wait(&self, task: Current, id: u64, asker: &WaitQueue) -> Result<Said> {
        let result = loop {
            let fatal_only = self.killable && self.is_taken(id);
            // By any signal that ends its process, as on Linux.
            let ends = || fatal_only && signal::dies(&task);
            let look = || self.look(id, fatal_only).or_else(|| ends().then_some(Woken::Dies));
            let woken = match fatal_only {
                true => asker.wait_killable(look),
                false => asker.wait_interruptible(look),
            };
            match woken {
                Ok(Woken::Answered(said)) => break Ok(said),
                Ok(Woken::Gift(gift)) => self.accept(task, id, &gift),
                Ok(Woken::Otherwise) => {}
                Ok(Woken::Dies) => break Err(Errno::ERESTARTSYS),
                // It was taken meanwhile, and now only death counts.
                Err(_) if !fatal_only && self.killable && self.is_taken(id) => {}
                Err(interrupted) => break Err(interrupted.into()),
            }
        };
        let gone = self.state.lock().take_out(id);
        for gift in gone.iter().flat_map(|call| &call.gifts) {
            gift.settle(Err(Errno::ESRCH));
        }
        result
    }

    /// Something for who asks, and sleeps in a way that only death ends or not.
    fn look(&self, id: u64, fatal_only: bool) -> Option<Woken> {
        let mut state = self.state.lock();
        let Some(call) = state.find(id) else {
            return Some(Woken::Answered(Said::missing()));
        };
        match (call.gifts.pop(), call.step) {
            (Some(gift), _) => Some(Woken::Gift(gift)),
            (None, Step::Answered(said)) => Some(Woken::Answered(said)),
            (None, step) => {
                let is_meant = self.killable && step == Step::Taken;
                (is_meant != fatal_only).then_some(Woken::Otherwise)
            }
        }
    }

    fn accept(&self, task: Current, id: u64, gift: &Gift) {
        let limit = task.process().nofile_limit();
        let file = gift.file.clone();
        let fd = match gift.at {
            Some(fd) => task.files().install_at(fd, file, gift.cloexec, limit).map(|()| fd),
            None => task.files().add(0, file, gift.cloexec, limit),
        };
        if gift.answers
            && let Some(call) = self.state.lock().find(id)
        {
            call.step = match fd {
                Ok(fd) => Step::Answered(Said { result: fd.0.into(), goes_on: false }),
                // The listener may answer anew.
                Err(_) => Step::Taken,
            };
        }
        gift.settle(fd);
    }

    fn is_taken(&self, id: u64) -> bool {
        self.state.lock().find(id).is_some_and(|call| call.step != Step::Asked)
    }

    /// Waits for a call and takes it.
    ///
    /// # Errors
    /// `ENOENT` if the one that was heard of is gone, or nobody has the filter any more.
    pub(super) fn take(&self) -> Result<Notification> {
        self.changed.wait_exclusive(|| {
            let mut state = self.state.lock();
            if state.requests == 0 {
                return state.orphaned.then_some(());
            }
            state.requests -= 1;
            Some(())
        })?;
        let mut state = self.state.lock();
        let call = state.calls.iter_mut().find(|call| call.step == Step::Asked);
        let call = call.ok_or(Errno::ENOENT)?;
        call.step = Step::Taken;
        let (id, pid, data) = (call.id, call.tid as u32, call.data);
        if self.killable {
            // It sleeps anew, in a way that only death ends.
            call.asker.wake_all();
        }
        drop(state);
        self.changed.wake_events(PollEvents::WRITABLE.bits());
        Ok(Notification { id, pid, flags: 0, data })
    }

    /// The listener could not be told of the call that it took: it may be taken again.
    pub(super) fn put_back(&self, id: u64) {
        let mut state = self.state.lock();
        let Some(call) = state.find(id) else { return };
        call.step = Step::Asked;
        call.asker.wake_all();
        state.requests += 1;
        drop(state);
        self.changed.wake_events(PollEvents::READABLE.bits());
    }

    /// Whether the call was taken and waits for its answer.
    pub(super) fn waits(&self, id: u64) -> bool {
        self.state.lock().find(id).is_some_and(|call| call.step == Step::Taken)
    }

    /// Answers.
    ///
    /// # Errors
    /// `ENOENT` if nobody waits for it, `EINPROGRESS` if it is not taken, or answered.
    pub(super) fn answer(&self, response: &Response) -> Result<()> {
        let goes_on = response.flags & Response::CONTINUE != 0;
        // As on Linux: an error counts, if there is one.
        let result = match response.error {
            0 => response.val,
            error => error.into(),
        };
        let asker = {
            let mut state = self.state.lock();
            let call = state.find(response.id).ok_or(Errno::ENOENT)?;
            if call.step != Step::Taken {
                return Err(Errno::EINPROGRESS);
            }
            call.step = Step::Answered(Said { result, goes_on });
            call.asker.clone()
        };
        asker.wake_all();
        Ok(())
    }

    /// Gives who asks a descriptor, and waits until it has it: its number there.
    ///
    /// # Errors
    /// As [`answer`](Self::answer); `EBUSY` if it is to be the answer and others are on their way; `ESRCH` if who asks is
    /// gone; what installing it says.
    pub(super) fn give(&self, id: u64, gift: Arc<Gift>) -> Result<Fd> {
        let asker = {
            let mut state = self.state.lock();
            let call = state.find(id).ok_or(Errno::ENOENT)?;
            if call.step != Step::Taken {
                return Err(Errno::EINPROGRESS);
            }
            if gift.answers && !call.gifts.is_empty() {
                return Err(Errno::EBUSY);
            }
            call.gifts.try_push(gift.clone())?;
            if gift.answers {
                // Nobody else answers meanwhile; what it is told, the descriptor's number decides.
                call.step = Step::Answered(Said { result: 0, goes_on: false });
            }
            call.asker.clone()
        };
        asker.wake_all();
        match gift.given.wait_interruptible(|| gift.done.get().copied()) {
            Ok(result) => result,
            Err(interrupted) => {
                let mut state = self.state.lock();
                let gifts = state.find(id).map(|call| &mut call.gifts);
                let mine = |one: &Arc<Gift>| Arc::ptr_eq(one, &gift);
                let taken_back = gifts.and_then(|gifts| {
                    let at = gifts.iter().position(mine)?;
                    Some(gifts.remove(at))
                });
                drop(state);
                drop(taken_back);
                gift.done.get().copied().unwrap_or(Err(interrupted.into()))
            }
        }
    }
}
