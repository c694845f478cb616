//! Reading and writing: `read`, `write`, their vector and positioned forms, `lseek`, `sendfile` and its
//! relatives, `truncate`, `fsync`.

use crate::mm::fallible::TryVec;
use crate::mm::user::iov::{IoVec, MAX_RW_COUNT, import_iovec};
use crate::mm::user::{self, UserPtr, UserSlice};
use crate::mm::{Sink, Source};
use crate::process::task::limits::{self, Resource};
use crate::process::timers::times::Way;
use crate::process::{self, signal};
use crate::sync::pace::interrupted;
use crate::syscall::caller::{file, not_negative, or_sigpipe, with_ctx, with_path};
use crate::vfs::namei::{self, LookupFlags};
use crate::vfs::notify::event;
use crate::vfs::{Fd, FileType, OpenFile, Whence, notify, ops};
use abi::fs::{AT_FDCWD, OpenFlags};
use abi::signal::{SigInfo, Signal, code};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A buffer that does not lie in user space is refused before anything is moved, whatever its length.
#[inline]
pub fn check_buffer(buf: u64, count: usize) -> Result<()> {
    if user::in_range(buf, count) { Ok(()) } else { Err(Errno::EFAULT) }
}

/// Counts for /proc/PID/io what a call has moved.
#[inline]
fn moved(way: Way, outcome: Result<usize>) -> Result<usize> {
    process::current().times.count_moved(way, *outcome.as_ref().unwrap_or(&0));
    outcome
}

/// As [`moved`], of a call that reads one file and writes another.
fn between(outcome: Result<usize>) -> Result<usize> {
    moved(Way::Write, moved(Way::Read, outcome))
}

pub fn read(fd: i32, buf: u64, count: usize) -> Result<usize> {
    let file = file(fd)?;
    if !file.readable() {
        return Err(Errno::EBADF);
    }
    check_buffer(buf, count)?;
    moved(Way::Read, file.read(&mut Sink::user(buf, count)))
}

pub fn write(fd: i32, buf: u64, count: usize) -> Result<usize> {
    let file = file(fd)?;
    if !file.writable() {
        return Err(Errno::EBADF);
    }
    check_buffer(buf, count)?;
    let count = limit_size(&file, None, count)?;
    or_sigpipe(&file, moved(Way::Write, file.write(&mut Source::user(buf, count))))
}

pub fn readv(fd: i32, iov: u64, count: usize) -> Result<usize> {
    let file = file(fd)?;
    if !file.readable() {
        return Err(Errno::EBADF);
    }
    let mut slices = IoVec::new();
    import_iovec(&mut slices, iov, count)?;
    read_buffers(&file, &slices, None)
}

pub fn writev(fd: i32, iov: u64, count: usize) -> Result<usize> {
    let file = file(fd)?;
    if !file.writable() {
        return Err(Errno::EBADF);
    }
    let mut slices = IoVec::new();
    import_iovec(&mut slices, iov, count)?;
    write_buffers(&file, &mut slices, None)
}

pub fn pread64(fd: i32, buf: u64, count: usize, pos: i64) -> Result<usize> {
    let pos = not_negative(pos)?;
    let file = file(fd)?;
    check_buffer(buf, count)?;
    moved(Way::Read, file.read_at(&mut Sink::user(buf, count), pos))
}

pub fn pwrite64(fd: i32, buf: u64, count: usize, pos: i64) -> Result<usize> {
    let pos = not_negative(pos)?;
    let file = file(fd)?;
    check_buffer(buf, count)?;
    let count = limit_size(&file, Some(pos), count)?;
    moved(Way::Write, file.write_at(&mut Source::user(buf, count), pos))
}

pub fn preadv(fd: i32, iov: u64, count: usize, pos: i64) -> Result<usize> {
    let pos = not_negative(pos)?;
    let file = file(fd)?;
    let mut slices = IoVec::new();
    import_iovec(&mut slices, iov, count)?;
    read_buffers(&file, &slices, Some(pos))
}

pub fn pwritev(fd: i32, iov: u64, count: usize, pos: i64) -> Result<usize> {
    let pos = not_negative(pos)?;
    let file = file(fd)?;
    let mut slices = IoVec::new();
    import_iovec(&mut slices, iov, count)?;
    write_buffers(&file, &mut slices, Some(pos))
}

/// A read into one buffer: at `pos`, or where the file stands.
#[inline]
pub fn read_buffer(file: &OpenFile, buffer: UserSlice, pos: Option<u64>) -> Result<usize> {
    read_into(file, Sink::user(buffer.addr, buffer.len), pos)
}

