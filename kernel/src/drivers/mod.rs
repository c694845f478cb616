//! Devices.

pub mod console_device;
pub mod random;
pub mod rtc;
pub mod tty;
pub mod uart;
pub mod vport;

/// Registers the random devices and the clock chip. After devtmpfs, procfs and sysfs exist.
pub fn init() -> abi::Result<()> {
    random::init()?;
    rtc::init()
}
