//! The cryptographic generator: ChaCha20 with fast key erasure, one key per CPU.
//!
//! Owns the base key ([`Base`]), the generation number, the per-CPU keys with their batches, and the stream of
//! one long request. It must never let a key outlive its use or a byte be handed out twice, and
//! never generates before it is seeded. Time, sources and credit are not its business.
//!
//! # How it works
//!
//! A reseed makes a new base key of the old one and a seed, and publishes a new generation. A CPU whose own
//! generation differs takes a key from the base (which replaces the base key, too) and drops its batch. Its
//! draws then need nothing that is shared but one load of the generation:
//!
//! ```text
//! reseed --> base key --+--> CPU key --> group of 8 blocks: [ next CPU key | batch of 480 bytes ]
//!            generation +--> CPU key ...                                      | small draws, wiped
//!                                                                             | as they leave
//!                                                      one-time key of a long request <-+
//! ```
//!
//! **Fast key erasure** (D. J. Bernstein, 2017): the first 32 bytes of every group become the next
//! key before any other byte leaves. Whoever reads all memory afterwards finds no way back.
//!
//! # Lock rules
//!
//! The base lies behind the kernel's own lock ([`Exclusive`]), held for one ChaCha20 block and only
//! by a reseed, by a CPU's first draw after one, and by draws before the first. A [`CpuCrng`] is
//! reached by its CPU only, never from an interrupt handler and with preemption excluded. No user
//! memory is touched in here.
//!
//! # Copies of the machine
//!
//! Every key knows the [`MachineId`] of the machine that it was made for, and each draw returns it. Who may run in a
//! virtual machine compares it with the machine's after the draw ([`Crng::unshared`]): see [`twins`].

use core::fmt;
use core::ops::Range;

pub use self::base::{Base, Generation};
use self::twins::MachineId;
use crate::block::wipe::wipe;
use crate::block::{BLOCK_LEN, Block, BlockGenerator, GROUP_BLOCKS, KEY_LEN, Key};
use crate::sync::{AtomicU64, Ordering};

/// The longest draw that is served from the batch; longer requests take a [`Stream`].
pub const BATCH_DRAW_MAX: usize = 256;

/// A [`Stream`] replaces its key after this many bytes.
pub const STREAM_REKEY: usize = 32 * 1024;

const GROUP_LEN: usize = GROUP_BLOCKS * BLOCK_LEN;
const WORD: usize = 8;
const GROUP_WORDS: usize = GROUP_LEN / WORD;
const STREAM_REKEY_BLOCKS: u32 = (STREAM_REKEY / BLOCK_LEN) as u32;

/// A lock around a value, lent by the kernel that uses this crate.
pub trait Exclusive<T> {
    /// Runs `f` while nobody else can reach the value.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}

/// There is no key yet: the pool has not been credited enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSeeded;

impl fmt::Display for NotSeeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the generator is not seeded yet")
    }
}

impl core::error::Error for NotSeeded {}

/// The part of the generator that all CPUs share.
///
/// ```
/// use std::sync::Mutex;
/// use alea_random::block::{Key, Portable};
/// use alea_random::crng::{Base, CpuCrng, Crng, Exclusive};
///
/// struct Lock(Mutex<Base>);
/// impl Exclusive<Base> for Lock {
///     fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R { f(&mut self.0.lock().unwrap()) }
/// }
///
/// let crng = Crng::new(Lock(Mutex::new(Base::vacant())));
/// let mut cpu = CpuCrng::vacant();
/// let mut bytes = [0; 16];
/// assert!(crng.draw(&mut cpu, &Portable, &mut bytes).is_err(), "not seeded");
/// crng.reseed(&mut Key::new([7; 32])); // from the pool, in a kernel
/// crng.draw(&mut cpu, &Portable, &mut bytes)?;
/// # Ok::<(), alea_random::crng::NotSeeded>(())
/// ```
pub struct Crng<L> {
    /// The base's, for those who do not hold its lock.
    generation: AtomicU64,
    base: L,
}

