//! The live CRNG: the base key behind its lock, one key and batch per CPU, the vector unit plugged in.
//!
//! Owns those three. Locks: `Random`, for the base key. The per-CPU state is never touched by interrupt
//! handlers; one that draws takes a key of its own from the base.
//!
//! No call that draws returns before the VM generation id was compared, after the bytes were drawn: see
//! [`alea_random::crng::twins`].

use super::{mixing, shown, sources, stats};
use crate::arch::copy::chacha20;
use crate::machine::vm_id::{self, VmId};
use crate::mm::user;
use crate::per_cpu;
use crate::sync::{SpinLock, level};
use alea_random::block::{BLOCK_LEN, Block, BlockGenerator, GROUP_BLOCKS, Key, Portable};
use alea_random::crng::twins::{Machine, MachineId};
use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, Generation, NotSeeded, Stream};
use alea_random::reseed::Cause;
use core::cell::RefCell;
use core::ops::Range;
use zeroize::Zeroize;

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

/// This machine, as the generator asks for it. The id is compared at every draw, in two loads and two comparisons,
/// instead of waiting for an interrupt that comes when the first equal bytes may be gone already (Linux).
struct Live;

impl Machine for Live {
    #[inline]
    fn id(&self) -> MachineId {
        MachineId(vm_id::read().0)
    }

    fn extract(&self, MachineId(id): MachineId, seed: &mut Key) {
        let mut fresh = sources::fresh_words();
        if mixing::extract(VmId(id), &fresh, seed) {
            stats::mixed(stats::Source::VmId, size_of_val(&id));
        }
        fresh.zeroize();
    }

    fn publish(&self, generation: Generation, MachineId(id): MachineId) {
        shown::publish(generation, VmId(id));
    }

    fn copied(&self) {
        stats::reseeded(Cause::Clone);
        log::info!(
            "random: this virtual machine was restored or cloned, the generator is reseeded"
        );
    }
}

/// Fills `out` from this CPU's batch.
#[inline]
pub fn draw(out: &mut [u8]) -> Result<(), NotSeeded> {
    loop {
        let Some(drawn) = CPU.with_mut(|cpu| CRNG.draw(cpu, &Vector, out)) else {
            return draw_apart(out);
        };
        if CRNG.is_for(&Live, drawn?) {
            return Ok(());
        }
    }
}

/// Fills whole words from this CPU's batch: the shortest way.
#[inline]
pub fn draw_words(out: &mut [[u8; 8]]) -> Result<(), NotSeeded> {
    loop {
        let Some(drawn) = CPU.with_mut(|cpu| CRNG.draw_words(cpu, &Vector, out)) else {
            return draw_apart(out.as_flattened_mut());
        };
        if CRNG.is_for(&Live, drawn?) {
            return Ok(());
        }
    }
}

/// Words from this CPU's batch, if it has them ready and the machine is the one that it was; [`draw_words`]
/// otherwise. In task context.
#[inline]
pub fn ready<const N: usize>() -> Option<[u64; N]> {
    let ready = CPU.with_mut_in_task(|cpu| CRNG.ready(cpu).map(|words| (words, cpu.made_for())));
    // Outside: a comparison in there keeps the compiler from knowing that the borrow is the only one.
    let (words, made_for) = ready??;
    (Live.id() == made_for).then(|| words.map(u64::from_le_bytes))
}

/// Makes a new batch for [`ready`] where the old one has come to its end; whether it did. In task context.
#[cold]
pub fn top_up<const N: usize>() -> bool {
    CPU.with_mut_in_task(|cpu| CRNG.top_up(cpu, &Vector, N)).unwrap_or(false)
}

/// In an interrupt handler, and while a weak generator is selected: a key of its own, no batch and no vector registers.
#[cold]
pub fn draw_apart(out: &mut [u8]) -> Result<(), NotSeeded> {
    CRNG.unshared(&Live, || CRNG.draw(&mut CpuCrng::vacant(), &Portable, out))
}

/// Bytes for those who take what there is, before there is a generation.
pub fn fill_unseeded(out: &mut [Block]) {
    CRNG.fill_unseeded(&Live, &Portable, out);
}

/// Starts the stream of one long request.
pub fn start(stream: &mut Stream) -> Result<(), NotSeeded> {
    CPU.with_mut(|cpu| CRNG.start(stream, cpu, &Vector)).unwrap_or(Err(NotSeeded))
}

/// The next bytes of a stream. After a copy was made of the machine it takes a new key by itself: its generation is old.
pub fn stream_piece(stream: &mut Stream, out: &mut [Block]) -> Result<(), NotSeeded> {
    let mut piece = || CPU.with_mut(|cpu| CRNG.stream_piece(stream, cpu, &Vector, out));
    CRNG.unshared(&Live, || piece().unwrap_or(Err(NotSeeded)))
}

/// The next bytes of a stream, made in user memory: `groups` groups at `addr`, which must be in range. False if some of
/// it is not there to be written; what was made for it is never made again.
pub fn stream_to_user(stream: &mut Stream, addr: u64, groups: usize) -> Result<bool, NotSeeded> {
    let count = groups * GROUP_BLOCKS;
    let make = |key: &Key, counter, run: Range<usize>| {
        let at = addr + (run.start * BLOCK_LEN) as u64;
        user::write_keystream(at, run.len() / GROUP_BLOCKS, key.as_bytes(), counter)
    };
    let mut whole = false;
    // If the machine is another one, all of it is made anew before the call returns.
    CRNG.unshared(&Live, || {
        let made = CPU.with_mut(|cpu| CRNG.stream_piece_by(stream, cpu, &Vector, count, make));
        let (done, made_for) = made.unwrap_or(Err(NotSeeded))?;
        whole = done;
        Ok(made_for)
    })?;
    Ok(whole)
}

/// Makes a new base key of the old one and of the pool; states in user space become old with it.
pub fn reseed() {
    CRNG.reseed_from(&Live);
}

/// Shows programs the generation that there is already.
pub fn show() {
    CRNG.show(&Live);
}

/// Makes the key that early draws come from until there is a generation.
pub fn seed_early() {
    CRNG.seed_early(&Live);
}

/// The generation that draws are served from.
pub fn generation() -> Generation {
    CRNG.generation()
}

/// How often this CPU's batch was refilled.
pub fn refills() -> u64 {
    CPU.with_mut(|cpu| cpu.refills()).unwrap_or(0)
}
