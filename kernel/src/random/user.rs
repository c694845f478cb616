//! How user space is served: getrandom(2) and the two devices, rule by rule as Linux.
//!
//! Owns the loops between the generator and user memory. Short requests pass through registers or a buffer on the stack
//! that is wiped before the call ends, and the key that made them is gone before user memory is touched. Long ones
//! are made where they belong, under a key of their own. No locks are held while user memory is touched.

use super::live::{RANDOM, ready_queue};
use super::stats::{self, Interface};
use super::{caller, early, generator};
use crate::mm::user::{UserPtr, fault_in, in_range, write_partial};
use crate::mm::{Sink, Source};
use crate::sync::PollTable;
use abi::fs::PollEvents;
use abi::{Errno, Result, Returned};
use alea_random::block::{BLOCK_LEN, GROUP_BLOCKS};
use alea_random::credit::{EntropyBits, State};
use alea_random::request::{
    Admission, Device, GetrandomFlags, Ioctl, Refusal, clamp_len, getrandom_admission,
    may_interrupt, serve,
};
use alea_random::reseed::Cause;
use zerocopy::IntoBytes;
use zeroize::Zeroize;

/// Up to here getrandom(2) takes its shortest way.
const SHORT: usize = 64;
/// The length that most callers ask for: a UUID, a hash seed, half a key.
const PAIR: usize = 16;
/// Up to here a request is one draw from the batch.
const SMALL: usize = alea_random::crng::BATCH_DRAW_MAX;
/// Up to here its buffer is tiny.
const TINY: usize = 32;
const FIRST_SMALL: usize = TINY + 1;
/// What the vector unit makes at once.
const GROUP: usize = GROUP_BLOCKS * BLOCK_LEN;

/// getrandom(2): the count.
#[inline]
pub fn getrandom(addr: u64, len: usize, flags: u64) -> Returned {
    // One comparison for the usual request. Linux, too, looks at the low half of the flags only.
    if (len ^ PAIR) as u64 | u64::from(flags as u32) != 0 {
        return getrandom_any(addr, len, flags);
    }
    if getrandom_pair(addr) { Ok(PAIR).into() } else { getrandom_next_pair(addr) }
}

/// One time in thirty a batch has come to its end.
#[inline(never)]
fn getrandom_next_pair(addr: u64) -> Returned {
    if RANDOM.top_up::<2>() && getrandom_pair(addr) {
        return Ok(PAIR).into();
    }
    getrandom_any(addr, PAIR, 0)
}

/// What most calls ask for: 16 bytes, through registers. Nothing has happened if it cannot give them. Which
/// generator is selected need not be asked: nothing fills a batch while a weak one is.
#[inline]
fn getrandom_pair(addr: u64) -> bool {
    let Some(pair) = RANDOM.ready::<2>() else { return false };
    let whole = UserPtr::new(addr).write(&pair).is_ok();
    if whole {
        stats::count_pair();
    }
    whole
}

#[inline(never)]
fn getrandom_any(addr: u64, len: usize, flags: u64) -> Returned {
    getrandom_rules(addr, len, flags).into()
}

fn getrandom_rules(addr: u64, len: usize, flags: u64) -> Result<usize> {
    let flags = GetrandomFlags::decode(flags).map_err(errno)?;
    let seeded = admit(|| getrandom_admission(RANDOM.state(), flags))?;
    let len = clamp_len(len);
    if !in_range(addr, len) {
        return Err(Errno::EFAULT);
    }
    if len <= SHORT && seeded && generator::is_chacha20() {
        return getrandom_short(addr, len);
    }
    transfer(&mut Sink::user(addr, len), seeded, Interface::Getrandom)
}

/// A few words, straight from the batch.
#[inline]
fn getrandom_short(addr: u64, len: usize) -> Result<usize> {
    let mut words = [0u64; SHORT / 8];
    let used = &mut words[..len.div_ceil(8)];
    RANDOM.fill_words(used.as_mut_bytes().as_chunks_mut().0).map_err(|_| Errno::EAGAIN)?;
    let done = write_partial(addr, &used.as_bytes()[..len]);
    used.zeroize();
    stats::count(Interface::Getrandom, done);
    if done == 0 && len > 0 { Err(Errno::EFAULT) } else { Ok(done) }
}

/// Reads from a device; `nonblock` is `O_NONBLOCK` or `RWF_NOWAIT`.
pub fn device_read(device: Device, dst: &mut Sink<'_>, nonblock: bool) -> Result<usize> {
    let seeded = admit(|| device.read_admission(RANDOM.state(), nonblock))?;
    let (name, interface) = match device {
        Device::Random => ("random", Interface::Random),
        Device::Urandom => ("urandom", Interface::Urandom),
    };
    if !seeded {
        early::warn(name, dst.remaining());
    }
    transfer(dst, seeded, interface)
}

/// Writes to either device: mixes, credits nothing.
pub fn device_write(src: &mut Source<'_>) -> Result<usize> {
    let mut buffer = [0u8; 256];
    let want = src.remaining();
    while src.done() < want {
        let moved = match src.take(&mut buffer) {
            Ok(0) => break,
            Ok(moved) => moved,
            Err(_) if src.done() > 0 => break,
            Err(errno) => return Err(errno),
        };
        stats::mixed(stats::Source::User, moved);
        RANDOM.mix(&buffer[..moved]);
        if moved < buffer.len() && src.done() < want {
            break;
        }
        if may_interrupt(src.done(), src.remaining()) && caller::pause() {
            break;
        }
    }
    buffer.zeroize();
    Ok(src.done())
}

