//! execve and execveat.

use crate::arch::entry::frame::TrapFrame;
use crate::process::exec::{self, ExecRequest, UserStrings};
use crate::syscall::caller::with_path;
use crate::vfs::Fd;
use crate::vfs::namei::LookupFlags;
use abi::fs::{AT_FDCWD, AtFlags};
use abi::{Errno, Result};

pub fn execve(frame: &mut TrapFrame, path: u64, argv: u64, envp: u64) -> Result<()> {
    run(frame, Fd(AT_FDCWD), path, argv, envp, LookupFlags::FOLLOW)
}

pub fn execveat(
    frame: &mut TrapFrame,
    at: i32,
    path: u64,
    argv: u64,
    envp: u64,
    flags: u32,
) -> Result<()> {
    let flags = AtFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
    if !(AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW).contains(flags) {
        return Err(Errno::EINVAL);
    }
    let mut lookup = LookupFlags::empty();
    lookup.set(LookupFlags::FOLLOW, !flags.contains(AtFlags::SYMLINK_NOFOLLOW));
    lookup.set(LookupFlags::EMPTY, flags.contains(AtFlags::EMPTY_PATH));
    run(frame, Fd(at), path, argv, envp, lookup)
}

fn run(
    frame: &mut TrapFrame,
    at: Fd,
    path: u64,
    argv: u64,
    envp: u64,
    lookup: LookupFlags,
) -> Result<()> {
    with_path(path, |path| {
        let request =
            ExecRequest { at, path, lookup, argv: &UserStrings(argv), envp: &UserStrings(envp) };
        exec::execve(frame, &request)
    })
}
