//! The system-call table: number, name, handler, status.
//!
//! A row is `NUMBER NAME => HANDLER, STATUS;`. `cargo xtask syscalls` writes docs/abi.md from this file, and tidy
//! checks that it is up to date. A call that is not here returns `ENOSYS`.

use super::Status::{self, Full, Partial};
use super::args::Handler;
use crate::arch::trap::TrapFrame;

/// Takes the registers, returns what goes to `rax`.
pub type Entry = fn(&mut TrapFrame) -> i64;

/// One more than the highest number in the table.
const LEN: usize = 470;

macro_rules! syscalls {
    ($( $number:literal $name:ident => $handler:path, $status:expr; )*) => {
        /// Dispatch by number.
        pub static HANDLERS: [Entry; LEN] = {
            let mut table: [Entry; LEN] = [super::no_such_call; LEN];
            $( table[$number] = |frame: &mut TrapFrame| call(&$handler, frame); )*
            table
        };

        /// Number, name and status of every call that is there.
        pub static NAMES: &[(u16, &str, Status)] = &[$( ($number, stringify!($name), $status), )*];
    };
}

#[inline(always)]
fn call<Args, H: Handler<Args>>(handler: &H, frame: &mut TrapFrame) -> i64 {
    handler.call(frame)
}

/// The name of a call, for traces and messages.
pub fn name(number: u64) -> Option<&'static str> {
    NAMES.iter().find(|(n, ..)| u64::from(*n) == number).map(|(_, name, _)| *name)
}

syscalls! {
    318 getrandom => super::random::getrandom, Full;
}