impl<L: Exclusive<Base>> Crng<L> {
    /// A generator without a key, around a vacant [`Base`].
    #[cfg(not(alea_loom))]
    pub const fn new(base: L) -> Self {
        Self { generation: AtomicU64::new(Generation::NONE.get()), base }
    }

    /// A generator without a key (loom's atomics cannot be made in a constant).
    #[cfg(alea_loom)]
    pub fn new(base: L) -> Self {
        Self { generation: AtomicU64::new(Generation::NONE.get()), base }
    }

    /// The generation that draws are served from now.
    #[inline]
    pub fn generation(&self) -> Generation {
        // Acquire: pairs with the Release in `reseed`, for those who show the number to user space.
        Generation::of(self.generation.load(Ordering::Acquire))
    }

    /// Makes a new base key of the old one and `seed`, which is wiped; every CPU takes a new key at its next draw. For
    /// machines of which there are no copies; others have [`reseed_from`](Self::reseed_from).
    pub fn reseed(&self, seed: &mut Key) -> Generation {
        self.base.with(|base| {
            base.absorb(seed);
            self.next_generation(base)
        })
    }

    fn next_generation(&self, base: &mut Base) -> Generation {
        base.generation = base.generation.next();
        // Release: pairs with the Acquire in `generation`. Inside the lock, so that numbers are published in order.
        self.generation.store(base.generation.get(), Ordering::Release);
        base.generation
    }

    /// Fills `out` (any length, but meant for up to [`BATCH_DRAW_MAX`] bytes) from this CPU's batch.
    ///
    /// The bytes are gone from the batch when this returns, which says for which machine they were made.
    #[inline]
    pub fn draw(
        &self,
        cpu: &mut CpuCrng,
        blocks: &impl BlockGenerator,
        out: &mut [u8],
    ) -> Result<MachineId, NotSeeded> {
        self.refresh(cpu, blocks)?;
        cpu.take(blocks, out);
        Ok(cpu.made_for)
    }

    /// As [`draw`](Self::draw), for a buffer of whole words: the shortest way.
    #[inline]
    pub fn draw_words(
        &self,
        cpu: &mut CpuCrng,
        blocks: &impl BlockGenerator,
        out: &mut [[u8; WORD]],
    ) -> Result<MachineId, NotSeeded> {
        self.refresh(cpu, blocks)?;
        cpu.take_words(blocks, out);
        Ok(cpu.made_for)
    }

    /// A fixed number of words, by value, if this CPU's batch has them ready and its key is current: for
    /// the shortest way of all, beside [`draw`](Self::draw) for when it gives nothing. For which machine they were made
    /// is [`CpuCrng::made_for`].
    #[inline]
    pub fn ready<const N: usize>(&self, cpu: &mut CpuCrng) -> Option<[[u8; WORD]; N]> {
        if cpu.generation.get() != self.current() {
            return None;
        }
        let (batch, _) = cpu.group.as_flattened_mut().as_chunks_mut::<WORD>();
        let ready = batch.get_mut(cpu.used..)?.first_chunk_mut::<N>()?;
        cpu.used += N;
        Some(core::mem::replace(ready, [[0; WORD]; N]))
    }

    /// Makes the batch of this CPU a new one if its key is current and fewer than `words` are ready, which are wiped with
    /// the rest. Whether it did: then [`ready`](Self::ready) gives them, unless the machine was copied.
    pub fn top_up(&self, cpu: &mut CpuCrng, blocks: &impl BlockGenerator, words: usize) -> bool {
        let wanting = cpu.used.saturating_add(words) > GROUP_WORDS;
        if !wanting || cpu.generation.get() != self.current() {
            return false;
        }
        cpu.refill(blocks);
        true
    }

    /// Makes `stream` the stream of one long request, under a key of its own.
    pub fn start(
        &self,
        stream: &mut Stream,
        cpu: &mut CpuCrng,
        blocks: &impl BlockGenerator,
    ) -> Result<(), NotSeeded> {
        self.refresh(cpu, blocks)?;
        cpu.take(blocks, stream.key.as_mut_bytes());
        stream.next_block = 0;
        stream.generation = cpu.generation;
        stream.made_for = cpu.made_for;
        Ok(())
    }

