//! `#!` lines, read as Linux reads them.

use crate::mm::Sink;
use crate::vfs::OpenFile;
use abi::{Errno, Result};

/// How much of a file Linux looks at.
pub(super) const START_LEN: usize = 256;

/// What a `#!` line names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) interpreter: &'a [u8],
    /// All that follows it, as one argument.
    pub(super) argument: Option<&'a [u8]>,
}

/// The first bytes of a file, zeros beyond its end.
pub(super) fn first_bytes(file: &OpenFile) -> Result<[u8; START_LEN]> {
    let mut start = [0; START_LEN];
    file.read_at(&mut Sink::kernel(&mut start), 0)?;
    Ok(start)
}

/// The interpreter line; `None` if the file is no script.
///
/// # Errors
/// `ENOEXEC` for a line without an interpreter, or one whose interpreter is cut off; `EACCES` when the file
/// ends where it should stand.
pub(super) fn parse(start: &[u8; START_LEN]) -> Result<Option<Line<'_>>> {
    let Some(rest) = start.strip_prefix(b"#!") else { return Ok(None) };
    // The last byte is not looked at.
    let rest = &rest[..rest.len() - 1];
    let blank = |b: &u8| *b == b' ' || *b == b'\t';
    let ends = |b: &u8| blank(b) || *b == 0;
    let line = match rest.iter().position(|&b| b == b'\n') {
        Some(end) => &rest[..end],
        None => {
            // Without a newline the interpreter's name at least must be whole.
            let name = rest.iter().position(|b| !blank(b)).ok_or(Errno::ENOEXEC)?;
            if !rest[name..].iter().any(ends) {
                return Err(Errno::ENOEXEC);
            }
            rest
        }
    };
    let line = match line.iter().rposition(|b| !blank(b)) {
        Some(last) => &line[..=last],
        None => return Err(Errno::ENOEXEC),
    };
    let name = line.iter().position(|b| !blank(b)).ok_or(Errno::ENOEXEC)?;
    let line = &line[name..];
    let (interpreter, after) = line.split_at(line.iter().position(ends).unwrap_or(line.len()));
    if interpreter.is_empty() {
        // Linux takes the empty name for the working directory, which may not be executed.
        return Err(Errno::EACCES);
    }
    let cut = after.iter().position(|&b| b == 0).unwrap_or(after.len());
    let after = &after[..cut];
    let argument = after.iter().position(|b| !blank(b)).map(|at| &after[at..]);
    Ok(Some(Line { interpreter, argument }))
}
