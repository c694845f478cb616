//! The file header and where the program headers lie.

use crate::Error;
use elf::abi;

/// Bytes of the file header.
pub const HEADER_LEN: usize = 64;
/// Bytes of one program header.
pub const PHDR_LEN: usize = 56;
/// Linux reads at most this much of program headers.
const MAX_PHDRS_LEN: usize = 65_536;

/// How the image may be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// At the addresses it names.
    Fixed,
    /// Anywhere: position-independent.
    Anywhere,
}

/// What the file header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    pub entry: u64,
    /// Where the program headers lie in the file.
    pub phdrs_offset: u64,
    pub phdr_count: u16,
}

impl Header {
    /// Parses the first bytes of a file; a shorter file counts as continued with zeros.
    ///
    /// # Errors
    /// [`Error::NotExecutable`] for everything that Linux answers with `ENOEXEC`.
    pub fn parse(start: &[u8]) -> Result<Self, Error> {
        let mut bytes = [0; HEADER_LEN];
        let len = start.len().min(HEADER_LEN);
        bytes[..len].copy_from_slice(&start[..len]);
        // Linux looks at the magic number only, not at class and version: `e_machine` decides.
        if bytes[..4] != abi::ELFMAGIC {
            return Err(Error::NotExecutable);
        }
        let kind = match half(&bytes, 16) {
            abi::ET_EXEC => Kind::Fixed,
            abi::ET_DYN => Kind::Anywhere,
            _ => return Err(Error::NotExecutable),
        };
        let phdr_count = half(&bytes, 56);
        let usable = half(&bytes, 18) == abi::EM_X86_64
            && usize::from(half(&bytes, 54)) == PHDR_LEN
            && phdr_count != 0
            && usize::from(phdr_count) * PHDR_LEN <= MAX_PHDRS_LEN;
        if !usable {
            return Err(Error::NotExecutable);
        }
        Ok(Self { kind, entry: word(&bytes, 24), phdrs_offset: word(&bytes, 32), phdr_count })
    }

    /// Bytes that the program headers take in the file.
    pub fn phdrs_len(&self) -> usize {
        usize::from(self.phdr_count) * PHDR_LEN
    }
}

fn half(bytes: &[u8; HEADER_LEN], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8; HEADER_LEN], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
