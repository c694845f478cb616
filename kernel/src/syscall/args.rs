//! Typed system-call arguments and results.
//!
//! A handler is a plain function of typed arguments; [`Handler`] decodes the registers by [`FromArg`] and
//! encodes the result by [`IntoReturn`]. Arguments narrower than a register ignore its upper bits, as
//! Linux does. A handler whose first parameter is `&mut TrapFrame` also sees the caller's registers.

use super::caller::Pathname;
use crate::arch::entry::frame::TrapFrame;
use crate::mm::user::UserPtr;
use crate::vfs::Fd;
use abi::{Errno, Returned};

/// Decodes one register; never fails: a handler checks values, a type only their width.
pub trait FromArg {
    fn from_arg(raw: u64) -> Self;
}

macro_rules! from_arg {
    ($($ty:ty as $via:ty),*) => { $(
        impl FromArg for $ty {
            #[inline(always)]
            fn from_arg(raw: u64) -> Self {
                // Truncation is the ABI: the upper bits of a narrow argument are undefined.
                raw as $via as $ty
            }
        }
    )* };
}

from_arg!(i32 as u32, u32 as u32, i64 as u64, u64 as u64, usize as u64, u16 as u16);

impl<T> FromArg for UserPtr<T> {
    #[inline(always)]
    fn from_arg(raw: u64) -> Self {
        Self::new(raw)
    }
}

impl FromArg for Pathname<'static> {
    #[inline]
    fn from_arg(raw: u64) -> Self {
        Self::At(raw)
    }
}

impl FromArg for Fd {
    #[inline(always)]
    fn from_arg(raw: u64) -> Self {
        Self(i32::from_arg(raw))
    }
}

/// Encodes a handler's result for `rax`.
pub trait IntoReturn {
    fn into_return(self) -> i64;
}

macro_rules! into_return {
    ($($ty:ty),*) => { $(
        impl IntoReturn for $ty {
            #[inline(always)]
            fn into_return(self) -> i64 {
                self as i64
            }
        }
    )* };
}

into_return!(i32, u32, i64, u64, usize);

impl IntoReturn for Fd {
    #[inline(always)]
    fn into_return(self) -> i64 {
        i64::from(self.0)
    }
}

impl IntoReturn for () {
    #[inline(always)]
    fn into_return(self) -> i64 {
        0
    }
}

impl IntoReturn for core::convert::Infallible {
    fn into_return(self) -> i64 {
        match self {}
    }
}

impl IntoReturn for Returned {
    #[inline(always)]
    fn into_return(self) -> i64 {
        self.raw()
    }
}

impl<T: IntoReturn> IntoReturn for Result<T, Errno> {
    #[inline(always)]
    fn into_return(self) -> i64 {
        match self {
            Ok(value) => value.into_return(),
            Err(errno) => errno.to_return(),
        }
    }
}

/// A function that can stand in the table; `Args` only tells the implementations apart.
pub trait Handler<Args> {
    fn call(&self, frame: &mut TrapFrame) -> i64;
}

/// Marks handlers that take the trap frame first.
pub struct WithFrame;

macro_rules! handler {
    ($($arg:ident $field:ident),*) => {
        impl<Fun, Ret, $($arg),*> Handler<($($arg,)*)> for Fun
        where
            Fun: Fn($($arg),*) -> Ret,
            Ret: IntoReturn,
            $($arg: FromArg,)*
        {
            #[inline(always)]
            fn call(&self, _frame: &mut TrapFrame) -> i64 {
                self($($arg::from_arg(_frame.$field)),*).into_return()
            }
        }

        impl<Fun, Ret, $($arg),*> Handler<(WithFrame, $($arg,)*)> for Fun
        where
            Fun: Fn(&mut TrapFrame, $($arg),*) -> Ret,
            Ret: IntoReturn,
            $($arg: FromArg,)*
        {
            #[inline(always)]
            fn call(&self, frame: &mut TrapFrame) -> i64 {
                $(let $field = $arg::from_arg(frame.$field);)*
                self(frame, $($field),*).into_return()
            }
        }
    };
}

handler!();
handler!(A rdi);
handler!(A rdi, B rsi);
handler!(A rdi, B rsi, C rdx);
handler!(A rdi, B rsi, C rdx, D r10);
handler!(A rdi, B rsi, C rdx, D r10, E r8);
handler!(A rdi, B rsi, C rdx, D r10, E r8, F r9);

/// How much of Linux's call stands.
#[derive(Clone, Copy, Debug)]
pub enum Status {
    /// Everything that Linux does and programs use.
    Full,
    /// The text says what is missing.
    Partial(&'static str),
}