/// What poll(2) reports; `table` gets the queue that may change it.
pub fn device_poll(device: Device, table: &mut PollTable) -> PollEvents {
    if device == Device::Random {
        table.watch(ready_queue());
    }
    let ready = device.poll(RANDOM.state());
    let mut events = PollEvents::empty();
    events.set(PollEvents::READABLE, ready.readable);
    events.set(PollEvents::WRITABLE, ready.writable);
    events
}

/// The RND* ioctls of both devices.
pub fn device_ioctl(command: u32, arg: u64) -> Result<i64> {
    match Ioctl::decode(command, caller::is_admin()).map_err(errno)? {
        Ioctl::GetEntropyCount => {
            UserPtr::<i32>::new(arg).write(&(RANDOM.credited().0 as i32))?;
        }
        Ioctl::AddToEntropyCount => {
            let count = UserPtr::<i32>::new(arg).read()?;
            credit(Ioctl::credit(count).map_err(errno)?);
        }
        Ioctl::AddEntropy => add_entropy(arg)?,
        Ioctl::ClearPool => {}
        Ioctl::Reseed => {
            Ioctl::reseed_admission(RANDOM.state()).map_err(errno)?;
            RANDOM.reseed(Cause::Request);
        }
    }
    Ok(0)
}

/// What the privileged ioctls say that something is worth which was mixed in.
fn credit(bits: EntropyBits) {
    stats::credited(stats::Source::User, bits);
    RANDOM.credit(bits);
}

/// `struct rand_pool_info`: a credit, a size and that many bytes, which all have to be there.
fn add_entropy(arg: u64) -> Result<()> {
    let [count, size] = UserPtr::<[i32; 2]>::new(arg).read()?;
    let bits = Ioctl::credit(count).map_err(errno)?;
    let len = usize::try_from(size).map_err(|_| Errno::EFAULT)?;
    let data = arg.checked_add(8).ok_or(Errno::EFAULT)?;
    if !in_range(data, len) {
        return Err(Errno::EFAULT);
    }
    if device_write(&mut Source::user(data, len))? < len {
        return Err(Errno::EFAULT);
    }
    credit(bits);
    Ok(())
}

/// Asks until the request may go ahead, waiting where that is the answer; whether it is seeded.
#[inline]
fn admit(mut ask: impl FnMut() -> Result<Admission, Refusal>) -> Result<bool> {
    match ask().map_err(errno)? {
        Admission::Serve => Ok(true),
        Admission::ServeUnseeded => Ok(false),
        Admission::Wait => {
            let ready = || (RANDOM.state() == State::Ready).then_some(());
            ready_queue().wait_interruptible(ready)?;
            Ok(true)
        }
    }
}

/// Moves as many random bytes as `dst` takes.
#[inline]
fn transfer(dst: &mut Sink<'_>, seeded: bool, interface: Interface) -> Result<usize> {
    let want = dst.remaining();
    let result = match want {
        0 => Ok(0),
        _ if !seeded => transfer_unseeded(dst),
        1..=TINY => transfer_small::<{ TINY / 8 }>(dst),
        FIRST_SMALL..=SMALL => transfer_small::<{ SMALL / 8 }>(dst),
        _ => transfer_bulk(dst),
    };
    stats::count(interface, dst.done());
    result
}

#[inline]
fn transfer_small<const WORDS: usize>(dst: &mut Sink<'_>) -> Result<usize> {
    let mut words = [0u64; WORDS];
    let bytes = &mut words.as_mut_bytes()[..dst.remaining()];
    let result = match generator::fill(bytes) {
        Ok(()) => dst.put(bytes),
        Err(_) => Err(Errno::EAGAIN),
    };
    words.zeroize();
    result
}

#[cold]
fn transfer_bulk(dst: &mut Sink<'_>) -> Result<usize> {
    let mut bulk = generator::Bulk::vacant();
    bulk.start().map_err(|_| Errno::EAGAIN)?;
    let want = dst.remaining();
    let transfer = |_, piece: usize| {
        let groups = piece / GROUP;
        let whole = groups * GROUP;
        let made = dst.put_in_place(whole, |addr| {
            fault_in(addr, whole) && bulk.fill_user(addr, groups) == Ok(true)
        });
        let done = if made { whole } else { 0 };
        done + put_copied(&mut bulk, dst, piece - done)
    };
    serve(want, transfer, caller::pause).map_err(errno)
}

/// The next `len` bytes through a buffer: what is less than a group, several buffers, and what is not there to be
/// written or went away. How many were put.
fn put_copied(bulk: &mut generator::Bulk, dst: &mut Sink<'_>, len: usize) -> usize {
    if len == 0 {
        return 0;
    }
    let mut group = [[0; BLOCK_LEN]; GROUP_BLOCKS];
    let mut done = 0;
    while done < len {
        let part = (len - done).min(GROUP);
        let moved = match bulk.fill(&mut group) {
            Ok(()) => dst.put(&group.as_flattened()[..part]).unwrap_or(0),
            Err(_) => 0,
        };
        done += moved;
        if moved < part {
            break;
        }
    }
    group.zeroize();
    done
}

/// For requests that accept predictable bytes, before the service is ready.
#[cold]
fn transfer_unseeded(dst: &mut Sink<'_>) -> Result<usize> {
    let want = dst.remaining();
    let put = |_, piece| RANDOM.unseeded_to(piece, |bytes| dst.put(bytes).unwrap_or(0));
    serve(want, put, caller::pause).map_err(errno)
}

/// The one place where a refusal becomes an errno.
fn errno(refusal: Refusal) -> Errno {
    match refusal {
        Refusal::InvalidArgument => Errno::EINVAL,
        Refusal::WouldBlock => Errno::EAGAIN,
        Refusal::Fault => Errno::EFAULT,
        Refusal::NotPermitted => Errno::EPERM,
        Refusal::NoData => Errno::ENODATA,
    }
}
