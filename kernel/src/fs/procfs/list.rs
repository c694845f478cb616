//! The listings of /proc's dynamic directories: processes, threads, descriptors, namespaces, and /proc/net.
//!
//! Owns nothing. Never keeps a reference to a process. Locks: none of its own.
#![forbid(unsafe_code)]

use super::ns::NAMESPACES;
use super::pid::Task;
use super::process::processes;
use crate::vfs::object::inode::DYNAMIC_CURSOR;
use crate::vfs::{Dentry, DirEntry, FileType};
use abi::{Errno, Result};
use alloc::sync::Arc;
use arrayvec::ArrayVec;
use core::ops::ControlFlow;

/// Linux's inode number of /proc.
pub(super) const ROOT_INO: u64 = 1;

/// Where the indices of namespace links begin: after the entries of a process directory, before its descriptors.
pub(super) const NAMESPACES_AT: u64 = 0xc0;

/// Inode numbers of process entries: unique as long as the process lives.
pub(super) fn ino_of(task: Task, index: u64) -> u64 {
    let place = u64::from(task.in_task);
    (u64::from(task.tid) << 24) | (place << 23) | (index & 0x7f_ffff) | 1 << 55
}

/// A decimal number as procfs writes it: no sign, no leading zero.
pub(super) fn number(name: &[u8]) -> Option<u32> {
    if name.is_empty() || (name.len() > 1 && name[0] == b'0') {
        return None;
    }
    let mut number = 0u32;
    for &byte in name {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u32::from(digit))?;
    }
    Some(number)
}

/// The digits of a number, without `core::fmt`: programs that look for their own files read /proc/self.
pub(super) fn digits(mut number: u32) -> ArrayVec<u8, 10> {
    let mut digits = ArrayVec::new();
    loop {
        // Ten are enough for any number.
        digits.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    digits.reverse();
    digits
}

/// Links first, then processes: the cursor of a process is its number plus the number of links.
pub(super) fn read_root(mut from: u64, emit: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
    const LINKS: [&[u8]; 2] = [b"self", b"thread-self"];
    while let Some(name) = usize::try_from(from).ok().and_then(|at| LINKS.get(at)) {
        let ino = ROOT_INO + 1 + from;
        from += 1;
        let next = DYNAMIC_CURSOR + from;
        if !emit(DirEntry { name, ino, kind: FileType::Symlink, next }) {
            return Ok(());
        }
    }
    let Ok(processes) = processes() else { return Ok(()) };
    let mut pid = u32::try_from(from - LINKS.len() as u64).unwrap_or(u32::MAX);
    while let Some(found) = processes.next_pid(pid) {
        pid = found.saturating_add(1);
        let ino = ino_of(Task { tid: found, in_task: false }, 0);
        if !emit_number(found, ino, FileType::Dir, u64::from(pid) + LINKS.len() as u64, emit) {
            break;
        }
    }
    Ok(())
}

pub(super) fn read_tasks(
    task: Task,
    from: u64,
    emit: &mut dyn FnMut(DirEntry<'_>) -> bool,
) -> Result<()> {
    let processes = processes()?;
    let pid = processes.process_of(task.tid).ok_or(Errno::ENOENT)?;
    let mut at = u32::try_from(from).unwrap_or(u32::MAX);
    loop {
        let tasks = processes.next_tasks(pid, at);
        if tasks.is_empty() {
            return Ok(());
        }
        for tid in tasks {
            at = tid.saturating_add(1);
            let ino = ino_of(Task { tid, in_task: true }, 0);
            if !emit_number(tid, ino, FileType::Dir, u64::from(at), emit) {
                return Ok(());
            }
        }
    }
}

pub(super) fn read_fds(
    task: Task,
    from: u64,
    kind: FileType,
    emit: &mut dyn FnMut(DirEntry<'_>) -> bool,
) -> Result<()> {
    let Some(files) = processes()?.files(task.tid) else { return Ok(()) };
    let mut at = usize::try_from(from).unwrap_or(usize::MAX);
    while let Some((fd, file)) = files.next_open(at) {
        drop(file);
        // Descriptors in a table are not negative.
        let number = fd.0.unsigned_abs();
        at = number as usize + 1;
        let ino = ino_of(task, 0x100 + u64::from(number));
        if !emit_number(number, ino, kind, at as u64, emit) {
            break;
        }
    }
    Ok(())
}

pub(super) fn read_namespaces(
    task: Task,
    from: u64,
    emit: &mut dyn FnMut(DirEntry<'_>) -> bool,
) -> Result<()> {
    processes()?.process_of(task.tid).ok_or(Errno::ENOENT)?;
    for (space, index) in NAMESPACES.iter().zip(0u64..).filter(|(_, index)| *index >= from) {
        let name = space.name.as_bytes();
        let ino = ino_of(task, NAMESPACES_AT + index);
        let next = DYNAMIC_CURSOR + index + 1;
        if !emit(DirEntry { name, ino, kind: FileType::Symlink, next }) {
            break;
        }
    }
    Ok(())
}

/// The entries of /proc/net, which are never removed.
pub(super) fn read_net(
    directory: &Arc<Dentry>,
    from: u64,
    emit: &mut dyn FnMut(DirEntry<'_>) -> bool,
) -> Result<()> {
    let mut from = from;
    loop {
        // One at a time: the table is not locked while an entry goes to the caller.
        let found = directory.visit_children(
            from,
            |_| (),
            |cursor, child, name| {
                let name = ArrayVec::<u8, 64>::try_from(name).unwrap_or_default();
                ControlFlow::Break((cursor, name, child.ino(), child.kind()))
            },
        );
        let Some((cursor, name, ino, kind)) = found else { return Ok(()) };
        from = cursor + 1;
        if !emit(DirEntry { name: &name, ino, kind, next: DYNAMIC_CURSOR + from }) {
            return Ok(());
        }
    }
}

/// Emits an entry whose name is a number; `cursor` is that of the next entry.
fn emit_number(
    number: u32,
    ino: u64,
    kind: FileType,
    cursor: u64,
    emit: &mut dyn FnMut(DirEntry<'_>) -> bool,
) -> bool {
    let name = digits(number);
    emit(DirEntry { name: &name, ino, kind, next: DYNAMIC_CURSOR + cursor })
}
