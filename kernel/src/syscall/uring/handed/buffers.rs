//! Buffers that a program hands to a ring before it knows what for: groups from which a request takes one when its bytes are there,
//! and registered buffers, by number.
//!
//! A group is a list that `PROVIDE_BUFFERS` fills, or a ring in user memory. Only addresses are kept, no page; whoever moves bytes
//! checks them as if an entry had named them. Owns the lists, at most [`MOST_PROVIDED`] buffers a ring. Locks: the ring's mutex is held by the caller.

use crate::base::PAGE_SIZE;
use crate::mm::fallible::{TryGrow, TryMap, TryVec};
use crate::mm::user::{self, UserPtr, UserSlice};
use crate::sync::Pace;
use crate::syscall::mm::lock_limit;
use abi::uring::{BufferReg, ProvidedBuffer, Sqe};
use abi::{Errno, Result};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// Most buffers in lists; numbers of a group end here, too.
const MOST_PROVIDED: usize = 1 << 16;
/// Most registered buffers (IORING_MAX_REG_BUFFERS), and the most bytes of each.
const MOST_REGISTERED: u32 = 1 << 14;
const LONGEST: usize = 1 << 30;
/// Where a ring in user memory says how many it has: in place of what the first buffer leaves unused.
const TAIL: u64 = 14;

enum Group {
    Listed(VecDeque<ProvidedBuffer>),
    Ring { at: u64, entries: u16, head: u16 },
}

/// The buffers of one ring.
#[derive(Default)]
pub struct Buffers {
    groups: BTreeMap<u16, Group>,
    listed: usize,
    registered: Vec<UserSlice>,
}

impl Buffers {
    /// The buffer that is taken next: `ENOBUFS` without any, for one at 0, and in a ring for another process, which has something
    /// else there.
    pub fn first(&self, is_mine: bool, group: u16) -> Result<ProvidedBuffer> {
        let buffer = self.next(is_mine, group)?;
        if buffer.addr == 0 { Err(Errno::ENOBUFS) } else { Ok(buffer) }
    }

    fn next(&self, is_mine: bool, group: u16) -> Result<ProvidedBuffer> {
        match self.groups.get(&group) {
            Some(Group::Listed(list)) => list.front().copied().ok_or(Errno::ENOBUFS),
            Some(Group::Ring { .. }) if !is_mine => Err(Errno::ENOBUFS),
            Some(&Group::Ring { at, entries, head }) => {
                let tail = UserPtr::<u16>::new(at + TAIL).read().map_err(|_| Errno::ENOBUFS)?;
                if tail == head {
                    return Err(Errno::ENOBUFS);
                }
                let place =
                    UserPtr::<ProvidedBuffer>::new(at).index(u64::from(head & (entries - 1)));
                place.read().map_err(|_| Errno::ENOBUFS)
            }
            None => Err(Errno::ENOBUFS),
        }
    }

    /// Takes what [`first`](Self::first) told of.
    pub fn take_first(&mut self, group: u16) {
        match self.groups.get_mut(&group) {
            Some(Group::Listed(list)) => {
                self.listed -= usize::from(list.pop_front().is_some());
            }
            Some(Group::Ring { head, .. }) => *head = head.wrapping_add(1),
            None => {}
        }
    }

    /// IORING_OP_PROVIDE_BUFFERS, checked by [`check_provide`].
    pub fn provide(&mut self, sqe: &Sqe) -> Result<()> {
        let count = sqe.fd.unsigned_abs() as usize;
        if self.listed + count > MOST_PROVIDED || crate::mm::kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        if !self.groups.contains_key(&sqe.buf_index) {
            self.groups.try_put(sqe.buf_index, Group::Listed(VecDeque::new()))?;
        }
        let Some(Group::Listed(list)) = self.groups.get_mut(&sqe.buf_index) else {
            return Err(Errno::EINVAL);
        };
        for nth in (0..count as u64).paced() {
            let (addr, id) = (sqe.addr + nth * u64::from(sqe.len), (sqe.off + nth) as u16);
            list.try_push(ProvidedBuffer { addr, len: sqe.len, id, resv: 0 })?;
            self.listed += 1;
        }
        Ok(())
    }

