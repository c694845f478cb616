//! Message queues: msgget, msgsnd, msgrcv, msgctl.

use super::shm::give;
use crate::mm::fallible::TryVec;
use crate::mm::user::{self, UserPtr};
use crate::process::sysv::Named;
use crate::process::sysv::msg::{self, Message, Receive};
use abi::ipc::{MsqidDs, cmd, msg_flag};
use abi::{Errno, Result};
use alea_sysv::message::Wanted;
use alloc::vec::Vec;

/// Bytes of a message's type, which stands before its text in user memory.
const TYPE: u64 = 8;

pub fn msgget(key: i32, flags: u32) -> Result<i32> {
    msg::get(key, flags)
}

pub fn msgsnd(id: i32, message: u64, size: i64, flags: u32) -> Result<()> {
    let kind = UserPtr::<i64>::new(message).read()?;
    let size = usize::try_from(size).ok().filter(|&size| size <= msg::most_bytes());
    let size = size.ok_or(Errno::EINVAL)?;
    if id < 0 || kind < 1 {
        return Err(Errno::EINVAL);
    }
    let data = read(message.wrapping_add(TYPE), size)?;
    msg::send(id, Message { kind, data }, flags & msg_flag::NOWAIT != 0)
}

pub fn msgrcv(id: i32, buffer: u64, size: i64, kind: i64, flags: u32) -> Result<usize> {
    let size = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
    if id < 0 {
        return Err(Errno::EINVAL);
    }
    let has = |flag: u32| flags & flag != 0;
    if has(msg_flag::COPY) {
        if has(msg_flag::EXCEPT) || !has(msg_flag::NOWAIT) {
            return Err(Errno::EINVAL);
        }
        // As on Linux, which reads from where the copy will go.
        read(buffer, size.min(msg::most_bytes()))?;
    }
    let call = Receive {
        wanted: Wanted::new(kind, has(msg_flag::EXCEPT), has(msg_flag::COPY)),
        size,
        cuts: has(msg_flag::NOERROR),
        no_wait: has(msg_flag::NOWAIT),
    };
    let message = msg::receive(id, &call)?;
    UserPtr::<i64>::new(buffer).write(&message.kind)?;
    let text = message.data.get(..size).unwrap_or(&message.data);
    user::write_bytes(buffer.wrapping_add(TYPE), text)?;
    Ok(text.len())
}

fn read(addr: u64, size: usize) -> Result<Vec<u8>> {
    let mut data = Vec::with_room(size)?;
    data.try_resize(size, 0)?;
    user::read_bytes(addr, &mut data)?;
    Ok(data)
}

pub fn msgctl(id: i32, command: i32, buffer: UserPtr<MsqidDs>) -> Result<i32> {
    if id < 0 || command < 0 {
        return Err(Errno::EINVAL);
    }
    match command {
        cmd::INFO => give(buffer, msg::limits()),
        cmd::MSG_INFO => give(buffer, msg::info()),
        cmd::STAT => give(buffer, msg::stat(Named::Id(id))?).map(|_| 0),
        cmd::MSG_STAT => give(buffer, msg::stat(Named::Index(id))?),
        cmd::MSG_STAT_ANY => give(buffer, msg::stat(Named::AnyIndex(id))?),
        cmd::SET => msg::set(id, &buffer.read()?).map(|()| 0),
        cmd::RMID => msg::remove(id).map(|()| 0),
        _ => Err(Errno::EINVAL),
    }
}
