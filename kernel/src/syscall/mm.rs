//! Memory mappings: mmap and its relatives, brk, madvise, mlock, membarrier.

use crate::base::PAGE_SIZE;
use crate::mm::fallible::TryVec;
use crate::mm::is_low;
use crate::mm::layout::page_up;
use crate::mm::space::request::{Advice, Backing, MapFixed, MapRequest, Prot, VmFlags};
use crate::mm::space::{self, Membarrier};
use crate::mm::user;
use crate::process;
use crate::process::task::limits::Resource;
use crate::process::task::rseq;
use crate::sync::Pace;
use crate::vfs::object::permit;
use crate::vfs::{Capability, Fd, MapRange, MapTarget, OpenFile};
use abi::mman::{madv, map, mcl, membarrier as mb, ms, prot as p};
use abi::process::personality::READ_IMPLIES_EXEC;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use x86_64::VirtAddr;

pub fn mmap(addr: u64, len: u64, prot: u32, flags: u32, fd: Fd, offset: u64) -> Result<u64> {
    if !offset.is_multiple_of(PAGE_SIZE as u64) {
        return Err(Errno::EINVAL);
    }
    let file =
        if flags & map::ANONYMOUS == 0 { Some(process::current().files().get(fd)?) } else { None };
    if len == 0 || (flags & map::HUGETLB != 0 && file.is_some()) {
        return Err(Errno::EINVAL);
    }
    let len = page_up(len).ok_or(Errno::ENOMEM)?;
    if flags & map::HUGETLB != 0 {
        // No huge pages are set aside.
        return Err(Errno::ENOMEM);
    }
    let mut request = placement(addr, len, prot, flags)?;
    request.shared = match (flags & map::TYPE, &file) {
        (map::SHARED, _) => true,
        (map::SHARED_VALIDATE, Some(_)) => {
            if flags & !map::LEGACY != 0 {
                return Err(Errno::EOPNOTSUPP);
            }
            true
        }
        (map::PRIVATE, _) => false,
        (map::DROPPABLE, None) => {
            if request.flags.intersects(VmFlags::LOCKED | VmFlags::GROWSDOWN) {
                return Err(Errno::EINVAL);
            }
            request.flags |=
                VmFlags::DROPPABLE | VmFlags::NORESERVE | VmFlags::WIPEONFORK | VmFlags::DONTDUMP;
            false
        }
        _ => return Err(Errno::EINVAL),
    };
    if request.flags.contains(VmFlags::LOCKED) {
        if lock_limit() == 0 {
            return Err(Errno::EPERM);
        }
        check_locked(&request)?;
    }
    let may_exec = file.as_deref().is_none_or(|file| !permit::is_noexec(file));
    if may_exec && implies_exec(request.prot) {
        request.prot |= Prot::EXEC;
    }
    if let Some(file) = file {
        request.backing = backing(&file, &request, offset)?;
        if file.ops().is_mapped_alone() {
            request.flags |= VmFlags::DONTFORK | VmFlags::DONTDUMP | VmFlags::WHOLE;
        }
    } else if request.shared && request.flags.contains(VmFlags::GROWSDOWN) {
        return Err(Errno::EINVAL);
    }
    let runs = request.prot.contains(Prot::EXEC);
    let at = process::current().mm().map(request)?.as_u64();
    if runs {
        process::perf::mapped(process::current(), at);
    }
    Ok(at)
}

/// Whether the thread's personality makes what is mapped with `prot` executable.
pub(super) fn implies_exec(prot: Prot) -> bool {
    // Relaxed: the thread's own setting.
    let setting = process::current().settings.personality.load(Ordering::Relaxed);
    prot.contains(Prot::READ) && setting & READ_IMPLIES_EXEC != 0
}

/// Whether the running task may map the first pages.
pub(super) fn may_map_low() -> bool {
    process::current().cred().capable(Capability::SYS_RAWIO)
}

