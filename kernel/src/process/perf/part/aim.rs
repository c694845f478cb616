//! [`Spot`]: where a breakpoint's event looks and for what, as its attributes say and a debug register can; [`Aim`], which may be changed.
//!
//! Owns nothing. Never gives a spot beyond user space: the registers hold a program's addresses only. Locks: `Perf`, for an aim.

use crate::base::page::USER_END;
use crate::process::task::current::current;
use crate::sync::{SpinLock, level};
use crate::vfs::Capability;
use abi::perf::{Attr, bit};
use abi::{Errno, Result};

/// HW_BREAKPOINT_*.
const WRITE: u32 = 2;
const ACCESS: u32 = 3;
const EXECUTE: u32 = 4;

/// The length that one that executes has to have.
const EXECUTE_LEN: u64 = 8;

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(in super::super) struct Spot {
    pub addr: u64,
    /// Kind and length, as they lie side by side in DR7.
    bits: u64,
}

impl Spot {
    /// The checks stand in Linux's order.
    ///
    /// # Errors
    /// `EINVAL` for what no debug register can do, `EPERM` for the kernel's addresses, and `EOPNOTSUPP` to who may watch them on
    /// Linux, and for longer places.
    pub fn of(attr: &Attr) -> Result<Self> {
        let (addr, len) = (attr.config1, attr.config2);
        if addr.wrapping_add(len).wrapping_sub(1) < addr {
            return Err(Errno::EINVAL);
        }
        let kind = match attr.bp_type {
            WRITE => 1,
            ACCESS => 3,
            EXECUTE if len == EXECUTE_LEN => 0,
            _ => return Err(Errno::EINVAL),
        };
        let is_even = addr.is_multiple_of(len.max(1));
        let length = match len {
            _ if kind == 0 => 0,
            1 | 2 | 4 | 8 if !is_even => return Err(Errno::EINVAL),
            8 => 2,
            1 | 2 | 4 => len - 1,
            _ if len.is_power_of_two() && is_even => return Err(Errno::EOPNOTSUPP),
            _ => return Err(Errno::EINVAL),
        };
        if addr.saturating_add(len - 1) >= USER_END {
            return Err(match attr.has(bit::EXCLUDE_KERNEL) {
                true => Errno::EINVAL,
                false if !current().cred_arc().capable(Capability::SYS_ADMIN) => Errno::EPERM,
                false => Errno::EOPNOTSUPP,
            });
        }
        Ok(Self { addr, bits: kind | length << 2 })
    }

    /// The bits of DR7 that put it at a place and enable it.
    pub const fn control(self, place: usize) -> u64 {
        1 << (2 * place) | self.bits << (16 + 4 * place)
    }

    pub const fn executes(self) -> bool {
        self.bits & 3 == 0
    }
}

struct State {
    spot: Spot,
    sig_data: u64,
    /// Whether its attributes, as they are now, have it switched off.
    is_disabled: bool,
}

/// The part of an event: its spot, if it is a breakpoint's, and the data that goes with its SIGTRAP.
pub(in super::super) struct Aim(SpinLock<State, level::Perf>);

impl Aim {
    /// That of checked attributes.
    pub fn of(attr: &Attr, is_breakpoint: bool) -> Self {
        let spot = if is_breakpoint { Spot::of(attr) } else { Ok(Spot::default()) };
        let spot = spot.unwrap_or_default();
        let is_disabled = attr.has(bit::DISABLED);
        Self(SpinLock::new(State { spot, sig_data: attr.sig_data, is_disabled }))
    }

    pub fn spot(&self) -> Spot {
        self.0.lock().spot
    }

    pub fn sig_data(&self) -> u64 {
        self.0.lock().sig_data
    }

    pub fn set_sig_data(&self, data: u64) {
        self.0.lock().sig_data = data;
    }

    /// Takes over what another one has been changed to.
    pub fn copy(&self, other: &Self) {
        let State { spot, sig_data, is_disabled } = *other.0.lock();
        *self.0.lock() = State { spot, sig_data, is_disabled };
    }

    /// Looks where other attributes say.
    pub fn turn(&self, spot: Spot, attr: &Attr) {
        let mut state = self.0.lock();
        (state.spot, state.is_disabled) = (spot, attr.has(bit::DISABLED));
    }

    /// Whether it stays switched off once it was changed.
    pub fn is_disabled(&self) -> bool {
        self.0.lock().is_disabled
    }
}
