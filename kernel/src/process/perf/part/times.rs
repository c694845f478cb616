//! [`Times`]: how long an event was switched on, and counted, when it was sampled ([`Taken`]), and what is read of it
//! ([`Totals`]).
//!
//! Owns the numbers, which the event's lock guards. Never looks at a clock.

/// The part of an event.
pub(in super::super) struct Times {
    /// When the next two were right, on the event's clock.
    pub at: u64,
    pub enabled: u64,
    pub running: u64,
    /// What `running` was when the count of a clock was set back.
    pub base: u64,
    /// Whether the task runs on the event's CPU, if it has one.
    pub is_here: bool,
    pub taken: Taken,
}

/// When the last sample was taken, and what happened since.
pub(in super::super) struct Taken {
    pub at: u64,
    pub since: u64,
    /// How many there are to be until the next one, and from that to the one after it.
    pub need: u64,
    pub next: u64,
}

impl Times {
    /// Brings them up to `now`, until when the event counted or did not.
    pub fn pass(&mut self, now: Option<u64>, is_counting: bool) {
        let Some(now) = now else { return };
        let passed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        if is_counting {
            self.enabled += passed;
            self.running += if self.is_here { passed } else { 0 };
        }
    }
}

/// What is read of an event.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Totals {
    pub count: u64,
    pub enabled: u64,
    pub running: u64,
}

impl Totals {
    pub fn add(self, other: Self) -> Self {
        Self {
            count: self.count.wrapping_add(other.count),
            enabled: self.enabled.wrapping_add(other.enabled),
            running: self.running.wrapping_add(other.running),
        }
    }
}
