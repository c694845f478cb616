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
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Box::new(Zstd(next_frame(file)?))
        }
        [b'B', b'Z', b'h', ..] => bail!("{}: bzip2 is not known here", paths::shown(path)),
        _ => Box::new(file),
    })
}

/// The first word of a frame that is skipped, but for its last four bits.
const SKIPPED: u32 = 0x184d_2a50;

type Frame = StreamingDecoder<BufReader<File>, FrameDecoder>;

/// All frames of a zstd file, one after the other.
struct Zstd(Option<Frame>);

/// The next frame of a zstd file, behind those that hold what only some programs know: none at the end.
fn next_frame(mut from: BufReader<File>) -> io::Result<Option<Frame>> {
    loop {
        if from.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut word = [0; 4];
        from.read_exact(&mut word)?;
        if u32::from_le_bytes(word) & !0xf != SKIPPED {
            from.seek_relative(-4)?;
            return Frame::new(from).map(Some).map_err(io::Error::other);
        }
        from.read_exact(&mut word)?;
        let length = u64::from(u32::from_le_bytes(word));
        if io::copy(&mut (&mut from).take(length), &mut io::sink())? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

impl Read for Zstd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(frame) = &mut self.0 {
            let length = frame.read(into)?;
            if length > 0 || into.is_empty() {
                return Ok(length);
            }
            let (rest, frame) = self.0.take().expect("it was there a line ago").into_parts();
            let given = frame.get_checksum_from_data();
            if given.is_some() && given != frame.get_calculated_checksum() {
                let text = "the contents do not have the checksum that stands at their end";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            self.0 = next_frame(rest)?;
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_not_known_are_skipped() {
        // "hi" in one frame without a checksum, and what zstd:chunked puts behind.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 2, 0x11, 0, 0, b'h', b'i'];
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let read = |parts: &[&[u8]]| -> Result<Vec<u8>> {
            let file = tempfile::NamedTempFile::new()?;
            std::fs::write(file.path(), parts.concat())?;
            let mut text = Vec::new();
            open(file.path())?.read_to_end(&mut text)?;
            Ok(text)
        };
        assert_eq!(read(&[&frame]).unwrap(), b"hi");
        assert_eq!(read(&[&skipped, &frame, &skipped, &frame, &skipped]).unwrap(), b"hihi");
        assert!(read(&[&frame, &skipped[..9]]).is_err());
        assert!(read(&[&frame, &[1, 2, 3, 4]]).is_err());
    }
}
