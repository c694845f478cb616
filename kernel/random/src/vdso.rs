//! getrandom in user space: the protocol between the vDSO's code, the kernel and a libc.
//!
//! Owns the layout of what they share ([`Params`], [`Shared`], [`State`]), which calls may be served
//! without the kernel ([`decide`]) and the draw itself. It makes no system call and maps nothing: a key
//! comes from a closure. It must never serve what the system call would refuse. Lock rules: a `State`
//! belongs to one thread; [`State::claim`] keeps a signal handler of that thread out.
//!
//! # The draw
//!
//! A libc keeps one opaque state per thread in memory that the kernel may take away at any time
//! (`MAP_DROPPABLE`) and that a fork leaves empty (`MADV_WIPEONFORK`). A state that was taken away reads
//! as zeros, which is generation 0, which is never current. So:
//!
//! 1. the generation is stored *before* the key is asked for: if the state is wiped in between, it does
//!    not look current afterwards;
//! 2. what was handed out is only kept if the generation, the shared and the own, is still the same
//!    after the copy: otherwise it is wiped and drawn again, once, and then left to the system call.
//!
//! The batch is eight blocks where Linux has one and a half; its size is the libc's to ask for.

use core::fmt;
use core::sync::atomic::compiler_fence;

use zeroize::Zeroize;

use crate::block::{BLOCK_LEN, Block, BlockGenerator, GROUP_BLOCKS, KEY_LEN, Key};
use crate::request::GetrandomFlags;
use crate::sync::{AtomicU8, AtomicU64, Ordering};

/// `PROT_READ | PROT_WRITE`.
pub const STATE_PROT: u32 = 3;

/// `MAP_DROPPABLE | MAP_ANONYMOUS`.
pub const STATE_MAP_FLAGS: u32 = 0x28;

/// The length that, with no buffer and no flags, asks for [`Params`] instead of bytes.
pub const QUERY: usize = usize::MAX;

const PAGE: usize = 4096;
const GROUP_LEN: usize = GROUP_BLOCKS * BLOCK_LEN;

/// What a libc asks for before it maps its states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Params {
    /// Bytes of one state.
    pub size_of_opaque_state: u32,
    /// How to map it.
    pub mmap_prot: u32,
    /// How to map it.
    pub mmap_flags: u32,
    /// Zero.
    pub reserved: [u32; 13],
}

impl Params {
    /// This protocol's answer.
    pub const ANSWER: Self = Self {
        size_of_opaque_state: size_of::<State>() as u32,
        mmap_prot: STATE_PROT,
        mmap_flags: STATE_MAP_FLAGS,
        reserved: [0; 13],
    };
}

/// What the kernel shows to all processes, read-only.
#[derive(Debug)]
#[repr(C)]
pub struct Shared {
    generation: AtomicU64,
}

impl Shared {
    /// Not ready: every call goes to the kernel.
    #[cfg(not(alea_loom))]
    pub const fn not_ready() -> Self {
        Self { generation: AtomicU64::new(0) }
    }

    /// The kernel's side: called after each reseed, with [`crate::crng::Generation::get`].
    pub fn publish(&self, generation: u64) {
        // Release: pairs with the Acquire in `current`; a thread that sees the new number asks for a
        // key that stems from the new base.
        self.generation.store(generation, Ordering::Release);
    }

    fn current(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`.
        self.generation.load(Ordering::Acquire)
    }
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Write [`Params::ANSWER`] to the state's address and return 0.
    Answer,
    /// Return `-EFAULT`: the state crosses a page, so half of it could be taken away.
    Fault,
    /// Return 0.
    Nothing,
    /// Make the system call, which knows the right answer.
    SystemCall,
    /// Draw.
    Draw,
}

/// Decides by the arguments alone. Flags are refused exactly as the system call refuses them; Linux's
/// vDSO lets `GRND_RANDOM | GRND_INSECURE` through.
///
/// ```
/// use alea_random::vdso::{Decision, QUERY, State, decide};
/// let size = size_of::<State>();
/// assert_eq!(decide(0, 0, 0, 0x1000, QUERY), Decision::Answer);
/// assert_eq!(decide(0x7000, 16, 0, 0x1000, size), Decision::Draw);
/// assert_eq!(decide(0x7000, 16, 6, 0x1000, size), Decision::SystemCall, "for its EINVAL");
/// assert_eq!(decide(0x7000, 16, 0, 0x1ff0, size), Decision::Fault);
/// ```
pub const fn decide(
    buffer: usize,
    len: usize,
    flags: u32,
    state: usize,
    state_len: usize,
) -> Decision {
    if state_len == QUERY && buffer == 0 && len == 0 && flags == 0 {
        return Decision::Answer;
    }
    if state % PAGE + size_of::<State>() > PAGE {
        return Decision::Fault;
    }
    let right_size = state_len == size_of::<State>() && state.is_multiple_of(align_of::<State>());
    if !right_size || GetrandomFlags::decode(flags as u64).is_err() {
        return Decision::SystemCall;
    }
    if len == 0 { Decision::Nothing } else { Decision::Draw }
}

/// The draw cannot be served here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UseSystemCall;

impl fmt::Display for UseSystemCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("only the system call can serve this")
    }
}