/// The request as far as the flags alone tell.
fn placement(addr: u64, len: u64, prot: u32, flags: u32) -> Result<MapRequest> {
    let fixed = if flags & map::FIXED_NOREPLACE != 0 {
        MapFixed::NoReplace
    } else if flags & map::FIXED != 0 {
        MapFixed::Replace
    } else {
        MapFixed::No
    };
    if fixed != MapFixed::No && is_low(addr) && !may_map_low() {
        return Err(Errno::EPERM);
    }
    let wanted = [
        (map::GROWSDOWN, VmFlags::GROWSDOWN),
        (map::LOCKED, VmFlags::LOCKED),
        (map::BIT32, VmFlags::LOW),
        (map::NORESERVE, VmFlags::NORESERVE),
        // As on Linux: of a large page of a thread's stack most would stay unused.
        (map::STACK, VmFlags::NOHUGE),
    ];
    let vm_flags = wanted.iter().filter(|(bit, _)| flags & bit != 0).map(|&(_, flag)| flag);
    // An address that is not canonical cannot be had: as a hint it counts for nothing.
    let addr = match VirtAddr::try_new(addr) {
        Ok(addr) => Some(addr),
        Err(_) if fixed == MapFixed::No => None,
        Err(_) => return Err(Errno::ENOMEM),
    };
    Ok(MapRequest {
        addr,
        fixed,
        len,
        prot: Prot::from_bits_truncate(prot),
        shared: false,
        backing: Backing::ANON,
        flags: vm_flags.fold(VmFlags::empty(), |all, flag| all | flag),
        populate: flags & map::POPULATE != 0 && flags & map::NONBLOCK == 0,
    })
}

fn backing(file: &Arc<OpenFile>, request: &MapRequest, offset: u64) -> Result<Backing> {
    // For the order of errors; a file is asked again when the address space is locked.
    let may = permit::mapping(file, request.shared, request.prot)?;
    let range = MapRange {
        offset,
        len: request.len,
        shared: request.shared,
        writable: request.prot.contains(Prot::WRITE),
    };
    let target = file.ops().mmap_range(file, &range)?;
    if request.flags.contains(VmFlags::GROWSDOWN) {
        return Err(Errno::EINVAL);
    }
    Ok(match target {
        MapTarget::File(source) => {
            if file.ops().is_mapped_locked() {
                // As on Linux, what the mapping is refused for comes first.
                source.rights(request.shared, request.prot)?;
                check_locked(request)?;
            }
            Backing::File { source, offset }
        }
        MapTarget::Zero => Backing::Anon { may },
    })
}

/// How much the running process may lock.
pub fn lock_limit() -> u64 {
    let task = process::current();
    if task.cred().capable(Capability::IPC_LOCK) {
        return u64::MAX;
    }
    task.process().limits().soft(Resource::MemLock)
}

/// `EAGAIN` if the process may not lock so much more.
fn check_locked(request: &MapRequest) -> Result<()> {
    let locked = process::current().mm().usage().locked.saturating_mul(PAGE_SIZE as u64);
    let all = locked.saturating_add(request.len);
    if all > lock_limit() { Err(Errno::EAGAIN) } else { Ok(()) }
}

pub fn munmap(addr: u64, len: u64) -> Result<()> {
    process::current().mm().unmap(addr, len)
}

pub fn mprotect(addr: u64, len: u64, prot: u32) -> Result<()> {
    let grows = prot & (p::GROWSDOWN | p::GROWSUP);
    if grows == p::GROWSDOWN | p::GROWSUP || !addr.is_multiple_of(PAGE_SIZE as u64) {
        return Err(Errno::EINVAL);
    }
    if len == 0 {
        return Ok(());
    }
    let end = page_up(len).and_then(|len| addr.checked_add(len)).ok_or(Errno::ENOMEM)?;
    if prot & !(p::ACCESS | p::SEM | p::GROWSDOWN | p::GROWSUP) != 0 {
        return Err(Errno::EINVAL);
    }
    let mm = process::current().mm();
    let start = match grows {
        0 => addr,
        p::GROWSDOWN => mm.growing_start(addr).ok_or(Errno::EINVAL)?,
        // Nothing grows upwards.
        _ => return Err(Errno::EINVAL),
    };
    let prot = Prot::from_bits_truncate(prot);
    mm.protect_as(start, end - start, prot, implies_exec(prot))
}

