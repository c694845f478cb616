//! How fast the TSC and the local APIC timer run.
//!
//! Owns nothing: `run` is called once by the time floor, with interrupts off, and takes a few
//! milliseconds, or two seconds where nothing but the CMOS clock counts. What the CPU or the hypervisor states is believed; otherwise the TSC is measured
//! against the best reference that exists.
//!
//! Never called again. Locks: none.

use crate::arch::irq::apic;
use crate::base::image::image_start;
use crate::base::kmap::{self, Cache};
use crate::base::port::Ports;
use crate::base::{cpu, msr, tsc};
use crate::machine::{acpi, rtc};

/// The result.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    pub tsc_hz: u64,
    /// Where the frequency comes from, for the log.
    pub source: &'static str,
}

/// How long a measurement takes.
const WINDOW_NS: u64 = 2_000_000;
/// How often a counter that stands still is read before it counts as absent.
const STILL_READS: u32 = 100_000;
/// Two seconds of the fastest TSC there is.
const TWO_SECONDS: u64 = 12_000_000_000;

/// Learns both frequencies and sets up the APIC timer's ratio. Panics on a machine without any clock: no deadline could be kept.
pub fn run() -> Calibration {
    let found = stated().or_else(|| {
        let (start, end, nanos, source) = measure(WINDOW_NS).or_else(measure_by_rtc)?;
        let elapsed = end.wrapping_sub(start).max(1);
        let hz = (u128::from(elapsed) * 1_000_000_000 / u128::from(nanos.max(1))) as u64;
        Some(Calibration { tsc_hz: hz.max(1_000_000), source })
    });
    let Some(found) = found else {
        panic!(
            "this machine has no clock: no CPUID leaf states the TSC's rate, and none of HPET, ACPI PM timer, \
             PIT and RTC counts"
        );
    };
    if apic::timer_needs_ratio() {
        apic::set_timer_ratio(timer_ratio(found.tsc_hz));
    }
    found
}

/// APIC timer ticks in a TSC tick (32.32 fixed point). A virtual CPU may lose the processor between two
/// reads: the TSC is read on both sides of each, and a round in which they lie too far apart is repeated.
fn timer_ratio(tsc_hz: u64) -> u64 {
    const ROUNDS: usize = 16;
    let window = tsc_hz / 2000;
    let mut best = (u64::MAX, 0);
    for _ in 0..ROUNDS {
        let before = tsc::read();
        apic::start_countdown();
        let started = tsc::read();
        while tsc::read().wrapping_sub(started) < window {
            core::hint::spin_loop();
        }
        let ending = tsc::read();
        let ticks = u64::from(apic::end_countdown());
        let after = tsc::read();
        let doubt = started.wrapping_sub(before) + after.wrapping_sub(ending);
        // From the middle of one bracket to the middle of the other.
        let elapsed = (ending.wrapping_sub(started) + doubt / 2).max(1);
        if doubt < best.0 {
            best = (doubt, (ticks << 32) / elapsed);
        }
        if doubt < elapsed / 64 {
            break;
        }
    }
    best.1
}

/// A frequency that needs no measurement.
fn stated() -> Option<Calibration> {
    let [denominator, numerator, crystal, _] = cpu::cpuid(0x15, 0);
    if denominator != 0 && numerator != 0 && crystal != 0 {
        let tsc_hz = u64::from(crystal) * u64::from(numerator) / u64::from(denominator);
        return Some(Calibration { tsc_hz, source: "CPUID 15h" });
    }
    if !cpu::features().hypervisor {
        return None;
    }
    let highest = cpu::cpuid(0x4000_0000, 0)[0];
    if (0x4000_0010..0x4000_1000).contains(&highest) {
        let khz = cpu::cpuid(0x4000_0010, 0)[0];
        if khz > 100_000 {
            return Some(Calibration { tsc_hz: u64::from(khz) * 1000, source: "hypervisor leaf" });
        }
    }
    kvm_clock().map(|tsc_hz| Calibration { tsc_hz, source: "KVM clock" })
}

/// KVM's per-CPU time record.
#[repr(C, align(64))]
struct KvmTime {
    version: u32,
    pad: u32,
    tsc_timestamp: u64,
    system_time: u64,
    multiplier: u32,
    shift: i8,
    flags: u8,
    pad2: [u8; 2],
}

struct KvmCell(core::cell::UnsafeCell<KvmTime>);
// SAFETY: written by the hypervisor and read once, by the boot CPU.
unsafe impl Sync for KvmCell {}
static KVM_TIME: KvmCell = KvmCell(core::cell::UnsafeCell::new(KvmTime {
    version: 0,
    pad: 0,
    tsc_timestamp: 0,
    system_time: 0,
    multiplier: 0,
    shift: 0,
    flags: 0,
    pad2: [0; 2],
}));

fn kvm_clock() -> Option<u64> {
    const MSR: u32 = 0x4b56_4d01;
    if !cpu::on_kvm() || cpu::cpuid(0x4000_0001, 0)[0] & 1 << 3 == 0 {
        return None;
    }
    let virt = KVM_TIME.0.get() as u64;
    let phys = virt - image_start() + crate::base::boot_info::kernel_phys();
    // SAFETY: KVM announces the MSR; the record is a static that nothing else uses, its page is
    // part of the image; the clock is switched off again before anyone could miss it.
    let (multiplier, shift) = unsafe {
        msr::write(MSR, phys | 1);
        let record = KVM_TIME.0.get();
        let found = (
            (&raw const (*record).multiplier).read_volatile(),
            (&raw const (*record).shift).read_volatile(),
        );
        msr::write(MSR, 0);
        found
    };
    if multiplier == 0 {
        return None;
    }
    // nanoseconds = (tsc << shift) * multiplier / 2^32
    let hz = (1_000_000_000u128 << 32) / u128::from(multiplier);
    let hz = if shift >= 0 { hz >> shift } else { hz << -shift };
    u64::try_from(hz).ok()
}

