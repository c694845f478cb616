//! Files without descriptors: those that were registered, and those that operations open, accept or make in a ring (direct descriptors).
//!
//! Owns nothing: the table is the ring's. Never keeps a ring in it, which could then hold itself. Locks: the table's mutex, below that of
//! any ring, so that a ring can put a file into another's; a file that leaves the table ends with the table unlocked.

use super::handed::table::Files;
use super::request::Direct;
use super::ring::{Ring, State, of_file};
use crate::mm::fallible::{TryGrow, TryVec};
use crate::mm::user::UserPtr;
use crate::sync::Pace;
use crate::syscall::caller::{fd_limit, file_to_keep};
use crate::vfs::OpenFile;
use abi::uring::{
    FilesUpdate, IndexRange, RSRC_SPARSE, ResourceUpdate, Resources, register as what,
};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Most files of a ring (IORING_MAX_FIXED_FILES).
const MOST_FILES: u32 = 1 << 20;

/// The registered file of that number.
pub fn registered_file(ring: &Ring, number: i32) -> Result<Arc<OpenFile>> {
    ring.files.lock().get(number).ok_or(Errno::EBADF)
}

/// A place that a file is to come to: nobody else who wants any place gets it. Given back when dropped.
#[must_use]
pub struct ReservedPlace<'a> {
    ring: &'a Ring,
    at: usize,
    told: i64,
}

impl<'a> ReservedPlace<'a> {
    /// Reserves a place, which exists as long as the ring's mutex is held: only its holder changes the table.
    pub fn new(ring: &'a Ring, place: Direct, _state: &State) -> Result<Self> {
        let mut files = ring.files.lock();
        let (at, told) = index(&files, place)?;
        check_index(&files, at)?;
        files.promise(Some(at));
        Ok(Self { ring, at, told })
    }

    /// Puts the file there: 0 for a place that was asked for, or the number of the one that was found.
    pub fn put(self, file: Arc<OpenFile>) -> Result<i64> {
        if of_file(&file).is_ok() {
            return Err(Errno::EBADF);
        }
        let old = self.ring.files.lock().put(self.at, file);
        drop(old);
        Ok(self.told)
    }
}

impl Drop for ReservedPlace<'_> {
    fn drop(&mut self) {
        self.ring.files.lock().promise(None);
    }
}

/// The index of a place, and what an operation says of it.
fn index(files: &Files, place: Direct) -> Result<(usize, i64)> {
    match place {
        Direct::Any => files.free_place().map(|at| (at, at as i64)),
        Direct::At(at) => Ok((at as usize, 0)),
    }
}

