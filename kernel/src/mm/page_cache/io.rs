//! read(2) and write(2) on a page cache.

use super::page_cache::PageCache;
use crate::base::PAGE_SIZE;
use crate::mm::frames::frame::Frame;
use crate::mm::frames::{self, For};
use crate::mm::layout::PAGE_SHIFT;
use crate::mm::user::iov::{Sink, Source};
use crate::sync::killable;
use abi::{Errno, Result};
use alea_frames::Owner;
use core::sync::atomic::Ordering;

/// The page that byte `off` lies in, where in it, and how many of `len` bytes follow in it.
fn place(off: u64, len: usize) -> (u64, usize, usize) {
    let within = (off % PAGE_SIZE as u64) as usize;
    (off >> PAGE_SHIFT, within, len.min(PAGE_SIZE - within))
}

impl PageCache {
    /// Reads from byte `off` up to the file's end or the sink's; holes read as zeros. The bytes moved; `EFAULT`
    /// only if there were none.
    pub fn read(&self, off: u64, dst: &mut Sink<'_>) -> Result<usize> {
        let mut done = 0usize;
        loop {
            let at = off.saturating_add(done as u64);
            let left = self.size().saturating_sub(at);
            let want = dst.remaining().min(usize::try_from(left).unwrap_or(usize::MAX));
            if want == 0 {
                return Ok(done);
            }
            if killable().is_err() {
                return if done > 0 { Ok(done) } else { Err(Errno::EINTR) };
            }
            let (index, within, len) = place(at, want);
            let moved = match self.get(index) {
                Some(frame) => dst.put_frame(&frame, within, len),
                None => dst.put_zeros(len),
            };
            match moved {
                Ok(moved) => {
                    done += moved;
                    if moved < len {
                        return Ok(done);
                    }
                }
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes at byte `off`, growing the file. The bytes moved; an error only if there were none.
    pub fn write(&self, off: u64, src: &mut Source<'_>) -> Result<usize> {
        let mut done = 0usize;
        while src.remaining() > 0 {
            let at = match off.checked_add(done as u64).filter(|&at| at < i64::MAX as u64) {
                Some(at) => at,
                None if done > 0 => return Ok(done),
                None => return Err(Errno::EFBIG),
            };
            let (index, within, len) = place(at, src.remaining());
            let written = match killable() {
                Ok(()) => self.write_page(index, within, len, src),
                Err(killed) => Err(killed.into()),
            };
            match written {
                Ok(moved) => {
                    done += moved;
                    self.grow_to(at + moved as u64);
                    if moved < len {
                        return Ok(done);
                    }
                }
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_page(
        &self,
        index: u64,
        within: usize,
        len: usize,
        src: &mut Source<'_>,
    ) -> Result<usize> {
        if let Some(frame) = self.get(index) {
            return src.take_into_frame(&frame, within, len);
        }
        // A new page: only what the bytes do not cover is zeroed.
        let new = frames::alloc(Owner::PageCache, For::User).ok_or(Errno::ENOMEM)?;
        let new = Frame::from_raw(new);
        new.zero(0, within);
        let moved = src.take_into_frame(&new, within, len)?;
        new.zero(within + moved, PAGE_SIZE - within - moved);
        let there = self.insert_absent(index, new.clone())?;
        if there.phys() != new.phys() {
            there.copy_part(within, &new, within, moved);
        }
        Ok(moved)
    }

    fn grow_to(&self, len: u64) {
        if len > self.size() {
            let _tree = self.tree.lock();
            if len > self.size() {
                self.size.store(len, Ordering::Relaxed);
            }
        }
    }
}
