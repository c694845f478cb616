//! [`Slots`]: a few shared values that any code may look at, in interrupt handlers and with any lock held, while others come
//! and go.
//!
//! A look takes no lock and no reference: interrupts are off for as long as it lasts, and the CPU says that it looks, in a
//! number of its own that is odd for the while. Who takes a value out waits until no CPU is in a look that it was in before;
//! then nobody has it.
//!
//! Owns the references in the slots and the numbers. A look must be short, and never wait for another CPU. Locks: none.

use crate::base::cpu;
use crate::base::percpu;
use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

crate::per_cpu! {
    /// Odd while this CPU looks.
    static LOOKS: AtomicU32 = AtomicU32::new(0);
}

/// `N` places for shared values.
pub struct Slots<T, const N: usize>([AtomicPtr<T>; N]);

impl<T: Send + Sync, const N: usize> Slots<T, N> {
    pub const fn new() -> Self {
        Self([const { AtomicPtr::new(ptr::null_mut()) }; N])
    }

    /// Puts a value into a slot that is empty; gives it back if it is not, or there is none of this number.
    pub fn put(&self, slot: usize, value: Arc<T>) -> Result<(), Arc<T>> {
        let Some(place) = self.0.get(slot) else { return Err(value) };
        let raw = Arc::into_raw(value).cast_mut();
        // Release: pairs with the SeqCst load in `look`.
        let order = Ordering::Release;
        match place.compare_exchange(ptr::null_mut(), raw, order, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            // SAFETY: the reference that was made above, which nobody else has.
            Err(_) => Err(unsafe { Arc::from_raw(raw) }),
        }
    }

    /// Takes the value out of a slot, once nobody looks at it. Spins for as long as a look lasts.
    pub fn take(&self, slot: usize) -> Option<Arc<T>> {
        let raw = self.0.get(slot)?.swap(ptr::null_mut(), Ordering::SeqCst);
        if raw.is_null() {
            return None;
        }
        let here = percpu::cpu_id();
        for other in (0..percpu::cpus_online()).filter(|other| *other != here) {
            let Some(looks) = LOOKS.of(other) else { continue };
            // SeqCst, with the swap above: a look that begins after this load finds the slot empty. See `look`.
            let before = looks.load(Ordering::SeqCst);
            // Acquire: pairs with the Release that ends a look.
            while before % 2 == 1 && looks.load(Ordering::Acquire) == before {
                cpu::relax();
            }
        }
        // SAFETY: the slot's own reference, which the swap took out for good; whoever found it there has ended its look,
        // this CPU too, since a look does not take anything out.
        Some(unsafe { Arc::from_raw(raw) })
    }

    /// Looks at the value of a slot, if there is one, with interrupts off. `act` must not take anything out.
    #[inline]
    pub fn look<R>(&self, slot: usize, act: impl FnOnce(&T) -> R) -> Option<R> {
        let place = self.0.get(slot)?;
        let were_on = cpu::interrupts_enabled();
        cpu::irq_disable();
        let result = LOOKS.with(|looks| {
            // Relaxed: this CPU alone changes it; an NMI leaves it as it found it, or one look further.
            let before = looks.load(Ordering::Relaxed);
            let is_outer = before % 2 == 0;
            if is_outer {
                // SeqCst, with the load of the slot below: either that load finds the slot empty, or `take` sees that this
                // CPU looks.
                looks.swap(before.wrapping_add(1), Ordering::SeqCst);
            }
            let raw = place.load(Ordering::SeqCst);
            // SAFETY: the slot's reference keeps it until `take` has seen that this look is over.
            let result = unsafe { raw.as_ref() }.map(act);
            if is_outer {
                // Release: pairs with the Acquire in `take`.
                looks.store(before.wrapping_add(2), Ordering::Release);
            }
            result
        });
        if were_on {
            cpu::irq_enable();
        }
        result
    }

    /// The same where interrupts are on, and so no look goes on: in fewer instructions.
    #[inline(always)]
    pub fn look_in_task<R>(&self, slot: usize, act: impl FnOnce(&T) -> R) -> Option<R> {
        debug_assert!(cpu::interrupts_enabled());
        let place = self.0.get(slot)?;
        cpu::irq_disable();
        let result = LOOKS.with(|looks| {
            // The orders are those of `look`.
            let before = looks.load(Ordering::Relaxed);
            looks.swap(before.wrapping_add(1), Ordering::SeqCst);
            let raw = place.load(Ordering::SeqCst);
            // SAFETY: as in `look`.
            let result = unsafe { raw.as_ref() }.map(act);
            looks.store(before.wrapping_add(2), Ordering::Release);
            result
        });
        cpu::irq_enable();
        result
    }
}
