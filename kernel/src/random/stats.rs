//! What the service counts, and the text of it.
//!
//! Owns the counters. Draws are counted per CPU in plain cells, so that counting costs two instructions
//! and no atomic; the rest is rare. Never counts anything that tells about the bytes themselves.
//!
//! Locks: none.

use crate::base::percpu::{self, PerCpu};
use crate::per_cpu;
use crate::trace::{self, Event, Point};
use alea_random::credit::EntropyBits;
use alea_random::health::Health;
use alea_random::reseed::Cause;
use core::fmt::Write;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Who drew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Interface {
    Getrandom,
    Random,
    Urandom,
    Kernel,
}

impl Interface {
    const ALL: [Self; 4] = [Self::Getrandom, Self::Random, Self::Urandom, Self::Kernel];

    const fn name(self) -> &'static str {
        match self {
            Self::Getrandom => "getrandom",
            Self::Random => "random",
            Self::Urandom => "urandom",
            Self::Kernel => "kernel",
        }
    }
}

/// Where entropy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Source {
    Clock,
    Machine,
    Firmware,
    Mac,
    VmId,
    BootSeed,
    Rdseed,
    Rdrand,
    VirtioRng,
    Tpm,
    Jitter,
    Interrupt,
    User,
}

impl Source {
    const ALL: [Self; 13] = [
        Self::Clock,
        Self::Machine,
        Self::Firmware,
        Self::Mac,
        Self::VmId,
        Self::BootSeed,
        Self::Rdseed,
        Self::Rdrand,
        Self::VirtioRng,
        Self::Tpm,
        Self::Jitter,
        Self::Interrupt,
        Self::User,
    ];

    /// Whether there are tests that it could fail.
    const fn is_tested(self) -> bool {
        matches!(
            self,
            Self::Rdseed
                | Self::Rdrand
                | Self::VirtioRng
                | Self::Tpm
                | Self::Jitter
                | Self::Interrupt
        )
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Machine => "machine",
            Self::Firmware => "firmware",
            Self::Mac => "mac",
            Self::VmId => "vm_id",
            Self::BootSeed => "boot_seed",
            Self::Rdseed => "rdseed",
            Self::Rdrand => "rdrand",
            Self::VirtioRng => "virtio_rng",
            Self::Tpm => "tpm",
            Self::Jitter => "jitter",
            Self::Interrupt => "interrupt",
            Self::User => "user",
        }
    }
}

/// Relaxed throughout, and no atomic additions: only its own CPU adds to them, in task context.
struct Draws {
    count: AtomicU64,
    bytes: AtomicU64,
}

/// Mixed bytes, credited bits, failed tests, a [`Health`]. Relaxed throughout: nothing depends on them.
struct SourceCounts {
    bytes: AtomicU64,
    bits: AtomicU64,
    failures: AtomicU64,
    health: AtomicU8,
}

static SOURCES: [SourceCounts; Source::ALL.len()] = [const {
    SourceCounts {
        bytes: AtomicU64::new(0),
        bits: AtomicU64::new(0),
        failures: AtomicU64::new(0),
        health: AtomicU8::new(Health::Absent as u8),
    }
}; Source::ALL.len()];

static RESEEDS: [AtomicU64; Cause::ALL.len()] = [const { AtomicU64::new(0) }; Cause::ALL.len()];

/// Draws, one static per interface, so that a count is one addition each.
macro_rules! draws {
    ($($name:ident),*) => { per_cpu! { $(
        static $name: Draws = Draws { count: AtomicU64::new(0), bytes: AtomicU64::new(0) };
    )* } };
}
draws!(GETRANDOM, RANDOM, URANDOM, KERNEL);

per_cpu! {
    /// Draws of getrandom(2) of 16 bytes that took the shortest way; not in `GETRANDOM`.
    static PAIRS: AtomicU64 = AtomicU64::new(0);
}

fn draws(by: Interface) -> &'static PerCpu<Draws> {
    match by {
        Interface::Getrandom => &GETRANDOM,
        Interface::Random => &RANDOM,
        Interface::Urandom => &URANDOM,
        Interface::Kernel => &KERNEL,
    }
}

/// Bytes that all CPUs share, and bytes for each CPU.
pub const MEMORY: (usize, usize) = (
    size_of::<SourceCounts>() * Source::ALL.len()
        + size_of::<AtomicU64>() * Cause::ALL.len()
        + size_of::<AtomicU32>()
        + size_of::<AtomicU64>(),
    size_of::<Draws>() * Interface::ALL.len() + size_of::<AtomicU64>(),
);

