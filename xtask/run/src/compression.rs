//! What a file is compressed with, by its first bytes, and its contents without that.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use anyhow::{Context, Result, bail};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use xtask_host::paths;

/// Opens `path` for what is in it, whatever it is compressed with.
pub fn open(path: &Path) -> Result<Box<dyn Read>> {
    let mut file =
        File::open(path).with_context(|| format!("cannot open {}", paths::shown(path)))?;
    let mut start = Vec::new();
    (&mut file).take(6).read_to_end(&mut start)?;
    file.rewind()?;
    let file = BufReader::with_capacity(1 << 16, file);
    Ok(match start[..] {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Box::new(lzma_rust2::XzReader::new(file, true)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(Zstd::open(file)?),
        [b'B', b'Z', b'h', ..] => bail!("{}: bzip2 is not known here", paths::shown(path)),
        _ => Box::new(file),
    })
}

type Frame = StreamingDecoder<BufReader<File>, FrameDecoder>;

/// All frames of a zstd file, one after the other.
struct Zstd(Option<Frame>);

impl Zstd {
    fn open(file: BufReader<File>) -> io::Result<Self> {
        Ok(Self(Some(Frame::new(file).map_err(io::Error::other)?)))
    }
}

impl Read for Zstd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(frame) = &mut self.0 {
            let length = frame.read(into)?;
            if length > 0 || into.is_empty() {
                return Ok(length);
            }
            let (mut rest, frame) = self.0.take().expect("it was there a line ago").into_parts();
            let given = frame.get_checksum_from_data();
            if given.is_some() && given != frame.get_calculated_checksum() {
                let text = "the contents do not have the checksum that stands at their end";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            if !rest.fill_buf()?.is_empty() {
                self.0 = Some(Frame::new(rest).map_err(io::Error::other)?);
            }
        }
        Ok(0)
    }
}
