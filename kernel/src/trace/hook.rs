//! The subscribers, what each wants, and the way to them.
//!
//! Owns the slots. A subscriber's points stand in its half of a word in each CPU's block, and only the subscriber changes
//! them, one change at a time. Never waits, and never calls a subscriber that did not ask. Locks: none.

use super::event::{Event, Point};
use crate::base::percpu;
use spin::Once;

/// Hears of events. It runs where they happen: in interrupt handlers, with interrupts off, with any lock held. It takes no
/// lock, never blocks or allocates, and touches no user memory; of [`Point::Enter`] and [`Point::Leave`] it is told with
/// interrupts on and nothing held.
pub type Act = fn(&Event<'_>);

/// Who can hear of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Subscriber {
    /// The sessions of /proc/alea/trace.
    Ring,
    /// The events of perf_event_open(2).
    Perf,
}

impl Subscriber {
    /// At most two: each has a half of a word.
    const ALL: [Self; 2] = [Self::Ring, Self::Perf];
}

static RING: Once<Act> = Once::new();
static PERF: Once<Act> = Once::new();

/// Bits of a word that are one subscriber's.
const HALF: u32 = 16;
const _: () = assert!((Point::Tick as u32) < HALF, "the last point has its bit");

/// Fills the slot of a subscriber; called once at boot.
pub fn register(who: Subscriber, act: Act) {
    slot(who).call_once(|| act);
}

fn slot(who: Subscriber) -> &'static Once<Act> {
    match who {
        Subscriber::Ring => &RING,
        Subscriber::Perf => &PERF,
    }
}

/// A set of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Points(u16);

impl Points {
    pub const fn none() -> Self {
        Self(0)
    }

    pub const fn with(self, point: Point) -> Self {
        Self(self.0 | 1 << point as u32)
    }

    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    pub const fn has(self, point: Point) -> bool {
        self.0 & 1 << point as u32 != 0
    }
}

/// From now on `who` hears of these points, on every CPU, and of no others: he calls it one change at a time. What
/// happens meanwhile may or may not be told.
pub fn wants(who: Subscriber, points: Points) {
    let shift = who as u32 * HALF;
    let gone = u32::from(u16::MAX) << shift;
    percpu::set_traced(gone, u32::from(points.0) << shift);
}

/// Whether anybody wants to hear of a point.
#[inline(always)]
pub fn wanted(point: Point) -> bool {
    let both = 1u32 << point as u32 | 1 << (point as u32 + HALF);
    percpu::traced() & both != 0
}

/// Whether anybody but `who` wants to hear of one of these.
#[inline(always)]
pub fn wanted_by_others(who: Subscriber, points: Points) -> bool {
    let both = u32::from(points.0) | u32::from(points.0) << HALF;
    let own = u32::from(u16::MAX) << (who as u32 * HALF);
    percpu::traced() & both & !own != 0
}

/// Tells of an event, which is made if anybody wants it.
#[inline(always)]
pub fn at<'a>(point: Point, event: impl FnOnce() -> Event<'a>) {
    if wanted(point) {
        tell(&event());
    }
}

#[cold]
#[inline(never)]
fn tell(event: &Event<'_>) {
    let wanted = percpu::traced();
    for who in Subscriber::ALL {
        let points = Points((wanted >> (who as u32 * HALF)) as u16);
        if points.has(event.point())
            && let Some(act) = slot(who).get()
        {
            act(event);
        }
    }
}
