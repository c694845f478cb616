//! [`SpinLock`]: mutual exclusion that never sleeps.
//!
//! Owns nothing but the protected value. Must never be held across a user copy, an allocation that may
//! sleep, or a block: debug builds panic in the scheduler when a rank is still held.
//!
//! Locks: this is the one that spins; `level` has the order.

use super::level::Level;
use crate::base::{cpu, tsc};
use crate::trace::{self, Event, Point};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// A spinning lock whose level type says its rank and whether it disables interrupts.
pub struct SpinLock<T: ?Sized, L: Level> {
    locked: AtomicBool,
    level: PhantomData<fn() -> L>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands out one reference at a time, so sharing it needs no more than `T: Send`; `peek` gives more, and whoever calls it
// asks for `T: Sync`.
unsafe impl<T: ?Sized + Send, L: Level> Sync for SpinLock<T, L> {}
// SAFETY: moving the lock moves the value.
unsafe impl<T: ?Sized + Send, L: Level> Send for SpinLock<T, L> {}

impl<T, L: Level> SpinLock<T, L> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), level: PhantomData, value: UnsafeCell::new(value) }
    }
}

impl<T: ?Sized, L: Level> SpinLock<T, L> {
    /// Takes the lock, spinning while another CPU holds it.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T, L> {
        let irqs_were_on = irq_save::<L>();
        self.lock_saved(irqs_were_on)
    }

    /// The value without the lock.
    ///
    /// # Safety
    /// Nobody changes it while the reference lives.
    #[inline]
    pub(super) unsafe fn peek(&self) -> &T
    where
        T: Sync,
    {
        // SAFETY: by the caller: whoever has it locked only reads.
        unsafe { &*self.value.get() }
    }

    /// As [`lock`](Self::lock), beside one of the same level, which allows that nowhere else: the caller argues the order.
    #[inline]
    pub fn lock_second(&self) -> SpinGuard<'_, T, L> {
        let irqs_were_on = irq_save::<L>();
        order::acquire_second::<L>();
        self.take_or_spin(irqs_were_on)
    }

    /// As [`lock`](Self::lock), where interrupts are off and stay so.
    #[inline]
    pub fn lock_irqs_off(&self) -> SpinGuard<'_, T, L> {
        debug_assert!(!cpu::interrupts_enabled(), "a lock is taken as if interrupts were off");
        self.lock_saved(false)
    }

    #[inline(always)]
    fn lock_saved(&self, irqs_were_on: bool) -> SpinGuard<'_, T, L> {
        order::acquire::<L>();
        self.take_or_spin(irqs_were_on)
    }

    #[inline(always)]
    fn take_or_spin(&self, irqs_were_on: bool) -> SpinGuard<'_, T, L> {
        if !self.take() {
            self.spin();
        }
        SpinGuard { lock: self, irqs_were_on }
    }

    #[inline]
    fn take(&self) -> bool {
        // Acquire: pairs with the Release in `SpinGuard::drop`.
        self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Apart from [`lock`](Self::lock), so that a free lock costs no jump.
    #[cold]
    fn spin(&self) {
        let start = tsc::read();
        loop {
            // Relaxed: only a hint when to try again.
            while self.locked.load(Ordering::Relaxed) {
                core::hint::spin_loop();
            }
            if self.take() {
                break;
            }
        }
        trace::at(Point::Lock, || Event::Lock { name: L::NAME, start });
    }

    /// Takes the lock if it is free at once.
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T, L>> {
        let irqs_were_on = irq_save::<L>();
        if self.take() {
            order::acquire_unordered::<L>();
            return Some(SpinGuard { lock: self, irqs_were_on });
        }
        irq_restore::<L>(irqs_were_on);
        None
    }

    /// The value through an exclusive reference, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: Default, L: Level> Default for SpinLock<T, L> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// Access to a locked value; dropping it unlocks.
pub struct SpinGuard<'a, T: ?Sized, L: Level> {
    lock: &'a SpinLock<T, L>,
    irqs_were_on: bool,
}

