//! [`Part`]: what a task keeps of System V IPC.
//!
//! Owns the number of the next mark. Never gives a mark twice. Locks: those of `OwnerCell`.

use super::sem::{Undo, UndoList};
use super::shm;
use crate::base::current::Current;
use crate::sync::OwnerCell;
use abi::Result;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// A task's part. Others look at whose list it has only.
pub struct Part {
    /// By which its segments know it; 0 before it makes one. Relaxed: the task's own.
    mark: AtomicU64,
    /// What its end takes back, or that of the last of those that share it.
    undo: OwnerCell<Option<Undo>>,
}

impl Part {
    /// Of a task that shares `undo` with its maker.
    pub const fn new(undo: Option<Undo>) -> Self {
        Self { mark: AtomicU64::new(0), undo: OwnerCell::new(undo) }
    }

    /// The list of what its end takes back, if there is one, to look at.
    pub fn undo_of(&self) -> Option<Arc<UndoList>> {
        self.undo.read(|undo| undo.as_ref().map(|undo| undo.whole().clone()))
    }

    /// The mark for a segment that the task makes.
    pub(super) fn mark(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        match self.mark.load(Ordering::Relaxed) {
            0 => {
                let mark = NEXT.fetch_add(1, Ordering::Relaxed);
                self.mark.store(mark, Ordering::Relaxed);
                mark
            }
            mark => mark,
        }
    }
}

impl Current<Part> {
    /// The list of what its end takes back, made if there is none.
    pub fn undo_list(self) -> Result<Arc<UndoList>> {
        self.with_undo(|undo| undo.whole().clone())
    }

    /// A part in it for a child.
    pub fn share_undo(self) -> Result<Undo> {
        self.with_undo(Undo::share)
    }

    fn with_undo<T>(self, look: impl FnOnce(&Undo) -> T) -> Result<T> {
        let cell = self.map(|part| &part.undo);
        if let Some(undo) = &*cell.borrow() {
            return Ok(look(undo));
        }
        let undo = UndoList::new()?;
        let result = look(&undo);
        cell.replace(Some(undo));
        Ok(result)
    }

    /// It has no part in that list any longer: what only it would have taken back is taken back now.
    pub fn leave_undo(self) {
        drop(self.map(|part| &part.undo).replace(None));
    }

    /// The task ends: with no lock held.
    pub fn leave(self) {
        if self.map(|part| &part.undo).borrow().is_some() {
            self.leave_undo();
        }
        let mark = self.mark.load(Ordering::Relaxed);
        if mark != 0 {
            shm::forget_maker(mark);
        }
    }
}