pub fn brk(new: u64) -> u64 {
    process::current().mm().brk(new, implies_exec(Prot::READ))
}

pub fn mremap(old: u64, old_len: u64, new_len: u64, flags: u64, new: u64) -> Result<u64> {
    let flags = u32::try_from(flags).map_err(|_| Errno::EINVAL)?;
    process::current().mm().remap(old, old_len, new_len, (flags, new), may_map_low())
}

pub fn msync(addr: u64, len: u64, flags: u32) -> Result<()> {
    if flags & !(ms::ASYNC | ms::INVALIDATE | ms::SYNC) != 0
        || !addr.is_multiple_of(PAGE_SIZE as u64)
        || flags & (ms::ASYNC | ms::SYNC) == ms::ASYNC | ms::SYNC
    {
        return Err(Errno::EINVAL);
    }
    let has = |flag| flags & flag != 0;
    process::current().mm().msync(addr, len, has(ms::INVALIDATE), has(ms::SYNC))
}

pub fn mincore(addr: u64, len: u64, vec: u64) -> Result<()> {
    if !addr.is_multiple_of(PAGE_SIZE as u64) {
        return Err(Errno::EINVAL);
    }
    let len =
        page_up(len).filter(|&len| user::in_range(addr, len as usize)).ok_or(Errno::ENOMEM)?;
    let pages = (len / PAGE_SIZE as u64) as usize;
    if !user::in_range(vec, pages) {
        return Err(Errno::EFAULT);
    }
    let mut bytes = Vec::with_room(pages.min(PAGE_SIZE))?;
    bytes.try_resize(pages.min(PAGE_SIZE), 0)?;
    for done in (0..pages).step_by(PAGE_SIZE).killable() {
        let done = done?;
        let bytes = &mut bytes[..(pages - done).min(PAGE_SIZE)];
        process::current().mm().mincore(addr + (done * PAGE_SIZE) as u64, bytes)?;
        user::write_bytes(vec + done as u64, bytes)?;
    }
    Ok(())
}

pub fn madvise(addr: u64, len: u64, advice: i32) -> Result<()> {
    let advice = match advice {
        madv::NORMAL | madv::RANDOM | madv::SEQUENTIAL => Advice::Nothing,
        madv::HUGEPAGE => Advice::Huge,
        madv::NOHUGEPAGE => Advice::NoHuge,
        madv::COLLAPSE => Advice::Collapse,
        madv::COLD | madv::PAGEOUT => Advice::PageOut,
        madv::WILLNEED => Advice::WillNeed,
        madv::DONTNEED => Advice::DontNeed,
        madv::DONTNEED_LOCKED => Advice::DontNeedLocked,
        madv::FREE => Advice::Free,
        madv::REMOVE => Advice::Remove,
        madv::DONTFORK => Advice::DontFork,
        madv::DOFORK => Advice::DoFork,
        madv::WIPEONFORK => Advice::WipeOnFork,
        madv::KEEPONFORK => Advice::KeepOnFork,
        madv::DONTDUMP => Advice::DontDump,
        madv::DODUMP => Advice::DoDump,
        madv::POPULATE_READ => Advice::PopulateRead,
        madv::POPULATE_WRITE => Advice::PopulateWrite,
        _ => return Err(Errno::EINVAL),
    };
    process::current().mm().advise(addr, len, advice)
}

pub fn mlock(addr: u64, len: u64) -> Result<()> {
    lock(addr, len, false)
}

pub fn mlock2(addr: u64, len: u64, flags: u32) -> Result<()> {
    if flags & !mcl::MLOCK_ONFAULT != 0 {
        return Err(Errno::EINVAL);
    }
    lock(addr, len, flags != 0)
}

fn lock(addr: u64, len: u64, on_fault: bool) -> Result<()> {
    match lock_limit() {
        0 => Err(Errno::EPERM),
        limit => process::current().mm().mlock(addr, len, true, on_fault, limit),
    }
}

