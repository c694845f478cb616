//! inotify: the calls of `vfs::notify::events`.

use super::install::install;
use crate::fs::{self, Inotify};
use crate::process;
use crate::syscall::caller::{file, with_ctx, with_path};
use crate::vfs::namei::{self, LookupFlags, perm};
use crate::vfs::{Fd, OpenFile};
use abi::fs::{AT_FDCWD, OpenFlags};
use abi::{Errno, Result};
use alloc::sync::Arc;

const ONLYDIR: u32 = 1 << 24;
const DONT_FOLLOW: u32 = 1 << 25;
const MASK_CREATE: u32 = 1 << 28;
const MASK_ADD: u32 = 1 << 29;
/// Events, what only comes back, and flags.
const KNOWN: u32 = 0xfff | 0xe000 | 0x0700_0000 | MASK_CREATE | MASK_ADD | 1 << 30 | 1 << 31;

pub fn inotify_init() -> Result<i32> {
    inotify_init1(0)
}

pub fn inotify_init1(flags: u32) -> Result<i32> {
    let flags = OpenFlags::from_bits_retain(flags);
    if !OpenFlags::CLOEXEC.union(OpenFlags::NONBLOCK).contains(flags) {
        return Err(Errno::EINVAL);
    }
    let cred = process::current().cred_arc();
    let file = fs::new(flags.contains(OpenFlags::NONBLOCK), &cred)?;
    Ok(install(file, flags.contains(OpenFlags::CLOEXEC))?.0)
}

fn instance(file: &Arc<OpenFile>) -> Result<&Inotify> {
    file.downcast::<Inotify>().ok_or(Errno::EINVAL)
}

pub fn inotify_add_watch(fd: i32, path: u64, mask: u32) -> Result<i32> {
    if mask & !KNOWN != 0 || mask == 0 {
        return Err(Errno::EINVAL);
    }
    let file = file(fd)?;
    if mask & MASK_ADD != 0 && mask & MASK_CREATE != 0 {
        return Err(Errno::EINVAL);
    }
    let inotify = instance(&file)?;
    let mut lookup = LookupFlags::empty();
    lookup.set(LookupFlags::FOLLOW, mask & DONT_FOLLOW == 0);
    lookup.set(LookupFlags::DIRECTORY, mask & ONLYDIR != 0);
    with_path(path, |path| {
        with_ctx(|ctx| {
            let place = namei::lookup(ctx, Fd(AT_FDCWD), path, lookup)?;
            perm::check(&**place.inode(), ctx.cred, perm::READ)?;
            // Kept meanwhile, so that what is being deleted ends the watch when it is let go.
            inotify.watch(place.inode().clone(), mask)
        })
    })
}

pub fn inotify_rm_watch(fd: i32, wd: i32) -> Result<()> {
    let file = file(fd)?;
    instance(&file)?.unwatch(wd)
}
