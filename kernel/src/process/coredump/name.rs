//! From the pattern to the name of a core, or to the words of the program that takes it.
//!
//! Owns nothing. Never looks at a file. Locks: none.

use crate::mm::fallible::{TryGrow, TryVec};
use crate::try_format;
use abi::{Errno, Result};
use alloc::vec::Vec;

/// What a pattern may name.
pub(super) struct Facts<'a> {
    pub pid: i32,
    pub tid: i32,
    pub uid: u32,
    pub gid: u32,
    pub dumpable: u32,
    pub signal: i32,
    pub limit: u64,
    pub cpu: usize,
    /// Seconds since 1970.
    pub time: u64,
    pub host: &'a [u8],
    pub comm: &'a [u8],
    /// Where the executable lies.
    pub exe: Option<&'a [u8]>,
}

/// Where a core goes.
pub(super) enum Name {
    File(Vec<u8>),
    /// A program and its arguments.
    Pipe(Vec<Vec<u8>>),
}

/// The name that `pattern` makes of the facts; `uses_pid` as in `kernel.core_uses_pid`.
///
/// # Errors
/// `EINVAL` for a pipe to nobody, `ENOMEM`.
pub(super) fn expand(pattern: &[u8], uses_pid: bool, facts: &Facts<'_>) -> Result<Name> {
    if let [b'|', command @ ..] = pattern {
        return words(command, facts).map(Name::Pipe);
    }
    let mut name = Vec::new();
    let names_pid = part(pattern, facts, &mut name)?;
    if uses_pid && !names_pid {
        name.try_extend_from_slice(try_format!(".{}", facts.pid)?.as_bytes())?;
    }
    Ok(Name::File(name))
}

/// Words are told apart before they are expanded: a name with a space in it stays one.
fn words(command: &[u8], facts: &Facts<'_>) -> Result<Vec<Vec<u8>>> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let mut words = Vec::new();
    for word in command.split(is_space).filter(|word| !word.is_empty()) {
        let mut expanded = Vec::new();
        part(word, facts, &mut expanded)?;
        words.try_push(expanded)?;
    }
    if words.is_empty() { Err(Errno::EINVAL) } else { Ok(words) }
}

/// Adds what `pattern` stands for to `out`; whether it has `%p`.
fn part(pattern: &[u8], facts: &Facts<'_>, out: &mut Vec<u8>) -> Result<bool> {
    let mut names_pid = false;
    let mut rest = pattern.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            out.try_push(byte)?;
            continue;
        }
        // A single one at the end is dropped.
        let Some(&specifier) = rest.next() else { break };
        names_pid |= specifier == b'p';
        specified(specifier, facts, out)?;
    }
    Ok(names_pid)
}

fn specified(specifier: u8, facts: &Facts<'_>, out: &mut Vec<u8>) -> Result<()> {
    let number = match specifier {
        b'%' => return out.try_push(b'%'),
        b'h' => return component(facts.host, out),
        b'e' => return component(facts.comm, out),
        b'f' | b'E' => return executable(specifier == b'f', facts, out),
        b'p' | b'P' => try_format!("{}", facts.pid)?,
        b'i' | b'I' => try_format!("{}", facts.tid)?,
        b'u' => try_format!("{}", facts.uid)?,
        b'g' => try_format!("{}", facts.gid)?,
        b'd' => try_format!("{}", facts.dumpable)?,
        b's' => try_format!("{}", facts.signal)?,
        b't' => try_format!("{}", facts.time)?,
        b'c' => try_format!("{}", facts.limit)?,
        b'C' => try_format!("{}", facts.cpu)?,
        // As on Linux, one that is not known is nothing.
        _ => return Ok(()),
    };
    out.try_extend_from_slice(number.as_bytes())
}

fn executable(name_only: bool, facts: &Facts<'_>, out: &mut Vec<u8>) -> Result<()> {
    match facts.exe {
        Some(path) if name_only => {
            component(path.rsplit(|&byte| byte == b'/').next().unwrap_or(path), out)
        }
        Some(path) => component(path, out),
        None => {
            component(facts.comm, out)?;
            out.try_extend_from_slice(b" (path unknown)")
        }
    }
}

/// Adds a name that the dying process may have chosen: it must not lead to another directory.
fn component(name: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let from = out.len();
    match name {
        b"" => return out.try_push(b'!'),
        b"." | b".." => {
            out.try_push(b'!')?;
            out.try_extend_from_slice(&name[1..])?;
        }
        name => out.try_extend_from_slice(name)?,
    }
    out[from..].iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'!');
    Ok(())
}
