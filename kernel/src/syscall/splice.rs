//! `splice`: between a pipe and another file, by way of a kernel buffer.

use super::caller::{file, not_negative, or_sigpipe};
use crate::fs::notify::{self, event};
use crate::fs::{OpenFile, pipe};
use crate::mm::iov::{Sink, Source};
use crate::mm::user::UserPtr;
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

const NONBLOCK: u32 = 2;
const FLAGS: u32 = 15;
/// Most that one call moves: what a pipe holds by default.
const STEP: usize = 64 * 1024;

pub fn splice(
    from: i32,
    from_offset: UserPtr<i64>,
    to: i32,
    to_offset: UserPtr<i64>,
    len: usize,
    flags: u32,
) -> Result<usize> {
    if len == 0 {
        return Ok(0);
    }
    if flags & !FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    let (input, output) = (file(from)?, file(to)?);
    let (from_pipe, to_pipe) = (pipe::is_pipe(&input), pipe::is_pipe(&output));
    if (from_pipe && !from_offset.is_null()) || (to_pipe && !to_offset.is_null()) {
        return Err(Errno::ESPIPE);
    }
    if !input.readable() || !output.writable() {
        return Err(Errno::EBADF);
    }
    let nonblock = flags & NONBLOCK != 0;
    let step = Step { input: &input, output: &output, len: len.min(STEP), nonblock };
    let moved = or_sigpipe(match (from_pipe, to_pipe) {
        (true, true) => step.between_pipes(),
        (true, false) => step.out_of_pipe(to_offset),
        (false, true) => step.file_to_pipe(from_offset),
        (false, false) => Err(Errno::EINVAL),
    })?;
    if moved != 0 {
        notify::file(&output, event::MODIFY);
        notify::file(&input, event::ACCESS);
    }
    Ok(moved)
}

struct Step<'a> {
    input: &'a Arc<OpenFile>,
    output: &'a Arc<OpenFile>,
    len: usize,
    nonblock: bool,
}

impl Step<'_> {
    fn buffer(&self) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(self.len).map_err(|_| Errno::ENOMEM)?;
        buffer.resize(self.len, 0);
        Ok(buffer)
    }

    fn between_pipes(&self) -> Result<usize> {
        let moved = pipe::tee(self.input, self.output, self.len, self.nonblock)?;
        // What was repeated is taken from the source, where it still is.
        let mut buffer = self.buffer()?;
        let mut taken = 0;
        while taken < moved {
            let mut sink = Sink::kernel(&mut buffer[..moved - taken]);
            match pipe::read_with(self.input, true, &mut sink) {
                // Another reader was faster: what it took is in both places, and there is no more.
                Ok(0) | Err(_) => break,
                Ok(more) => taken = taken.saturating_add(more),
            }
        }
        Ok(moved)
    }

    fn out_of_pipe(&self, offset: UserPtr<i64>) -> Result<usize> {
        let at = offset.non_null().map(UserPtr::read).transpose()?;
        if at.is_some() && !self.output.ops().seekable() {
            return Err(Errno::EINVAL);
        }
        if self.output.flags().contains(OpenFlags::APPEND) {
            return Err(Errno::EINVAL);
        }
        let at = at.map(not_negative).transpose()?;
        let mut buffer = self.buffer()?;
        let nonblock = self.nonblock || self.input.nonblock();
        let got = pipe::peek(self.input, nonblock, &mut buffer)?;
        let mut source = Source::kernel(&buffer[..got]);
        let put = match at {
            None => self.output.write_untold(&mut source)?,
            Some(at) => self.output.write_at_untold(&mut source, at)?,
        };
        // Only what the other file took leaves the pipe.
        let mut taken = 0;
        while taken < put {
            let mut sink = Sink::kernel(&mut buffer[..put - taken]);
            match pipe::read_with(self.input, true, &mut sink) {
                Ok(0) | Err(_) => break,
                Ok(n) => taken += n,
            }
        }
        if let Some(at) = at {
            offset.write(&at.saturating_add(put as u64).cast_signed())?;
        }
        Ok(put)
    }

    fn file_to_pipe(&self, offset: UserPtr<i64>) -> Result<usize> {
        let given = offset.non_null().map(UserPtr::read).transpose()?;
        let seekable = self.input.ops().seekable();
        if given.is_some() && !seekable {
            return Err(Errno::EINVAL);
        }
        let given = given.map(not_negative).transpose()?;
        let mut buffer = self.buffer()?;
        let nonblock = self.nonblock || self.output.nonblock();
        if !seekable {
            // Not more than the pipe takes: the file cannot have it back.
            let room = pipe::wait_for_room(self.output, nonblock)?.min(buffer.len());
            let got = self.input.read(&mut Sink::kernel(&mut buffer[..room]))?;
            let mut source = Source::kernel(&buffer[..got]);
            return pipe::write_with(self.output, nonblock, &mut source);
        }
        // Only what the pipe took counts as read.
        let mut own = self.input.pos().lock();
        let at = given.unwrap_or(*own);
        let got = self.input.read_at_untold(&mut Sink::kernel(&mut buffer), at)?;
        let put = pipe::write_with(self.output, nonblock, &mut Source::kernel(&buffer[..got]))?;
        let end = at.saturating_add(put as u64);
        match given {
            Some(_) => offset.write(&end.cast_signed())?,
            None => *own = end,
        }
        Ok(put)
    }
}
