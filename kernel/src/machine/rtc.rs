//! The CMOS clock: wall time at boot.
//!
//! Owns ports 0x70 and 0x71; read at boot by the time floor. Never writes to the memory behind
//! them. Locks: none: one CPU runs then.

use crate::base::port::Ports;
use crate::base::tsc;

// SAFETY: an index and a data register of battery-backed memory, to which only this module writes, and only the
// index.
const CMOS: Ports = unsafe { Ports::new(0x70, 2) };
/// How often a clock in the middle of an update is read again: an update takes at most 244 us by the data sheet,
/// and a second or more on a virtual machine whose host is busy.
const PATIENCE: u32 = 1_000_000;
const SECONDS: u8 = 0x00;
const STATUS_A: u8 = 0x0a;
/// What register A reads as where there is no clock.
const ABSENT: u8 = 0xff;
/// Bit of register A: an update is in progress.
const UPDATING: u8 = 0x80;

/// A date and time, presumed UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateTime {
    pub year: u32,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
}

fn cmos(register: u8) -> u8 {
    // Bit 7 keeps NMIs enabled when clear.
    CMOS.write8(0, register);
    CMOS.read8(1)
}

/// Waits for the start of the clock's next second: the TSC then, or nothing if none starts within `limit` ticks of the TSC.
pub fn next_second(limit: u64) -> Option<u64> {
    let (first, from) = (cmos(SECONDS), tsc::read_ordered());
    loop {
        let (second, now) = (cmos(SECONDS), tsc::read_ordered());
        if second != first {
            return Some(now);
        }
        if now.wrapping_sub(from) > limit {
            return None;
        }
    }
}

/// Whether a clock answers.
pub fn is_there() -> bool {
    cmos(STATUS_A) != ABSENT
}

fn read_once() -> [u8; 7] {
    [SECONDS, 2, 4, 7, 8, 9, 0x32].map(cmos)
}

/// The time now; nothing when the clock gives no valid date.
pub fn read() -> Option<DateTime> {
    let mut fields = None;
    for _ in 0..PATIENCE {
        // Not while an update is in progress, and twice the same.
        match cmos(STATUS_A) {
            // There is no clock: nothing answers.
            ABSENT => return None,
            status if status & UPDATING != 0 => continue,
            _ => {}
        }
        let first = read_once();
        if cmos(STATUS_A) & UPDATING == 0 && first == read_once() {
            fields = Some(first);
            break;
        }
    }
    let [second, minute, hour, day, month, year, century] = fields?;
    let status = cmos(0x0b);
    let number = |value: u8| -> u32 {
        let value = u32::from(value);
        if status & 4 != 0 { value } else { (value >> 4) * 10 + (value & 15) }
    };
    let mut hours = number(hour & 0x7f);
    if status & 2 == 0 {
        hours = hours % 12 + if hour & 0x80 != 0 { 12 } else { 0 };
    }
    let century = match number(century) {
        century @ 19..=29 => century,
        _ => 20,
    };
    let time = DateTime {
        year: century * 100 + number(year),
        month: number(month),
        day: number(day),
        hour: hours,
        minute: number(minute),
        second: number(second),
    };
    let valid = (1..=12).contains(&time.month)
        && (1..=31).contains(&time.day)
        && time.hour < 24
        && time.minute < 60
        && time.second < 60
        && time.year >= 1970;
    valid.then_some(time)
}
