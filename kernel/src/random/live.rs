//! The one service of this kernel: [`alea_random::service`] with this machine plugged in.
//!
//! Owns it, one generator for each CPU, the queue of those who wait for readiness, and what follows from each [`Event`].
//! The per-CPU state is never touched by interrupt handlers; one that draws takes a key of its own from the base.
//! Locks: `Random`, for the pools and for the base key, each with interrupts off for about a microsecond, never both, and
//! not while hardware is asked; an interrupt handler only tries the pools'. That of the queue, with nothing else held.

use super::{early, schedule, shown, sources, stats};
use crate::arch::copy::chacha20;
use crate::machine::vm_id::{self, VmId};
use crate::mm::user;
use crate::per_cpu;
use crate::sync::{SpinLock, WaitQueue, level};
use alea_random::block::{BLOCK_LEN, Block, BlockGenerator, GROUP_BLOCKS, Key, Portable};
use alea_random::crng::twins::MachineId;
use alea_random::crng::{Generation, NotSeeded, Stream};
use alea_random::pool::FRESH_WORDS;
use alea_random::service::{
    Base, CpuCrng, Event, Exclusive, Mixing, Platform, Service, TryExclusive,
};
use core::cell::RefCell;
use core::ops::Range;

/// The service.
pub static RANDOM: Service<Live> = Service::new(
    Live,
    RandomLock(SpinLock::new(Mixing::new())),
    RandomLock(SpinLock::new(Base::vacant())),
);

static READY: WaitQueue = WaitQueue::new();

per_cpu! {
    static CPU: RefCell<CpuCrng> = RefCell::new(CpuCrng::vacant());
}

/// Bytes that all CPUs share, and bytes for each CPU.
pub const MEMORY: (usize, usize) =
    (size_of::<Service<Live>>() + size_of::<WaitQueue>(), size_of::<RefCell<CpuCrng>>());

/// The kernel's lock, as the service wants it.
pub struct RandomLock<T>(SpinLock<T, level::Random>);

impl<T> Exclusive<T> for RandomLock<T> {
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock())
    }
}

impl<T> TryExclusive<T> for RandomLock<T> {
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_lock().map(|mut value| f(&mut value))
    }
}

/// This machine. Its id is compared at every draw, in two loads and two comparisons, instead of waiting for an interrupt
/// that comes when the first equal bytes may be gone already (Linux).
pub struct Live;

impl Platform for Live {
    type Lock<T: Send> = RandomLock<T>;

    #[inline]
    fn with_cpu<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> {
        CPU.with_mut(f)
    }

    #[inline]
    fn with_cpu_in_task<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> {
        CPU.with_mut_in_task(f)
    }

    /// Whole groups in vector registers, the rest in integer registers.
    fn fill_blocks(&self, key: &Key, counter: u32, out: &mut [Block]) {
        let (groups, _) = out.as_flattened_mut().as_chunks_mut::<{ chacha20::GROUP }>();
        let done = groups.len() * chacha20::GROUP / size_of::<Block>();
        chacha20::keystream(key.as_bytes(), counter, groups);
        let (_, rest) = out.split_at_mut(done);
        if !rest.is_empty() {
            Portable.fill(key, counter + done as u32, rest);
        }
    }

    fn fresh_words(&self, words: &mut [u64; FRESH_WORDS]) {
        sources::fresh_words(words);
    }

    fn look_again(&self) -> bool {
        sources::look_again()
    }

    #[inline]
    fn id(&self) -> MachineId {
        MachineId(vm_id::read().0)
    }

    fn publish(&self, generation: Generation, MachineId(id): MachineId) {
        shown::publish(generation, VmId(id));
    }

    fn told(&self, event: Event) {
        match event {
            Event::Ready => {
                stats::first_key();
                log::info!("random: crng init done");
                early::report_missed();
                READY.wake_all();
                schedule::arm();
            }
            Event::Reseeded(cause) => stats::reseeded(cause),
            Event::Copied => log::info!(
                "random: this virtual machine was restored or cloned, the generator is reseeded"
            ),
            Event::Identified(len) => stats::mixed(stats::Source::VmId, len),
            _ => {}
        }
    }
}

/// The next bytes of a stream, made in user memory: `groups` groups at `addr`, which must be in range. False if some of
/// it is not there to be written; what was made for it is never made again.
pub fn stream_to_user(stream: &mut Stream, addr: u64, groups: usize) -> Result<bool, NotSeeded> {
    let make = |key: &Key, counter, run: Range<usize>| {
        let at = addr + (run.start * BLOCK_LEN) as u64;
        user::write_keystream(at, run.len() / GROUP_BLOCKS, key.as_bytes(), counter)
    };
    RANDOM.make_from(stream, groups * GROUP_BLOCKS, make)
}

/// How often this CPU's batch was refilled.
pub fn refills() -> u64 {
    CPU.with_mut(|cpu| cpu.refills()).unwrap_or(0)
}

/// Who waits for [`State::Ready`](alea_random::credit::State::Ready).
pub fn ready_queue() -> &'static WaitQueue {
    &READY
}
