//! Registered files: by number, without descriptors.
//!
//! Owns nothing: the list is the ring's. Never keeps a ring in it, which could then hold itself. Locks: the ring's mutex is held by the
//! caller.

use super::ring::{State, of_file};
use crate::mm::fallible::{TryGrow, TryVec};
use crate::mm::user::UserPtr;
use crate::sync::Pace;
use crate::syscall::caller::{fd_limit, file};
use crate::vfs::OpenFile;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Most files of a ring (IORING_MAX_FIXED_FILES).
const MOST_FILES: u32 = 1 << 20;

/// The registered file of that number.
pub fn registered_file(state: &State, number: i32) -> Result<Arc<OpenFile>> {
    let at = usize::try_from(number).map_err(|_| Errno::EBADF)?;
    state.files.get(at).and_then(Clone::clone).ok_or(Errno::EBADF)
}

/// IORING_REGISTER_FILES.
pub fn set_files(state: &mut State, arg: u64, count: u32) -> Result<()> {
    if !state.files.is_empty() {
        return Err(Errno::EBUSY);
    }
    if count == 0 {
        return Err(Errno::EINVAL);
    }
    if count > MOST_FILES || count as usize > fd_limit() {
        return Err(Errno::EMFILE);
    }
    let mut files = Vec::with_room(count as usize)?;
    for nth in (0..count).paced() {
        let fd = UserPtr::<i32>::new(arg).index(u64::from(nth)).read()?;
        files.try_push(to_register(fd)?)?;
    }
    state.files = files;
    Ok(())
}

/// The file to be registered; none for -1.
fn to_register(fd: i32) -> Result<Option<Arc<OpenFile>>> {
    if fd == -1 {
        return Ok(None);
    }
    let file = file(fd)?;
    // A ring could hold itself.
    if of_file(&file).is_ok() { Err(Errno::EBADF) } else { Ok(Some(file)) }
}

/// Puts files where others are, or takes them away: how many places it has gone through.
pub fn update_registered(state: &mut State, fds: u64, offset: u64, count: u32) -> Result<i64> {
    let offset = offset as u32;
    let end = offset.checked_add(count).ok_or(Errno::EOVERFLOW)?;
    if state.files.is_empty() {
        return Err(Errno::ENXIO);
    }
    if end as usize > state.files.len() {
        return Err(Errno::EINVAL);
    }
    for nth in (0..count).paced() {
        let place = UserPtr::<i32>::new(fds).index(u64::from(nth));
        match place.read().and_then(|fd| update_file(state, (offset + nth) as usize, fd)) {
            Ok(()) => {}
            Err(error) if nth == 0 => return Err(error),
            Err(_) => return Ok(i64::from(nth)),
        }
    }
    Ok(i64::from(count))
}

/// As on Linux, what was in the place is gone even if nothing can be put there.
fn update_file(state: &mut State, at: usize, fd: i32) -> Result<()> {
    const SKIP: i32 = -2;
    if fd != SKIP {
        state.files[at] = None;
        state.files[at] = to_register(fd)?;
    }
    Ok(())
}
