//! [`Filter`]: one program of a chain, and what all of a chain say of a call.
//!
//! A filter never changes, and holds the one that was there before it. Tasks share chains. Numbers that a whole chain lets
//! pass whatever the arguments are known beforehand, as on Linux. A chain that is not long has a table of system calls for those who go by
//! it: what always passes stands there as without a filter, and costs nothing. Of the other numbers each program knows where to
//! start. Locks: none.

use super::notify::Notifier;
use crate::arch::entry::frame::{SYSCALLS, SyscallEntry, SyscallTable};
use crate::arch::task::{OwnCalls, may_have_own_calls};
use crate::mm::fallible::{TryGrow, TryVec, try_arc};
use crate::sync::Pace;
use abi::seccomp::{ARCH_X86_64, ret};
use abi::{Errno, Result};
use alea_bpf::{Data, OnNumber, Program, Start};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// How many numbers have a bit: all that there are, and some.
const NUMBERS: usize = 512;

/// Filters of a chain that have tables: those of longer ones would take more memory than they are worth.
const WITH_TABLES: u32 = 8;

/// The numbers that are always let pass.
#[derive(Clone, Copy)]
pub(super) struct Passes([u64; NUMBERS / 64]);

/// A table of calls about all of which filters have to be asked.
#[expect(clippy::disallowed_methods, reason = "its capacity is its length: nothing is allocated")]
fn all_asked(calls: Calls) -> Result<Box<SyscallTable>> {
    let mut table = Vec::with_room(SYSCALLS)?;
    table.try_resize(SYSCALLS, calls.asked)?;
    table.into_boxed_slice().try_into().map_err(|_| Errno::ENOMEM)
}

/// What a program does with each number.
pub(super) struct Known {
    passes: Passes,
    /// Where it starts; nothing if the chain is long.
    starts: Vec<Start>,
    /// The system calls of who goes by the chain; nothing if that is long.
    calls: Option<OwnCalls>,
}

/// The system calls as they are without a filter, and what stands in the place of those about which filters have to be asked.
#[derive(Clone, Copy)]
pub struct Calls {
    pub all: &'static SyscallTable,
    pub asked: SyscallEntry,
}

impl Known {
    /// That of a program behind `depth` others.
    pub(super) fn of(program: &Program, depth: u32, calls: Calls) -> Result<Self> {
        let mut passes = Passes([0; NUMBERS / 64]);
        let mut starts = Vec::new();
        let has_tables = depth < WITH_TABLES;
        if has_tables {
            starts.try_room(NUMBERS)?;
        }
        for number in (0..NUMBERS).paced() {
            let OnNumber { said, start } = program.on_number(number as u32, ARCH_X86_64);
            passes.0[number / 64] |= u64::from(said == Some(ret::ALLOW)) << (number % 64);
            if has_tables {
                starts.try_push(start)?;
            }
        }
        let mut own = None;
        if has_tables && may_have_own_calls() {
            own = Some(try_arc(all_asked(calls)?)?);
        }
        let mut known = Self { passes, starts, calls: own };
        known.fill(calls);
        Ok(known)
    }

    /// Puts what always passes into the table.
    fn fill(&mut self, calls: Calls) {
        let Some(table) = self.calls.as_mut().and_then(Arc::get_mut) else { return };
        // The last entry is that of all numbers from there on.
        for (number, entry) in table.iter_mut().enumerate().take(SYSCALLS - 1) {
            let passes = self.passes.has(number as u32);
            *entry = if passes { calls.all[number] } else { calls.asked };
        }
    }

    /// The same behind others.
    fn behind(mut self, before: &Self, calls: Calls) -> Self {
        self.passes = self.passes.and(&before.passes);
        self.fill(calls);
        self
    }
}

impl Passes {
    fn and(self, other: &Self) -> Self {
        let mut both = self;
        both.0.iter_mut().zip(other.0).for_each(|(own, other)| *own &= other);
        both
    }

