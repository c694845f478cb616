//! /dev/rtc0, its class in sysfs, and /proc/driver/rtc: the clock chip, read and set.
//!
//! One opener at a time has it, as on Linux. There are no interrupts of the chip: what waits for the next second, an alarm or a period is
//! refused as by a chip that has none, and `hwclock` reads until the second changes. Owns the device's numbers and who has it open.
//! Never sets the wall clock. Locks: `CHIP`, a sleeping mutex, around the chip's registers.
#![forbid(unsafe_code)]

use crate::fs::devfs;
use crate::fs::procfs::{self, ProcFile};
use crate::fs::sysfs;
use crate::machine::rtc::{self, DateTime};
use crate::mm::fallible::try_arc;
use crate::mm::user::UserPtr;
use crate::mm::{Sink, Source};
use crate::sync::{Mutex, PollTable, WaitQueue};
use crate::vfs::chardev::CharDriver;
use crate::vfs::{Capability, FileOps, OpenFile, Position};
use crate::{time, try_format};
use abi::fs::{OpenFlags, PollEvents};
use abi::rtc::{self as numbers, RtcTime};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

/// Linux finds the number at boot; this is the one that it finds.
const MAJOR: u32 = 250;

static CHIP: Mutex<()> = Mutex::new(());
/// Somebody has it open. Relaxed: a claim; what is done with the chip has its own lock.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Registers the device and its files, if there is a chip. After devtmpfs, sysfs and procfs exist.
pub fn init() -> Result<()> {
    if !rtc::is_there() {
        return Ok(());
    }
    devfs::register_char(MAJOR, 0, "rtc0", 0o600, try_arc(Driver)?);
    for (name, file) in [
        ("name", SysFile::Constant("rtc_cmos\n")),
        // The wall clock was set by it at boot.
        ("hctosys", SysFile::Constant("1\n")),
        ("date", SysFile::Date),
        ("time", SysFile::Time),
        ("since_epoch", SysFile::SinceEpoch),
    ] {
        let path = try_format!("devices/platform/rtc_cmos/rtc/rtc0/{name}")?;
        sysfs::register_file(&path, 0o444, try_arc(file)?)?;
    }
    procfs::register_file("driver/rtc", 0o444, try_arc(Report)?)
}

/// What the chip says; `EIO` for no valid date.
fn read() -> Result<DateTime> {
    let _chip = CHIP.lock();
    rtc::read().ok_or(Errno::EIO)
}

/// The date, if there is such a day; `ERANGE` beyond what the chip can keep.
fn date_of(time: &RtcTime) -> Result<DateTime> {
    let number = |value: i32, most: u32| {
        u32::try_from(value).ok().filter(|value| *value <= most).ok_or(Errno::EINVAL)
    };
    let year = number(time.year.saturating_add(1900), u32::MAX)?;
    let month = number(time.mon, 11)? + 1;
    let date = DateTime {
        year,
        month,
        day: number(time.mday, days_of(year, month))?,
        hour: number(time.hour, 23)?,
        minute: number(time.min, 59)?,
        second: number(time.sec, 59)?,
    };
    if date.year < 1970 || date.day == 0 {
        return Err(Errno::EINVAL);
    }
    if date.year > 2099 { Err(Errno::ERANGE) } else { Ok(date) }
}

fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// As C has it. Linux's driver leaves the day of the week and of the year alone.
fn rtc_time(date: &DateTime) -> RtcTime {
    let number = |value: u32| value.cast_signed();
    RtcTime {
        sec: number(date.second),
        min: number(date.minute),
        hour: number(date.hour),
        mday: number(date.day),
        mon: number(date.month) - 1,
        year: number(date.year) - 1900,
        ..RtcTime::default()
    }
}

struct Driver;

impl CharDriver for Driver {
    fn open(&self, _minor: u32, _flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        if TAKEN.swap(true, Ordering::Relaxed) {
            return Err(Errno::EBUSY);
        }
        // Given back when it is dropped, also if there is no memory for it.
        Ok(try_arc(Chip)?)
    }
}

/// The open device.
struct Chip;

impl Drop for Chip {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Relaxed);
    }
}

impl FileOps for Chip {
    /// Waits for an interrupt. None comes, since none can be switched on: a signal ends it.
    fn read(&self, f: &OpenFile, _dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        if f.nonblock() {
            return Err(Errno::EAGAIN);
        }
        Ok(WaitQueue::new().wait_interruptible(|| None)?)
    }

    fn write(&self, _f: &OpenFile, _src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    fn position(&self) -> Position {
        Position::Ignored
    }

    fn poll(&self, _f: &OpenFile, _table: &mut PollTable) -> PollEvents {
        PollEvents::empty()
    }

    fn ioctl(&self, _f: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        match cmd {
            numbers::RTC_RD_TIME => {
                UserPtr::<RtcTime>::new(arg).write(&rtc_time(&read()?))?;
                Ok(0)
            }
            numbers::RTC_SET_TIME => {
                if !procfs::is_capable(Capability::SYS_TIME) {
                    return Err(Errno::EACCES);
                }
                let date = date_of(&UserPtr::<RtcTime>::new(arg).read()?)?;
                let _chip = CHIP.lock();
                rtc::set(&date);
                Ok(0)
            }
            // A chip without interrupts.
            numbers::RTC_UIE_ON
            | numbers::RTC_AIE_ON
            | numbers::RTC_PIE_ON
            | numbers::RTC_ALM_SET
            | numbers::RTC_ALM_READ
            | numbers::RTC_WKALM_SET
            | numbers::RTC_WKALM_RD
            | numbers::RTC_IRQP_READ
            | numbers::RTC_IRQP_SET => Err(Errno::EINVAL),
            numbers::RTC_UIE_OFF | numbers::RTC_AIE_OFF | numbers::RTC_PIE_OFF => Ok(0),
            _ => Err(Errno::ENOTTY),
        }
    }
}

/// A file of the class.
enum SysFile {
    Constant(&'static str),
    Date,
    Time,
    SinceEpoch,
}

impl ProcFile for SysFile {
    fn read(&self) -> Result<Vec<u8>> {
        let text = match self {
            Self::Constant(text) => try_format!("{text}"),
            Self::Date => {
                let at = read()?;
                try_format!("{:04}-{:02}-{:02}\n", at.year, at.month, at.day)
            }
            Self::Time => {
                let at = read()?;
                try_format!("{:02}:{:02}:{:02}\n", at.hour, at.minute, at.second)
            }
            Self::SinceEpoch => try_format!("{}\n", time::unix_seconds(&read()?)),
        };
        text.map(alloc::string::String::into_bytes)
    }
}

/// /proc/driver/rtc.
struct Report;

impl ProcFile for Report {
    fn read(&self) -> Result<Vec<u8>> {
        let at = read()?;
        try_format!(
            "rtc_time\t: {:02}:{:02}:{:02}\nrtc_date\t: {:04}-{:02}-{:02}\nalarm_IRQ\t: no\nupdate IRQ enabled\t: no\n\
             periodic IRQ enabled\t: no\n24hr\t\t: yes\n",
            at.hour,
            at.minute,
            at.second,
            at.year,
            at.month,
            at.day
        )
        .map(alloc::string::String::into_bytes)
    }
}
