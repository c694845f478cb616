//! Known answers: whether this machine computes ChaCha20 and BLAKE2s as everybody else does.
//!
//! Owns the answers, published vectors, and the comparison. A kernel asks before its first key is made, and serves
//! nothing as random if one is wrong ([`Credit::condemn`](crate::credit::Credit::condemn)): a miscompiled cipher or a CPU
//! that adds wrongly looks random to every statistical test. Lock rules: none.

use core::fmt;

use crate::block::{BLOCK_LEN, Block, BlockGenerator, GROUP_BLOCKS, Key, Portable};
use crate::pool;

/// What has an answer to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// ChaCha20 in integer registers.
    ChaCha20,
    /// ChaCha20 in vector registers, as the kernel draws.
    Vector,
    /// ChaCha20 of the vDSO's image.
    Vdso,
    /// Keyed BLAKE2s, as the pools use it.
    Blake2s,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ChaCha20, Self::Vector, Self::Vdso, Self::Blake2s];

    /// Its name, on a command line and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChaCha20 => "chacha20",
            Self::Vector => "vector",
            Self::Vdso => "vdso",
            Self::Blake2s => "blake2s",
        }
    }
}

/// The part that gave a wrong answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong(pub Part);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} gives a wrong answer", self.0.name())
    }
}

impl core::error::Error for Wrong {}

/// Blocks of a question to a vector unit: two groups, the counter starts where none is zero.
pub const QUESTION_BLOCKS: usize = 2 * GROUP_BLOCKS;

/// The counter that a question to a vector unit starts at.
pub const QUESTION_COUNTER: u32 = 7;

/// The key of a question to a vector unit.
pub const QUESTION_KEY: [u8; 32] = [0x42; 32];

/// Asks every part but those of vector units: ChaCha20 in integer registers, and BLAKE2s. `spoilt` is a part whose answer
/// is made wrong by one bit, to see that it is looked at.
pub fn check(spoilt: Option<Part>) -> Result<(), Wrong> {
    let spoil = |part| u8::from(spoilt == Some(part));
    chacha20(&Portable, spoil(Part::ChaCha20)).ok_or(Wrong(Part::ChaCha20))?;
    blake2s(spoil(Part::Blake2s)).ok_or(Wrong(Part::Blake2s))
}

/// RFC 8439, appendix A.1, vectors 1, 2 and 4, whose nonce is zero as ours always is.
fn chacha20(blocks: &impl BlockGenerator, spoil: u8) -> Option<()> {
    let mut second_byte = [0; 32];
    second_byte[1] = 0xff;
    let mut out = [[0; BLOCK_LEN]; 2];
    blocks.fill(&Key::new([0; 32]), 0, &mut out);
    out[0][0] ^= spoil;
    let (first, second) = (&out[0], &out[1]);
    (*first == ZERO_KEY[0] && *second == ZERO_KEY[1]).then_some(())?;
    let mut out = [[0; BLOCK_LEN]];
    blocks.fill(&Key::new(second_byte), 2, &mut out);
    (out[0] == SECOND_BYTE).then_some(())
}

/// The BLAKE2 team's vectors of keyed BLAKE2s for inputs of none and of 255 bytes, four blocks.
fn blake2s(spoil: u8) -> Option<()> {
    let key = core::array::from_fn(|n| n as u8);
    let input: [u8; 255] = core::array::from_fn(|n| n as u8);
    let right = [(0, KEYED_EMPTY), (input.len(), KEYED_255)].iter().all(|(len, expected)| {
        let mut made = pool::mac(&key, &input[..*len]);
        made[0] ^= spoil;
        made == *expected
    });
    right.then_some(())
}

/// Judges what a vector unit made of [`QUESTION_KEY`] from block [`QUESTION_COUNTER`] on. Words of a group come out
/// interleaved, `lanes` blocks side by side (4, 8, or 1 for none); in order they are what [`Portable`] makes, which
/// [`check`] has looked at.
pub fn check_group(
    part: Part,
    made: &mut [Block; QUESTION_BLOCKS],
    lanes: usize,
    spoilt: Option<Part>,
) -> Result<(), Wrong> {
    made[0][0] ^= u8::from(spoilt == Some(part));
    let mut expected = [[0; BLOCK_LEN]; QUESTION_BLOCKS];
    Portable.fill(&Key::new(QUESTION_KEY), QUESTION_COUNTER, &mut expected);
    let words = expected.as_flattened().chunks(4).enumerate();
    let right = words.into_iter().all(|(n, word)| {
        let (block, index) = (n / 16, n % 16);
        let at = (block / lanes * 16 + index) * lanes + block % lanes;
        made.as_flattened().get(at * 4..at * 4 + 4) == Some(word)
    });
    if right { Ok(()) } else { Err(Wrong(part)) }
}

