//! Streaming gzip (RFC 1952) over the inflater of `miniz_oxide`.
#![forbid(unsafe_code)]

use alea_cpio::{BrokenInput, Input};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// How far back deflate refers at most.
const WINDOW: usize = 32 * 1024;

/// Whether `bytes` begin like gzip data.
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// One gzip member being decompressed.
pub struct Inflate<'a> {
    rest: &'a [u8],
    state: Box<DecompressorOxide>,
    window: Vec<u8>,
    /// The part of the window that has been produced and not consumed.
    ready: (usize, usize),
    done: bool,
    error: Option<&'static str>,
    crc: crc32fast::Hasher,
    len: u32,
}

impl<'a> Inflate<'a> {
    /// Reads the member's header.
    pub fn new(bytes: &'a [u8]) -> Result<Self, &'static str> {
        Ok(Self {
            rest: skip_header(bytes)?,
            state: Box::default(),
            window: vec![0; WINDOW],
            ready: (0, 0),
            done: false,
            error: None,
            crc: crc32fast::Hasher::new(),
            len: 0,
        })
    }

    /// Decompresses what is left, checks checksum and length, and returns what follows the member.
    pub fn finish(&mut self) -> Result<&'a [u8], &'static str> {
        loop {
            let len = self.chunk().map_or(0, <[u8]>::len);
            if len == 0 {
                break;
            }
            self.consume(len);
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        let trailer = self.rest.first_chunk::<8>().ok_or("the data are cut short")?;
        let [c0, c1, c2, c3, l0, l1, l2, l3] = *trailer;
        if u32::from_le_bytes([c0, c1, c2, c3]) != self.crc.clone().finalize() {
            return Err("the checksum does not match");
        }
        if u32::from_le_bytes([l0, l1, l2, l3]) != self.len {
            return Err("the length does not match");
        }
        Ok(&self.rest[8..])
    }

    fn produce(&mut self) {
        let start = self.ready.1 % WINDOW;
        let flags = TINFL_FLAG_HAS_MORE_INPUT;
        let (status, used, made) =
            decompress(&mut self.state, self.rest, &mut self.window, start, flags);
        self.rest = &self.rest[used..];
        self.ready = (start, start + made);
        let fresh = &self.window[start..start + made];
        self.crc.update(fresh);
        // The format keeps the length modulo 2^32.
        self.len = self.len.wrapping_add(made as u32);
        match status {
            TINFLStatus::Done => self.done = true,
            TINFLStatus::HasMoreOutput => {}
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                self.fail("the data are cut short");
            }
            _ => self.fail("the data are corrupt"),
        }
    }

    fn fail(&mut self, what: &'static str) {
        self.error = Some(what);
        self.done = true;
    }
}

impl Input for Inflate<'_> {
    fn chunk(&mut self) -> Result<&[u8], BrokenInput> {
        while self.ready.0 == self.ready.1 && !self.done {
            self.produce();
        }
        if self.ready.0 == self.ready.1 && self.error.is_some() {
            return Err(BrokenInput);
        }
        Ok(&self.window[self.ready.0..self.ready.1])
    }

    fn consume(&mut self, len: usize) {
        self.ready.0 = (self.ready.0 + len).min(self.ready.1);
    }
}

/// Skips the ten fixed bytes and the optional fields.
fn skip_header(bytes: &[u8]) -> Result<&[u8], &'static str> {
    const SHORT: &str = "the header is cut short";
    let (fixed, mut rest) = bytes.split_first_chunk::<10>().ok_or(SHORT)?;
    if fixed[2] != 8 {
        return Err("an unknown compression method");
    }
    let flags = fixed[3];
    if flags & 4 != 0 {
        let (len, tail) = rest.split_first_chunk::<2>().ok_or(SHORT)?;
        rest = tail.get(usize::from(u16::from_le_bytes(*len))..).ok_or(SHORT)?;
    }
    // The original name, and a comment.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|&b| b == 0).ok_or(SHORT)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..).ok_or(SHORT)?;
    }
    Ok(rest)
}