    /// IORING_OP_REMOVE_BUFFERS: how many there were, of so many.
    pub fn remove(&mut self, group: u16, most: usize) -> Result<i64> {
        match self.groups.get_mut(&group) {
            Some(Group::Listed(list)) => {
                let count = list.len().min(most);
                list.drain(..count);
                self.listed -= count;
                Ok(count as i64)
            }
            Some(Group::Ring { .. }) => Err(Errno::EINVAL),
            None => Err(Errno::ENOENT),
        }
    }

    /// Makes a ring in user memory a group. Who lets the kernel make the memory (`IOU_PBUF_RING_MMAP`) is refused.
    pub fn add_ring(&mut self, reg: &BufferReg) -> Result<()> {
        if reg.resv != [0; 3] || reg.flags != 0 {
            return Err(Errno::EINVAL);
        }
        if reg.ring_addr == 0 {
            return Err(Errno::EFAULT);
        }
        let entries = u16::try_from(reg.ring_entries).map_err(|_| Errno::EINVAL)?;
        let len = usize::from(entries) * size_of::<ProvidedBuffer>();
        if !reg.ring_addr.is_multiple_of(PAGE_SIZE as u64) || !entries.is_power_of_two() {
            return Err(Errno::EINVAL);
        }
        match self.groups.get(&reg.bgid) {
            Some(Group::Listed(list)) if list.is_empty() => {}
            Some(_) => return Err(Errno::EEXIST),
            None => {}
        }
        if !user::in_range(reg.ring_addr, len) {
            return Err(Errno::EFAULT);
        }
        // Memory that is not there fails now.
        UserPtr::<u16>::new(reg.ring_addr + TAIL).read()?;
        let ring = Group::Ring { at: reg.ring_addr, entries, head: 0 };
        self.groups.try_put(reg.bgid, ring)?;
        Ok(())
    }

    pub fn remove_ring(&mut self, reg: &BufferReg) -> Result<()> {
        if reg.resv != [0; 3] || reg.flags != 0 {
            return Err(Errno::EINVAL);
        }
        self.ring_head(reg.bgid)?;
        self.groups.remove(&reg.bgid);
        Ok(())
    }

    /// How many buffers were taken from a ring.
    pub fn ring_head(&self, group: u16) -> Result<u16> {
        match self.groups.get(&group) {
            Some(&Group::Ring { head, .. }) => Ok(head),
            Some(_) => Err(Errno::EINVAL),
            None => Err(Errno::ENOENT),
        }
    }

    /// IORING_REGISTER_BUFFERS.
    pub fn register(&mut self, arg: u64, count: u32) -> Result<()> {
        if arg == 0 {
            return Err(Errno::EFAULT);
        }
        if !self.registered.is_empty() {
            return Err(Errno::EBUSY);
        }
        if count == 0 || count > MOST_REGISTERED {
            return Err(Errno::EINVAL);
        }
        let mut buffers = Vec::with_room(count as usize)?;
        let mut pages = 0;
        for nth in (0..count).paced() {
            let buffer = UserPtr::<UserSlice>::new(arg).index(u64::from(nth)).read()?;
            if buffer.addr != 0 || buffer.len != 0 {
                pages += populate(&buffer)?;
                if pages.saturating_mul(PAGE_SIZE as u64) > lock_limit() {
                    return Err(Errno::ENOMEM);
                }
            }
            buffers.try_push(buffer)?;
        }
        self.registered = buffers;
        Ok(())
    }

    pub fn unregister(&mut self) -> Result<()> {
        match core::mem::take(&mut self.registered) {
            buffers if buffers.is_empty() => Err(Errno::ENXIO),
            _ => Ok(()),
        }
    }