/// ChaCha20 of a key of zeros, blocks 0 and 1.
const ZERO_KEY: [Block; 2] = [
    [
        0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd,
        0x28, 0xbd, 0xd2, 0x19, 0xb8, 0xa0, 0x8d, 0xed, 0x1a, 0xa8, 0x36, 0xef, 0xcc, 0x8b, 0x77,
        0x0d, 0xc7, 0xda, 0x41, 0x59, 0x7c, 0x51, 0x57, 0x48, 0x8d, 0x77, 0x24, 0xe0, 0x3f, 0xb8,
        0xd8, 0x4a, 0x37, 0x6a, 0x43, 0xb8, 0xf4, 0x15, 0x18, 0xa1, 0x1c, 0xc3, 0x87, 0xb6, 0x69,
        0xb2, 0xee, 0x65, 0x86,
    ],
    [
        0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a, 0x98, 0xba, 0x97, 0x7c, 0x73, 0x2d, 0x08,
        0x0d, 0xcb, 0x0f, 0x29, 0xa0, 0x48, 0xe3, 0x65, 0x69, 0x12, 0xc6, 0x53, 0x3e, 0x32, 0xee,
        0x7a, 0xed, 0x29, 0xb7, 0x21, 0x76, 0x9c, 0xe6, 0x4e, 0x43, 0xd5, 0x71, 0x33, 0xb0, 0x74,
        0xd8, 0x39, 0xd5, 0x31, 0xed, 0x1f, 0x28, 0x51, 0x0a, 0xfb, 0x45, 0xac, 0xe1, 0x0a, 0x1f,
        0x4b, 0x79, 0x4d, 0x6f,
    ],
];

/// ChaCha20 of a key whose second byte alone is 255, block 2.
const SECOND_BYTE: Block = [
    0x72, 0xd5, 0x4d, 0xfb, 0xf1, 0x2e, 0xc4, 0x4b, 0x36, 0x26, 0x92, 0xdf, 0x94, 0x13, 0x7f, 0x32,
    0x8f, 0xea, 0x8d, 0xa7, 0x39, 0x90, 0x26, 0x5e, 0xc1, 0xbb, 0xbe, 0xa1, 0xae, 0x9a, 0xf0, 0xca,
    0x13, 0xb2, 0x5a, 0xa2, 0x6c, 0xb4, 0xa6, 0x48, 0xcb, 0x9b, 0x9d, 0x1b, 0xe6, 0x5b, 0x2c, 0x09,
    0x24, 0xa6, 0x6c, 0x54, 0xd5, 0x45, 0xec, 0x1b, 0x73, 0x74, 0xf4, 0x87, 0x2e, 0x99, 0xf0, 0x96,
];

/// BLAKE2s-256 of nothing, under the key 0, 1, ..., 31.
const KEYED_EMPTY: [u8; 32] = [
    0x48, 0xa8, 0x99, 0x7d, 0xa4, 0x07, 0x87, 0x6b, 0x3d, 0x79, 0xc0, 0xd9, 0x23, 0x25, 0xad, 0x3b,
    0x89, 0xcb, 0xb7, 0x54, 0xd8, 0x6a, 0xb7, 0x1a, 0xee, 0x04, 0x7a, 0xd3, 0x45, 0xfd, 0x2c, 0x49,
];

/// BLAKE2s-256 of 0, 1, ..., 254, under the key 0, 1, ..., 31.
const KEYED_255: [u8; 32] = [
    0x3f, 0xb7, 0x35, 0x06, 0x1a, 0xbc, 0x51, 0x9d, 0xfe, 0x97, 0x9e, 0x54, 0xc1, 0xee, 0x5b, 0xfa,
    0xd0, 0xa9, 0xd8, 0x58, 0xb3, 0x31, 0x5b, 0xad, 0x34, 0xbd, 0xe9, 0x99, 0xef, 0xd7, 0x24, 0xdd,
];