pub fn munlock(addr: u64, len: u64) -> Result<()> {
    process::current().mm().mlock(addr, len, false, true, u64::MAX)
}

pub fn mlockall(flags: u32) -> Result<()> {
    if flags == 0
        || flags == mcl::ONFAULT
        || flags & !(mcl::CURRENT | mcl::FUTURE | mcl::ONFAULT) != 0
    {
        return Err(Errno::EINVAL);
    }
    let limit = lock_limit();
    if limit == 0 {
        return Err(Errno::EPERM);
    }
    let has = |flag| flags & flag != 0;
    let mm = process::current().mm();
    mm.mlock_all(has(mcl::CURRENT), has(mcl::FUTURE), has(mcl::ONFAULT), limit)
}

pub fn munlockall() -> Result<()> {
    process::current().mm().mlock_all(false, false, true, u64::MAX)
}

pub fn membarrier(command: i32, flags: u32, cpu: i32) -> Result<i32> {
    let of_cpu = command == mb::PRIVATE_EXPEDITED_RSEQ && flags == mb::FLAG_CPU;
    if flags != 0 && !of_cpu {
        return Err(Errno::EINVAL);
    }
    let mm = process::current().mm();
    match command {
        mb::QUERY => {
            return Ok(mb::GLOBAL
                | mb::GLOBAL_EXPEDITED
                | mb::REGISTER_GLOBAL_EXPEDITED
                | mb::PRIVATE_EXPEDITED
                | mb::REGISTER_PRIVATE_EXPEDITED
                | mb::PRIVATE_EXPEDITED_SYNC_CORE
                | mb::REGISTER_PRIVATE_EXPEDITED_SYNC_CORE
                | mb::PRIVATE_EXPEDITED_RSEQ
                | mb::REGISTER_PRIVATE_EXPEDITED_RSEQ
                | mb::GET_REGISTRATIONS);
        }
        mb::GLOBAL | mb::GLOBAL_EXPEDITED => space::barrier_everywhere(),
        mb::REGISTER_GLOBAL_EXPEDITED => mm.register_membarrier(Membarrier::GLOBAL),
        mb::REGISTER_PRIVATE_EXPEDITED => mm.register_membarrier(Membarrier::EXPEDITED),
        mb::REGISTER_PRIVATE_EXPEDITED_SYNC_CORE => mm.register_membarrier(Membarrier::SYNC_CORE),
        mb::REGISTER_PRIVATE_EXPEDITED_RSEQ => mm.register_membarrier(Membarrier::RSEQ),
        mb::GET_REGISTRATIONS => return Ok(registrations(mm.membarrier_registrations())),
        mb::PRIVATE_EXPEDITED => mm.membarrier(Membarrier::EXPEDITED)?,
        mb::PRIVATE_EXPEDITED_SYNC_CORE => mm.membarrier(Membarrier::SYNC_CORE)?,
        mb::PRIVATE_EXPEDITED_RSEQ => {
            if !mm.membarrier_registrations().contains(Membarrier::RSEQ) {
                return Err(Errno::EPERM);
            }
            // A CPU that is not there runs nothing. All threads, where one CPU is meant, is more than is asked for.
            if !of_cpu || cpu >= 0 {
                rseq::abort_all(process::current().process());
                mm.membarrier(Membarrier::RSEQ)?;
            }
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// The registrations as the commands that made them.
fn registrations(of: Membarrier) -> i32 {
    let commands = [
        (Membarrier::GLOBAL, mb::REGISTER_GLOBAL_EXPEDITED),
        (Membarrier::EXPEDITED, mb::REGISTER_PRIVATE_EXPEDITED),
        (Membarrier::SYNC_CORE, mb::REGISTER_PRIVATE_EXPEDITED_SYNC_CORE),
        (Membarrier::RSEQ, mb::REGISTER_PRIVATE_EXPEDITED_RSEQ),
    ];
    commands.into_iter().filter(|(kind, _)| of.contains(*kind)).map(|(_, command)| command).sum()
}
