//! Continuous health tests on a noise source (NIST SP 800-90B, section 4.4).
//!
//! Owns three tests over a stream of samples and their cutoffs. They look for a source that has
//! *failed*; they do not measure entropy and they never repair it. Lock rules: none, every source
//! has its own tester.
//!
//! - **Repetition count** (RCT, 4.4.1): the same sample many times in a row. Cutoff
//!   `1 + ceil(30 / H)`.
//! - **Adaptive proportion** (APT, 4.4.2): the first sample of a window of 512 turns up too often in
//!   it. Cutoff: the smallest `c` with `P(Binomial(512, 2^-H) >= c) <= 2^-30`.
//! - **Lag**: a sample equals the one 1 to 8 before it too often in such a window, which finds
//!   short cycles that the other two let pass (A B A B has a proportion of one half). A source with
//!   min-entropy `H` per sample matches any prediction with probability at most `2^-H`, so the APT
//!   cutoff holds here as well.
//!
//! `H` is the claimed min-entropy per sample. **False alarms**: for a source that delivers exactly `H`, each sample fails
//! RCT with probability at most 2^-30. The cutoffs of APT are the standard's, made for 512 comparisons at 2^-30; here as
//! there the first sample of a window is one of the 512 and always matches, so a window fails with at most 2^-30 for the
//! claims of up to a bit and with 2^-28 for that of eight bits (`tests/health.rs` recomputes both). A window fails at all,
//! by APT, one of the eight lags or RCT, with less than 2^-20. A source better than the claim fails far less often.

use core::fmt;

/// Samples in a window of the proportion and lag tests (SP 800-90B, for non-binary sources).
pub const WINDOW: u32 = 512;

/// Samples that must pass before anything of a source is used (SP 800-90B, 4.3).
pub const STARTUP: u32 = 1024;

/// The longest cycle the lag test looks for.
pub const LAGS: usize = 8;

/// Where the tests draw the line, for one claim of min-entropy per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutoffs {
    /// So many equal samples in a row are a failure.
    pub repetition: u32,
    /// So many matches in a window are a failure.
    pub proportion: u32,
}

impl Cutoffs {
    /// For a claim of one eighth of a bit per sample.
    pub const EIGHTH_BIT: Self = Self { repetition: 241, proportion: 502 };
    /// For a claim of half a bit per sample.
    pub const HALF_BIT: Self = Self { repetition: 61, proportion: 422 };
    /// For a claim of one bit per sample.
    pub const ONE_BIT: Self = Self { repetition: 31, proportion: 325 };
    /// For a claim of eight bits per sample: bytes of a generator that says it delivers full entropy, or of one that is
    /// meant to look as if it did.
    pub const EIGHT_BITS: Self = Self { repetition: 5, proportion: 16 };
}

/// Which test a source failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthFault {
    /// Too many equal samples in a row.
    Repetition,
    /// One sample too often in a window.
    Proportion,
    /// A short cycle.
    Lag,
}

impl fmt::Display for HealthFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Repetition => "the source repeats one sample (repetition count test)",
            Self::Proportion => "the source favours one sample (adaptive proportion test)",
            Self::Lag => "the source runs in a short cycle (lag test)",
        })
    }
}

impl core::error::Error for HealthFault {}

/// What is known of a counter of time: no source may be credited whose times it tells and that it makes regular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// `Jitter::collect` credited it, or nobody had to look.
    Usable,
    /// `Jitter::collect` refused it.
    Refused,
}

/// The standard's two tests, repetition count and adaptive proportion, over one source.
///
/// They keep two samples of all that they have seen, so that a source whose samples become keys can be tested for ever:
/// of words that are tested byte by byte, whoever reads all memory learns two bytes.
///
/// ```
/// use alea_random::health::{Cutoffs, HealthFault, StandardTests};
/// let mut tests = StandardTests::new(Cutoffs::EIGHT_BITS);
/// let verdict = (0..100).try_for_each(|_| tests.observe(42));
/// assert_eq!(verdict, Err(HealthFault::Repetition), "a stuck source");
/// ```
pub struct StandardTests {
    cutoffs: Cutoffs,
    run: u32,
    last: u64,
    in_window: u32,
    window_first: u64,
    window_matches: u32,
    observed: u32,
}

impl StandardTests {
    /// A tester that has seen nothing.
    pub const fn new(cutoffs: Cutoffs) -> Self {
        Self {
            cutoffs,
            run: 0,
            last: 0,
            in_window: 0,
            window_first: 0,
            window_matches: 0,
            observed: 0,
        }
    }

