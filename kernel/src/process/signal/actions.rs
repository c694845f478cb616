//! The signal actions of a process (`sigaction`), shared by its threads and by CLONE_SIGHAND.
//!
//! The table is copy-on-write: fork only counts a reference, and the first `sigaction` after it copies.
//! Owns the table. Never calls out under its lock. Locks: [`crate::sync::level::Signal`], the last of that level.

use crate::sync::{SpinLock, level};
use abi::signal::{DefaultAction, SIG_DFL, SIG_IGN, SigAction, SigSet, Signal};
use alloc::sync::Arc;

/// What the program asked for, for each of the 64 signals.
#[derive(Clone)]
struct Table {
    actions: [SigAction; 64],
    /// Signals whose action is `SIG_IGN`.
    ignored: SigSet,
    /// Signals that have a handler.
    caught: SigSet,
}

/// The shared table; `None` is the table of a new program: all default.
pub struct SignalActions {
    table: SpinLock<Option<Arc<Table>>, level::Signal>,
}

impl SignalActions {
    /// All signals at their default.
    pub const fn new() -> Self {
        Self { table: SpinLock::new(None) }
    }

    /// The same actions in a table of its own, for fork.
    pub fn fork(&self) -> Self {
        Self { table: SpinLock::new(self.table.lock().clone()) }
    }

    /// The action of one signal.
    pub fn get(&self, signal: Signal) -> SigAction {
        match &*self.table.lock() {
            Some(table) => table.actions[signal.index()],
            None => SigAction::default(),
        }
    }

    /// Replaces an action and returns the old one.
    pub fn set(&self, signal: Signal, action: SigAction) -> SigAction {
        let mut shared = None;
        let mut table = self.table.lock();
        let slot = table.get_or_insert_with(Table::all_default);
        let old = match Arc::get_mut(slot) {
            Some(own) => own.replace(signal, action),
            None => {
                let (own, old) = slot.copy_with(signal, action);
                shared = Some(core::mem::replace(slot, own));
                old
            }
        };
        drop(table);
        drop(shared);
        old
    }

    /// Signals whose sending has no effect when they are not blocked: ignored, or ignored by default.
    pub fn ignores(&self, signal: Signal) -> bool {
        let default = match &*self.table.lock() {
            Some(table) if table.ignored.contains(signal) => return true,
            Some(table) => !table.caught.contains(signal),
            None => true,
        };
        default && signal.default_action() == DefaultAction::Ignore
    }

    /// The sets that /proc/PID/status shows: ignored and caught.
    pub fn sets(&self) -> (SigSet, SigSet) {
        match &*self.table.lock() {
            Some(table) => (table.ignored, table.caught),
            None => (SigSet::EMPTY, SigSet::EMPTY),
        }
    }

    /// exec: handlers go back to default, ignored signals stay ignored.
    pub fn reset_for_exec(&self) {
        let mut table = self.table.lock();
        let Some(current) = &*table else { return };
        let ignored = current.ignored;
        let old = table.take();
        if !ignored.is_empty() {
            *table = Some(Table::ignoring(ignored));
        }
        drop(table);
        drop(old);
    }
}

impl Table {
    // Not inlined, so that its two kilobytes of stack are used for a moment only.
    #[inline(never)]
    fn all_default() -> Arc<Self> {
        Arc::new(Self {
            actions: [SigAction::default(); 64],
            ignored: SigSet::EMPTY,
            caught: SigSet::EMPTY,
        })
    }

    /// A copy with another action, and the old one.
    // Not inlined: as above.
    #[inline(never)]
    fn copy_with(&self, signal: Signal, action: SigAction) -> (Arc<Self>, SigAction) {
        let mut copy = self.clone();
        let old = copy.replace(signal, action);
        (Arc::new(copy), old)
    }

    fn ignoring(ignored: SigSet) -> Arc<Self> {
        let mut table = Self::all_default();
        if let Some(table) = Arc::get_mut(&mut table) {
            let mut left = ignored;
            while let Some(signal) = left.first() {
                left.remove(signal);
                table.replace(signal, SigAction { handler: SIG_IGN, ..SigAction::default() });
            }
        }
        table
    }

    fn replace(&mut self, signal: Signal, action: SigAction) -> SigAction {
        self.ignored.remove(signal);
        self.caught.remove(signal);
        match action.handler {
            SIG_DFL => {}
            SIG_IGN => self.ignored.insert(signal),
            _ => self.caught.insert(signal),
        }
        core::mem::replace(&mut self.actions[signal.index()], action)
    }
}