    #[inline]
    fn has(&self, number: u32) -> bool {
        let word = self.0.get(number as usize / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 != 0
    }
}

/// What a filter is made of.
pub(super) struct Parts {
    pub(super) program: Program,
    pub(super) known: Known,
    /// What it does, it tells the log.
    pub(super) logs: bool,
    pub(super) notifier: Option<Arc<Notifier>>,
}

/// One filter, and those before it.
pub(in crate::process) struct Filter {
    parts: Parts,
    before: Option<Arc<Filter>>,
    /// How many there are up to here.
    depth: u32,
    /// Instructions up to here as Linux counts them, with four more for each program.
    weight: usize,
}

/// The most instructions of a chain, and what each program counts beside its own.
const MAX_WEIGHT: usize = 32_768;
const PER_PROGRAM: usize = 4;

impl Filter {
    /// A filter behind `before`.
    pub(super) fn new(mut parts: Parts, before: Option<Arc<Filter>>, calls: Calls) -> Self {
        let (mut depth, mut weight) = (1, parts.program.weight() + PER_PROGRAM);
        if let Some(before) = &before {
            depth += before.depth;
            weight += before.weight;
            parts.known = parts.known.behind(&before.parts.known, calls);
        }
        Self { parts, before, depth, weight }
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether a program of this weight has room behind `before`.
    pub(super) fn has_room(before: Option<&Arc<Filter>>, weight: usize) -> bool {
        before.map_or(0, |before| before.weight).saturating_add(weight) <= MAX_WEIGHT
    }

    pub(in crate::process) fn program(&self) -> &Program {
        &self.parts.program
    }

    pub(in crate::process) fn logs(&self) -> bool {
        self.parts.logs
    }

    /// Whether the call is let pass whatever its arguments are.
    #[inline]
    pub(super) fn passes(&self, number: u32) -> bool {
        self.parts.known.passes.has(number)
    }

    /// The system calls of who goes by this one and those before it.
    pub(super) fn calls(&self) -> Option<&OwnCalls> {
        self.parts.known.calls.as_ref()
    }

    /// This one and those before it, the newest first.
    pub(super) fn chain(&self) -> impl Iterator<Item = &Filter> {
        core::iter::successors(Some(self), |filter| filter.before.as_deref())
    }

    /// Whether one of the chain has a listener.
    pub(super) fn has_listener(&self) -> bool {
        self.chain().any(|filter| filter.parts.notifier.is_some())
    }

    /// What the chain says of a call: the strictest of what its programs say, the newest if two are as strict. Nothing if it is
    /// let pass.
    #[inline]
    pub(super) fn judge(&self, number: u32, data: &impl Data) -> Option<Verdict> {
        let mut said = ret::ALLOW;
        let mut by = None;
        for filter in self.chain() {
            let start = filter.parts.known.starts.get(number as usize).copied().unwrap_or_default();
            let answer = filter.parts.program.run_from(start, data);
            if strictness(answer) < strictness(said) {
                (said, by) = (answer, Some(filter));
            }
        }
        by.map(|filter| filter.verdict(said))
    }

    #[cold]
    fn verdict(&self, said: u32) -> Verdict {
        let asks = said & ret::ACTION == ret::USER_NOTIF;
        let notifier = self.parts.notifier.as_ref().filter(|_| asks).cloned();
        Verdict { said, logs: self.parts.logs, notifier }
    }
}

/// As on Linux, the actions are ordered as signed numbers.
fn strictness(said: u32) -> i32 {
    (said & ret::ACTION) as i32
}

/// What a chain says of a call.
pub(super) struct Verdict {
    pub(super) said: u32,
    /// The filter that says so wants it logged.
    pub(super) logs: bool,
    pub(super) notifier: Option<Arc<Notifier>>,
}

/// The filter at this place of a chain, the oldest being 0.
pub(in crate::process) fn nth(newest: &Arc<Filter>, at: u64) -> Option<&Filter> {
    let back = u64::from(newest.depth).checked_sub(at.checked_add(1)?)?;
    newest.chain().nth(usize::try_from(back).ok()?)
}

/// One after the other: a chain may be longer than a stack is deep.
impl Drop for Filter {
    fn drop(&mut self) {
        if let Some(notifier) = &self.parts.notifier {
            notifier.orphan();
        }
        let mut before = self.before.take();
        while let Some(mut filter) = before.and_then(Arc::into_inner) {
            before = filter.before.take();
        }
    }
}
