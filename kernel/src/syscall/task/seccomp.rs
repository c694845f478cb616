//! seccomp(2), and the options of prctl(2) that do the same.

use crate::mm::user::UserPtr;
use crate::process;
use crate::process::seccomp::{has_action, install_filter, install_strict};
use abi::seccomp::{MODE_FILTER, MODE_STRICT, Notification, Response, Sizes, op};
use abi::{Errno, Result};

pub fn seccomp(operation: u32, flags: u32, args: u64) -> Result<i64> {
    match operation {
        op::SET_MODE_STRICT if flags == 0 && args == 0 => install_strict().map(|()| 0),
        op::SET_MODE_FILTER => install_filter(flags, args),
        op::GET_ACTION_AVAIL if flags == 0 => {
            let known = has_action(UserPtr::<u32>::new(args).read()?);
            if known { Ok(0) } else { Err(Errno::EOPNOTSUPP) }
        }
        op::GET_NOTIF_SIZES if flags == 0 => {
            let sizes = Sizes {
                notif: size_of::<Notification>() as u16,
                resp: size_of::<Response>() as u16,
                data: 64,
            };
            UserPtr::new(args).write(&sizes).map(|()| 0)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// PR_GET_SECCOMP.
pub fn mode() -> i64 {
    process::current().seccomp_mode()
}

/// PR_SET_SECCOMP.
pub fn set_mode(mode: u64, filter: u64) -> Result<()> {
    match mode {
        MODE_STRICT => install_strict(),
        MODE_FILTER => install_filter(0, filter).map(|_| ()),
        _ => Err(Errno::EINVAL),
    }
}