    /// Takes one sample into account. After a failure the source must not be credited; the caller may start over with a
    /// new tester.
    pub fn observe(&mut self, sample: u64) -> Result<(), HealthFault> {
        self.run = if self.observed > 0 && sample == self.last { self.run + 1 } else { 1 };
        self.last = sample;
        self.observed = self.observed.saturating_add(1);
        if self.in_window == 0 {
            self.window_first = sample;
            self.window_matches = 0;
        }
        self.window_matches += u32::from(sample == self.window_first);
        self.in_window = (self.in_window + 1) % WINDOW;
        if self.run >= self.cutoffs.repetition {
            Err(HealthFault::Repetition)
        } else if self.window_matches >= self.cutoffs.proportion {
            Err(HealthFault::Proportion)
        } else {
            Ok(())
        }
    }

    /// Whether the start-up tests are over: nothing before may be credited.
    pub const fn started(&self) -> bool {
        self.observed >= STARTUP
    }

    /// Whether the next sample begins a window.
    const fn at_window(&self) -> bool {
        self.in_window == 0
    }
}

/// [`StandardTests`] and the lag test, which needs the last [`LAGS`] samples.
///
/// ```
/// use alea_random::health::{Cutoffs, HealthFault, HealthTests};
/// let mut tests = HealthTests::new(Cutoffs::ONE_BIT);
/// let verdict = (0..100).try_for_each(|_| tests.observe(42));
/// assert_eq!(verdict, Err(HealthFault::Repetition), "a stuck source");
/// ```
///
/// Raw samples are in it, so it can be neither copied nor shown.
///
/// ```compile_fail
/// # use alea_random::health::{Cutoffs, HealthTests};
/// println!("{:?}", HealthTests::new(Cutoffs::ONE_BIT));
/// ```
pub struct HealthTests {
    standard: StandardTests,
    history: [u64; LAGS],
    lag_matches: [u32; LAGS],
}

impl HealthTests {
    /// A tester that has seen nothing.
    pub const fn new(cutoffs: Cutoffs) -> Self {
        Self { standard: StandardTests::new(cutoffs), history: [0; LAGS], lag_matches: [0; LAGS] }
    }

    /// Takes one sample into account. After a failure the source must not be used; the caller may
    /// start over with a new tester.
    pub fn observe(&mut self, sample: u64) -> Result<(), HealthFault> {
        if self.standard.at_window() {
            self.lag_matches = [0; LAGS];
        }
        for (matches, earlier) in self.lag_matches.iter_mut().zip(self.history) {
            *matches += u32::from(sample == earlier);
        }
        self.history.rotate_right(1);
        self.history[0] = sample;
        self.standard.observe(sample)?;
        let cutoff = self.standard.cutoffs.proportion;
        if self.lag_matches.iter().any(|&m| m >= cutoff) { Err(HealthFault::Lag) } else { Ok(()) }
    }

    /// Whether the start-up tests are over: nothing before may be credited.
    pub const fn started(&self) -> bool {
        self.standard.started()
    }
}

/// How a source stands, as the machine's owner is shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is not there, or nothing was asked of it.
    Absent,
    /// It is tested, and may not be credited yet.
    Starting,
    /// It has passed every test so far.
    Healthy,
    /// It has failed a test: mixed in all the same, never credited again.
    Failed,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "absent",
            Self::Starting => "starting",
            Self::Healthy => "healthy",
            Self::Failed => "failed",
        })
    }
}

/// [`HealthTests`] over lengths of time, of which those that tell nothing new do not count.
pub(crate) struct Timing {
    tests: HealthTests,
    last: u64,
    last_change: u64,
}

impl Timing {
    pub(crate) const fn new(cutoffs: Cutoffs) -> Self {
        Self { tests: HealthTests::new(cutoffs), last: 0, last_change: 0 }
    }

    /// Takes one length of time into account. Whether it counts: the start-up tests are over, the length and the change of
    /// its change are different from zero, and its change is more than a tick of the clock.
    pub(crate) fn observe(&mut self, length: u64) -> Result<bool, HealthFault> {
        let change = length.wrapping_sub(self.last);
        // A clock that is read between two ticks now counts one more, now one less: that much varies where nothing does.
        let by_a_tick = change.wrapping_add(1) <= 2;
        let varies = length != 0 && !by_a_tick && change != self.last_change;
        (self.last, self.last_change) = (length, change);
        self.tests.observe(length)?;
        Ok(varies && self.tests.started())
    }

    pub(crate) const fn started(&self) -> bool {
        self.tests.started()
    }
}
