//! The options of `prctl` that are about capabilities: the bounding and ambient sets, securebits.

use super::cred::change;
use crate::process;
use crate::vfs::cred::{LAST_CAP, securebits};
use crate::vfs::{CapSet, Capability};
use abi::{Errno, Result};

const PR_GET_KEEPCAPS: i32 = 7;
const PR_SET_KEEPCAPS: i32 = 8;
const PR_CAPBSET_READ: i32 = 23;
const PR_CAPBSET_DROP: i32 = 24;
const PR_GET_SECUREBITS: i32 = 27;
const PR_SET_SECUREBITS: i32 = 28;
const PR_CAP_AMBIENT: i32 = 47;

const AMBIENT_IS_SET: u64 = 1;
const AMBIENT_RAISE: u64 = 2;
const AMBIENT_LOWER: u64 = 3;
const AMBIENT_CLEAR_ALL: u64 = 4;

/// The bits that mean something, and above each the bit that locks it.
const SECUREBITS: u32 = 0b0101_0101;
const LOCKS: u32 = SECUREBITS << 1;

/// Answers what the general part does not know; `EINVAL` for what nobody knows.
pub(super) fn prctl(option: i32, arg2: u64, arg3: u64, arg4: u64, arg5: u64) -> Result<i64> {
    let cred = process::current().cred_arc();
    match option {
        PR_GET_KEEPCAPS => Ok(i64::from(cred.securebits & securebits::KEEP_CAPS != 0)),
        PR_SET_KEEPCAPS => {
            if arg2 > 1 {
                return Err(Errno::EINVAL);
            }
            if cred.securebits & (securebits::KEEP_CAPS << 1) != 0 {
                return Err(Errno::EPERM);
            }
            change(|new, _| {
                new.securebits &= !securebits::KEEP_CAPS;
                new.securebits |= if arg2 == 1 { securebits::KEEP_CAPS } else { 0 };
                Ok(())
            })?;
            Ok(0)
        }
        PR_CAPBSET_READ => Ok(i64::from(cred.bounding.contains(single(arg2)?))),
        PR_CAPBSET_DROP => {
            if !cred.capable(Capability::SETPCAP) {
                return Err(Errno::EPERM);
            }
            let cap = single(arg2)?;
            change(|new, _| {
                new.bounding = new.bounding.without(cap);
                Ok(())
            })?;
            Ok(0)
        }
        PR_GET_SECUREBITS => Ok(i64::from(cred.securebits)),
        PR_SET_SECUREBITS => {
            let bits = u32::try_from(arg2).map_err(|_| Errno::EPERM)?;
            let changes_locked = (cred.securebits & LOCKS) >> 1 & (cred.securebits ^ bits) != 0;
            let unlocks = cred.securebits & LOCKS & !bits != 0;
            let unknown = bits & !(SECUREBITS | LOCKS) != 0;
            if changes_locked || unlocks || unknown || !cred.capable(Capability::SETPCAP) {
                return Err(Errno::EPERM);
            }
            change(|new, _| {
                new.securebits = bits;
                Ok(())
            })?;
            Ok(0)
        }
        PR_CAP_AMBIENT => ambient(arg2, arg3, arg4 | arg5),
        _ => Err(Errno::EINVAL),
    }
}

fn ambient(action: u64, cap: u64, rest: u64) -> Result<i64> {
    if rest != 0 {
        return Err(Errno::EINVAL);
    }
    if action == AMBIENT_CLEAR_ALL {
        if cap != 0 {
            return Err(Errno::EINVAL);
        }
        change(|new, _| {
            new.ambient = CapSet::EMPTY;
            Ok(())
        })?;
        return Ok(0);
    }
    let cap = single(cap)?;
    match action {
        AMBIENT_IS_SET => Ok(i64::from(process::current().cred().ambient.contains(cap))),
        AMBIENT_RAISE => {
            change(|new, old| {
                let may = old.permitted.contains(cap)
                    && old.inheritable.contains(cap)
                    && old.securebits & securebits::NO_CAP_AMBIENT_RAISE == 0;
                if !may {
                    return Err(Errno::EPERM);
                }
                new.ambient = new.ambient.or(cap);
                Ok(())
            })?;
            Ok(0)
        }
        AMBIENT_LOWER => {
            change(|new, _| {
                new.ambient = new.ambient.without(cap);
                Ok(())
            })?;
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// The set of one capability.
fn single(cap: u64) -> Result<CapSet> {
    if cap > u64::from(LAST_CAP) { Err(Errno::EINVAL) } else { Ok(CapSet::from_bits(1 << cap)) }
}