    /// `EFAULT` if there is no such registered buffer.
    pub fn check_registered(&self, index: u16) -> Result<UserSlice> {
        self.registered.get(usize::from(index)).copied().ok_or(Errno::EFAULT)
    }

    /// `EFAULT` unless what the entry names lies in its registered buffer, and for another process, which has something else there.
    pub fn check_fixed(&self, is_mine: bool, sqe: &Sqe) -> Result<()> {
        let buffer = self.check_registered(sqe.buf_index)?;
        let end = sqe.addr.checked_add(u64::from(sqe.len)).ok_or(Errno::EFAULT)?;
        let is_inside = buffer.addr <= sqe.addr && end <= buffer.addr + buffer.len as u64;
        if is_inside && is_mine { Ok(()) } else { Err(Errno::EFAULT) }
    }
}

/// Brings the pages in, which must be there to be written: how many, `EFAULT` also for a length that no buffer has.
fn populate(buffer: &UserSlice) -> Result<u64> {
    const POPULATE_WRITE: i32 = 23;
    let fits = buffer.addr != 0 && (1..=LONGEST).contains(&buffer.len);
    if !fits || !user::in_range(buffer.addr, buffer.len) {
        return Err(Errno::EFAULT);
    }
    let start = buffer.addr - buffer.addr % PAGE_SIZE as u64;
    let end = (buffer.addr + buffer.len as u64).next_multiple_of(PAGE_SIZE as u64);
    let done = crate::syscall::mm::madvise(start, end - start, POPULATE_WRITE);
    done.map_err(|error| if error == Errno::EINTR { error } else { Errno::EFAULT })?;
    Ok((end - start) / PAGE_SIZE as u64)
}

/// Why buffers cannot be provided, in Linux's order.
pub fn check_provide(sqe: &Sqe) -> Result<()> {
    if sqe.op_flags != 0 || sqe.file_index != 0 {
        return Err(Errno::EINVAL);
    }
    let count = u64::from(sqe.fd.cast_unsigned());
    if count == 0 || count > MOST_PROVIDED as u64 {
        return Err(Errno::E2BIG);
    }
    let len = count.checked_mul(u64::from(sqe.len)).ok_or(Errno::EOVERFLOW)?;
    sqe.addr.checked_add(len).ok_or(Errno::EOVERFLOW)?;
    if !user::in_range(sqe.addr, len as usize) {
        return Err(Errno::EFAULT);
    }
    if sqe.off >= MOST_PROVIDED as u64 {
        return Err(Errno::E2BIG);
    }
    if sqe.off + count > MOST_PROVIDED as u64 { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Why they cannot be removed.
pub fn check_remove(sqe: &Sqe) -> Result<()> {
    let is_clear =
        sqe.op_flags == 0 && sqe.addr == 0 && sqe.len == 0 && sqe.off == 0 && sqe.file_index == 0;
    if !is_clear || !(1..=MOST_PROVIDED as i32).contains(&sqe.fd) {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// Does what registers or gives back a ring of buffers, or tells of one.
pub fn register_ring(buffers: &mut Buffers, opcode: u32, arg: u64, count: u32) -> Result<()> {
    use abi::uring::{BufferStatus, register as what};
    if arg == 0 || count != 1 {
        return Err(Errno::EINVAL);
    }
    match opcode {
        what::PBUF_RING => buffers.add_ring(&UserPtr::new(arg).read()?),
        what::UNREGISTER_PBUF_RING => buffers.remove_ring(&UserPtr::new(arg).read()?),
        _ => {
            let place = UserPtr::<BufferStatus>::new(arg);
            let mut status = place.read()?;
            if status.resv != [0; 8] {
                return Err(Errno::EINVAL);
            }
            let group = u16::try_from(status.buf_group).map_err(|_| Errno::ENOENT)?;
            status.head = u32::from(buffers.ring_head(group)?);
            place.write(&status)
        }
    }
}
