//! POSIX message queues: mq_open, mq_unlink, mq_timedsend, mq_timedreceive, mq_notify, mq_getsetattr.

use crate::mm::fallible::TryVec;
use crate::mm::user::{self, UserPtr};
use crate::net::Note;
use crate::process;
use crate::process::mqueue::{self, How, Patience, Queue, Shape};
use crate::syscall::caller::{file, with_path};
use crate::syscall::file::install;
use crate::time::Nanos;
use crate::vfs::{Fd, OpenFile};
use abi::fs::OpenFlags;
use abi::ipc::MqAttr;
use abi::signal::Signal;
use abi::time::Timespec;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Priorities are less than this.
const PRIO_MAX: u32 = 32768;

const SIGEV_SIGNAL: i32 = 0;
const SIGEV_NONE: i32 = 1;
const SIGEV_THREAD: i32 = 2;

pub fn mq_open(name: u64, flags: u32, mode: u16, attr: UserPtr<MqAttr>) -> Result<Fd> {
    let attr = attr.non_null().map(UserPtr::read).transpose()?;
    let shape = attr.map(|attr| Shape { most: attr.maxmsg, size: attr.msgsize });
    let flags = OpenFlags::from_bits_retain(flags);
    let task = process::current();
    let mode = u32::from(mode) & !task.fs().umask();
    with_path(name, |name| {
        let cred = task.cred_arc();
        install::reserved(true, |_| mqueue::open(name, flags, mode, shape, &cred))
    })
}

pub fn mq_unlink(name: u64) -> Result<()> {
    with_path(name, |name| mqueue::unlink(name, &process::current().cred_arc()))
}

/// How long a call on this file may wait.
fn patience(file: &OpenFile, until: Option<Nanos>) -> Patience {
    match until {
        _ if file.nonblock() => Patience::None,
        Some(at) => Patience::Until(at),
        None => Patience::Endless,
    }
}

/// The queue, if the file was opened for this: EBADF.
fn queue(file: &OpenFile, may: bool) -> Result<&Queue> {
    mqueue::of_file(file).and_then(|queue| if may { Ok(queue) } else { Err(Errno::EBADF) })
}

/// A point of the wall clock, if one is given: EINVAL.
fn read_time(time: UserPtr<Timespec>) -> Result<Option<Nanos>> {
    let Some(time) = time.non_null() else { return Ok(None) };
    time.read()?.to_nanos().map(|at| Some(Nanos(at))).ok_or(Errno::EINVAL)
}

fn read(addr: u64, size: usize) -> Result<Vec<u8>> {
    let mut data = Vec::with_room(size)?;
    data.try_resize(size, 0)?;
    user::read_bytes(addr, &mut data)?;
    Ok(data)
}

pub fn mq_timedsend(
    fd: i32,
    text: u64,
    size: usize,
    priority: u32,
    timeout: UserPtr<Timespec>,
) -> Result<()> {
    let until = read_time(timeout)?;
    if priority >= PRIO_MAX {
        return Err(Errno::EINVAL);
    }
    let file = file(fd)?;
    let queue = queue(&file, file.writable())?;
    queue.check_size(size)?;
    let data = read(text, size)?;
    queue.send(priority, data, patience(&file, until))
}

pub fn mq_timedreceive(
    fd: i32,
    buffer: u64,
    size: usize,
    priority: UserPtr<u32>,
    timeout: UserPtr<Timespec>,
) -> Result<usize> {
    let until = read_time(timeout)?;
    let file = file(fd)?;
    let queue = queue(&file, file.readable())?;
    queue.check_room(size)?;
    let message = queue.receive(patience(&file, until))?;
    // As on Linux, a message is lost that cannot be given.
    if let Some(out) = priority.non_null() {
        out.write(&message.priority)?;
    }
    if !message.data.is_empty() {
        user::write_bytes(buffer, &message.data)?;
    }
    Ok(message.data.len())
}

/// `struct sigevent` up to where the thread would be named.
pub fn mq_notify(fd: i32, event: UserPtr<[i32; 4]>) -> Result<()> {
    let how = event.non_null().map(|event| read_event(event.read()?)).transpose()?;
    let opened = file(fd)?;
    let queue = mqueue::of_file(&opened)?;
    match how {
        Some(how) => {
            queue.register(how)?;
            // A close by another thread may have looked for it before it was there: nobody else would take it back.
            if file(fd).is_ok_and(|now| Arc::ptr_eq(&now, &opened)) {
                return Ok(());
            }
            queue.unregister();
            Err(Errno::EBADF)
        }
        None => {
            if queue.unregister() {
                queue.note_access();
            }
            Ok(())
        }
    }
}

fn read_event([low, high, signal, notify]: [i32; 4]) -> Result<How> {
    let value = low as u32 as u64 | (high as u32 as u64) << 32;
    match notify {
        SIGEV_NONE => Ok(How::Nobody),
        SIGEV_SIGNAL if signal == 0 => Ok(How::Signal(None, value)),
        SIGEV_SIGNAL => Ok(How::Signal(Some(Signal::new(signal).ok_or(Errno::EINVAL)?), value)),
        SIGEV_THREAD => {
            let cookie = read(value, Note::LENGTH)?;
            Ok(How::Socket(Note::new(&*file(signal)?, cookie)?))
        }
        _ => Err(Errno::EINVAL),
    }
}

pub fn mq_getsetattr(fd: i32, new: UserPtr<MqAttr>, old: UserPtr<MqAttr>) -> Result<()> {
    let new = new.non_null().map(UserPtr::read).transpose()?;
    let nonblock = i64::from(OpenFlags::NONBLOCK.bits());
    if new.is_some_and(|new| new.flags & !nonblock != 0) {
        return Err(Errno::EINVAL);
    }
    let file = file(fd)?;
    let queue = mqueue::of_file(&file)?;
    let flags = i64::from(file.flags().bits()) & nonblock;
    let told = MqAttr { flags, ..queue.told() };
    if let Some(new) = new {
        // At most that one bit.
        file.set_flags(OpenFlags::NONBLOCK, OpenFlags::from_bits_retain(new.flags as u32));
        queue.note_access();
    }
    old.non_null().map_or(Ok(()), |old| old.write(&told))
}
