//! Reseeds, and copies of the machine: how no two of them hand out the same bytes.
//!
//! Owns the protocol between the id of the machine, seeds, the base key and who shows its generation to programs. A
//! machine that was saved and is restored twice has twins, which have every key in common and differ by nothing but the
//! id that the hypervisor gives each of them before it runs ([`MachineId`]). Lock rules: those of [`super`]; no lock is
//! held while the [`Machine`] is asked for a seed.
//!
//! # Why no byte is shared
//!
//! 1. A key *is made for* the id that was read before its seed was extracted, and the seed depends on that id.
//! 2. Each key is made of the one before, so a key once made for an id depends on it for ever: a seed that was extracted
//!    before the machine was cloned and installed afterwards changes nothing of that.
//! 3. A draw takes its bytes and compares then: if the machine's id is not the one that the bytes' key was made for, they
//!    are thrown away and a reseed makes keys that are. What it was made for is read together with the key, under the
//!    lock, and never looked up later, when another CPU may have learnt of the clone.
//!
//! A machine that is cloned before the comparison has not used the bytes; one that is cloned after it drew them before
//! it had a twin. `tests/loom.rs` clones a machine at every point of draws and reseeds on two CPUs.

use super::{Crng, Exclusive, Generation};
use crate::block::{Block, BlockGenerator, Key};

/// Which of its copies a machine is: the virtual machine's generation id, or [`MachineId::NONE`] where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineId(pub [u64; 2]);

impl MachineId {
    /// Of a machine that has no id, and never will.
    pub const NONE: Self = Self([0; 2]);
}

/// The kernel's side of a reseed.
pub trait Machine {
    /// The id now. What the calling CPU did before, it did before the id is read.
    fn id(&self) -> MachineId;

    /// Makes `seed` of `id` and of everything that was mixed into the pool.
    fn extract(&self, id: MachineId, seed: &mut Key);

    /// Shows programs a new generation and which machine it was made for, the generation first. Called in the order of
    /// the generations, with the base locked.
    fn publish(&self, generation: Generation, made_for: MachineId);

    /// Called when a draw finds out that this machine is a copy, before the reseed for it.
    fn copied(&self) {}
}

impl<L: Exclusive<super::Base>> Crng<L> {
    /// Takes a seed from `machine` for a new generation: from here on it is served, and every CPU takes a new key at
    /// its next draw.
    pub fn reseed_from(&self, machine: &impl Machine) -> Generation {
        self.install(machine, true)
    }

    /// Takes a seed from `machine` for what may be drawn before the first generation: with half of the credit that a
    /// promise needs. What is drawn from then on tells nothing of what is mixed in afterwards.
    pub fn seed_early(&self, machine: &impl Machine) {
        self.install(machine, false);
    }

    fn install(&self, machine: &impl Machine, serve: bool) -> Generation {
        let mut seed = Key::vacant();
        let id = loop {
            let id = machine.id();
            machine.extract(id, &mut seed);
            if machine.id() == id {
                break id;
            }
        };
        self.base.with(|base| {
            base.absorb(&mut seed);
            base.made_for = id;
            if serve || base.generation != Generation::NONE {
                self.next_generation(base);
                machine.publish(base.generation, id);
            }
            base.generation
        })
    }

    /// Shows programs what they would have been shown by the last reseed, if there was one.
    pub fn show(&self, machine: &impl Machine) {
        self.base.with(|base| {
            if base.generation != Generation::NONE {
                machine.publish(base.generation, base.made_for);
            }
        });
    }

    /// Repeats `draw`, which says for which machine its bytes were made, until they are for this one.
    #[inline]
    pub fn unshared<E>(
        &self,
        machine: &impl Machine,
        mut draw: impl FnMut() -> Result<MachineId, E>,
    ) -> Result<(), E> {
        while !self.is_for(machine, draw()?) {}
        Ok(())
    }

    /// Whether what was just drawn from a key that was made for that machine is for this one; if not, keys are from here
    /// on, and it has to be drawn again.
    #[inline]
    pub fn is_for(&self, machine: &impl Machine, made_for: MachineId) -> bool {
        if machine.id() == made_for {
            return true;
        }
        self.learn(machine);
        false
    }

    /// Makes the base key, if there is one, a key for this machine, unless another CPU was faster.
    #[cold]
    pub(crate) fn learn(&self, machine: &impl Machine) {
        let made_for = self.base.with(|base| base.keyed.then_some(base.made_for));
        if made_for.is_some_and(|made_for| made_for != machine.id()) {
            machine.copied();
            self.install(machine, false);
        }
    }

    /// Fills `out` before there is a generation, and never fails.
    ///
    /// Only for requests that accept predictable bytes (`GRND_INSECURE`, an early read of urandom) and for the kernel's
    /// own early needs. After [`seed_early`](Self::seed_early) they come from that key, which erases itself; before, the
    /// pool gives a seed for each, because every bit that was mixed in since the last is needed.
    pub fn fill_unseeded(
        &self,
        machine: &impl Machine,
        blocks: &impl BlockGenerator,
        out: &mut [Block],
    ) {
        let draw = || {
            let mut key = Key::vacant();
            let early = self.base.with(|base| {
                base.keyed.then(|| {
                    base.expand(blocks, &mut key);
                    base.made_for
                })
            });
            let made_for = early.unwrap_or_else(|| {
                let id = machine.id();
                machine.extract(id, &mut key);
                id
            });
            blocks.fill(&key, 0, out);
            Ok::<_, core::convert::Infallible>(made_for)
        };
        let Ok(()) = self.unshared(machine, draw);
    }
}