    /// Overwrites `out` with the stream's next bytes; a reseed since the last piece re-keys it. For which machine they
    /// were made.
    pub fn stream_piece(
        &self,
        stream: &mut Stream,
        cpu: &mut CpuCrng,
        blocks: &impl BlockGenerator,
        out: &mut [Block],
    ) -> Result<MachineId, NotSeeded> {
        let count = out.len();
        let fill = |key: &Key, counter, run| {
            blocks.fill(key, counter, &mut out[run]);
            true
        };
        self.stream_piece_by(stream, cpu, blocks, count, fill).map(|(_, made_for)| made_for)
    }

    /// As [`stream_piece`](Self::stream_piece), for a place that is no slice: `make(key, counter, run)` puts
    /// the keystream of `run`, a range of the `count` blocks, where it belongs. When it returns false the rest is
    /// not asked for, and that is what it says here, too; the blocks of a run that was begun are never made again.
    pub fn stream_piece_by(
        &self,
        stream: &mut Stream,
        cpu: &mut CpuCrng,
        blocks: &impl BlockGenerator,
        count: usize,
        make: impl FnMut(&Key, u32, Range<usize>) -> bool,
    ) -> Result<(bool, MachineId), NotSeeded> {
        if stream.generation.get() != self.current() {
            self.start(stream, cpu, blocks)?;
        }
        Ok((stream.runs(blocks, count, make), stream.made_for))
    }

    /// Makes `cpu` hold a key of the current generation.
    #[inline]
    fn refresh(&self, cpu: &mut CpuCrng, blocks: &impl BlockGenerator) -> Result<(), NotSeeded> {
        if cpu.generation.get() == self.current() {
            return Ok(());
        }
        self.rekey(cpu, blocks)
    }

    #[cold]
    fn rekey(&self, cpu: &mut CpuCrng, blocks: &impl BlockGenerator) -> Result<(), NotSeeded> {
        cpu.drop_batch();
        self.base.with(|base| {
            if base.generation == Generation::NONE {
                return Err(NotSeeded);
            }
            base.expand(blocks, &mut cpu.key);
            (cpu.generation, cpu.made_for) = (base.generation, base.made_for);
            Ok(())
        })
    }

    fn current(&self) -> u64 {
        // Relaxed: the keys themselves are only reached under the base lock. A CPU that reads the
        // old number draws as if it had drawn before the reseed; who waited for the reseed to
        // return reads the new one, by coherence.
        self.generation.load(Ordering::Relaxed)
    }
}

impl<L> fmt::Debug for Crng<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for show.
        let generation = self.generation.load(Ordering::Relaxed);
        f.debug_struct("Crng").field("generation", &generation).finish_non_exhaustive()
    }
}

/// Moves words of the batch out and wipes them there.
#[inline]
fn move_words(from: &mut [[u8; WORD]], to: &mut [[u8; WORD]]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
        *from = [0; WORD];
    }
}

/// One CPU's key and batch. Only that CPU may reach it.
#[repr(C, align(64))]
pub struct CpuCrng {
    /// The batch; what was handed out is zero. Its first 32 bytes became the key.
    group: [Block; GROUP_BLOCKS],
    key: Key,
    generation: Generation,
    made_for: MachineId,
    /// Where the unused bytes begin, in words.
    used: usize,
    refills: u64,
}

impl CpuCrng {
    /// A CPU that has no key yet, or must forget the one it has (it went offline).
    pub const fn vacant() -> Self {
        Self {
            group: [[0; BLOCK_LEN]; GROUP_BLOCKS],
            key: Key::vacant(),
            generation: Generation::VACANT,
            made_for: MachineId::NONE,
            used: GROUP_WORDS,
            refills: 0,
        }
    }

    /// Which machine its key and its batch were made for.
    #[inline]
    pub const fn made_for(&self) -> MachineId {
        self.made_for
    }

    /// How often the batch was refilled: for statistics.
    pub const fn refills(&self) -> u64 {
        self.refills
    }

