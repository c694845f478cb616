//! What a task has chosen of the CPU's predictors (`PR_SET_SPECULATION_CTRL`), and what the CPU is told of it.
//!
//! Owns nothing: `chosen` has the choice. Changed by the task itself, and by who gives it a filter of system calls. Never written to the CPU but as the task
//! begins to run, or runs. Locks: none.
#![forbid(unsafe_code)]

use super::current::Current;
use super::task::Task;
use crate::base::{cpu, speculation};
use alea_speculation::{Choice, Flaws, Predictors, Refusal};

impl Task {
    /// It begins to run: the CPU is told, if it has anything to be told. Interrupts are off.
    #[inline]
    pub(in crate::process) fn guard_predictors(&self) {
        if speculation::guards() {
            self.tell_predictors();
        }
    }

    #[cold]
    fn tell_predictors(&self) {
        let space = self.mm.read_irqs_off(|mm| mm.as_ref().map(|mm| mm.id()));
        speculation::enter(space, self.settings.speculation.get());
    }

    /// `PR_GET_SPECULATION_CTRL` of this task.
    ///
    /// # Errors
    /// [`Refusal::Unknown`].
    pub fn predictors(&self, which: u64) -> Result<u64, Refusal> {
        let (done, flaws) = (speculation::done(), Flaws::of(&speculation::facts()));
        done.predictors.get(&flaws, self.settings.speculation.get(), which)
    }
}

impl Current {
    /// `PR_SET_SPECULATION_CTRL`.
    ///
    /// # Errors
    /// As [`Predictors::set`].
    pub fn set_predictors(self, which: u64, wanted: u64) -> Result<(), Refusal> {
        self.change_predictors(|known, choice| known.set(choice, which, wanted))
    }

    /// It has a filter of system calls from now on.
    pub(in crate::process) fn filter_predictors(self) {
        let _ = self.change_predictors(|known, choice| Ok(known.filtered(choice)));
    }

    /// It runs a new program.
    pub(in crate::process) fn execute_predictors(self) {
        let _ = self.change_predictors(|_, choice| Ok(choice.executed()));
    }

    fn change_predictors(
        self,
        change: impl FnOnce(&Predictors, Choice) -> Result<Choice, Refusal>,
    ) -> Result<(), Refusal> {
        let known = speculation::done().predictors;
        let old = self.settings.speculation.get();
        let new = change(&known, old)?;
        self.settings.speculation.set(new);
        cpu::without_interrupts(|| {
            self.guard_predictors();
            if new != old && known.wants_barrier_at_once(old, new) {
                speculation::barrier();
            }
        });
        Ok(())
    }
}
