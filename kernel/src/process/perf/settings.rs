//! What root says of events below /proc/sys, what programs read of them below /sys, and the attributes as they lie in memory.
//!
//! Owns the numbers. Never says what an event is worth: [`mod@super::open`] does. Locks: none.

use super::{chains, told, tracepoint};
use crate::base::setting::Bounded;
use crate::fs::procfs::{Fixed, Kept, register_kept, register_setting};
use crate::fs::sysfs;
use crate::mm::fallible::try_arc;
use crate::mm::user::{self, UserPtr};
use crate::try_format;
use abi::perf::{Attr, SIZE_LEAST, SIZE_MOST};
use abi::{Errno, Result};

crate::setting! {
    /// `kernel.perf_event_paranoid`: who is not capable may from 0 on not watch CPUs, from 1 on not the kernel (so far Linux
    /// counts: above 0 and above 1), and above 2 nothing, as Debian has it.
    pub static PARANOID = 3, i32::MIN..=i32::MAX;
    /// `kernel.perf_event_max_sample_rate`: the greatest frequency that an event may have.
    pub static MAX_SAMPLE_RATE = 100_000, 1..=i32::MAX;
    /// `kernel.perf_event_mlock_kb`: how much a buffer may have for each CPU before it counts as locked memory.
    pub static MLOCK_KB = 516, 0..=i32::MAX;
}

const NOT_SLOWED: &str = "samples cost what they cost";

static KEPT: [Kept; 1] =
    [Kept::new("kernel/perf_cpu_time_max_percent", Bounded::new(25, 0..=100), NOT_SLOWED)];

/// Whether everybody may watch the kernel.
pub(in crate::process) fn is_open_to_all() -> bool {
    PARANOID.get() <= 1
}

/// The greatest frequency.
pub(super) fn rate() -> u64 {
    u64::from(MAX_SAMPLE_RATE.get().unsigned_abs())
}

/// The attributes at an address, as Linux takes them: of any size between the first and a page, zeros for what is missing.
///
/// # Errors
/// `E2BIG` for another size, or for bits that are not known, with the known size written to the attributes; `EINVAL`
/// for what cannot be; `EFAULT`.
pub(super) fn read_attr(addr: u64) -> Result<Attr> {
    let at_size = addr.wrapping_add(core::mem::offset_of!(Attr, size) as u64);
    let size = match UserPtr::<u32>::new(at_size).read()? {
        0 => SIZE_LEAST,
        size => size,
    };
    let attr = match size {
        SIZE_LEAST..=SIZE_MOST => user::read_extensible::<Attr>(addr, size as usize),
        _ => Err(Errno::E2BIG),
    };
    if matches!(attr, Err(Errno::E2BIG)) {
        // Linux ignores a bad address here too.
        let _written = UserPtr::<u32>::new(at_size).write(&(size_of::<Attr>() as u32));
    }
    let mut attr = Attr { size, ..attr? };
    attr.check()?;
    if attr.sample_max_stack == 0 {
        // What a chain cannot hold ends with the record.
        attr.sample_max_stack = u16::try_from(chains::MAX_STACK.get()).unwrap_or(u16::MAX);
    }
    Ok(attr)
}

/// Makes the files; once, at boot.
pub(in crate::process) fn register() -> Result<()> {
    told::register();
    register_setting("kernel/perf_event_paranoid", &PARANOID)?;
    register_setting("kernel/perf_event_max_sample_rate", &MAX_SAMPLE_RATE)?;
    register_setting("kernel/perf_event_mlock_kb", &MLOCK_KB)?;
    register_kept(&KEPT)?;
    chains::register()?;
    tracepoint::register();
    let texts =
        [("type", "1\n"), ("nr_addr_filters", "0\n"), ("perf_event_mux_interval_ms", "1\n")];
    for (file, text) in texts {
        let mode = if file.starts_with("perf") { 0o644 } else { 0o444 };
        sysfs::register_file(
            &try_format!("devices/software/{file}")?,
            mode,
            try_arc(Fixed(text))?,
        )?;
    }
    sysfs::register_link("devices/software/subsystem", "../../bus/event_source")?;
    sysfs::register_link("bus/event_source/devices/software", "../../../devices/software")
}
