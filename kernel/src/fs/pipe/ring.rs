//! The pages of a pipe: a ring of buffers, each a part of one page.
//!
//! Owns the bytes between the two ends. Knows nothing of waiting; the pipe's mutex guards it. A write
//! of up to a page takes at most one slot and is all or nothing: it is atomic.

use crate::mm::{Frame, Sink, Source};
use crate::sync::pace::Pace;
use abi::{Errno, Result};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bytes in a page, and the length up to which a write is atomic.
pub const PAGE: usize = crate::base::PAGE_SIZE;

/// A run of bytes in one page.
struct Buffer {
    frame: Frame,
    start: usize,
    len: usize,
    /// A read takes at most this buffer and drops what it has no room for (`O_DIRECT`).
    packet: bool,
    /// Later writes may add bytes behind these: nobody else uses the rest of the page.
    open: bool,
    /// Another ring may hold a part of the same page: the bytes in it must not change.
    shared: bool,
}

/// The ring. When the last byte is read, its page stays in its slot, empty, for the next write (unless it is a packet or
/// shared): then, and only then, one slot in use holds no bytes.
pub struct Ring {
    slots: Box<[Option<Buffer>]>,
    /// The oldest buffer's slot.
    tail: usize,
    used: usize,
    /// An empty page kept for the next write.
    spare: Option<Frame>,
}

#[expect(clippy::disallowed_methods, reason = "there is room, and exactly that")]
fn empty_slots(count: usize) -> Result<Box<[Option<Buffer>]>> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(count).map_err(|_| Errno::ENOMEM)?;
    slots.resize_with(count, || None);
    Ok(slots.into_boxed_slice())
}

impl Ring {
    /// An empty ring; `slots` is a power of two.
    pub fn new(slots: usize) -> Result<Self> {
        debug_assert!(slots.is_power_of_two());
        Ok(Self { slots: empty_slots(slots)?, tail: 0, used: 0, spare: None })
    }

    /// Slots that hold bytes.
    #[inline]
    pub fn used(&self) -> usize {
        if self.is_empty() { 0 } else { self.used }
    }

