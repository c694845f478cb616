//! The text of a random UUID, as `/proc/sys/kernel/random/uuid` shows it.
//!
//! Owns nothing. Never keeps the bytes that the text was made of. Lock rules: none.

use crate::block::wipe::wipe;

/// The text of a UUID of version 4 that is made of `bytes`, which are wiped.
///
/// ```
/// use alea_random::request::uuid_text;
/// let mut bytes = [0xff; 16];
/// assert_eq!(&uuid_text(&mut bytes), b"ffffffff-ffff-4fff-bfff-ffffffffffff");
/// assert_eq!(bytes, [0; 16]);
/// ```
pub fn uuid_text(bytes: &mut [u8; 16]) -> [u8; 36] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = [b'-'; 36];
    let places = (0..36).filter(|at| ![8, 13, 18, 23].contains(at));
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    for (at, nibble) in places.zip(nibbles) {
        text[at] = HEX[usize::from(nibble)];
    }
    wipe(bytes);
    text
}
