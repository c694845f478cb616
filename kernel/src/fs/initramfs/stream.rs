//! xz and zstd, piece by piece, by the decoders of `lzma-rust2` and `ruzstd`.
//!
//! A stream that wants a larger window than half of the free memory is refused: the kernel's heap must not fail for it.
#![forbid(unsafe_code)]

use crate::base::PAGE_SIZE;
use crate::mm::frames;
use alea_cpio::{BrokenInput, Input};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use lzma_rust2::XzReader;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// How much is decoded at once.
const PIECE: usize = 64 * 1024;

/// What is left of the input, shared by the decoder and by whoever reads on after the stream.
#[derive(Clone)]
struct Cursor<'a>(Rc<Cell<&'a [u8]>>);

impl Cursor<'_> {
    fn give(&self, into: &mut [u8]) -> usize {
        let rest = self.0.get();
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        self.0.set(&rest[len..]);
        len
    }
}

impl lzma_rust2::Read for Cursor<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, lzma_rust2::Error> {
        Ok(self.give(into))
    }
}

impl ruzstd::io::Read for Cursor<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, ruzstd::io::Error> {
        Ok(self.give(into))
    }
}

enum Decoder<'a> {
    Xz(Box<XzReader<Cursor<'a>>>),
    Zstd(Box<StreamingDecoder<Cursor<'a>, FrameDecoder>>),
}

impl Decoder<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, BrokenInput> {
        match self {
            Self::Xz(reader) => {
                lzma_rust2::Read::read(&mut **reader, into).map_err(|_| BrokenInput)
            }
            Self::Zstd(reader) => {
                let len = ruzstd::io::Read::read(&mut **reader, into).map_err(|_| BrokenInput)?;
                if len == 0 && !is_whole(&reader.decoder) {
                    return Err(BrokenInput);
                }
                Ok(len)
            }
        }
    }
}

/// Whether what was decoded has the checksum that its frame gives, if it gives one: the decoder leaves that to its user.
fn is_whole(frame: &FrameDecoder) -> bool {
    let given = frame.get_checksum_from_data();
    given.is_none() || given == frame.get_calculated_checksum()
}

/// One xz stream or zstd frame being decoded.
pub struct Decoded<'a> {
    decoder: Decoder<'a>,
    rest: Cursor<'a>,
    piece: Vec<u8>,
    /// The part of the piece that has been decoded and not consumed.
    ready: (usize, usize),
    broken: bool,
}

impl<'a> Decoded<'a> {
    /// The stream that `bytes` begin with; `None` if it is neither xz nor zstd.
    pub fn new(bytes: &'a [u8]) -> Result<Option<Self>, &'static str> {
        let rest = Cursor(Rc::new(Cell::new(bytes)));
        let window = frames::stats().free * PAGE_SIZE as u64 / 2;
        let decoder = if bytes.starts_with(b"\xfd7zXZ\0") {
            let kib = u32::try_from(window / 1024).unwrap_or(u32::MAX);
            Decoder::Xz(Box::new(XzReader::new_mem_limit(rest.clone(), false, kib)))
        } else if bytes.starts_with(b"\x28\xb5\x2f\xfd") {
            let reader = StreamingDecoder::new_with_max_window_size(rest.clone(), window);
            Decoder::Zstd(Box::new(reader.map_err(|_| "a bad header, or too large a window")?))
        } else {
            return Ok(None);
        };
        Ok(Some(Self { decoder, rest, piece: vec![0; PIECE], ready: (0, 0), broken: false }))
    }

    /// Decodes what is left, compares its checksum and returns what follows the stream.
    pub fn finish(&mut self) -> Result<&'a [u8], &'static str> {
        while let Ok(len @ 1..) = self.chunk().map(<[u8]>::len) {
            self.consume(len);
        }
        if self.broken {
            Err("the data are corrupt, cut short, or want too large a window")
        } else {
            Ok(self.rest.0.get())
        }
    }
}

impl Input for Decoded<'_> {
    fn chunk(&mut self) -> Result<&[u8], BrokenInput> {
        if self.ready.0 == self.ready.1 && !self.broken {
            match self.decoder.read(&mut self.piece) {
                Ok(len) => self.ready = (0, len),
                Err(BrokenInput) => self.broken = true,
            }
        }
        if self.broken {
            return Err(BrokenInput);
        }
        Ok(&self.piece[self.ready.0..self.ready.1])
    }

    fn consume(&mut self, len: usize) {
        self.ready.0 = (self.ready.0 + len).min(self.ready.1);
    }
}
