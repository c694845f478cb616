//! The vector registers of a tracee: it reads and writes them itself, while it stands, because its tracer asks.

use super::told::Exchange;
use super::tracee::Tracee;
use crate::arch::task::fpu::debug_size;
use crate::mm::fallible::TryVec;
use crate::process::task::current::Current;
use abi::{Errno, Result};
use alloc::vec::Vec;

/// In the tracee: does what was asked.
pub(super) fn answer(task: Current, tracee: &Tracee) {
    let asked = core::mem::take(&mut tracee.state.lock().vectors);
    let vectors = task.vectors();
    let answer = match asked {
        Exchange::Wanted => {
            let mut image = Vec::new();
            image.try_resize(debug_size(), 0).map(|()| {
                vectors.write_debug_image(&mut image);
                image
            })
        }
        Exchange::Offered(image) => {
            vectors.read_debug_image(&image).map(|()| Vec::new()).map_err(|_| Errno::EINVAL)
        }
        Exchange::Nothing | Exchange::Answered(_) => return,
    };
    tracee.state.lock().vectors = Exchange::Answered(answer);
    tracee.answered.wake_all();
}

/// In the tracer: the image of a tracee that stands, in the format of XSAVE (or FXSAVE, without that).
pub(super) fn read(tracee: &Tracee) -> Result<Vec<u8>> {
    ask(tracee, Exchange::Wanted)
}

/// In the tracer: gives a tracee that stands another image.
///
/// # Errors
/// `EINVAL` if no program could have such.
pub(super) fn write(tracee: &Tracee, image: Vec<u8>) -> Result<()> {
    ask(tracee, Exchange::Offered(image)).map(drop)
}

fn ask(tracee: &Tracee, what: Exchange) -> Result<Vec<u8>> {
    {
        let mut state = tracee.state.lock();
        if state.stop.is_none() {
            return Err(Errno::ESRCH);
        }
        state.vectors = what;
    }
    tracee.resumed.wake_all();
    let answer = tracee.answered.wait_killable(|| {
        let mut state = tracee.state.lock();
        match core::mem::take(&mut state.vectors) {
            Exchange::Answered(answer) => Some(answer),
            asked if state.stop.is_some() => {
                state.vectors = asked;
                None
            }
            _ => Some(Err(Errno::ESRCH)),
        }
    });
    answer.unwrap_or(Err(Errno::EINTR))
}