    /// No bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self.used {
            0 => true,
            1 => self.slots[self.tail].as_ref().is_none_or(|buffer| buffer.len == 0),
            _ => false,
        }
    }

    /// Slots in all.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// No slot is free.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.used == self.slots.len() && !self.is_empty()
    }

    /// Bytes in all buffers.
    pub fn bytes(&self) -> usize {
        self.slots.iter().flatten().map(|buffer| buffer.len).sum()
    }

    #[inline]
    fn slot(&self, nth: usize) -> usize {
        self.tail.wrapping_add(nth) & (self.slots.len() - 1)
    }

    /// The usual small read: all that `dst` wants lies in the only buffer. What it moved, and the slots that hold bytes
    /// now; `None` if it is not so simple.
    #[inline(always)]
    pub fn read_simply(&mut self, dst: &mut Sink<'_>) -> Option<(Result<usize>, u32)> {
        if self.used != 1 || self.slots.len() == 1 {
            return None;
        }
        let buffer = self.slots.get_mut(self.tail)?.as_mut()?;
        let wanted = dst.remaining();
        if wanted > buffer.len || buffer.packet || buffer.shared {
            return None;
        }
        if dst.put_frame(&buffer.frame, buffer.start, wanted) != Ok(wanted) {
            return Some((Err(Errno::EFAULT), u32::from(buffer.len > 0)));
        }
        // Cannot wrap: `wanted <= len`, and `start + len` lies in the page.
        buffer.len = buffer.len.wrapping_sub(wanted);
        buffer.start = if buffer.len == 0 { 0 } else { buffer.start.wrapping_add(wanted) };
        buffer.open = true;
        Some((Ok(wanted), u32::from(buffer.len > 0)))
    }

    /// The usual small write: all of it fits behind the bytes of the only buffer. What it moved, and the slots that hold
    /// bytes now; `None` if it is not so simple.
    #[inline(always)]
    pub fn write_simply(&mut self, src: &mut Source<'_>) -> Option<(Result<usize>, u32)> {
        if self.used != 1 {
            return None;
        }
        let buffer = self.slots.get_mut(self.tail)?.as_mut()?;
        let wanted = src.remaining();
        let end = buffer.start.wrapping_add(buffer.len);
        if !buffer.open || wanted > PAGE.wrapping_sub(end) {
            return None;
        }
        if src.take_into_frame(&buffer.frame, end, wanted) != Ok(wanted) {
            return Some((Err(Errno::EFAULT), u32::from(buffer.len > 0)));
        }
        buffer.len = buffer.len.wrapping_add(wanted);
        Some((Ok(wanted), u32::from(buffer.len > 0)))
    }

    /// Moves bytes to `dst` until it is full or a packet ended. As on Linux a fault keeps the whole buffer
    /// it happened in, even if some of it was copied; EFAULT only if nothing was moved before.
    pub fn read(&mut self, dst: &mut Sink<'_>) -> Result<usize> {
        let mut done = 0;
        while let Some(buffer) = self.slots[self.tail].as_mut() {
            let wanted = buffer.len.min(dst.remaining());
            if wanted == 0 {
                break;
            }
            let put = dst.put_frame(&buffer.frame, buffer.start, wanted);
            if put != Ok(wanted) {
                return if done > 0 { Ok(done) } else { Err(put.err().unwrap_or(Errno::EFAULT)) };
            }
            done += wanted;
            buffer.start += wanted;
            buffer.len -= wanted;
            if buffer.packet {
                self.drop_oldest();
                break;
            }
            if buffer.len == 0 {
                if self.used == 1 && !buffer.shared {
                    buffer.start = 0;
                    buffer.open = true;
                    break;
                }
                self.drop_oldest();
            }
        }
        Ok(done)
    }

    /// Copies the first bytes, which stay; how many.
    pub fn peek(&self, into: &mut [u8]) -> Result<usize> {
        let mut sink = Sink::kernel(into);
        for nth in (0..self.used).paced() {
            let wanted = sink.remaining();
            let Some(buffer) = self.slots[self.slot(nth)].as_ref().filter(|_| wanted > 0) else {
                break;
            };
            sink.put_frame(&buffer.frame, buffer.start, buffer.len.min(wanted))?;
        }
        Ok(sink.done())
    }

    /// Drops the first `count` bytes.
    pub fn discard(&mut self, count: usize) {
        let mut left = count;
        while left > 0
            && let Some(buffer) = self.slots[self.tail].as_mut().filter(|buffer| buffer.len > 0)
        {
            let part = buffer.len.min(left);
            left -= part;
            buffer.start += part;
            buffer.len -= part;
            if buffer.len == 0 {
                self.drop_oldest();
            }
        }
    }

    /// Moves bytes from `src` until it is empty or the ring is full, and adds to `done` how many. True if
    /// the source is used up. As on Linux a page that could not be filled because of a fault is dropped.
    pub fn write(&mut self, src: &mut Source<'_>, packets: bool, done: &mut usize) -> Result<bool> {
        if !packets {
            self.extend_newest(src, done)?;
        }
        if self.used == 1 && self.is_empty() {
            self.drop_oldest();
        }
        while src.remaining() > 0 {
            if self.is_full() {
                return Ok(false);
            }
            let frame = match self.spare.take() {
                Some(frame) => frame,
                None => Frame::alloc()?,
            };
            let wanted = src.remaining().min(PAGE);
            let taken = src.take_into_frame(&frame, 0, wanted);
            if taken != Ok(wanted) {
                self.spare = Some(frame);
                return Err(taken.err().unwrap_or(Errno::EFAULT));
            }
            let (packet, open) = (packets, !packets);
            self.push(Buffer { frame, start: 0, len: wanted, packet, open, shared: false });
            *done += wanted;
        }
        Ok(true)
    }

    /// Puts those bytes of a write that fill no whole page behind the newest buffer, if they fit there.
    #[inline(always)]
    fn extend_newest(&mut self, src: &mut Source<'_>, done: &mut usize) -> Result<()> {
        let odd = src.remaining() % PAGE;
        if odd == 0 || self.used == 0 {
            return Ok(());
        }
        let newest = self.slot(self.used - 1);
        let Some(buffer) = self.slots[newest].as_mut() else { return Ok(()) };
        let end = buffer.start + buffer.len;
        if !buffer.open || end + odd > PAGE {
            return Ok(());
        }
        match src.take_into_frame(&buffer.frame, end, odd) {
            Ok(taken) if taken == odd => {
                buffer.len += odd;
                *done += odd;
                Ok(())
            }
            Ok(_) => Err(Errno::EFAULT),
            Err(error) => Err(error),
        }
    }

    fn push(&mut self, buffer: Buffer) {
        let at = self.slot(self.used);
        self.slots[at] = Some(buffer);
        self.used += 1;
    }

    #[inline(never)]
    fn drop_oldest(&mut self) {
        let tail = self.tail;
        if let Some(buffer) = self.slots[tail].take()
            && self.spare.is_none()
            && buffer.frame.refcount() == 1
        {
            self.spare = Some(buffer.frame);
        }
        self.tail = self.slot(1);
        self.used -= 1;
    }

    /// Changes the number of slots; EBUSY if they would not hold what is there.
    pub fn resize(&mut self, slots: usize) -> Result<()> {
        if slots < self.used {
            return Err(Errno::EBUSY);
        }
        let mut fresh = empty_slots(slots)?;
        for nth in 0..self.used {
            let from = self.slot(nth);
            fresh[nth] = self.slots[from].take();
        }
        self.slots = fresh;
        self.tail = 0;
        Ok(())
    }

    /// Appends up to `len` bytes of `from`, which stay there as well: the pages are shared. Returns the bytes
    /// added.
    pub fn tee(&mut self, from: &mut Ring, len: usize) -> usize {
        let mut done = 0;
        if self.used == 1 && self.is_empty() {
            self.drop_oldest();
        }
        for nth in 0..from.used {
            if done == len || self.is_full() {
                break;
            }
            let at = from.slot(nth);
            let Some(buffer) = from.slots[at].as_mut().filter(|b| b.len > 0) else { break };
            let part = buffer.len.min(len - done);
            buffer.shared = true;
            self.push(Buffer {
                frame: buffer.frame.clone(),
                start: buffer.start,
                len: part,
                packet: buffer.packet,
                open: false,
                shared: true,
            });
            done += part;
        }
        done
    }
}
