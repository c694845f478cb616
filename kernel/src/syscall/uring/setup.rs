//! io_uring_setup(2), and who may call it.
//!
//! The checks stand in Linux's order. Owns the settings below /proc/sys. Never takes a flag that is not obeyed. Locks: none.

use super::later;
use super::memory::Shared;
use super::ring::{Ring, RingFile, of_file};
use crate::base::percpu::cpus_online;
use crate::fs::procfs::register_setting;
use crate::mm::fallible::try_arc;
use crate::mm::user::UserPtr;
use crate::process;
use crate::process::task::later::register_later;
use crate::syscall::caller::file;
use crate::syscall::file::install::install;
use crate::vfs::Capability;
use crate::vfs::anon::anonymous;
use abi::fs::OpenFlags;
use abi::uring::{Params, feature, setup as flag, sq_flag};
use abi::{Errno, Result};

/// Most entries of a submission ring; completions may be twice as many.
const MOST: u32 = 32768;

/// The flags that are taken.
const TAKEN: u32 = flag::IOPOLL
    | flag::SQPOLL
    | flag::SQ_AFF
    | flag::ATTACH_WQ
    | flag::CQSIZE
    | flag::CLAMP
    | flag::R_DISABLED
    | flag::SUBMIT_ALL
    | flag::COOP_TASKRUN
    | flag::TASKRUN_FLAG
    | flag::SINGLE_ISSUER
    | flag::DEFER_TASKRUN
    | flag::NO_SQARRAY;

const FEATURES: u32 = feature::SINGLE_MMAP
    | feature::NODROP
    | feature::SUBMIT_STABLE
    | feature::RW_CUR_POS
    | feature::CUR_PERSONALITY
    | feature::FAST_POLL
    | feature::POLL_32BITS
    | feature::SQPOLL_NONFIXED
    | feature::EXT_ARG
    | feature::CQE_SKIP
    | feature::LINKED_FILE
    | feature::REG_REG_RING;

crate::setting! {
    /// `kernel.io_uring_disabled`: with 1 only for a group and for the capable, with 2 for nobody.
    pub static DISABLED = 0, 0..=2;
    /// `kernel.io_uring_group`: the group that may make rings when others may not; -1 for none.
    pub static GROUP = -1, i32::MIN..=i32::MAX;
}

/// Makes the files, and lets threads go on with their requests; once, at boot.
pub fn register() -> Result<()> {
    register_later(later::go_on);
    register_setting("kernel/io_uring_disabled", &DISABLED)?;
    register_setting("kernel/io_uring_group", &GROUP)
}

fn may_make() -> bool {
    let cred = process::current().cred_arc();
    let group = GROUP.get();
    match DISABLED.get() {
        0 => true,
        1 if cred.capable(Capability::SYS_ADMIN) => true,
        1 => group != -1 && cred.in_egroup(group.cast_unsigned()),
        _ => false,
    }
}

/// The sizes of both rings: EINVAL for none, or for too many without `CLAMP`.
fn sizes(entries: u32, params: &Params) -> Result<(u32, u32)> {
    let clamps = params.flags & flag::CLAMP != 0;
    let size = |wanted: u32, most: u32| match wanted {
        0 => Err(Errno::EINVAL),
        wanted if wanted > most && !clamps => Err(Errno::EINVAL),
        wanted => Ok(wanted.min(most).next_power_of_two()),
    };
    let sq = size(entries, MOST)?;
    if params.flags & flag::CQSIZE == 0 {
        return Ok((sq, 2 * sq));
    }
    let cq = size(params.cq_entries, 2 * MOST)?;
    if cq < sq { Err(Errno::EINVAL) } else { Ok((sq, cq)) }
}

/// Which flags do not go together.
fn check_flags(flags: u32) -> Result<()> {
    let has = |bits: u32| flags & bits != 0;
    let tells = flag::COOP_TASKRUN | flag::TASKRUN_FLAG | flag::DEFER_TASKRUN;
    if has(flag::DEFER_TASKRUN) && !has(flag::SINGLE_ISSUER)
        || has(flag::TASKRUN_FLAG) && !has(flag::COOP_TASKRUN | flag::DEFER_TASKRUN)
        || has(flag::SQPOLL) && has(tells)
    {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// Whose workers a ring shares, and where the thread that would poll for it may run: there are no workers, and no thread polls.
fn check_offload(params: &Params) -> Result<()> {
    let flags = params.flags;
    if flags & flag::ATTACH_WQ != 0 {
        let other = file(params.wq_fd.cast_signed()).map_err(|_| Errno::ENXIO)?;
        let other = of_file(&other).map_err(|_| Errno::EINVAL)?;
        if flags & flag::SQPOLL != 0 {
            if other.flags & flag::SQPOLL == 0 {
                return Err(Errno::EINVAL);
            }
            if !other.is_mine() {
                return Err(Errno::EPERM);
            }
        }
    }
    let is_bound = flags & flag::SQ_AFF != 0;
    if flags & flag::SQPOLL == 0 {
        return if is_bound { Err(Errno::EINVAL) } else { Ok(()) };
    }
    match params.sq_thread_cpu as usize {
        cpu if is_bound && cpu >= cpus_online() => Err(Errno::EINVAL),
        _ => Ok(()),
    }
}

pub fn io_uring_setup(entries: u32, params: UserPtr<Params>) -> Result<i32> {
    if !may_make() {
        return Err(Errno::EPERM);
    }
    let at = params;
    let mut params = at.read()?;
    if params.resv != [0; 3] || params.flags & !TAKEN != 0 {
        return Err(Errno::EINVAL);
    }
    let flags = params.flags;
    let has = |bits: u32| flags & bits != 0;
    let (sq_entries, cq_entries) = sizes(entries, &params)?;
    check_flags(flags)?;
    check_offload(&params)?;
    let shared = Shared::new(sq_entries, cq_entries, params.flags)?;
    shared.describe(&mut params);
    params.sq_entries = sq_entries;
    params.cq_entries = cq_entries;
    params.features = FEATURES;
    at.write(&params)?;
    let ring = try_arc(Ring::new(shared, params.flags)?)?;
    later::add(&ring)?;
    if has(flag::SQPOLL) {
        // Nobody polls: who submits always wakes, and takes the entries himself.
        ring.tower.set_flag(sq_flag::NEED_WAKEUP, true);
    }
    if !has(flag::R_DISABLED) {
        ring.check_submitter(&mut *ring.lock()?)?;
    }
    let file = anonymous(try_arc(RingFile(ring))?, "[io_uring]", OpenFlags::RDWR, false)?;
    Ok(install(file, true)?.0)
}
