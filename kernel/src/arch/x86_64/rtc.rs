//! The CMOS clock: wall time at boot.
//!
//! Owns ports 0x70 and 0x71 together with nobody; read once by the time floor.

use super::port::{inb, outb};

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
    outb(0x70, register);
    inb(0x71)
}

fn read_once() -> [u8; 7] {
    [0, 2, 4, 7, 8, 9, 0x32].map(cmos)
}

/// The time now; nothing when the clock gives no valid date.
pub fn read() -> Option<DateTime> {
    let mut fields = None;
    for _ in 0..64 {
        // Not while an update is in progress, and twice the same.
        if cmos(0x0a) & 0x80 != 0 {
            continue;
        }
        let first = read_once();
        if cmos(0x0a) & 0x80 == 0 && first == read_once() {
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
