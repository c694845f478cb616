//! `splice`: between a pipe and another file, by way of a kernel buffer.

use super::file::{limit_size, too_big};
use crate::fs::pipe;
use crate::mm::fallible::TryVec;
use crate::mm::user::UserPtr;
use crate::mm::{Sink, Source};
use crate::syscall::caller::{file, not_negative, or_sigpipe};
use crate::vfs::notify::event;
use crate::vfs::{Abilities, DevId, FileType, OpenFile, notify};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

const NONBLOCK: u32 = 2;
const FLAGS: u32 = 15;
/// Most that one call moves: what a pipe holds by default.
const STEP: usize = 64 * 1024;

/// Where in a file bytes are, if not where it stands.
#[derive(Clone, Copy)]
pub enum Place {
    None,
    Given(i64),
    /// Where the number is, and where the one behind the bytes goes.
    User(UserPtr<i64>),
}

impl Place {
    fn of(offset: UserPtr<i64>) -> Self {
        offset.non_null().map_or(Self::None, Self::User)
    }

    fn is_none(self) -> bool {
        matches!(self, Self::None)
    }

    fn read(self) -> Result<Option<i64>> {
        match self {
            Self::None => Ok(None),
            Self::Given(at) => Ok(Some(at)),
            Self::User(at) => at.read().map(Some),
        }
    }

    fn write(self, end: u64) -> Result<()> {
        match self {
            Self::User(at) => at.write(&end.cast_signed()),
            _ => Ok(()),
        }
    }
}

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
    let (from, to) = (Place::of(from_offset), Place::of(to_offset));
    splice_files((&input, from), (&output, to), len, flags)
}

/// As [`splice`], of files, and more than nothing.
pub fn splice_files(
    (input, from_offset): (&Arc<OpenFile>, Place),
    (output, to_offset): (&Arc<OpenFile>, Place),
    len: usize,
    flags: u32,
) -> Result<usize> {
    let (from_pipe, to_pipe) = (pipe::is_pipe(input), pipe::is_pipe(output));
    if (from_pipe && !from_offset.is_none()) || (to_pipe && !to_offset.is_none()) {
        return Err(Errno::ESPIPE);
    }
    if !input.readable() || !output.writable() {
        return Err(Errno::EBADF);
    }
    // A pipe that does not block makes the call not block.
    let nonblock =
        flags & NONBLOCK != 0 || (from_pipe && input.nonblock()) || (to_pipe && output.nonblock());
    let step = Step { input, output, len: len.min(STEP), nonblock };
    let moved = match (from_pipe, to_pipe) {
        (true, true) => step.between_pipes(),
        (true, false) => step.out_of_pipe(to_offset),
        (false, true) => step.file_to_pipe(from_offset),
        (false, false) => Err(Errno::EINVAL),
    };
    let moved = or_sigpipe(output, moved)?;
    if moved != 0 {
        notify::file(output, event::MODIFY);
        notify::file(input, event::ACCESS);
    }
    Ok(moved)
}

/// Minor numbers of devices that know only the half of splice: `/dev/null` and `/dev/full`.
const NULL: u32 = 3;
const FULL: u32 = 7;

fn is_memory_device(file: &OpenFile, minor: u32) -> bool {
    file.kind() == FileType::Char && file.inode().attr().rdev() == DevId::new(1, minor)
}

struct Step<'a> {
    input: &'a Arc<OpenFile>,
    output: &'a Arc<OpenFile>,
    len: usize,
    nonblock: bool,
}

impl Step<'_> {
    fn buffer(&self) -> Result<Vec<u8>> {
        let mut buffer = Vec::with_room(self.len)?;
        buffer.try_resize(self.len, 0)?;
        Ok(buffer)
    }

    fn between_pipes(&self) -> Result<usize> {
        pipe::splice(self.input, self.output, self.len, self.nonblock)
    }

    fn out_of_pipe(&self, offset: Place) -> Result<usize> {
        if !self.output.ops().abilities().contains(Abilities::SPLICES) {
            return Err(Errno::EINVAL);
        }
        let at = offset.read()?;
        if at.is_some() && !self.output.seekable() {
            return Err(Errno::EINVAL);
        }
        if self.output.flags().contains(OpenFlags::APPEND) || is_memory_device(self.output, FULL) {
            return Err(Errno::EINVAL);
        }
        let at = at.map(not_negative).transpose()?;
        let mut buffer = self.buffer()?;
        let (mut got, mut room) = (0, 0);
        // Only what the other file took leaves the pipe.
        let put = pipe::pass_on(self.input, self.nonblock, &mut buffer, |bytes| {
            got = bytes.len();
            room = limit_size(self.output, at, got)?;
            let mut source = Source::kernel(&bytes[..room]);
            match at {
                None => self.output.write_unnotified(&mut source),
                Some(at) => self.output.write_at_unnotified(&mut source, at),
            }
        })?;
        if put == room && room < got {
            // As on Linux, which tries the next buffer: the caller gets the signal, and the count of what was written.
            too_big();
        }
        if let Some(at) = at {
            offset.write(at.saturating_add(put as u64))?;
        }
        Ok(put)
    }

    fn file_to_pipe(&self, offset: Place) -> Result<usize> {
        let splices = self.input.ops().abilities().contains(Abilities::SPLICES);
        if !splices || self.input.kind() == FileType::Dir || is_memory_device(self.input, NULL) {
            return Err(Errno::EINVAL);
        }
        let given = offset.read()?;
        let seekable = self.input.seekable();
        if given.is_some() && !seekable {
            return Err(Errno::EINVAL);
        }
        let given = given.map(not_negative).transpose()?;
        let mut buffer = self.buffer()?;
        if !seekable {
            // Not more than the pipe takes: the file cannot have it back.
            let room = pipe::wait_for_room(self.output, self.nonblock)?.min(buffer.len());
            let got = self.input.read(&mut Sink::kernel(&mut buffer[..room]))?;
            let mut source = Source::kernel(&buffer[..got]);
            // Should another writer have been faster, this waits, whatever signal comes: the bytes have nowhere to go back to.
            return pipe::write_all(self.output, &mut source);
        }
        let put = loop {
            // Waits before it has the position: nobody else who has the file open waits for room in this pipe.
            pipe::wait_for_room(self.output, self.nonblock)?;
            match self.read_to_pipe(given, &mut buffer) {
                // Another writer was faster.
                Err(Errno::EAGAIN) if !self.nonblock => {}
                put => break put?,
            }
        };
        if let Some(at) = given {
            offset.write(at.saturating_add(put as u64))?;
        }
        Ok(put)
    }

    /// Reads what a pipe has room for, at a place or where the file stands: only what the pipe took counts as read.
    fn read_to_pipe(&self, given: Option<u64>, buffer: &mut [u8]) -> Result<usize> {
        let uses_own = given.is_none() && self.input.uses_position();
        let mut own = uses_own.then(|| self.input.pos().lock());
        let at = given.or(own.as_deref().copied()).unwrap_or(0);
        let got = self.input.read_at_unnotified(&mut Sink::kernel(buffer), at)?;
        let put = pipe::write_with(self.output, true, &mut Source::kernel(&buffer[..got]))?;
        if let Some(own) = own.as_deref_mut() {
            *own = at.saturating_add(put as u64);
        }
        Ok(put)
    }
}
