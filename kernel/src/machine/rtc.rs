//! The CMOS clock: wall time at boot, and what /dev/rtc0 reads and sets.
//!
//! Owns ports 0x70 and 0x71. Never writes to the memory behind them but to set the clock. Locks: none: one CPU runs at boot, and the device
//! that asks later lets one task in at a time.

use crate::base::port::Ports;
use crate::base::tsc;

// SAFETY: an index and a data register of battery-backed memory, to which only this module writes: the index, and the clock.
const CMOS: Ports = unsafe { Ports::new(0x70, 2) };
/// How often a clock in the middle of an update is read again: an update takes at most 244 us by the data sheet,
/// and a second or more on a virtual machine whose host is busy.
const PATIENCE: u32 = 1_000_000;
const SECONDS: u8 = 0x00;
/// Seconds, minutes, hours, day, month, year, century.
const FIELDS: [u8; 7] = [SECONDS, 2, 4, 7, 8, 9, 0x32];
const STATUS_A: u8 = 0x0a;
const STATUS_B: u8 = 0x0b;
/// Bits of register B: no updates while the clock is set, binary and not BCD, 24 hours and not 12.
const SETTING: u8 = 0x80;
const BINARY: u8 = 4;
const OF_24: u8 = 2;
/// The divider in register A that holds the clock still.
const HELD: u8 = 0x70;
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
    FIELDS.map(cmos)
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
    let status = cmos(STATUS_B);
    let number = |value: u8| -> u32 {
        let value = u32::from(value);
        if status & BINARY != 0 { value } else { (value >> 4) * 10 + (value & 15) }
    };
    let mut hours = number(hour & 0x7f);
    if status & OF_24 == 0 {
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

fn set_cmos(register: u8, value: u8) {
    CMOS.write8(0, register);
    CMOS.write8(1, value);
}

/// Sets the clock; it goes on from that second. The years are 1900 to 2099.
pub fn set(time: &DateTime) {
    let (held, status) = (cmos(STATUS_A), cmos(STATUS_B));
    let form = |value: u32| -> u8 {
        let value = if status & BINARY != 0 { value } else { value / 10 * 16 + value % 10 };
        // Two digits.
        value as u8
    };
    let hour = if status & OF_24 != 0 {
        form(time.hour)
    } else {
        form((time.hour + 11) % 12 + 1) | if time.hour >= 12 { 0x80 } else { 0 }
    };
    let (century, year) = (time.year / 100, time.year % 100);
    let rest = [time.day, time.month, year, century].map(form);
    let values = [form(time.second), form(time.minute), hour].into_iter().chain(rest);
    set_cmos(STATUS_B, status | SETTING);
    set_cmos(STATUS_A, held | HELD);
    FIELDS.into_iter().zip(values).for_each(|(register, value)| set_cmos(register, value));
    set_cmos(STATUS_B, status);
    set_cmos(STATUS_A, held);
}
