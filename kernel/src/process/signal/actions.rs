//! The signal actions of a process (`sigaction`), shared by its threads and by CLONE_SIGHAND.
//!
//! The table is copy-on-write: fork only counts a reference, and the first `sigaction` after it copies.
//! Owns the table. Never calls out under its lock. Locks: [`crate::sync::level::Signal`], the last of that level.

use crate::mm::fallible::Room;
use crate::sync::{Part, Parted, Parts, SpinLock, level};
use abi::Result;
use abi::signal::{DefaultAction, SIG_DFL, SIG_IGN, SigAction, SigSet, Signal};
use alloc::sync::Arc;

/// What the program asked for, for each of the 64 signals.
#[derive(Clone)]
struct Table {
    /// By [`place`]: with the two that have no action the table would be larger than one allocation.
    actions: [SigAction; 62],
    /// Signals whose action is `SIG_IGN`.
    ignored: SigSet,
    /// Signals that have a handler.
    caught: SigSet,
}

/// Where a signal's action is in a table. SIGKILL and SIGSTOP have none but the default: in their places are the actions of
/// the last two.
#[inline]
fn place(signal: Signal) -> Option<usize> {
    const KILL: usize = Signal::SIGKILL.index();
    const STOP: usize = Signal::SIGSTOP.index();
    if SigSet::UNBLOCKABLE.contains(signal) {
        return None;
    }
    match signal.index() {
        62 => Some(KILL),
        63 => Some(STOP),
        at => Some(at),
    }
}

/// A process's part in the table.
pub type PartOfActions = Part<SignalActions>;

/// The shared table; `None` is the table of a new program: all default.
pub struct SignalActions {
    parts: Parts,
    table: SpinLock<Option<Arc<Table>>, level::Signal>,
}

impl SignalActions {
    /// All signals at their default.
    pub const fn new() -> Self {
        Self { parts: Parts::new(), table: SpinLock::new(None) }
    }

    /// The same actions in a table of its own, for fork.
    pub fn fork(&self) -> Self {
        Self { parts: Parts::new(), table: SpinLock::new(self.table.lock().clone()) }
    }

    /// The action of one signal.
    #[inline]
    pub fn get(&self, signal: Signal) -> SigAction {
        match &*self.table.lock() {
            Some(table) => table.get(signal),
            None => SigAction::default(),
        }
    }

    /// Replaces an action and returns the old one; `ENOMEM` without memory for a table of its own.
    pub fn set(&self, signal: Signal, mut action: SigAction) -> Result<SigAction> {
        self.swap(signal, &mut action)?;
        Ok(action)
    }

    /// The same in place, which spares copies.
    pub fn swap(&self, signal: Signal, action: &mut SigAction) -> Result<()> {
        let mut shared = None;
        let mut table = self.table.lock();
        let slot = match &mut *table {
            Some(slot) => slot,
            none => none.insert(Table::all_default()?),
        };
        match Arc::get_mut(slot) {
            Some(own) => own.swap(signal, action),
            None => {
                let own = slot.copy_with(signal, action)?;
                shared = Some(core::mem::replace(slot, own));
            }
        }
        drop(table);
        drop(shared);
        Ok(())
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
    pub fn reset_for_exec(&self) -> Result<()> {
        let mut table = self.table.lock();
        let Some(current) = &*table else { return Ok(()) };
        let ignored = current.ignored;
        let new = if ignored.is_empty() { None } else { Some(Table::ignoring(ignored)?) };
        let old = core::mem::replace(&mut *table, new);
        drop(table);
        drop(old);
        Ok(())
    }
}

impl Parted for SignalActions {
    fn parts(&self) -> &Parts {
        &self.parts
    }
}

impl Table {
    // Not inlined, so that its two kilobytes of stack are used for a moment only.
    #[inline(never)]
    fn all_default() -> Result<Arc<Self>> {
        Ok(Room::new()?.arc(Self {
            actions: [SigAction::default(); 62],
            ignored: SigSet::EMPTY,
            caught: SigSet::EMPTY,
        }))
    }

    /// A copy with another action, whose place the old one takes.
    // Not inlined: as above.
    #[inline(never)]
    fn copy_with(&self, signal: Signal, action: &mut SigAction) -> Result<Arc<Self>> {
        let mut copy = Room::new()?.arc(self.clone());
        if let Some(copy) = Arc::get_mut(&mut copy) {
            copy.swap(signal, action);
        }
        Ok(copy)
    }

    fn ignoring(ignored: SigSet) -> Result<Arc<Self>> {
        let mut table = Self::all_default()?;
        if let Some(table) = Arc::get_mut(&mut table) {
            let mut left = ignored;
            while let Some(signal) = left.first() {
                left.remove(signal);
                table.swap(signal, &mut SigAction { handler: SIG_IGN, ..SigAction::default() });
            }
        }
        Ok(table)
    }

    #[inline]
    fn get(&self, signal: Signal) -> SigAction {
        place(signal).and_then(|at| self.actions.get(at)).copied().unwrap_or_default()
    }

    #[inline]
    fn swap(&mut self, signal: Signal, action: &mut SigAction) {
        let Some(slot) = place(signal).and_then(|at| self.actions.get_mut(at)) else {
            *action = SigAction::default();
            return;
        };
        self.ignored.remove(signal);
        self.caught.remove(signal);
        match action.handler {
            SIG_DFL => {}
            SIG_IGN => self.ignored.insert(signal),
            _ => self.caught.insert(signal),
        }
        core::mem::swap(slot, action);
    }
}
