//! The reader against archives made here, and against garbage.

use alea_cpio::{Archive, Error, Header, NAME_LIMIT, Problem};
use proptest::prelude::*;

/// Appends one entry as `cpio -o -H newc` (or `crc`) writes it.
fn push(archive: &mut Vec<u8>, magic: &str, name: &str, mode: u32, ino: u32, data: &[u8]) {
    let sum = data.iter().fold(0u32, |s, &b| s.wrapping_add(b.into()));
    let sum = if magic == "070702" { sum } else { 0 };
    let fields = [
        ino,
        mode,
        1,
        2,
        1,
        1_700_000_000,
        data.len() as u32,
        8,
        1,
        5,
        6,
        name.len() as u32 + 1,
        sum,
    ];
    archive.extend_from_slice(magic.as_bytes());
    for field in fields {
        archive.extend_from_slice(format!("{field:08X}").as_bytes());
    }
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    archive.resize(archive.len().next_multiple_of(4), 0);
    archive.extend_from_slice(data);
    archive.resize(archive.len().next_multiple_of(4), 0);
}

fn trailer(archive: &mut Vec<u8>) {
    push(archive, "070701", "TRAILER!!!", 0, 0, b"");
}

struct Entry {
    header: Header,
    name: Vec<u8>,
    data: Vec<u8>,
}

/// Gives the bytes in pieces of three, as a decompressor might.
struct Pieces<'a>(&'a [u8]);

impl alea_cpio::Input for Pieces<'_> {
    fn chunk(&mut self) -> Result<&[u8], alea_cpio::BrokenInput> {
        Ok(&self.0[..self.0.len().min(3)])
    }
    fn consume(&mut self, len: usize) {
        self.0 = &self.0[len..];
    }
}

fn read_all(input: impl alea_cpio::Input) -> Result<Vec<Entry>, Error> {
    let mut archive = Archive::new(input);
    let mut name = [0; NAME_LIMIT];
    let mut entries = Vec::new();
    while let Some((header, len)) = archive.next(&mut name)? {
        let mut data = Vec::new();
        loop {
            let chunk = archive.data()?;
            if chunk.is_empty() {
                break;
            }
            data.extend_from_slice(chunk);
            let len = chunk.len();
            archive.consume(len)?;
        }
        entries.push(Entry { header, name: name[..len].to_vec(), data });
    }
    Ok(entries)
}

fn entries(archive: &[u8]) -> Result<Vec<Entry>, Error> {
    let whole = read_all(archive);
    let pieces = read_all(Pieces(archive));
    assert_eq!(whole.as_ref().map(Vec::len).ok(), pieces.as_ref().map(Vec::len).ok());
    assert_eq!(whole.as_ref().err(), pieces.as_ref().err());
    whole
}

fn problem(archive: &[u8]) -> Problem {
    entries(archive).err().expect("the archive is bad").problem
}

#[test]
fn reads_what_was_written() {
    let mut archive = Vec::new();
    push(&mut archive, "070701", "bin", 0o40755, 1, b"");
    push(&mut archive, "070702", "bin/sh", 0o100755, 2, b"\x7fELF...");
    push(&mut archive, "070701", "null", 0o20666, 3, b"");
    trailer(&mut archive);
    let read = entries(&archive).unwrap();
    assert_eq!(read.len(), 3);
    assert_eq!(read[1].name, b"bin/sh");
    assert_eq!(read[1].data, b"\x7fELF...");
    assert_eq!(
        (read[1].header.uid, read[1].header.gid, read[1].header.mtime),
        (1, 2, 1_700_000_000)
    );
    assert_eq!((read[2].header.dev, read[2].header.rdev), ((8, 1), (5, 6)));
}

#[test]
fn archives_may_follow_each_other() {
    let mut archive = Vec::new();
    push(&mut archive, "070701", "a", 0o100644, 1, b"1");
    trailer(&mut archive);
    archive.resize(archive.len() + 509, 0);
    push(&mut archive, "070701", "b", 0o100644, 1, b"2");
    trailer(&mut archive);
    archive.resize(archive.len() + 3, 0);
    assert_eq!(entries(&archive).unwrap().len(), 2);
    assert!(entries(&[]).unwrap().is_empty());
    assert!(entries(&[0; 512]).unwrap().is_empty());
    archive.extend_from_slice(&[0x1f, 0x8b]);
    assert_eq!(entries(&archive).unwrap().len(), 2);
}

#[test]
fn bad_archives_are_named() {
    let mut good = Vec::new();
    push(&mut good, "070702", "file", 0o100644, 1, b"contents");
    trailer(&mut good);

    let mut bad = good.clone();
    bad[5] = b'7';
    assert_eq!(entries(&bad).err(), Some(Error { problem: Problem::Magic, offset: 0 }));
    let mut bad = good.clone();
    bad[20] = b'x';
    assert_eq!(problem(&bad), Problem::Digit);
    let mut bad = good.clone();
    let at = bad.windows(8).position(|w| w == b"contents").unwrap();
    bad[at] = b'C';
    assert_eq!(problem(&bad), Problem::Checksum);
    assert_eq!(problem(&good[..60]), Problem::Truncated);
    assert_eq!(problem(&good[..at + 4]), Problem::Truncated);
    assert_eq!(problem(&good[..at + 8]), Problem::NoTrailer);
    let mut bad = good.clone();
    bad[110 + 4] = b'!';
    assert_eq!(problem(&bad), Problem::Name);
    assert_eq!(problem(b"not an archive"), Problem::Magic);
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = entries(&bytes);
    }

    #[test]
    fn damaged_archives_never_panic(
        names in prop::collection::vec("[a-z/]{1,40}", 1..5),
        data in prop::collection::vec(any::<u8>(), 0..100),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut archive = Vec::new();
        for name in &names {
            push(&mut archive, "070701", name, 0o100644, 1, &data);
        }
        trailer(&mut archive);
        prop_assert_eq!(entries(&archive).unwrap().len(), names.len());
        for (at, byte) in damage {
            let at = at.index(archive.len());
            archive[at] = byte;
        }
        archive.truncate(cut.index(archive.len() + 1));
        let _ = entries(&archive);
    }
}
