//! Calls of debuggers: `ptrace`, `process_vm_readv`, `process_vm_writev`.

use crate::base::PAGE_SIZE;
use crate::mm::fallible::{TryGrow, TryVec};
use crate::mm::user::UserPtr;
use crate::mm::user::iov::{IoVec, import_iovec};
use crate::mm::{AddressSpace, Sink, Source};
use crate::process;
use crate::sync::{Pace, killable};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

pub fn ptrace(request: i64, pid: i32, addr: u64, data: u64) -> Result<i64> {
    process::ptrace::request(request, pid, addr, data)
}

/// Most buffers in an array.
const MAX_BUFFERS: usize = 1024;

pub fn process_vm_readv(
    pid: i32,
    local: u64,
    local_count: usize,
    remote: u64,
    remote_count: usize,
    flags: u64,
) -> Result<usize> {
    let (space, buffers) = other_memory(pid, remote, remote_count, flags, local_count)?;
    let mut slices = IoVec::new();
    import_iovec(&mut slices, local, local_count)?;
    let mut to = Sink::iovec(&slices);
    transfer(&buffers, |addr, page| {
        let wanted = page.len().min(to.remaining());
        let got = space.read_as_mapped(addr, &mut page[..wanted]);
        if got == 0 && wanted > 0 {
            return Err(Errno::EFAULT);
        }
        to.put(&page[..got])
    })
}

pub fn process_vm_writev(
    pid: i32,
    local: u64,
    local_count: usize,
    remote: u64,
    remote_count: usize,
    flags: u64,
) -> Result<usize> {
    let (space, buffers) = other_memory(pid, remote, remote_count, flags, local_count)?;
    let mut slices = IoVec::new();
    import_iovec(&mut slices, local, local_count)?;
    let mut from = Source::iovec(&slices);
    transfer(&buffers, |addr, page| {
        let taken = from.take(page)?;
        // As it is mapped: a debugger that writes to what is read-only has PTRACE_POKEDATA.
        space.write_as_mapped(addr, &page[..taken])?;
        Ok(taken)
    })
}

/// The memory of another process, and the buffers in it that are meant: address and length.
fn other_memory(
    pid: i32,
    remote: u64,
    remote_count: usize,
    flags: u64,
    local_count: usize,
) -> Result<(Arc<AddressSpace>, Vec<[u64; 2]>)> {
    if flags != 0 || local_count > MAX_BUFFERS || remote_count > MAX_BUFFERS {
        return Err(Errno::EINVAL);
    }
    let mut buffers = Vec::new();
    for index in (0..remote_count).killable() {
        let buffer = UserPtr::<[u64; 2]>::new(remote).index(index? as u64).read()?;
        if buffer[1] > i64::MAX as u64 {
            return Err(Errno::EINVAL);
        }
        buffers.try_push(buffer)?;
    }
    let target = process::lookup_task(pid).ok_or(Errno::ESRCH)?;
    let _steady = process::may_attach(&target).ok_or(Errno::EPERM)?;
    Ok((target.mm_arc().ok_or(Errno::ESRCH)?, buffers))
}

/// Moves pieces of at most a page, none of which crosses a page of the other memory, until `copy` moves less than it was
/// asked for: how many bytes in all.
fn transfer(
    buffers: &[[u64; 2]],
    mut copy: impl FnMut(u64, &mut [u8]) -> Result<usize>,
) -> Result<usize> {
    let mut page = Vec::new();
    page.try_resize(PAGE_SIZE, 0)?;
    let mut done = 0;
    for &[start, len] in buffers {
        let mut at = 0;
        while at < len {
            killable()?;
            let addr = start.wrapping_add(at);
            let room = PAGE_SIZE as u64 - addr % PAGE_SIZE as u64;
            let piece = room.min(len - at) as usize;
            match copy(addr, &mut page[..piece]) {
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
                Ok(moved) => {
                    (at, done) = (at + moved as u64, done + moved);
                    if moved < piece {
                        return Ok(done);
                    }
                }
            }
        }
    }
    Ok(done)
}
