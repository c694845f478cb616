//! The two options of `prctl` that are about the CPU's predictors.
//!
//! Owns nothing: the task has the choice, `alea-speculation` the rules. Never waits. Locks: none.
#![forbid(unsafe_code)]

use crate::process;
use abi::{Errno, Result};
use alea_speculation::Refusal;

const PR_GET_SPECULATION_CTRL: i32 = 52;
const PR_SET_SPECULATION_CTRL: i32 = 53;

/// `None` for other options.
pub(super) fn prctl(option: i32, [which, wanted, arg4, arg5]: [u64; 4]) -> Result<Option<i64>> {
    let task = process::current();
    match option {
        PR_GET_SPECULATION_CTRL if [wanted, arg4, arg5] != [0; 3] => Err(Errno::EINVAL),
        PR_GET_SPECULATION_CTRL => {
            task.predictors(which).map(|answer| Some(answer as i64)).map_err(errno)
        }
        PR_SET_SPECULATION_CTRL if [arg4, arg5] != [0; 2] => Err(Errno::EINVAL),
        PR_SET_SPECULATION_CTRL => {
            task.set_predictors(which, wanted).map(|()| Some(0)).map_err(errno)
        }
        _ => Ok(None),
    }
}

fn errno(refusal: Refusal) -> Errno {
    match refusal {
        Refusal::Unknown => Errno::ENODEV,
        Refusal::NotHere => Errno::ENXIO,
        Refusal::OutOfRange => Errno::ERANGE,
        Refusal::Forbidden => Errno::EPERM,
    }
}
