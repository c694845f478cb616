//! Devices.

pub mod console_device;
pub mod hvc;
pub mod random;
mod ring;
pub mod rtc;
pub mod tty;
pub mod uart;
pub mod vport;

/// Registers the random devices and the clock chip. After devtmpfs, procfs and sysfs exist.
pub fn init() -> abi::Result<()> {
    random::init()?;
    rtc::init()
}

/// Waits until the consoles have shown all: before power-off and reboot.
pub fn drain_consoles() {
    uart::drain();
    hvc::drain();
}
