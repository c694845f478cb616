//! [`Family`]: a process's parent, children and threads.
//!
//! Owns the list of children, and the one door into it: [`Process::take_in`]. A process that has given its
//! children away takes no more in, so nobody stays behind in a list that no one looks at again. A child comes into the list and
//! gets its parent under the parent's lock; between its parent's end and its heir's taking it in, it is in no list.
//! Never drops a process under a lock. Locks: `ProcessTree`, parent before child.

use crate::process::task::members::Members;
use crate::process::task::process::Process;
use crate::process::task::task::Task;
use abi::Errno;
use abi::signal::Signal;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// Under the `tree` lock of its process.
#[derive(Default)]
pub(in crate::process) struct Family {
    pub(in crate::process) parent: Option<Arc<Process>>,
    pub(super) children: Children,
    pub(in crate::process) threads: Members<Task>,
}

/// The children of a process: private here, so that [`Process::take_in`] alone adds one.
#[derive(Default)]
pub(super) struct Children {
    list: Members<Process>,
    given_away: bool,
}

/// Why a process takes in no child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It has given its children away: ask the next one.
    Gone,
    /// No memory for the list.
    NoMemory,
}

/// Who a new process belongs to, and how it tells of its end.
pub(super) struct Descent {
    /// `None`: whoever inherits from the one that asks.
    pub(super) parent: Option<Arc<Process>>,
    pub(super) exit_signal: i32,
}

impl Children {
    pub(super) fn iter(&self) -> core::slice::Iter<'_, Arc<Process>> {
        self.list.iter()
    }

    pub(super) fn contains(&self, child: &Process) -> bool {
        self.list.contains(child)
    }

    pub(super) fn remove(&mut self, child: &Process) -> Option<Arc<Process>> {
        self.list.remove(child)
    }
}

impl Process {
    /// Makes this process the parent of `child`, which tells it of its end by `exit_signal`.
    ///
    /// # Errors
    /// [`Refused`]; the child is then where it was.
    pub(super) fn take_in(
        self: &Arc<Self>,
        child: &Arc<Process>,
        exit_signal: i32,
    ) -> Result<(), Refused> {
        let mut family = self.tree().lock();
        if family.children.given_away {
            return Err(Refused::Gone);
        }
        if !family.children.list.push(child.clone()) {
            return Err(Refused::NoMemory);
        }
        let old = child.tree().lock().parent.replace(self.clone());
        // Relaxed: ordered by this process's lock, or by the child's start.
        child.exit_signal.store(exit_signal, Ordering::Relaxed);
        drop(family);
        drop(old);
        Ok(())
    }

    /// The children, for one who ends: from now on it takes none in.
    pub(super) fn give_children_up(&self) -> Members<Process> {
        let mut family = self.tree().lock();
        family.children.given_away = true;
        core::mem::take(&mut family.children.list)
    }

    /// Takes a child that nobody need wait for out of the list, if it is there.
    pub(super) fn disown(&self, child: &Arc<Process>) {
        let mut family = self.tree().lock();
        let gone = family.children.remove(child);
        // Not under the lock: the last references.
        let parent = gone.as_ref().and_then(|child| child.tree().lock().parent.take());
        drop(family);
        drop((gone, parent));
    }

    /// What a sibling of this process begins with, read at one moment.
    pub(super) fn descent(&self) -> Descent {
        let family = self.tree().lock();
        // Relaxed: see `take_in`.
        let exit_signal = self.exit_signal.load(Ordering::Relaxed);
        Descent { parent: family.parent.clone(), exit_signal }
    }

    /// Who inherits from this process, which has not been waited for: its nearest ancestor that asked to, or init.
    pub(super) fn heir(&self) -> Option<Arc<Process>> {
        let mut at = self.parent();
        while let Some(ancestor) = at {
            // Relaxed: a setting; a race with prctl has no wrong outcome.
            if ancestor.is_init()
                || (ancestor.child_subreaper.load(Ordering::Relaxed) && !ancestor.is_exiting())
            {
                return Some(ancestor);
            }
            at = ancestor.parent();
            if at.is_none() && ancestor.is_reaped() {
                // It was waited for meanwhile, so those below it have other parents by now.
                at = self.parent();
            }
        }
        super::table::lookup(1)
    }

    /// Finds a parent for `child`: the one that `first` names, or whoever inherits from this process.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(super) fn settle(
        &self,
        child: &Arc<Process>,
        first: Descent,
    ) -> Result<Arc<Process>, Errno> {
        let Descent { mut parent, mut exit_signal } = first;
        loop {
            let asked = parent.take().or_else(|| self.heir()).ok_or(Errno::EAGAIN)?;
            match asked.take_in(child, exit_signal) {
                Ok(()) => return Ok(asked),
                Err(Refused::NoMemory) => return Err(Errno::ENOMEM),
                // An exiting process is no heir, so the next one asked is another. As on Linux, it always gets
                // SIGCHLD.
                Err(Refused::Gone) => exit_signal = Signal::SIGCHLD.number(),
            }
        }
    }
}
