//! The live CRNG: the base key behind its lock, one key and batch per CPU, the vector unit plugged in.
//!
//! Owns those three. Locks: `Random`, for the base key. The per-CPU state is never touched by interrupt
//! handlers; one that draws takes a key of its own from the base.
//!
//! No call that draws returns before the VM generation id was compared, after the bytes were drawn: see
//! [`vmgenid`].

use super::shown;
use super::sources::vmgenid;
use crate::arch::copy::chacha20;
use crate::mm::user;
use crate::per_cpu;
use crate::sync::{SpinLock, level};
use alea_random::block::{BLOCK_LEN, Block, BlockGenerator, GROUP_BLOCKS, Key, Portable};
use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, Generation, NotSeeded, Stream};
use core::cell::RefCell;
use core::ops::Range;

struct BaseLock(SpinLock<Base, level::Random>);

impl Exclusive<Base> for BaseLock {
    fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R {
        f(&mut self.0.lock())
    }
}

static CRNG: Crng<BaseLock> = Crng::new(BaseLock(SpinLock::new(Base::vacant())));

per_cpu! {
    static CPU: RefCell<CpuCrng> = RefCell::new(CpuCrng::vacant());
}

/// Bytes that all CPUs share, and bytes for each CPU.
pub const MEMORY: (usize, usize) = (size_of::<Crng<BaseLock>>(), size_of::<RefCell<CpuCrng>>());

/// Whole groups in vector registers, the rest in integer registers.
struct Vector;

impl BlockGenerator for Vector {
    fn fill(&self, key: &Key, counter: u32, out: &mut [Block]) {
        let (groups, _) = out.as_flattened_mut().as_chunks_mut::<{ chacha20::GROUP }>();
        let done = groups.len() * chacha20::GROUP / size_of::<Block>();
        chacha20::keystream(key.as_bytes(), counter, groups);
        let (_, rest) = out.split_at_mut(done);
        if !rest.is_empty() {
            Portable.fill(key, counter + done as u32, rest);
        }
    }
}

/// Fills `out` from this CPU's batch.
#[inline]
pub fn draw(out: &mut [u8]) -> Result<(), NotSeeded> {
    loop {
        match CPU.with_mut(|cpu| CRNG.draw(cpu, &Vector, out)) {
            Some(result) => result?,
            None => return draw_apart(out),
        }
        if vmgenid::unchanged() {
            return Ok(());
        }
    }
}

/// Fills whole words from this CPU's batch: the shortest way.
#[inline]
pub fn draw_words(out: &mut [[u8; 8]]) -> Result<(), NotSeeded> {
    loop {
        match CPU.with_mut(|cpu| CRNG.draw_words(cpu, &Vector, out)) {
            Some(result) => result?,
            None => return draw_apart(out.as_flattened_mut()),
        }
        if vmgenid::unchanged() {
            return Ok(());
        }
    }
}

/// Words from this CPU's batch, if it has them ready and the machine is the one that it was; [`draw_words`]
/// otherwise. In task context.
#[inline]
pub fn ready<const N: usize>() -> Option<[u64; N]> {
    let words = CPU.with_mut_in_task(|cpu| CRNG.ready(cpu))??;
    vmgenid::is_known().then(|| words.map(u64::from_le_bytes))
}

/// In an interrupt handler, and while a weak generator is selected: a key of its own, no batch and no vector
/// registers.
#[cold]
pub fn draw_apart(out: &mut [u8]) -> Result<(), NotSeeded> {
    loop {
        CRNG.draw(&mut CpuCrng::vacant(), &Portable, out)?;
        if vmgenid::unchanged_base() {
            return Ok(());
        }
    }
}

/// Starts the stream of one long request.
pub fn start(stream: &mut Stream) -> Result<(), NotSeeded> {
    CPU.with_mut(|cpu| CRNG.start(stream, cpu, &Vector)).unwrap_or(Err(NotSeeded))
}

/// The next bytes of a stream.
pub fn stream_piece(stream: &mut Stream, out: &mut [Block]) -> Result<(), NotSeeded> {
    loop {
        CPU.with_mut(|cpu| CRNG.stream_piece(stream, cpu, &Vector, out))
            .unwrap_or(Err(NotSeeded))?;
        // After a change the stream takes a new key by itself: its generation is the old one.
        if vmgenid::unchanged() {
            return Ok(());
        }
    }
}

/// The next bytes of a stream, made in user memory: `groups` groups at `addr`, which must be in range. False if some of
/// it is not there to be written; what was made for it is never made again.
pub fn stream_to_user(stream: &mut Stream, addr: u64, groups: usize) -> Result<bool, NotSeeded> {
    let count = groups * GROUP_BLOCKS;
    let make = |key: &Key, counter, run: Range<usize>| {
        let at = addr + (run.start * BLOCK_LEN) as u64;
        user::write_keystream(at, run.len() / GROUP_BLOCKS, key.as_bytes(), counter)
    };
    loop {
        let done = CPU
            .with_mut(|cpu| CRNG.stream_piece_by(stream, cpu, &Vector, count, make))
            .unwrap_or(Err(NotSeeded))?;
        // Otherwise all of it is made anew before the call returns.
        if vmgenid::unchanged() {
            return Ok(done);
        }
    }
}

/// Puts a new base key in place and wipes `key`; states in user space become old with it.
pub fn reseed(key: &mut Key) -> Generation {
    let generation = CRNG.reseed(key);
    shown::publish(generation);
    generation
}

/// The generation that draws are served from.
pub fn generation() -> Generation {
    CRNG.generation()
}

/// How often this CPU's batch was refilled.
pub fn refills() -> u64 {
    CPU.with_mut(|cpu| cpu.refills()).unwrap_or(0)
}
