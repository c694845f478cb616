//! Writes `newc` cpio archives, the format of an initramfs.
//!
//! Same entries, same bytes: times are 0, owners are root, inode numbers count up in the order of
//! the calls. Needs no root: device nodes are only numbers in the archive.

use alloc::format;
use alloc::vec::Vec;

use crate::reader::HEADER;
use crate::{Header, TRAILER};

/// File type bits of a mode, as in `stat(2)`.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;

/// Archives are padded to this, as GNU cpio does.
const BLOCK: usize = 512;

/// The header of one entry with its name and the padding behind it. The contents follow, and zeros up to a multiple of four.
pub fn entry(header: &Header, name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + name.len() + 4);
    let length = u32::try_from(name.len() + 1).expect("a path is short");
    let Header { ino, mode, uid, gid, nlink, mtime, size, dev, rdev } = *header;
    // The last is a checksum, always 0 in newc.
    let fields = [ino, mode, uid, gid, nlink, mtime, size, dev.0, dev.1, rdev.0, rdev.1, length, 0];
    bytes.extend_from_slice(b"070701");
    for field in fields {
        bytes.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    bytes.extend_from_slice(name);
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// What ends an archive.
pub fn trailer() -> Vec<u8> {
    entry(&Header { nlink: 1, ..Header::default() }, TRAILER.as_bytes())
}

/// An archive that is being written. Parents must be added before their children.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
    inodes: u32,
}

impl Writer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory with permission bits `mode`.
    pub fn dir(&mut self, path: &str, mode: u32) -> &mut Self {
        self.entry(path, DIRECTORY | mode, 2, (0, 0), &[])
    }

    /// Adds a regular file with permission bits `mode`.
    pub fn file(&mut self, path: &str, mode: u32, data: &[u8]) -> &mut Self {
        self.entry(path, REGULAR | mode, 1, (0, 0), data)
    }

    /// Adds a symbolic link to `target`.
    pub fn symlink(&mut self, path: &str, target: &str) -> &mut Self {
        self.entry(path, SYMLINK | 0o777, 1, (0, 0), target.as_bytes())
    }

    /// Adds a character device.
    pub fn char_device(&mut self, path: &str, mode: u32, device: (u32, u32)) -> &mut Self {
        self.entry(path, CHARACTER | mode, 1, device, &[])
    }

    /// Ends the archive and returns it.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend(trailer());
        self.pad(BLOCK);
        self.bytes
    }

    fn entry(
        &mut self,
        path: &str,
        mode: u32,
        links: u32,
        device: (u32, u32),
        data: &[u8],
    ) -> &mut Self {
        assert!(!path.is_empty() && !path.starts_with('/'), "archive paths are relative: {path:?}");
        let length = u32::try_from(data.len()).expect("newc holds files below 4 GiB");
        self.inodes += 1;
        let header = Header {
            ino: self.inodes,
            mode,
            nlink: links,
            size: length,
            rdev: device,
            ..Header::default()
        };
        self.bytes.extend(entry(&header, path.as_bytes()));
        self.bytes.extend_from_slice(data);
        self.pad(4);
        self
    }

    fn pad(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn one_file_has_the_bytes_of_the_format() {
        let mut archive = Writer::new();
        archive.file("a", 0o644, b"hello");
        let bytes = archive.finish();
        let header = "07070100000001000081a400000000000000000000000100000000000000050000000000000000\
                      00000000000000000000000200000000";
        assert_eq!(&bytes[..110], header.as_bytes());
        assert_eq!(&bytes[110..112], b"a\0");
        assert_eq!(&bytes[112..117], b"hello");
        assert_eq!(&bytes[117..120], b"\0\0\0");
        assert_eq!(&bytes[120..126], b"070701");
        assert_eq!(&bytes[230..241], b"TRAILER!!!\0");
        assert_eq!(bytes.len() % BLOCK, 0);
    }

    #[test]
    fn devices_carry_their_numbers_and_links_their_targets() {
        let mut archive = Writer::new();
        archive.dir("dev", 0o755).char_device("dev/null", 0o666, (1, 3)).symlink("sh", "busybox");
        let text = String::from_utf8(archive.finish()).unwrap();
        assert!(text.contains("000021b6"), "mode of a character device, rw for all");
        assert!(
            text.contains("00000001000000030000000900000000dev/null"),
            "device 1:3, length of the name, no checksum"
        );
        assert!(text.contains("sh\0\0\0\0busybox\0"), "{text}");
    }

    #[test]
    #[should_panic(expected = "relative")]
    fn absolute_paths_are_refused() {
        Writer::new().dir("/dev", 0o755);
    }
}
