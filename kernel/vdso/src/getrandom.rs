//! getrandom: the draw from a state that a libc keeps for each thread.
//!
//! The protocol is the one that `alea_random::vdso` explains and models; this is its form for the image,
//! over raw memory that the kernel may zero at any moment, without a copy of anything secret on the
//! stack. The tests compare the two byte for byte. Lock rules: a state belongs to one thread; `in_use`
//! keeps a signal handler of that thread out.

use core::mem::offset_of;
use core::sync::atomic::{Ordering, compiler_fence};

use crate::chacha20;
use crate::data::Data;

const GROUP: usize = chacha20::GROUP;
const BLOCKS_OF_GROUP: u32 = (GROUP / 64) as u32;
const KEY: usize = 32;
const PAGE: usize = 4096;
const EFAULT: isize = -14;
/// The most that one call gives, as read(2).
const MOST: usize = 0x7fff_f000;
/// The length that, with no buffer and no flags, asks for [`Params`].
pub const QUERY: usize = usize::MAX;
/// GRND_NONBLOCK, GRND_RANDOM and GRND_INSECURE; not the last two together.
const FLAGS: u32 = 7;
const RANDOM_INSECURE: u32 = 6;

/// What a libc asks for before it maps its states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Params {
    pub size_of_opaque_state: u32,
    pub mmap_prot: u32,
    pub mmap_flags: u32,
    pub reserved: [u32; 13],
}

/// One thread's state; all zeros has no key.
#[repr(C, align(64))]
pub struct State {
    /// Its first 32 bytes became the key; the rest is handed out and wiped.
    group: [u8; GROUP],
    key: [u8; KEY],
    /// Of the key. Zero, which is never current, after the kernel took the page away.
    generation: u64,
    /// Bytes of the group that are gone.
    used: u32,
    in_use: u32,
}

/// Bytes of a state.
pub const STATE: usize = size_of::<State>();
const _: () = assert!(offset_of!(State, key) == GROUP, "chacha20::take_key relies on it");

/// The system call that serves what cannot be served here.
pub trait Kernel {
    /// getrandom(2).
    fn getrandom(&self, buffer: *mut u8, len: usize, flags: u32) -> isize;
}

/// `__vdso_getrandom`.
///
/// # Safety
/// As the system call for `buffer`, except that a bad one faults; `state`, if `state_len` is right,
/// belongs to the calling thread.
#[inline(always)]
pub unsafe fn getrandom(
    data: &Data,
    kernel: &impl Kernel,
    buffer: *mut u8,
    len: usize,
    flags: u32,
    state: *mut State,
    state_len: usize,
) -> isize {
    let at = state as usize;
    if state_len != STATE || at % PAGE > PAGE - STATE || !at.is_multiple_of(align_of::<State>()) {
        if state_len == QUERY && buffer.is_null() && len == 0 && flags == 0 {
            // SAFETY: the caller's memory, as `struct vgetrandom_opaque_params`.
            unsafe { answer(state.cast()) };
            return 0;
        }
        // Half of a state that crosses a page could be taken away.
        return match at % PAGE > PAGE - STATE {
            true => EFAULT,
            false => kernel.getrandom(buffer, len, flags),
        };
    }
    // The system call knows the right error, and how to wait.
    let refused = flags & !FLAGS != 0 || flags & RANDOM_INSECURE == RANDOM_INSECURE;
    if refused || data.random.generation() == 0 {
        return kernel.getrandom(buffer, len, flags);
    }
    if len == 0 {
        return 0;
    }
    // SAFETY: the caller promised that the state is its own; it lies in one page and is aligned.
    unsafe {
        let in_use = &raw mut (*state).in_use;
        if in_use.read_volatile() != 0 {
            // This is a signal handler, and the thread was just drawing.
            return kernel.getrandom(buffer, len, flags);
        }
        in_use.write_volatile(1);
        // The draw must stay between the two writes; both sides run on one thread.
        compiler_fence(Ordering::SeqCst);
        let len = if len > MOST { MOST } else { len };
        let drawn = draw(data, kernel, state, buffer, len);
        compiler_fence(Ordering::SeqCst);
        in_use.write_volatile(0);
        if drawn { len as isize } else { kernel.getrandom(buffer, len, flags) }
    }
}

/// # Safety
/// `to` can be written, or faults.
#[cold]
unsafe fn answer(to: *mut u32) {
    // PROT_READ | PROT_WRITE; MAP_DROPPABLE | MAP_ANONYMOUS.
    let head = [STATE as u32, 3, 0x28];
    let mut n = 0;
    while n < size_of::<Params>() / 4 {
        let word = if n < head.len() { head[n] } else { 0 };
        // SAFETY: within `Params`, which a caller may put anywhere.
        unsafe { to.add(n).write_unaligned(word) };
        n += 1;
    }
}

