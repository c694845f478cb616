//! One CPU's draws behind one name, for code that knows nothing of keys, locks and machines.
//!
//! Owns nothing but borrows. It must never hand out bytes that a copy of the machine may have, too: what was drawn is
//! compared with the [`Machine`], where there is one, as in [`twins`](super::twins). Lock rules: those of [`super`].

use core::convert::Infallible;
use core::fmt;

use super::twins::{Machine, MachineId};
use super::{Base, CpuCrng, Crng, Exclusive, Generation, NotSeeded};
use crate::block::{BlockGenerator, Key};

/// This CPU's generator, for as long as nothing else runs on the CPU: with preemption excluded, and outside of handlers.
///
/// With the features `rand_core-0.9` and `rand_core-0.10` it is what those crates call a fallible cryptographic generator:
/// it fails until there is a key, and never afterwards.
///
/// ```
/// use std::sync::Mutex;
/// use alea_random::block::{Key, Portable};
/// use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, handle::CpuRng};
///
/// struct Lock(Mutex<Base>);
/// impl Exclusive<Base> for Lock {
///     fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R { f(&mut self.0.lock().unwrap()) }
/// }
/// let crng = Crng::new(Lock(Mutex::new(Base::vacant())));
/// let mut cpu = CpuCrng::vacant();
/// let mut bytes = [0; 100];
/// assert!(CpuRng::new(&crng, &mut cpu, Portable).fill(&mut bytes).is_err(), "not seeded");
/// crng.reseed(&mut Key::new([7; 32])); // from the pool, in a kernel
/// CpuRng::new(&crng, &mut cpu, Portable).fill(&mut bytes)?;
/// # Ok::<(), alea_random::crng::NotSeeded>(())
/// ```
pub struct CpuRng<'a, L, B, M = Infallible> {
    crng: &'a Crng<L>,
    cpu: &'a mut CpuCrng,
    blocks: B,
    machine: Option<&'a M>,
}

impl<'a, L: Exclusive<Base>, B: BlockGenerator> CpuRng<'a, L, B> {
    /// For a machine of which there are no copies.
    pub const fn new(crng: &'a Crng<L>, cpu: &'a mut CpuCrng, blocks: B) -> Self {
        Self { crng, cpu, blocks, machine: None }
    }
}

impl<'a, L: Exclusive<Base>, B: BlockGenerator, M: Machine> CpuRng<'a, L, B, M> {
    /// For a virtual machine, which may be saved and restored more than once.
    pub const fn on(machine: &'a M, crng: &'a Crng<L>, cpu: &'a mut CpuCrng, blocks: B) -> Self {
        Self { crng, cpu, blocks, machine: Some(machine) }
    }

    /// Fills `out`, of any length. An error means that there is no key yet, and that nothing was written.
    pub fn fill(&mut self, out: &mut [u8]) -> Result<(), NotSeeded> {
        let Self { crng, cpu, blocks, machine } = self;
        let mut draw = || crng.draw(cpu, blocks, out);
        match machine {
            Some(machine) => crng.unshared(*machine, draw),
            None => draw().map(|_| ()),
        }
    }
}

impl<L, B, M> fmt::Debug for CpuRng<'_, L, B, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuRng").finish_non_exhaustive()
    }
}

/// The machine of a [`CpuRng`] that has none: no value of the type exists.
impl Machine for Infallible {
    fn id(&self) -> MachineId {
        match *self {}
    }

    fn extract(&self, _: MachineId, _: &mut Key) {
        match *self {}
    }

    fn publish(&self, _: Generation, _: MachineId) {
        match *self {}
    }
}
