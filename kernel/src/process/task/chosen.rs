//! What a task has chosen of the CPU's predictors: the byte itself.
//!
//! Owns it; `speculation` has what is done with it. Never read by who is not asked for it. Locks: none.
#![forbid(unsafe_code)]

use alea_speculation::Choice;
use core::sync::atomic::{AtomicU8, Ordering};

/// The choice of a task. Relaxed everywhere: one byte, that means nothing for others.
#[derive(Default)]
pub struct Chosen(AtomicU8);

impl Chosen {
    pub(super) fn fork(&self) -> Self {
        Self(AtomicU8::new(self.0.load(Ordering::Relaxed)))
    }

    pub(super) fn get(&self) -> Choice {
        Choice(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, choice: Choice) {
        self.0.store(choice.0, Ordering::Relaxed);
    }
}
