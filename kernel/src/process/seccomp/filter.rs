//! [`Filter`]: one program of a chain, and what all of a chain say of a call.
//!
//! A filter never changes, and holds the one that was there before it. Tasks share chains. Numbers that a whole chain lets
//! pass whatever the arguments are known beforehand, as on Linux, and cost one look. Locks: none.

use super::notify::Notifier;
use crate::sync::Pace;
use abi::seccomp::{ARCH_X86_64, ret};
use alea_bpf::{DATA_WORDS, Program};
use alloc::sync::Arc;

/// How many numbers have a bit: all that there are, and some.
const NUMBERS: usize = 512;

/// The numbers that are always let pass.
#[derive(Clone, Copy)]
pub(super) struct Passes([u64; NUMBERS / 64]);

impl Passes {
    /// Those of one program.
    pub(super) fn of(program: &Program) -> Self {
        let mut passes = Self([0; NUMBERS / 64]);
        for number in (0..NUMBERS).paced() {
            let said = program.run_on_number(number as u32, ARCH_X86_64);
            passes.0[number / 64] |= u64::from(said == Some(ret::ALLOW)) << (number % 64);
        }
        passes
    }

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
    pub(super) passes: Passes,
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
    pub(super) fn new(mut parts: Parts, before: Option<Arc<Filter>>) -> Self {
        let (mut depth, mut weight) = (1, parts.program.weight() + PER_PROGRAM);
        if let Some(before) = &before {
            depth += before.depth;
            weight += before.weight;
            parts.passes = parts.passes.and(&before.parts.passes);
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
        self.parts.passes.has(number)
    }

    /// This one and those before it, the newest first.
    pub(super) fn chain(&self) -> impl Iterator<Item = &Filter> {
        core::iter::successors(Some(self), |filter| filter.before.as_deref())
    }

    /// Whether one of the chain has a listener.
    pub(super) fn has_listener(&self) -> bool {
        self.chain().any(|filter| filter.parts.notifier.is_some())
    }

    /// What the chain says of a call: the strictest of what its programs say, the newest if two are as strict.
    pub(super) fn judge(&self, data: &[u32; DATA_WORDS]) -> Verdict {
        let mut said = ret::ALLOW;
        let mut by = None;
        for filter in self.chain() {
            let answer = filter.parts.program.run(data);
            if strictness(answer) < strictness(said) {
                (said, by) = (answer, Some(filter));
            }
        }
        let logs = by.is_some_and(|filter| filter.parts.logs);
        let asks = said & ret::ACTION == ret::USER_NOTIF;
        let notifier = by.filter(|_| asks).and_then(|filter| filter.parts.notifier.clone());
        Verdict { said, logs, notifier }
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