// SAFETY: the interval timer, whose counter 2 nobody else uses, and the gate of that counter.
const PIT: Ports = unsafe { Ports::new(0x42, 2) };
const PIT_COUNTER: u16 = 0;
const PIT_MODE: u16 = 1;
// SAFETY: as above.
const SPEAKER: Ports = unsafe { Ports::new(0x61, 1) };

/// A counter to measure against.
#[derive(Clone, Copy)]
enum Reference {
    Hpet { registers: u64, femtoseconds: u64, mask: u64 },
    PmTimer { port: Ports, mask: u64 },
    Pit,
}

impl Reference {
    fn read(self) -> u64 {
        match self {
            // SAFETY: the registers were mapped by `hpet`.
            Self::Hpet { registers, .. } => unsafe {
                ((registers + 0xf0) as *const u64).read_volatile()
            },
            Self::PmTimer { port, .. } => u64::from(port.read32(0)),
            Self::Pit => {
                PIT.write8(PIT_MODE, 0x80); // latch counter 2
                let low = PIT.read8(PIT_COUNTER);
                let high = PIT.read8(PIT_COUNTER);
                // It counts down.
                u64::from(0xffff - u16::from_le_bytes([low, high]))
            }
        }
    }

    fn mask(self) -> u64 {
        match self {
            Self::Hpet { mask, .. } | Self::PmTimer { mask, .. } => mask,
            Self::Pit => 0xffff,
        }
    }

    fn nanos(self, ticks: u64) -> u64 {
        let ticks = u128::from(ticks);
        let nanos = match self {
            Self::Hpet { femtoseconds, .. } => ticks * u128::from(femtoseconds) / 1_000_000,
            Self::PmTimer { .. } => ticks * 1_000_000_000 / 3_579_545,
            Self::Pit => ticks * 1_000_000_000 / 1_193_182,
        };
        nanos as u64
    }

    fn name(self) -> &'static str {
        match self {
            Self::Hpet { .. } => "HPET",
            Self::PmTimer { .. } => "ACPI PM timer",
            Self::Pit => "PIT",
        }
    }
}

/// The best counter that counts.
fn reference() -> Option<Reference> {
    let counts = |reference: &Reference| {
        let first = reference.read();
        (0..STILL_READS).any(|_| reference.read() != first)
    };
    let pit = || Some(pit()).filter(counts);
    hpet().filter(counts).or_else(|| pm_timer().filter(counts)).or_else(pit)
}

fn pm_timer() -> Option<Reference> {
    let (port, wide) = acpi::get()?.pm_timer?;
    // SAFETY: the tables say that it is a counter; it is only read.
    let port = unsafe { Ports::new(port, 4) };
    Some(Reference::PmTimer { port, mask: if wide { 0xffff_ffff } else { 0xff_ffff } })
}

/// Counter 2, gate on, speaker off, counting down from 65536.
fn pit() -> Reference {
    SPEAKER.write8(0, SPEAKER.read8(0) & !2 | 1);
    PIT.write8(PIT_MODE, 0xb4);
    PIT.write8(PIT_COUNTER, 0xff);
    PIT.write8(PIT_COUNTER, 0xff);
    Reference::Pit
}

fn hpet() -> Option<Reference> {
    let registers = kmap::map(acpi::get()?.hpet?, 4096, Cache::Uncached)?;
    // SAFETY: the registers were just mapped; enabling the main counter affects nobody else.
    unsafe {
        let capabilities = (registers as *const u64).read_volatile();
        let femtoseconds = capabilities >> 32;
        if !(100_000..=100_000_000).contains(&femtoseconds) {
            return None;
        }
        let config = (registers + 0x10) as *mut u64;
        config.write_volatile(config.read_volatile() | 1);
        let mask = if capabilities & 1 << 13 != 0 { u64::MAX } else { 0xffff_ffff };
        Some(Reference::Hpet { registers, femtoseconds, mask })
    }
}

/// TSC at start and end, the nanoseconds between by the reference, and the reference's name.
fn measure(window: u64) -> Option<(u64, u64, u64, &'static str)> {
    let reference = reference()?;
    let (start, from) = sample(reference);
    loop {
        let passed = reference.read().wrapping_sub(from) & reference.mask();
        if reference.nanos(passed) >= window {
            break;
        }
        cpu::relax();
    }
    let (end, to) = sample(reference);
    let nanos = reference.nanos(to.wrapping_sub(from) & reference.mask());
    Some((start, end, nanos, reference.name()))
}

/// The same over one second of the CMOS clock, which shows nothing shorter.
fn measure_by_rtc() -> Option<(u64, u64, u64, &'static str)> {
    if !rtc::is_there() {
        return None;
    }
    let start = rtc::next_second(TWO_SECONDS)?;
    let end = rtc::next_second(TWO_SECONDS)?;
    Some((start, end, 1_000_000_000, "RTC"))
}

/// The tightest of some pairs of readings: the TSC in the middle of the reference's read.
fn sample(reference: Reference) -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..8 {
        let before = tsc::read_ordered();
        let value = reference.read();
        let after = tsc::read_ordered();
        let width = after.wrapping_sub(before);
        if width < best.0 {
            best = (width, before + width / 2, value);
        }
    }
    (best.1, best.2)
}
