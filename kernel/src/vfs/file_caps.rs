//! [`FileCaps`]: the capabilities that a program gives whoever executes it, as the attribute `security.capability` keeps them.
//!
//! Owns nothing: the file system keeps the value, and an inode's attributes whether there is one. Never decides what an exec makes of
//! them. Locks: none.
#![forbid(unsafe_code)]

use super::cred::{CapSet, Capability, Cred};
use super::object::inode::{Inode, XattrValue};
use crate::mm::fallible::{TrySlice, try_arc};
use abi::{Errno, Result};
use alloc::vec::Vec;

/// The attribute's name.
pub const NAME: &[u8] = b"security.capability";

const REVISION_MASK: u32 = 0xff00_0000;
const REVISION_1: u32 = 0x0100_0000;
const REVISION_2: u32 = 0x0200_0000;
const REVISION_3: u32 = 0x0300_0000;
const EFFECTIVE: u32 = 1;

/// What a file gives.
pub struct FileCaps {
    pub permitted: CapSet,
    pub inheritable: CapSet,
    /// Whether they are in effect at once.
    pub effective: bool,
}

/// A value: words of 32 bits, of which the last of revision 3 is the user who is root where it counts.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn word(&self, at: usize) -> Option<u32> {
        self.0.get(4 * at..4 * at + 4)?.try_into().ok().map(u32::from_le_bytes)
    }

    /// Its revision, if it is as long as one of that revision is.
    fn revision(&self) -> Option<u32> {
        let revision = self.word(0)? & REVISION_MASK;
        let len = match revision {
            REVISION_1 => 12,
            REVISION_2 => 20,
            REVISION_3 => 24,
            _ => return None,
        };
        (self.0.len() == len).then_some(revision)
    }

    /// Whether its first word says nothing but the revision and that they are in effect.
    fn is_plain(&self) -> bool {
        self.word(0).is_some_and(|first| first & !(REVISION_MASK | EFFECTIVE) == 0)
    }

    /// The user in whose namespace it counts; 0 is everybody's.
    fn root(&self) -> u32 {
        self.word(5).unwrap_or(0)
    }
}

/// Whether `cred` may give a file this value: EINVAL, EPERM. Linux lets anybody give any file an empty one, which takes its
/// capabilities away and has its exec fail; here that is for those who may give it others.
pub fn check_set(value: &[u8], cred: &Cred) -> Result<()> {
    if value.is_empty() {
        return check_change(cred);
    }
    let words = Words(value);
    if !matches!(words.revision(), Some(REVISION_2 | REVISION_3)) || !words.is_plain() {
        return Err(Errno::EINVAL);
    }
    check_change(cred)?;
    if words.root() == u32::MAX { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Whether `cred` may take it away: EPERM.
pub fn check_change(cred: &Cred) -> Result<()> {
    if cred.capable(Capability::SETFCAP) { Ok(()) } else { Err(Errno::EPERM) }
}

/// The value as it is read: what counts for everybody is shown as revision 2. EINVAL for what is none.
pub fn shown(value: XattrValue) -> Result<XattrValue> {
    let words = Words(&value);
    match words.revision() {
        Some(REVISION_2) => Ok(value),
        Some(REVISION_3) if words.root() != 0 => Ok(value),
        Some(REVISION_3) => {
            let mut bytes: Vec<u8> = value[..20].try_owned()?;
            bytes[3] = (REVISION_2 >> 24) as u8;
            try_arc(bytes)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// What a file gives, if it gives anything here; EINVAL for a value that is none.
pub fn of(inode: &dyn Inode) -> Result<Option<FileCaps>> {
    if !inode.attr().has_file_caps() {
        return Ok(None);
    }
    let value = match inode.xattr(NAME) {
        Ok(value) => value,
        Err(Errno::ENODATA) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let words = Words(&value);
    let revision = words.revision().ok_or(Errno::EINVAL)?;
    if words.root() != 0 {
        return Ok(None);
    }
    let pair = |low: usize| {
        let high = if revision == REVISION_1 { None } else { words.word(low + 2) };
        let bits = u64::from(high.unwrap_or(0)) << 32 | u64::from(words.word(low).unwrap_or(0));
        CapSet::from_bits(bits)
    };
    let effective = words.word(0).is_some_and(|first| first & EFFECTIVE != 0);
    Ok(Some(FileCaps { permitted: pair(1), inheritable: pair(2), effective }))
}

/// A change of the contents or the owner takes them away, whoever makes it. An empty value stays, as on Linux.
#[inline]
pub fn drop_from(inode: &dyn Inode) {
    if inode.attr().has_file_caps() {
        take_from(inode);
    }
}

#[cold]
fn take_from(inode: &dyn Inode) {
    if inode.xattr(NAME).is_ok_and(|value| !value.is_empty())
        && let Err(errno) = inode.remove_xattr(NAME)
    {
        // Somebody else has taken it away meanwhile.
        debug_assert_eq!(errno, Errno::ENODATA);
    }
}