impl<T: ?Sized, L: Level> Deref for SpinGuard<'_, T, L> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while this CPU holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized, L: Level> DerefMut for SpinGuard<'_, T, L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the guard is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized, L: Level> Drop for SpinGuard<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `lock` and `try_lock`.
        self.lock.locked.store(false, Ordering::Release);
        order::release::<L>();
        irq_restore::<L>(self.irqs_were_on);
    }
}

#[inline]
fn irq_save<L: Level>() -> bool {
    if !L::IRQ_OFF {
        return false;
    }
    let on = cpu::interrupts_enabled();
    cpu::irq_disable();
    on
}

#[inline]
fn irq_restore<L: Level>(were_on: bool) {
    if L::IRQ_OFF && were_on {
        cpu::irq_enable();
    }
}

/// The debug check of lock order: a mask of held ranks per CPU.
pub(super) mod order {
    #[cfg(debug_assertions)]
    mod check {
        use crate::sync::level;
        use crate::sync::level::Level;
        use core::sync::atomic::{AtomicU64, Ordering};

        /// Held ranks of each CPU, and how many locks of nesting ranks; Relaxed throughout, because only the
        /// CPU itself touches its entry.
        static HELD: [[AtomicU64; 64]; MAX_CPUS] =
            [const { [const { AtomicU64::new(0) }; 64] }; MAX_CPUS];
        const MAX_CPUS: usize = 64;

        fn counts() -> &'static [AtomicU64; 64] {
            &HELD[crate::base::percpu::cpu_id() % MAX_CPUS]
        }

        pub fn acquire<L: Level>() {
            acquire_from::<L>(if L::NESTS { L::RANK + 1 } else { L::RANK });
        }

        /// No lock of this level or behind it is held, though the level may nest.
        pub fn check<L: Level>() {
            acquire_from::<L>(L::RANK);
            release::<L>();
        }

        pub fn acquire_second<L: Level>() {
            acquire_from::<L>(L::RANK + 1);
        }

        /// No rank from this one on is held.
        fn acquire_from<L: Level>(from: u8) {
            if !L::IRQ_OFF && crate::base::percpu::in_interrupt() {
                panic!(
                    "lock order: {} taken in an interrupt, which may have met its holder",
                    L::NAME
                );
            }
            if let Some(held) =
                (usize::from(from)..64).find(|&r| counts()[r].load(Ordering::Relaxed) != 0)
            {
                panic!("lock order: {} taken while {} is held", L::NAME, level::name(held as u8));
            }
            acquire_unordered::<L>();
        }

        pub fn acquire_unordered<L: Level>() {
            counts()[L::RANK as usize].fetch_add(1, Ordering::Relaxed);
        }

        pub fn release<L: Level>() {
            if L::IRQ_OFF && crate::base::cpu::interrupts_enabled() {
                panic!(
                    "{} was held with interrupts on: a handler may wait for its own CPU",
                    L::NAME
                );
            }
            counts()[L::RANK as usize].fetch_sub(1, Ordering::Relaxed);
        }

        pub fn assert_none_held() {
            if let Some(held) = (0..64).find(|&r| counts()[r].load(Ordering::Relaxed) != 0) {
                panic!("blocking while the spinlock {} is held", level::name(held as u8));
            }
        }
    }

    #[cfg(not(debug_assertions))]
    mod check {
        use crate::sync::level::Level;
        #[inline(always)]
        pub fn acquire<L: Level>() {}
        #[inline(always)]
        pub fn check<L: Level>() {}
        #[inline(always)]
        pub fn acquire_second<L: Level>() {}
        #[inline(always)]
        pub fn acquire_unordered<L: Level>() {}
        #[inline(always)]
        pub fn release<L: Level>() {}
        #[inline(always)]
        pub fn assert_none_held() {}
    }

    pub use check::*;
}

/// Panics in debug builds if this CPU holds any spinlock, or uses what is per CPU: called where the kernel is about to
/// block.
#[inline]
pub fn assert_may_block() {
    order::assert_none_held();
    crate::base::percpu::assert_not_pinned();
}
