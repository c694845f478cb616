//! Sockets: the options about a socket's filter.
//!
//! Owns nothing. Locks: none while user memory is read.

use crate::mm::fallible::TryVec;
use crate::mm::user::{self, UserPtr};
use crate::net::filter::Slot;
use crate::process::seccomp::read_instructions;
use crate::syscall::caller::file;
use abi::seccomp::FilterProgram;
use abi::socket::so;
use abi::{Errno, Result};
use alea_bpf::Filter;
use alloc::vec::Vec;

/// Sets an option of `SOL_SOCKET` from user memory: `None` if it is none about filters.
pub fn set(slot: &Slot, option: i32, value: u64, len: i32) -> Option<Result<()>> {
    let is_one =
        matches!(option, so::ATTACH_FILTER | so::DETACH_FILTER | so::LOCK_FILTER | so::ATTACH_BPF);
    is_one.then(|| {
        if len < size_of::<i32>() as i32 {
            return Err(Errno::EINVAL);
        }
        let number: i32 = UserPtr::new(value).read()?;
        match option {
            so::ATTACH_FILTER => {
                if len != size_of::<FilterProgram>() as i32 {
                    return Err(Errno::EINVAL);
                }
                slot.attach(read(slot, UserPtr::new(value).read()?)?)
            }
            so::DETACH_FILTER => slot.detach(),
            so::LOCK_FILTER => slot.set_locked(number != 0),
            // No descriptor is a program of bpf(2).
            _ if len != size_of::<i32>() as i32 => Err(Errno::EINVAL),
            _ => slot.check_lock().and_then(|()| file(number)).and(Err(Errno::EINVAL)),
        }
    })
}

fn read(slot: &Slot, head: FilterProgram) -> Result<Filter> {
    slot.check_lock()?;
    read_instructions(&head, Filter::new)
}

/// SO_GET_FILTER: as on Linux `room`, and what is told, are numbers of instructions. No room is a question for their number.
pub fn get(slot: &Slot, value: u64, room: usize) -> Result<usize> {
    let Some(filter) = slot.get() else { return Ok(0) };
    let insns = filter.instructions();
    if room == 0 {
        return Ok(insns.len());
    }
    if room < insns.len() {
        return Err(Errno::EINVAL);
    }
    let mut bytes = Vec::with_room(insns.len() * alea_bpf::insn::SIZE)?;
    for insn in insns {
        bytes.try_extend_from_slice(&insn.to_bytes())?;
    }
    user::write_bytes(value, &bytes)?;
    Ok(insns.len())
}
