//! The share of normal tasks: real-time tasks that never sleep leave them a twentieth of the CPU, as on Linux 6.12 (its
//! fair server: 50 ms in each second).
//!
//! A period begins when a real-time task runs while a normal one waits. In it normal tasks are owed [`FAIR_NS`]; what they
//! get anyway, because real-time tasks sleep, counts. They are served as late as that is possible: real-time tasks lose
//! nothing if they leave as much by themselves.
//!
//! Owns one CPU's period. Whoever has the queue locked uses it.

/// How long a period is.
pub const PERIOD_NS: u64 = 1_000_000_000;
/// What normal tasks get of it at least.
pub const FAIR_NS: u64 = 50_000_000;

#[derive(Clone, Copy, Debug)]
struct Period {
    began: u64,
    /// How long normal tasks have run in it.
    fair: u64,
}

impl Period {
    /// When normal tasks must begin to run, if they do not run before.
    fn due(&self) -> u64 {
        self.began.saturating_add(PERIOD_NS - FAIR_NS).saturating_add(self.fair)
    }
}

/// The share of one CPU's normal tasks.
#[derive(Default, Debug)]
pub struct Share {
    /// None while no real-time task has made a normal one wait.
    period: Option<Period>,
}

impl Share {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self { period: None }
    }

    /// A real-time task runs while a normal one waits. When the CPU must look again.
    pub fn wait_begins(&mut self, now: u64) -> u64 {
        let period = self.period.get_or_insert(Period { began: now, fair: 0 });
        if period.fair < FAIR_NS { period.due() } else { period.began.saturating_add(PERIOD_NS) }
    }

    /// Whether nobody is owed anything, nor will be as time goes by.
    #[inline]
    pub fn is_at_rest(&self) -> bool {
        self.period.is_none()
    }

    /// No normal task waits.
    #[inline]
    pub fn wait_ends(&mut self) {
        self.period = None;
    }

    /// A normal task has run.
    #[inline]
    pub fn fair_ran(&mut self, ran: u64) {
        if let Some(period) = &mut self.period {
            period.fair = period.fair.saturating_add(ran);
        }
    }

    /// Begins the next period when this one is over and what was owed was had.
    #[inline]
    pub fn renew(&mut self, now: u64) {
        if let Some(period) = &mut self.period
            && period.fair >= FAIR_NS
            && now >= period.began.saturating_add(PERIOD_NS)
        {
            *period = Period { began: now, fair: 0 };
        }
    }

    /// Whether a normal task goes before real-time ones now.
    #[inline]
    pub fn is_owed(&self, now: u64) -> bool {
        self.period.is_some_and(|period| period.fair < FAIR_NS && now >= period.due())
    }

    /// How long normal tasks go first from now on, if they do.
    pub fn owed(&self) -> u64 {
        self.period.map_or(0, |period| FAIR_NS.saturating_sub(period.fair))
    }
}
