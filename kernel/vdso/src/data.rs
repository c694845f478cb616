//! The page of data: what the kernel shows to all processes, read-only for them.
//!
//! Owns the layout and both sides of each protocol: the kernel publishes, the image reads. Must hold
//! nothing that is secret or belongs to one process. Lock rules: [`Clock`] is a sequence lock whose
//! writers exclude each other; the rest are single words.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::clock::{self, Kind};

/// The page.
#[derive(Default)]
#[repr(C, align(4096))]
pub struct Data {
    pub clock: Clock,
    pub random: Random,
}

const _: () = assert!(size_of::<Data>() == 4096);

/// Nanoseconds since the base = (TSC - base) * multiplier >> `SHIFT`.
pub const SHIFT: u32 = 32;

/// How the clocks follow from the TSC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// The TSC from which this scale holds.
    pub base: u64,
    pub multiplier: u64,
    /// The monotonic clock at the base, in nanoseconds.
    pub monotonic: u64,
    /// Whether it has always had this scale, as CLOCK_MONOTONIC_RAW has.
    pub is_raw: bool,
    /// Wall clock minus monotonic clock, in nanoseconds.
    pub wall_offset: u64,
    /// International Atomic Time minus wall clock, in nanoseconds.
    pub tai_offset: u64,
}

impl Scale {
    /// What a clock showed at the base, if it has this scale.
    fn at_base(&self, kind: Kind) -> Option<u64> {
        match kind {
            Kind::Monotonic => Some(self.monotonic),
            Kind::Raw => self.is_raw.then_some(self.monotonic),
            Kind::Wall => Some(self.monotonic.wrapping_add(self.wall_offset)),
            Kind::Tai => {
                let wall = self.monotonic.wrapping_add(self.wall_offset);
                Some(wall.wrapping_add(self.tai_offset))
            }
        }
    }
}

/// Clock numbers of which the page may tell: 0 to 11.
pub const CLOCKS: usize = 12;

/// The clocks; all zeros until the first [`publish`](Self::publish), and then the image asks the kernel.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Clock {
    /// Odd while a writer is at work.
    sequence: AtomicU32,
    base: AtomicU64,
    multiplier: AtomicU64,
    /// By clock number: what it showed at the base, and one more; 0 if only the kernel knows.
    offsets: [AtomicU64; CLOCKS],
}

impl Clock {
    /// Shows a new scale, or with `None` that only the kernel knows the time. Not where it can interrupt itself.
    pub fn publish(&self, scale: Option<Scale>) {
        let sequence = self.lock();
        let shown = scale.unwrap_or_default();
        // Relaxed: between `lock` and the Release below.
        self.base.store(shown.base, Ordering::Relaxed);
        self.multiplier.store(shown.multiplier, Ordering::Relaxed);
        for (clock, offset) in self.offsets.iter().enumerate() {
            let kind = clock::kind(clock).filter(|_| scale.is_some());
            let at_base = kind.and_then(|kind| shown.at_base(kind));
            offset.store(at_base.map_or(0, |nanos| nanos.wrapping_add(1)), Ordering::Relaxed);
        }
        // Release: pairs with the first load in `try_read`.
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Makes the count odd, which keeps readers and other writers out: the even count before.
    fn lock(&self) -> u32 {
        loop {
            let even = self.sequence.load(Ordering::Relaxed) & !1;
            // Acquire: pairs with the Release of the writer before.
            let locked = self.sequence.compare_exchange_weak(
                even,
                even.wrapping_add(1),
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            if locked.is_ok() {
                // Release: a reader that sees one of the stores that follow sees the odd count, too; pairs
                // with the fence in `try_read`.
                fence(Ordering::Release);
                return even;
            }
            core::hint::spin_loop();
        }
    }

    /// Nanoseconds on the clock of that number. `None` if a writer is just at work or the counter is behind
    /// the base, which [`read`](Self::read) sorts out, or if only the kernel knows. `tsc` reads the counter.
    #[inline(always)]
    pub fn try_read(&self, clock: usize, tsc: impl Fn() -> u64) -> Option<u64> {
        let offset = self.offsets.get(clock)?;
        // Acquire: pairs with the Release in `publish`.
        let sequence = self.sequence.load(Ordering::Acquire);
        let base = self.base.load(Ordering::Relaxed);
        let multiplier = self.multiplier.load(Ordering::Relaxed);
        let offset = offset.load(Ordering::Relaxed);
        let now = tsc();
        // Acquire: pairs with the fence in `lock`.
        fence(Ordering::Acquire);
        if self.sequence.load(Ordering::Relaxed) != sequence || sequence & 1 != 0 || offset == 0 {
            return None;
        }
        let ticks = now.checked_sub(base)?;
        let nanos = (u128::from(ticks) * u128::from(multiplier)) >> SHIFT;
        Some((nanos as u64).wrapping_add(offset).wrapping_sub(1))
    }

    /// As [`try_read`](Self::try_read), and waits for writers; `None` if only the kernel knows.
    #[cold]
    pub fn read(&self, clock: usize, tsc: impl Fn() -> u64) -> Option<u64> {
        let shown = self.offsets.get(clock)?;
        loop {
            // Acquire: pairs with the Release in `publish`.
            let sequence = self.sequence.load(Ordering::Acquire);
            let offset = shown.load(Ordering::Relaxed);
            // A counter slightly behind the base (another CPU's) must not wrap: it stands at the base.
            let base = self.base.load(Ordering::Relaxed);
            let nanos = self.try_read(clock, || {
                let now = tsc();
                if now < base { base } else { now }
            });
            // Acquire: pairs with the fence in `lock`.
            fence(Ordering::Acquire);
            let same = self.sequence.load(Ordering::Relaxed) == sequence && sequence & 1 == 0;
            if nanos.is_some() || (same && offset == 0) {
                return nanos;
            }
            core::hint::spin_loop();
        }
    }
}

/// What getrandom needs to know.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Random {
    /// The kernel's; 0 while only the kernel can serve.
    generation: AtomicU64,
    /// The virtual machine's generation id that the kernel knows of.
    known_id: [AtomicU64; 2],
    /// Where the live one lies, in bytes before the page of data; 0 if there is none.
    id_before: AtomicU32,
    /// Whether the CPU has AVX2 and its state is switched on.
    wide: AtomicU32,
}

impl Random {
    /// Shows that keys drawn before `generation` are old. Numbers only grow; two CPUs may publish at once.
    pub fn publish(&self, generation: u64) {
        // Release: pairs with the Acquire in `generation`: who sees the new number draws a key from the new
        // base.
        self.generation.fetch_max(generation, Ordering::Release);
    }