/// Counts a draw of `bytes`.
#[inline]
pub fn count(by: Interface, bytes: usize) {
    draws(by).with(|Draws { count, bytes: sum }| {
        let add = |to: &AtomicU64, more: u64| {
            to.store(to.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        };
        add(count, 1);
        add(sum, bytes as u64);
    });
    // Those of getrandom(2) are told where the call is watched: its shortest way has no instruction to spare.
    if by != Interface::Getrandom {
        trace::at(Point::Draw, || Event::Draw { by: by.name(), bytes: bytes as u64 });
    }
}

/// Counts a draw of getrandom(2) of 16 bytes, in one instruction.
#[inline]
pub fn count_pair() {
    // Relaxed: as all draws.
    PAIRS.with(|pairs| {
        pairs.store(pairs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed)
    });
}

/// Counts bytes mixed in.
pub fn mixed(from: Source, bytes: usize) {
    SOURCES[from as usize].bytes.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Counts bits credited.
pub fn credited(from: Source, bits: EntropyBits) {
    SOURCES[from as usize].bits.fetch_add(u64::from(bits.0), Ordering::Relaxed);
}

/// Counts a failed health test.
pub fn failed(from: Source) {
    SOURCES[from as usize].failures.fetch_add(1, Ordering::Relaxed);
}

/// Notes how a source stands; failed is for good. Whether it has failed now.
pub fn stands(source: Source, health: Health) -> bool {
    let place = &SOURCES[source as usize].health;
    let before = place.load(Ordering::Relaxed);
    if before == health as u8 || before == Health::Failed as u8 {
        return false;
    }
    place.store(health as u8, Ordering::Relaxed);
    health == Health::Failed
}

/// How a source stands.
pub fn health(source: Source) -> Health {
    let number = SOURCES[source as usize].health.load(Ordering::Relaxed);
    let all = [Health::Absent, Health::Starting, Health::Healthy, Health::Failed];
    all.into_iter().find(|health| *health as u8 == number).unwrap_or(Health::Failed)
}

/// Whether a source that is tested has failed.
pub fn any_failed() -> bool {
    Source::ALL.into_iter().any(|source| health(source) == Health::Failed)
}

/// Tests on demand. Relaxed: a count.
static DEMANDED: AtomicU64 = AtomicU64::new(0);

/// Counts one.
pub fn demanded() {
    DEMANDED.fetch_add(1, Ordering::Relaxed);
}

/// How often a source has failed a test.
pub fn failures(source: Source) -> u64 {
    SOURCES[source as usize].failures.load(Ordering::Relaxed)
}

/// The sources that the first key is made of, by a bit for each. Relaxed: for show.
static FIRST_KEY: AtomicU32 = AtomicU32::new(0);

/// Notes which sources have been mixed in, right after the first key was made.
pub fn first_key() {
    let mixed = |source: &&Source| SOURCES[**source as usize].bytes.load(Ordering::Relaxed) > 0;
    let all = Source::ALL.iter().filter(mixed).fold(0, |all, source| all | 1 << *source as u32);
    FIRST_KEY.store(all, Ordering::Relaxed);
}

const fn name_of(cause: Cause) -> &'static str {
    match cause {
        Cause::Ready => "ready",
        Cause::Schedule => "schedule",
        Cause::Request => "request",
        Cause::NewSource => "new_source",
        Cause::Clone => "clone",
    }
}

/// Counts a reseed.
pub fn reseeded(cause: Cause) {
    trace::at(Point::Reseed, || Event::Reseed { cause: name_of(cause) });
    RESEEDS[cause as usize].fetch_add(1, Ordering::Relaxed);
}

/// The counters' part of /proc/alea/random.
#[expect(clippy::disallowed_methods, reason = "what it writes to can fail")]
pub fn write(to: &mut dyn Write) -> core::fmt::Result {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let first_key = FIRST_KEY.load(Ordering::Relaxed);
    write!(to, "first_key")?;
    for source in Source::ALL.iter().filter(|source| first_key & 1 << **source as u32 != 0) {
        write!(to, " {}", source.name())?;
    }
    writeln!(to)?;
    writeln!(to, "tests_on_demand {}", load(&DEMANDED))?;
    writeln!(to, "\nsource mixed_bytes credited_bits health_failures health")?;
    for source in Source::ALL {
        let counts = &SOURCES[source as usize];
        let (bytes, bits) = (load(&counts.bytes), load(&counts.bits));
        let failures = load(&counts.failures);
        write!(to, "{} {bytes} {bits} {failures} ", source.name())?;
        match source.is_tested() {
            true => writeln!(to, "{}", health(source))?,
            false => writeln!(to, "untested")?,
        }
    }
    writeln!(to, "\nreseed count")?;
    for cause in Cause::ALL {
        writeln!(to, "{cause} {}", load(&RESEEDS[cause as usize]))?;
    }
    writeln!(to, "\ninterface draws bytes")?;
    for interface in Interface::ALL {
        let (count, bytes) = drawn(interface);
        writeln!(to, "{} {count} {bytes}", interface.name())?;
    }
    Ok(())
}

/// Draws and bytes of all CPUs.
fn drawn(by: Interface) -> (u64, u64) {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (mut count, mut bytes) = (0u64, 0u64);
    for cpu in 0..percpu::cpus_online() {
        if let Some(of_cpu) = draws(by).of(cpu) {
            count = count.wrapping_add(load(&of_cpu.count));
            bytes = bytes.wrapping_add(load(&of_cpu.bytes));
        }
        if by == Interface::Getrandom {
            let pairs = PAIRS.of(cpu).map_or(0, load);
            count = count.wrapping_add(pairs);
            bytes = bytes.wrapping_add(pairs.wrapping_mul(16));
        }
    }
    (count, bytes)
}