impl core::error::Error for UseSystemCall {}

/// One thread's opaque state. All zeros is a state that has no key.
#[repr(C, align(64))]
pub struct State {
    group: [Block; GROUP_BLOCKS],
    key: [u8; KEY_LEN],
    /// An atomic only because the kernel may zero it at any moment.
    generation: AtomicU64,
    used: u32,
    in_use: AtomicU8,
}

impl State {
    /// What freshly mapped memory is.
    #[cfg(not(alea_loom))]
    pub const fn zeroed() -> Self {
        Self {
            group: [[0; BLOCK_LEN]; GROUP_BLOCKS],
            key: [0; KEY_LEN],
            generation: AtomicU64::new(0),
            used: 0,
            in_use: AtomicU8::new(0),
        }
    }

    /// Takes the state for one draw. `false` in a signal handler that interrupted a draw of its own
    /// thread: the handler's call goes to the kernel.
    pub fn claim(&self) -> bool {
        // Relaxed: both sides run on the same thread.
        let was = self.in_use.load(Ordering::Relaxed);
        self.in_use.store(1, Ordering::Relaxed);
        // The compiler must not move the draw before the claim; the CPU keeps its own order.
        compiler_fence(core::sync::atomic::Ordering::SeqCst);
        was == 0
    }

    /// Gives the state back after a successful [`claim`](Self::claim).
    pub fn release(&self) {
        compiler_fence(core::sync::atomic::Ordering::SeqCst);
        // Relaxed: as in `claim`.
        self.in_use.store(0, Ordering::Relaxed);
    }

    /// Fills `out`. `fresh_key` asks the kernel for 32 bytes and says whether it gave them.
    pub fn draw(
        &mut self,
        shared: &Shared,
        blocks: &impl BlockGenerator,
        mut fresh_key: impl FnMut(&mut [u8; KEY_LEN]) -> bool,
        out: &mut [u8],
    ) -> Result<(), UseSystemCall> {
        for _ in 0..2 {
            let generation = shared.current();
            if generation == 0 {
                return Err(UseSystemCall);
            }
            // Relaxed: see the field.
            if self.generation.load(Ordering::Relaxed) != generation {
                self.generation.store(generation, Ordering::Relaxed);
                self.drop_batch();
                if !fresh_key(&mut self.key) {
                    self.generation.store(0, Ordering::Relaxed);
                    return Err(UseSystemCall);
                }
            }
            self.take(blocks, out);
            let own = self.generation.load(Ordering::Relaxed);
            if own == generation && shared.current() == generation {
                return Ok(());
            }
            // The key may be a parent's, a clone's or an old one's: nothing of it is handed out.
            out.zeroize();
        }
        Err(UseSystemCall)
    }

    fn take(&mut self, blocks: &impl BlockGenerator, mut out: &mut [u8]) {
        loop {
            let used = self.used as usize;
            // Anything else is a state that was taken away in between, and has nothing ready.
            let start = if (KEY_LEN..GROUP_LEN).contains(&used) { used } else { GROUP_LEN };
            let ready = self.group.as_flattened_mut().split_at_mut(start).1;
            let count = ready.len().min(out.len());
            let (now, later) = out.split_at_mut(count);
            let (from, _) = ready.split_at_mut(count);
            now.copy_from_slice(from);
            from.fill(0);
            self.used = (start + count) as u32;
            if later.is_empty() {
                return;
            }
            // Whole groups go straight to the caller, then the key is replaced.
            let (whole, rest) = later.split_at_mut(later.len() / GROUP_LEN * GROUP_LEN);
            self.refill(blocks, whole);
            out = rest;
        }
    }

    fn refill(&mut self, blocks: &impl BlockGenerator, before: &mut [u8]) {
        let mut key = Key::new(self.key);
        let (before, _) = before.as_chunks_mut::<BLOCK_LEN>();
        blocks.fill(&key, 0, before);
        blocks.fill(&key, before.len() as u32, &mut self.group);
        let [first, ..] = &mut self.group;
        key.take_from(first);
        self.key.copy_from_slice(key.as_bytes());
        self.used = KEY_LEN as u32;
    }

    fn drop_batch(&mut self) {
        self.group.as_flattened_mut().fill(0);
        self.used = GROUP_LEN as u32;
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(alea_loom)))]
mod tests;