/// Fills `out`; `false` if the kernel must.
///
/// # Safety
/// As [`getrandom`]; the state is in use by this call.
#[inline(always)]
unsafe fn draw(
    data: &Data,
    kernel: &impl Kernel,
    state: *mut State,
    out: *mut u8,
    len: usize,
) -> bool {
    // SAFETY: the state is ours, see the caller; volatile, because the kernel may zero it at any moment.
    unsafe {
        let own = &raw mut (*state).generation;
        let mut tries = 0;
        loop {
            let generation = data.random.generation();
            if own.read_volatile() != generation && !rekey(kernel, state, generation) {
                return false;
            }
            take(data, state, out, len);
            compiler_fence(Ordering::SeqCst);
            if !data.random.is_twin(data)
                && own.read_volatile() == generation
                && data.random.generation() == generation
            {
                return true;
            }
            // The key may be a parent's, a clone's or an old one's: nothing of it is handed out.
            wipe(out, len);
            tries += 1;
            if tries == 2 {
                return false;
            }
        }
    }
}

/// Gets a key of `generation` from the kernel.
///
/// # Safety
/// As [`draw`].
#[cold]
unsafe fn rekey(kernel: &impl Kernel, state: *mut State, generation: u64) -> bool {
    if generation == 0 {
        return false;
    }
    // SAFETY: as in `draw`.
    unsafe {
        let own = &raw mut (*state).generation;
        // Before the key: if the state is wiped from here on, it does not look current afterwards.
        own.write_volatile(generation);
        compiler_fence(Ordering::SeqCst);
        wipe((&raw mut (*state).group).cast(), GROUP);
        (&raw mut (*state).used).write_volatile(GROUP as u32);
        let key = (&raw mut (*state).key).cast::<u8>();
        if kernel.getrandom(key, KEY, 0) == KEY as isize {
            return true;
        }
        own.write_volatile(0);
        false
    }
}

/// Moves `len` bytes from the state to `out`, making more as often as need be.
///
/// # Safety
/// As [`draw`].
#[inline(always)]
unsafe fn take(data: &Data, state: *mut State, out: *mut u8, len: usize) {
    // SAFETY: as in `draw`; `used..used + len` is checked to lie in the group.
    unsafe {
        let used_at = &raw mut (*state).used;
        let used = used_at.read_volatile() as usize;
        if (KEY..=GROUP).contains(&used) && len <= GROUP - used {
            move_bytes((&raw mut (*state).group).cast::<u8>().add(used), out, len);
            used_at.write_volatile((used + len) as u32);
        } else {
            take_over_refills(data, state, out, len);
        }
    }
}

/// # Safety
/// As [`draw`].
#[inline(never)]
unsafe fn take_over_refills(data: &Data, state: *mut State, mut out: *mut u8, mut len: usize) {
    let wide = data.random.wide();
    // SAFETY: as in `take`.
    unsafe {
        let group = (&raw mut (*state).group).cast::<u8>();
        let key = (&raw mut (*state).key).cast::<u8>();
        let used_at = &raw mut (*state).used;
        loop {
            let used = used_at.read_volatile() as usize;
            // Anything else is a state that was taken away in between, and has nothing ready.
            let ready = if (KEY..=GROUP).contains(&used) { GROUP - used } else { 0 };
            let count = if ready < len { ready } else { len };
            move_piece(group.add(GROUP - ready), out, count);
            used_at.write_volatile((GROUP - ready + count) as u32);
            out = out.add(count);
            len -= count;
            if len == 0 {
                return;
            }
            // Whole groups go straight to the caller, then the key is replaced.
            let groups = len / GROUP;
            if groups > 0 {
                chacha20::keystream(wide, key, 0, out, groups, group);
                out = out.add(groups * GROUP);
                len -= groups * GROUP;
            }
            chacha20::keystream(wide, key, groups as u32 * BLOCKS_OF_GROUP, group, 1, group);
            chacha20::take_key(group);
            used_at.write_volatile(KEY as u32);
            if len == 0 {
                return;
            }
        }
    }
}

/// As [`move_bytes`], out of line.
///
/// # Safety
/// As there.
#[inline(never)]
unsafe fn move_piece(from: *mut u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { move_bytes(from, to, len) }
}

/// Moves bytes, leaving zeros behind.
///
/// # Safety
/// Both ranges are whole (or fault) and do not overlap.
#[inline(always)]
unsafe fn move_bytes(mut from: *mut u8, mut to: *mut u8, mut len: usize) {
    // SAFETY: the caller's promise; every step stays within `len`.
    unsafe {
        while len >= 8 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
            from.cast::<u64>().write_unaligned(0);
            (from, to, len) = (from.add(8), to.add(8), len - 8);
        }
        if len & 4 != 0 {
            to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned());
            from.cast::<u32>().write_unaligned(0);
            (from, to) = (from.add(4), to.add(4));
        }
        if len & 2 != 0 {
            to.cast::<u16>().write_unaligned(from.cast::<u16>().read_unaligned());
            from.cast::<u16>().write_unaligned(0);
            (from, to) = (from.add(2), to.add(2));
        }
        if len & 1 != 0 {
            to.write(from.read());
            from.write(0);
        }
    }
}

/// Overwrites with zeros that the compiler may not leave out.
///
/// # Safety
/// The range can be written, or faults.
#[cold]
#[inline(never)]
unsafe fn wipe(at: *mut u8, len: usize) {
    let mut n = 0;
    while n < len {
        // SAFETY: the caller's promise.
        unsafe { at.add(n).write_volatile(0) };
        n += 1;
    }
}
