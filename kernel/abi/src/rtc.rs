//! The clock chip: ioctl numbers and the time that they pass, of linux/rtc.h.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const RTC_RD_TIME: u32 = 0x8024_7009;
pub const RTC_SET_TIME: u32 = 0x4024_700a;
pub const RTC_UIE_ON: u32 = 0x7003;
pub const RTC_UIE_OFF: u32 = 0x7004;
pub const RTC_AIE_ON: u32 = 0x7001;
pub const RTC_AIE_OFF: u32 = 0x7002;
pub const RTC_PIE_ON: u32 = 0x7005;
pub const RTC_PIE_OFF: u32 = 0x7006;
pub const RTC_ALM_SET: u32 = 0x4024_7007;
pub const RTC_ALM_READ: u32 = 0x8024_7008;
pub const RTC_IRQP_READ: u32 = 0x8008_700b;
pub const RTC_IRQP_SET: u32 = 0x4008_700c;
pub const RTC_WKALM_SET: u32 = 0x4028_700f;
pub const RTC_WKALM_RD: u32 = 0x8028_7010;

/// `struct rtc_time`: broken-down time as C has it, so months from 0 and years from 1900.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RtcTime {
    pub sec: i32,
    pub min: i32,
    pub hour: i32,
    pub mday: i32,
    pub mon: i32,
    pub year: i32,
    pub wday: i32,
    pub yday: i32,
    pub isdst: i32,
}

const _: () = assert!(size_of::<RtcTime>() == 36);
