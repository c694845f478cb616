//! What a device says it uses: the descriptors of its `_CRS`, where that is a buffer of constants.
//!
//! Never leaves the slice it was given; a descriptor that it does not know is skipped by its length.

use crate::walk::{self, Declaration, Declarations};

const BUFFER: u8 = 0x11;
/// A large descriptor: the first byte's bit 7.
const LARGE: u8 = 0x80;
const MEMORY32_FIXED: u8 = 0x86;
/// A small one's type in bits 3 to 6.
const END: u8 = 0x0f;

/// The start and the length of the first area of memory.
pub fn area(device: &[u8]) -> Option<(u64, u64)> {
    let value = Declarations(device).find_map(|found| match found {
        Declaration::Name(name, value) if &name == b"_CRS" => Some(value),
        _ => None,
    })?;
    let (&BUFFER, rest) = value.split_first()? else { return None };
    let (inside, _) = walk::package(rest)?;
    // Its size, which may be larger than what is given.
    let (_, mut left) = walk::constant(inside)?;
    loop {
        let (&tag, rest) = left.split_first()?;
        let (content, behind) = if tag & LARGE != 0 {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?
        } else if tag >> 3 == END {
            return None;
        } else {
            rest.split_at_checked(usize::from(tag & 7))?
        };
        if tag == MEMORY32_FIXED {
            let word = |at: usize| Some(u32::from_le_bytes(*content.get(at..)?.first_chunk()?));
            return Some((u64::from(word(1)?), u64::from(word(5)?)));
        }
        left = behind;
    }
}
