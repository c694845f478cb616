//! How much entropy is accounted for, and the states that follow from it.
//!
//! Owns the unit [`EntropyBits`] and the [`State`] ladder. Crediting is a decision of its own: what
//! is mixed in is not thereby credited. A state only ever goes forward. Lock rules: none here; the
//! [`Credit`] counter is one atomic.

use core::fmt;

use crate::sync::{AtomicU64, Ordering};

/// Bits of entropy, as claimed by a source and counted by [`Credit`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntropyBits(pub u32);

impl EntropyBits {
    /// From here on output is hard to predict, but not hard enough to promise it.
    pub const EARLY: Self = Self(128);
    /// From here on output is cryptographically unpredictable; nothing is counted beyond.
    pub const READY: Self = Self(256);

    /// The sum, which never exceeds what can be told apart.
    #[must_use]
    #[inline]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for EntropyBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits", self.0)
    }
}

/// How far the subsystem has got. It only ever goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Less than 128 credited bits: nothing may be handed out as random.
    Empty,
    /// At least 128 bits: good for the kernel's own early needs, not for a promise to user space.
    Early,
    /// At least 256 bits: everything is served and nothing ever waits again.
    Ready,
}

impl State {
    /// The state that `bits` of credit amount to.
    #[inline]
    pub const fn of(bits: EntropyBits) -> Self {
        if bits.0 >= EntropyBits::READY.0 {
            Self::Ready
        } else if bits.0 >= EntropyBits::EARLY.0 {
            Self::Early
        } else {
            Self::Empty
        }
    }
}

/// A step forward that a credit caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state before.
    pub from: State,
    /// The state after, later than `from`.
    pub to: State,
}

/// Set in the count of a service that failed its known answers; no sum reaches it.
const CONDEMNED: u64 = 1 << 32;

/// The count of credited bits, up to [`EntropyBits::READY`].
pub struct Credit {
    bits: AtomicU64,
}

impl Credit {
    /// Nothing credited.
    #[cfg(not(alea_loom))]
    pub const fn none() -> Self {
        Self { bits: AtomicU64::new(0) }
    }

    /// Nothing credited (loom's atomics cannot be made in a constant).
    #[cfg(alea_loom)]
    pub fn none() -> Self {
        Self { bits: AtomicU64::new(0) }
    }

    /// Adds `bits`. Exactly one caller is told of each transition, and it is the one to act on it.
    pub fn add(&self, bits: EntropyBits) -> Option<Transition> {
        let sum = |old: u64| match old {
            CONDEMNED => CONDEMNED,
            old => (old + u64::from(bits.0)).min(u64::from(EntropyBits::READY.0)),
        };
        // Relaxed: the count publishes no data; the reseed that acts on a transition publishes the
        // key it makes, with its own Release.
        let mut old = self.bits.load(Ordering::Relaxed);
        while let Err(now) =
            self.bits.compare_exchange_weak(old, sum(old), Ordering::Relaxed, Ordering::Relaxed)
        {
            old = now;
        }
        let (from, to) = (State::of(to_bits(old)), State::of(to_bits(sum(old))));
        (from < to).then_some(Transition { from, to })
    }

    /// Ends all credit: whatever is counted from here on, the state is [`State::Empty`]. For a machine whose ciphers
    /// give wrong answers, before the first credit.
    ///
    /// ```
    /// use alea_random::credit::{Credit, EntropyBits, State};
    /// let credit = Credit::none();
    /// credit.condemn();
    /// assert_eq!(credit.add(EntropyBits(256)), None);
    /// assert_eq!(credit.state(), State::Empty);
    /// ```
    pub fn condemn(&self) {
        // Relaxed: as in `add`.
        self.bits.store(CONDEMNED, Ordering::Relaxed);
    }

    /// The bits credited so far: what `RNDGETENTCNT` and `entropy_avail` report.
    #[inline]
    pub fn bits(&self) -> EntropyBits {
        // Relaxed: a count that is a moment old is as good as a fresh one.
        to_bits(self.bits.load(Ordering::Relaxed))
    }

    /// The state that the credit amounts to.
    #[inline]
    pub fn state(&self) -> State {
        State::of(self.bits())
    }
}

#[cfg(not(alea_loom))]
impl Default for Credit {
    fn default() -> Self {
        Self::none()
    }
}

impl fmt::Debug for Credit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credit").field(&self.bits()).finish()
    }
}

/// The counter never exceeds 256, unless it is condemned, which is worth nothing.
fn to_bits(count: u64) -> EntropyBits {
    EntropyBits(u32::try_from(count).unwrap_or(0))
}