/// As [`read_buffer`], into several.
pub fn read_buffers(file: &OpenFile, slices: &[UserSlice], pos: Option<u64>) -> Result<usize> {
    read_into(file, Sink::iovec(slices), pos)
}

#[inline]
fn read_into(file: &OpenFile, mut sink: Sink<'_>, pos: Option<u64>) -> Result<usize> {
    let got = match pos {
        Some(pos) => file.read_at(&mut sink, pos),
        None => file.read(&mut sink),
    };
    moved(Way::Read, got)
}

/// A write from one buffer: at `pos`, or where the file stands.
#[inline]
pub fn write_buffer(file: &OpenFile, buffer: UserSlice, pos: Option<u64>) -> Result<usize> {
    let len = limit_size(file, pos, buffer.len)?;
    write_from(file, Source::user(buffer.addr, len), pos)
}

/// As [`write_buffer`], from several.
pub fn write_buffers(file: &OpenFile, slices: &mut IoVec, pos: Option<u64>) -> Result<usize> {
    shorten(file, pos, slices)?;
    write_from(file, Source::iovec(slices), pos)
}

#[inline]
fn write_from(file: &OpenFile, mut source: Source<'_>, pos: Option<u64>) -> Result<usize> {
    let written = match pos {
        Some(pos) => file.write_at(&mut source, pos),
        None => file.write(&mut source),
    };
    or_sigpipe(file, moved(Way::Write, written))
}

/// `RWF_HIPRI`, `RWF_DSYNC`, `RWF_SYNC`: nothing to do for files in memory.
const RWF_HARMLESS: u32 = 1 | 2 | 4;

/// Fail rather than wait; only for files that can tell.
const RWF_NOWAIT: u32 = 8;

