//! Packets of GDB's remote serial protocol: framed, summed, escaped, acknowledged.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Packets in both directions.
pub(super) struct Line {
    stream: UnixStream,
    unread: Vec<u8>,
}

/// Nothing came within the limit.
#[derive(Debug)]
struct Silence;

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QEMU's gdb stub is silent")
    }
}

impl std::error::Error for Silence {}

pub(super) fn is_silence(error: &anyhow::Error) -> bool {
    error.is::<Silence>()
}

impl Line {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream, unread: Vec::new() }
    }

    /// What stands outside any packet.
    pub(super) fn send_byte(&mut self, byte: u8) -> Result<()> {
        self.stream.write_all(&[byte]).context("QEMU's gdb stub is gone")
    }

    pub(super) fn send(&mut self, content: &str) -> Result<()> {
        self.stream.write_all(&frame(content)).context("QEMU's gdb stub is gone")
    }

    /// The content of the next packet, which is acknowledged.
    pub(super) fn receive(&mut self, limit: Duration) -> Result<Vec<u8>> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some((content, length)) = unframe(&self.unread)? {
                self.unread.drain(..length);
                // A machine that has ended has told so, and hears nothing more.
                let _ = self.stream.write_all(b"+");
                return Ok(content);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Silence.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            let mut buffer = [0; 16384];
            match self.stream.read(&mut buffer) {
                Ok(0) => bail!("QEMU's gdb stub is closed"),
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("QEMU's gdb stub is gone"),
            }
        }
    }
}

/// The sum that ends a packet.
fn checksum(content: &[u8]) -> u8 {
    content.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

/// A packet with this content, which has none of `#`, `$`, `*` and `}`.
fn frame(content: &str) -> Vec<u8> {
    format!("${content}#{:02x}", checksum(content.as_bytes())).into_bytes()
}

/// The content of the first packet in `bytes` and how many bytes it took, acknowledgements before it included;
/// nothing while its end is missing.
fn unframe(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
    let Some(start) = bytes.iter().position(|byte| *byte == b'$') else { return Ok(None) };
    if bytes[..start].contains(&b'-') {
        bail!("the stub did not understand a packet");
    }
    let Some(length) = bytes[start..].iter().position(|byte| *byte == b'#') else {
        return Ok(None);
    };
    let end = start + length;
    let Some(sum) = bytes.get(end + 1..end + 3) else { return Ok(None) };
    let content = &bytes[start + 1..end];
    ensure!(unhex(sum)? == [checksum(content)], "a packet of the stub is spoilt");
    Ok(Some((expand(content)?, end + 3)))
}

/// Undoes escapes (`}` and a byte XOR 0x20) and runs (`*` and a count + 29) of a packet's content.
fn expand(content: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(content.len());
    let mut bytes = content.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'}' => out.push(bytes.next().context("an escape of nothing")? ^ 0x20),
            b'*' => {
                let count = bytes.next().and_then(|count| count.checked_sub(29));
                let (count, last) = (count.context("a run of nothing")?, out.last().copied());
                let last = last.context("a run of nothing")?;
                out.extend(std::iter::repeat_n(last, usize::from(count)));
            }
            _ => out.push(byte),
        }
    }
    Ok(out)
}

pub(super) fn unhex(text: &[u8]) -> Result<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        &[high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    };
    text.chunks(2)
        .map(byte)
        .collect::<Option<_>>()
        .with_context(|| format!("the stub says {:?}", show(text)))
}

pub(super) fn show(answer: &[u8]) -> String {
    String::from_utf8_lossy(&answer[..answer.len().min(80)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_framed_with_their_sum() {
        assert_eq!(frame("OK"), b"$OK#9a");
        assert_eq!(frame(""), b"$#00");
        assert_eq!(frame("vCont;c"), b"$vCont;c#a8");
        assert_eq!(checksum(&[0xff, 2]), 1);
    }

    #[test]
    fn packets_are_found_behind_acknowledgements_and_only_when_whole() {
        let whole = b"+$OK#9a$T05";
        assert_eq!(unframe(whole).unwrap(), Some((b"OK".to_vec(), 7)));
        for cut in 0..7 {
            assert_eq!(unframe(&whole[..cut]).unwrap(), None, "{cut}");
        }
        assert!(unframe(b"$OK#9b").is_err(), "a wrong sum");
        assert!(unframe(b"-$OK#9a").is_err(), "not understood");
    }

    #[test]
    fn escapes_and_runs_are_undone() {
        assert_eq!(expand(b"a}\x03b").unwrap(), b"a#b");
        assert_eq!(expand(b"0* 1").unwrap(), b"00001");
        assert!(expand(b"a}").is_err() && expand(b"* ").is_err() && expand(b"0*\x1c").is_err());
    }

    #[test]
    fn hexadecimal_is_read() {
        assert_eq!(unhex(b"00fF12").unwrap(), [0, 0xff, 0x12]);
        assert!(unhex(b"E1 ").is_err() && unhex(b"abc").is_err());
    }
}