    /// Shows whether 256-bit vectors may be used. Before the first user program.
    pub fn set_wide(&self, wide: bool) {
        // Relaxed: no reader yet, and either value is correct for whom it was set.
        self.wide.store(u32::from(wide), Ordering::Relaxed);
    }

    /// Shows where the machine's generation id lies in the page before this one. Before the first user
    /// program.
    pub fn set_id_place(&self, offset: usize) {
        debug_assert!(offset <= size_of::<Data>() - 16);
        // Relaxed: no reader yet.
        self.id_before.store((size_of::<Data>() - offset) as u32, Ordering::Relaxed);
    }

    /// Shows the id that the generator knows of; after the generation that knows it.
    pub fn publish_id(&self, [low, high]: [u64; 2]) {
        // Relaxed and Release: who sees the new id sees the generation published before; pairs with the
        // Acquire in `is_twin`. A mixture of old and new is no machine's id and sends to the kernel.
        self.known_id[0].store(low, Ordering::Release);
        self.known_id[1].store(high, Ordering::Release);
    }

    /// Whether this machine was cloned or restored and the kernel does not know yet. To be asked after
    /// bytes were drawn and before the generation is compared.
    ///
    /// # Safety
    /// If `set_id_place` was called, that place is mapped before this page.
    #[inline(always)]
    pub unsafe fn is_twin(&self, page: &Data) -> bool {
        // Relaxed: see `set_id_place`.
        let before = self.id_before.load(Ordering::Relaxed) as usize;
        if before == 0 {
            return false;
        }
        let live = core::ptr::from_ref(page).addr().wrapping_sub(before);
        // SAFETY: the caller's promise; atomics, because the hypervisor writes there.
        let live = unsafe { &*core::ptr::with_exposed_provenance::<[AtomicU64; 2]>(live) };
        // Acquire: pairs with the Release in `publish_id`.
        self.known_id
            .iter()
            .zip(live)
            .any(|(known, live)| known.load(Ordering::Acquire) != live.load(Ordering::Relaxed))
    }

    /// The generation that keys must stem from.
    #[inline(always)]
    pub fn generation(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`.
        self.generation.load(Ordering::Acquire)
    }

    /// Whether 256-bit vectors may be used.
    #[inline(always)]
    pub fn wide(&self) -> bool {
        // Relaxed: see `set_wide`.
        self.wide.load(Ordering::Relaxed) != 0
    }
}