    /// Moves bytes from the batch to `out`, refilling it as often as needed. Whole words leave the
    /// batch; the rest of the last one is wiped unused.
    #[inline]
    fn take(&mut self, blocks: &impl BlockGenerator, out: &mut [u8]) {
        let (words, rest) = out.as_chunks_mut::<WORD>();
        self.take_words(blocks, words);
        if !rest.is_empty() {
            let mut word = [[0; WORD]];
            self.take_words(blocks, &mut word);
            rest.iter_mut().zip(word.as_flattened()).for_each(|(to, byte)| *to = *byte);
            wipe(&mut word);
        }
    }

    #[inline]
    fn take_words(&mut self, blocks: &impl BlockGenerator, out: &mut [[u8; WORD]]) {
        let end = self.used.saturating_add(out.len());
        let (batch, _) = self.group.as_flattened_mut().as_chunks_mut::<WORD>();
        match batch.get_mut(self.used..end) {
            Some(ready) => {
                move_words(ready, out);
                self.used = end;
            }
            None => self.take_over_refills(blocks, out),
        }
    }

    #[cold]
    fn take_over_refills(&mut self, blocks: &impl BlockGenerator, mut out: &mut [[u8; WORD]]) {
        while !out.is_empty() {
            if self.used >= GROUP_WORDS {
                self.refill(blocks);
            }
            let (batch, _) = self.group.as_flattened_mut().as_chunks_mut::<WORD>();
            let (_, ready) = batch.split_at_mut(self.used);
            let count = ready.len().min(out.len());
            let (now, later) = out.split_at_mut(count);
            move_words(&mut ready[..count], now);
            self.used += count;
            out = later;
        }
    }

    #[cold]
    fn refill(&mut self, blocks: &impl BlockGenerator) {
        blocks.fill(&self.key, 0, &mut self.group);
        let [first, ..] = &mut self.group;
        self.key.take_from(first);
        self.used = KEY_LEN / WORD;
        self.refills = self.refills.wrapping_add(1);
    }

    fn drop_batch(&mut self) {
        wipe(&mut self.group);
        self.used = GROUP_WORDS;
        self.generation = Generation::VACANT;
    }
}

impl Drop for CpuCrng {
    fn drop(&mut self) {
        self.drop_batch();
    }
}

impl fmt::Debug for CpuCrng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuCrng").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// The keystream of one long request; wiped when dropped.
///
/// Needs no CPU state between pieces, so the request may be preempted and may fault while it is
/// copied out. Its key replaces itself every [`STREAM_REKEY`] bytes, so that even within one huge
/// request most of what was handed out cannot be recovered.
#[derive(Debug)]
pub struct Stream {
    key: Key,
    next_block: u32,
    generation: Generation,
    made_for: MachineId,
}

impl Stream {
    /// The place of a stream, to be started there by [`Crng::start`].
    pub const fn vacant() -> Self {
        let (generation, made_for) = (Generation::VACANT, MachineId::NONE);
        Self { key: Key::vacant(), next_block: 0, generation, made_for }
    }

    /// Has `count` blocks made, in runs of one key each.
    fn runs(
        &mut self,
        blocks: &impl BlockGenerator,
        count: usize,
        mut make: impl FnMut(&Key, u32, Range<usize>) -> bool,
    ) -> bool {
        let mut start = 0;
        while start < count {
            let len = (count - start).min(STREAM_REKEY_BLOCKS as usize);
            if self.next_block + len as u32 > STREAM_REKEY_BLOCKS {
                self.rekey(blocks);
            }
            let counter = self.next_block;
            self.next_block += len as u32;
            if !make(&self.key, counter, start..start + len) {
                return false;
            }
            start += len;
        }
        true
    }

    fn rekey(&mut self, blocks: &impl BlockGenerator) {
        let mut last = [[0; BLOCK_LEN]];
        blocks.fill(&self.key, self.next_block, &mut last);
        let [block] = &mut last;
        self.key.take_from(block);
        wipe(block);
        self.next_block = 0;
    }
}

mod base;
pub mod twins;

#[cfg(all(test, not(alea_loom)))]
mod tests;