fn check_rwf(fd: i32, flags: u32) -> Result<()> {
    if flags & !(RWF_HARMLESS | RWF_NOWAIT) != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if flags & RWF_NOWAIT != 0 && !file(fd)?.ops().never_waits() {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(())
}

/// The upper half of the position is in the fifth argument only on 32-bit machines.
pub fn preadv2(fd: i32, iov: u64, count: usize, pos: i64, _: u64, flags: u32) -> Result<usize> {
    check_rwf(fd, flags)?;
    if pos == -1 { readv(fd, iov, count) } else { preadv(fd, iov, count, pos) }
}

pub fn pwritev2(fd: i32, iov: u64, count: usize, pos: i64, _: u64, flags: u32) -> Result<usize> {
    check_rwf(fd, flags)?;
    if pos == -1 { writev(fd, iov, count) } else { pwritev(fd, iov, count, pos) }
}

pub fn lseek(fd: i32, offset: i64, whence: u32) -> Result<u64> {
    let file = file(fd)?;
    file.seek(offset, Whence::from_raw(whence)?)
}

/// How much of `count` bytes the file size limit and the largest length of a file allow: EFBIG when not even one, and SIGXFSZ
/// for the limit.
#[inline]
pub(super) fn limit_size(file: &OpenFile, pos: Option<u64>, count: usize) -> Result<usize> {
    if file.uses_position() { limit_size_of_file(file, pos, count) } else { Ok(count) }
}

fn limit_size_of_file(file: &OpenFile, pos: Option<u64>, count: usize) -> Result<usize> {
    if file.kind() != FileType::Regular {
        return Ok(count);
    }
    let limit = process::current().process().limits().soft(Resource::FileSize);
    if limit == limits::INFINITY && !file.flags().contains(OpenFlags::APPEND) {
        return Ok(count);
    }
    let pos = if file.flags().contains(OpenFlags::APPEND) {
        file.inode().size()
    } else {
        pos.unwrap_or_else(|| *file.pos().lock())
    };
    if count == 0 {
        return Ok(0);
    }
    if pos >= limit {
        return Err(too_big());
    }
    // Only appending can come here with a position so high.
    let left = limit.min(i64::MAX as u64).saturating_sub(pos);
    if left == 0 {
        return Err(Errno::EFBIG);
    }
    Ok(count.min(usize::try_from(left).unwrap_or(usize::MAX)))
}

/// Raises SIGXFSZ for the caller.
pub(super) fn too_big() -> Errno {
    let task = process::current_arc();
    // A signal that cannot be queued changes nothing about the error.
    let _ = signal::send_to_task(
        &task,
        Signal::SIGXFSZ,
        SigInfo::new(Signal::SIGXFSZ, code::SI_KERNEL),
    );
    Errno::EFBIG
}

fn shorten(file: &OpenFile, pos: Option<u64>, slices: &mut IoVec) -> Result<()> {
    let total = slices.iter().fold(0usize, |sum, slice| sum.saturating_add(slice.len));
    let mut left = limit_size(file, pos, total)?;
    if left < total {
        for slice in slices.iter_mut() {
            slice.len = slice.len.min(left);
            left -= slice.len;
        }
    }
    Ok(())
}

fn check_size_limit(size: u64) -> Result<()> {
    if is_within_limit(size) { Ok(()) } else { Err(too_big()) }
}

fn is_within_limit(size: u64) -> bool {
    size <= process::current().process().limits().soft(Resource::FileSize)
}

pub fn truncate(path: u64, len: i64) -> Result<()> {
    let len = not_negative(len)?;
    with_path(path, |path| {
        with_ctx(|ctx| {
            let place = namei::lookup(ctx, Fd(AT_FDCWD), path, LookupFlags::FOLLOW)?;
            if len > place.inode().size() && place.dentry.kind() == FileType::Regular {
                check_size_limit(len)?;
            }
            ops::truncate(&place, len, Some(ctx.cred))
        })
    })
}

pub fn ftruncate(fd: i32, len: i64) -> Result<()> {
    let len = not_negative(len)?;
    let file = file(fd)?;
    let is_too_long_for_mq_open =
        len > i32::MAX as u64 && !file.flags().contains(OpenFlags::LARGEFILE);
    if file.kind() != FileType::Regular || !file.writable() || is_too_long_for_mq_open {
        return Err(Errno::EINVAL);
    }
    if len > file.inode().size() {
        check_size_limit(len)?;
    }
    ops::truncate(file.path(), len, None)
}

pub fn fallocate(fd: i32, mode: u32, offset: i64, len: i64) -> Result<()> {
    allocate(fd, mode, offset, len, check_size_limit)
}

/// As [`fallocate`], of a ring: who asks too much gets the error, and no signal, as on Linux, where another thread does it.
pub fn fallocate_quietly(fd: i32, mode: u32, offset: i64, len: i64) -> Result<()> {
    let check = |size| if is_within_limit(size) { Ok(()) } else { Err(Errno::EFBIG) };
    allocate(fd, mode, offset, len, check)
}

fn allocate(
    fd: i32,
    mode: u32,
    offset: i64,
    len: i64,
    check_size: impl FnOnce(u64) -> Result<()>,
) -> Result<()> {
    const KEEP_SIZE: u32 = 1;
    const PUNCH_HOLE: u32 = 2;
    let file = file(fd)?;
    let (offset, len) = (not_negative(offset)?, not_negative(len)?);
    if len == 0 {
        return Err(Errno::EINVAL);
    }
    if mode & !0x7f != 0 || (mode & PUNCH_HOLE != 0 && mode & KEEP_SIZE == 0) {
        return Err(Errno::EOPNOTSUPP);
    }
    if !file.writable() {
        return Err(Errno::EBADF);
    }
    match file.kind() {
        FileType::Regular => {}
        FileType::Fifo => return Err(Errno::ESPIPE),
        FileType::Dir => return Err(Errno::EISDIR),
        _ => return Err(Errno::ENODEV),
    }
    let end = offset.checked_add(len).filter(|&end| end <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
    // As on Linux's tmpfs, even where the length stays.
    if mode & PUNCH_HOLE == 0 && end > file.inode().size() {
        check_size(end)?;
    }
    file.ops().fallocate(&file, mode, offset, len)?;
    notify::file(&file, event::MODIFY);
    Ok(())
}

pub fn fadvise64(fd: i32, _offset: i64, len: i64, advice: u32) -> Result<()> {
    let file = file(fd)?;
    if file.kind() == FileType::Fifo {
        return Err(Errno::ESPIPE);
    }
    // Everything is in memory: each advice is taken as given.
    if len < 0 || advice > 5 { Err(Errno::EINVAL) } else { Ok(()) }
}

pub fn readahead(fd: i32, _offset: i64, _count: usize) -> Result<()> {
    let file = file(fd)?;
    if !file.readable() {
        return Err(Errno::EBADF);
    }
    if file.kind() == FileType::Regular { Ok(()) } else { Err(Errno::EINVAL) }
}

pub fn fsync(fd: i32) -> Result<()> {
    let file = file(fd)?;
    file.ops().fsync(&file, false)
}

pub fn fdatasync(fd: i32) -> Result<()> {
    let file = file(fd)?;
    file.ops().fsync(&file, true)
}

/// Nothing is on a medium: there is nothing to wait for.
pub fn sync() {}

pub fn syncfs(fd: i32) -> Result<()> {
    file(fd).map(drop)
}

pub fn sync_file_range(fd: i32, offset: i64, len: i64, flags: u32) -> Result<()> {
    let file = file(fd)?;
    let end = not_negative(offset)?.checked_add(not_negative(len)?);
    if flags & !7 != 0 || end.is_none() {
        return Err(Errno::EINVAL);
    }
    match file.kind() {
        FileType::Regular | FileType::Dir | FileType::Symlink | FileType::Block => Ok(()),
        _ => Err(Errno::ESPIPE),
    }
}

/// Bytes that one step of a transfer between files moves.
const STEP: usize = 16 * 1024;

/// Copies up to `count` bytes from position `from` of `input` to `output` (at `to`, or at its own
/// position); the count, and an error only when nothing was copied.
pub(super) fn transfer(
    input: &Arc<OpenFile>,
    from: &mut u64,
    output: &Arc<OpenFile>,
    mut to: Option<&mut u64>,
    count: usize,
) -> Result<usize> {
    let mut buffer = Vec::with_room(STEP.min(count))?;
    buffer.try_resize(STEP.min(count), 0u8)?;
    let mut done = 0;
    while done < count {
        let step = buffer.len().min(count - done);
        let moved = (|| {
            let got = input.read_at_unnotified(&mut Sink::kernel(&mut buffer[..step]), *from)?;
            if got == 0 {
                return Ok(0);
            }
            let room = limit_size(output, to.as_deref().copied(), got)?;
            let mut source = Source::kernel(&buffer[..room]);
            match to.as_deref_mut() {
                Some(to) => {
                    let put = output.write_at_unnotified(&mut source, *to)?;
                    *to = to.saturating_add(put as u64);
                    Ok(put)
                }
                None => output.write_unnotified(&mut source),
            }
        })();
        match moved {
            Ok(0) => break,
            Ok(moved) => {
                *from = from.saturating_add(moved as u64);
                done += moved;
                if interrupted() {
                    break;
                }
            }
            Err(_) if done != 0 => break,
            Err(errno) => return or_sigpipe(output, Err(errno)),
        }
    }
    if done != 0 {
        notify::file(input, event::ACCESS);
        notify::file(output, event::MODIFY);
    }
    Ok(done)
}

pub fn sendfile(out_fd: i32, in_fd: i32, offset: UserPtr<i64>, count: usize) -> Result<usize> {
    let position = offset.non_null().map(UserPtr::read).transpose()?;
    let input = file(in_fd)?;
    if !input.readable() {
        return Err(Errno::EBADF);
    }
    if position.is_some() && !input.seekable() {
        return Err(Errno::ESPIPE);
    }
    let output = file(out_fd)?;
    if !output.writable() {
        return Err(Errno::EBADF);
    }
    if !super::passing::is_sent(&input) || output.flags().contains(OpenFlags::APPEND) {
        return Err(Errno::EINVAL);
    }
    if isize::try_from(count).is_err() {
        return Err(Errno::EINVAL);
    }
    let count = count.min(MAX_RW_COUNT);
    match position {
        Some(position) => {
            let mut from = not_negative(position)?;
            let done = between(transfer(&input, &mut from, &output, None, count))?;
            offset.write(&from.cast_signed())?;
            Ok(done)
        }
        None => {
            let mut from = *input.pos().lock();
            let done = between(transfer(&input, &mut from, &output, None, count))?;
            *input.pos().lock() = from;
            Ok(done)
        }
    }
}

pub fn copy_file_range(
    in_fd: i32,
    in_offset: UserPtr<i64>,
    out_fd: i32,
    out_offset: UserPtr<i64>,
    len: usize,
    flags: u32,
) -> Result<usize> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let (input, output) = (file(in_fd)?, file(out_fd)?);
    let start = |file: &OpenFile, at: UserPtr<i64>| match at.non_null() {
        Some(at) => not_negative(at.read()?),
        None => Ok(*file.pos().lock()),
    };
    let (mut from, mut to) = (start(&input, in_offset)?, start(&output, out_offset)?);
    super::passing::check_copied(&input, &output)?;
    let left = input.inode().size().saturating_sub(from);
    let len = len.min(MAX_RW_COUNT).min(usize::try_from(left).unwrap_or(usize::MAX));
    let overlaps = from < to.saturating_add(len as u64) && to < from.saturating_add(len as u64);
    if overlaps && Arc::ptr_eq(input.inode(), output.inode()) {
        return Err(Errno::EINVAL);
    }
    let len = limit_size(&output, Some(to), len)?;
    let done = between(transfer(&input, &mut from, &output, Some(&mut to), len))?;
    for (file, at, value) in [(&input, in_offset, from), (&output, out_offset, to)] {
        match at.non_null() {
            Some(at) => at.write(&value.cast_signed())?,
            None => *file.pos().lock() = value,
        }
    }
    Ok(done)
}