fn check_index(files: &Files, at: usize) -> Result<()> {
    files.check()?;
    if at >= files.len() { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Makes a file that was there before one of the ring's: 0 for the place that was asked for, or the number of the one that was found.
pub fn put_direct(ring: &Ring, place: Direct, file: Arc<OpenFile>) -> Result<i64> {
    let mut files = ring.files.lock();
    let (at, told) = index(&files, place)?;
    if of_file(&file).is_ok() {
        return Err(Errno::EBADF);
    }
    check_index(&files, at)?;
    let old = files.put(at, file);
    drop(files);
    drop(old);
    Ok(told)
}

/// IORING_OP_CLOSE of a direct descriptor.
pub fn close_direct(ring: &Ring, at: u32) -> Result<()> {
    let mut files = ring.files.lock();
    files.check()?;
    if at as usize >= files.len() {
        return Err(Errno::EINVAL);
    }
    let old = files.take(at as usize);
    drop(files);
    old.map(drop).ok_or(Errno::EBADF)
}

/// What of io_uring_register(2) is about files; its answer.
pub fn register_files(ring: &Ring, opcode: u32, arg: u64, count: u32) -> Result<u32> {
    match opcode {
        what::FILES => set_files(ring, Some(arg), count)?,
        what::UNREGISTER_FILES if arg != 0 || count != 0 => return Err(Errno::EINVAL),
        what::UNREGISTER_FILES => {
            let gone = core::mem::take(&mut *ring.files.lock());
            return if gone.is_empty() { Err(Errno::ENXIO) } else { Ok(0) };
        }
        what::FILES_UPDATE if count == 0 => return Err(Errno::EINVAL),
        what::FILES_UPDATE => {
            let FilesUpdate { offset, resv, fds } = UserPtr::new(arg).read()?;
            if resv != 0 {
                return Err(Errno::EINVAL);
            }
            return update(ring, (fds, 0), offset, count).map(|done| done as u32);
        }
        what::FILES2 => set_resources(ring, arg, count)?,
        what::FILES_UPDATE2 if count as usize != size_of::<ResourceUpdate>() => {
            return Err(Errno::EINVAL);
        }
        what::FILES_UPDATE2 => {
            let ResourceUpdate { offset, resv, data, tags, nr, resv2 } =
                UserPtr::new(arg).read()?;
            if nr == 0 || resv != 0 || resv2 != 0 {
                return Err(Errno::EINVAL);
            }
            return update(ring, (data, tags), offset, nr).map(|done| done as u32);
        }
        _ if arg == 0 || count != 0 => return Err(Errno::EINVAL),
        _ => set_alloc_range(ring, &UserPtr::new(arg).read()?)?,
    }
    Ok(0)
}

/// IORING_REGISTER_FILES2.
fn set_resources(ring: &Ring, arg: u64, size: u32) -> Result<()> {
    if size as usize != size_of::<Resources>() {
        return Err(Errno::EINVAL);
    }
    let Resources { nr, flags, resv2, data, tags } = UserPtr::new(arg).read()?;
    let is_sparse = flags & RSRC_SPARSE != 0;
    if nr == 0 || resv2 != 0 || flags & !RSRC_SPARSE != 0 || is_sparse && data != 0 {
        return Err(Errno::EINVAL);
    }
    if tags != 0 && ring.files.lock().is_empty() && nr <= MOST_FILES {
        check_tags(tags, nr)?;
    }
    set_files(ring, (data != 0).then_some(data), nr)
}

/// `EINVAL` for a tag: of no file that goes is anybody told.
fn check_tags(tags: u64, count: u32) -> Result<()> {
    for nth in (0..count).paced() {
        if UserPtr::<u64>::new(tags).index(u64::from(nth)).read()? != 0 {
            return Err(Errno::EINVAL);
        }
    }
    Ok(())
}

/// IORING_REGISTER_FILES; without a list all places are free.
fn set_files(ring: &Ring, list: Option<u64>, count: u32) -> Result<()> {
    if !ring.files.lock().is_empty() {
        return Err(Errno::EBUSY);
    }
    if count == 0 {
        return Err(Errno::EINVAL);
    }
    if count > MOST_FILES || count as usize > fd_limit() {
        return Err(Errno::EMFILE);
    }
    let mut places = Vec::with_room(count as usize)?;
    for nth in (0..count).paced() {
        places.try_push(match list {
            Some(list) => to_register(UserPtr::<i32>::new(list).index(u64::from(nth)).read()?)?,
            None => None,
        })?;
    }
    *ring.files.lock() = Files::new(places);
    Ok(())
}

/// IORING_REGISTER_FILE_ALLOC_RANGE.
fn set_alloc_range(ring: &Ring, asked: &IndexRange) -> Result<()> {
    let end = asked.off.checked_add(asked.len).ok_or(Errno::EOVERFLOW)?;
    let mut files = ring.files.lock();
    if asked.resv != 0 || end as usize > files.len() {
        return Err(Errno::EINVAL);
    }
    files.set_range(asked.off as usize..end as usize);
    Ok(())
}

/// The file to be registered; none for -1.
fn to_register(fd: i32) -> Result<Option<Arc<OpenFile>>> {
    if fd == -1 {
        return Ok(None);
    }
    let file = file_to_keep(fd)?;
    // A ring could hold itself.
    if of_file(&file).is_ok() { Err(Errno::EBADF) } else { Ok(Some(file)) }
}

/// IORING_OP_FILES_UPDATE, which may also find places itself, and then says which.
pub fn update_registered(ring: &Ring, fds: u64, offset: u64, count: u32) -> Result<i64> {
    match offset as u32 {
        u32::MAX => add_files(ring, fds, count),
        offset => update(ring, (fds, 0), offset, count),
    }
}

/// Puts files where others are, or takes them away: how many places it has gone through.
fn update(ring: &Ring, (fds, tags): (u64, u64), offset: u32, count: u32) -> Result<i64> {
    let end = offset.checked_add(count).ok_or(Errno::EOVERFLOW)?;
    {
        let files = ring.files.lock();
        files.check()?;
        if end as usize > files.len() {
            return Err(Errno::EINVAL);
        }
    }
    each(count, |nth| {
        if tags != 0 {
            check_tags(tags.wrapping_add(8 * u64::from(nth)), 1)?;
        }
        let fd = UserPtr::<i32>::new(fds).index(u64::from(nth)).read()?;
        update_file(ring, (offset + nth) as usize, fd)
    })
}

/// As on Linux, what was in the place is gone even if nothing can be put there.
fn update_file(ring: &Ring, at: usize, fd: i32) -> Result<()> {
    const SKIP: i32 = -2;
    if fd == SKIP {
        return Ok(());
    }
    let old = ring.files.lock().take(at);
    drop(old);
    if let Some(file) = to_register(fd)? {
        let old = ring.files.lock().put(at, file);
        drop(old);
    }
    Ok(())
}

/// Puts files where there is room, and writes the numbers over the descriptors.
fn add_files(ring: &Ring, fds: u64, count: u32) -> Result<i64> {
    ring.files.lock().check()?;
    each(count, |nth| {
        let place = UserPtr::<i32>::new(fds).index(u64::from(nth));
        let at = put_direct(ring, Direct::Any, file_to_keep(place.read()?)?)?;
        let told = place.write(&(at as i32));
        if told.is_err() {
            let gone = ring.files.lock().take(at as usize);
            drop(gone);
        }
        told
    })
}

/// How many went well; the error of the first if that went wrong.
fn each(count: u32, mut act: impl FnMut(u32) -> Result<()>) -> Result<i64> {
    for nth in (0..count).paced() {
        match act(nth) {
            Ok(()) => {}
            Err(error) if nth == 0 => return Err(error),
            Err(_) => return Ok(i64::from(nth)),
        }
    }
    Ok(i64::from(count))
}
