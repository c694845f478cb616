//! Sends a file or a folder to the host as a newc archive, and the SHA-256 of that.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use alea_cpio::Header;
use alea_init::{Kind, PIECE};
use sha2::{Digest, Sha256};

use crate::port::Port;

/// Collects pieces of a good size and hashes what is sent.
struct Sender<'a> {
    port: &'a Port,
    pending: Vec<u8>,
    sum: Sha256,
    /// Bytes of the archive so far.
    length: u64,
    inodes: u32,
}

/// Sends `path`: what a folder holds, or the file under its own name.
pub fn send(port: &Port, path: &Path) -> io::Result<()> {
    let about = fs::metadata(path)?;
    let mut sender = Sender { port, pending: Vec::new(), sum: Sha256::new(), length: 0, inodes: 0 };
    if about.is_dir() {
        sender.folder(path, &[])?;
    } else {
        let name = path.file_name().map(|name| name.as_bytes().to_vec());
        sender.entry(path, &name.unwrap_or_else(|| b"file".to_vec()), &about)?;
    }
    sender.put(&alea_cpio::trailer())?;
    sender.flush()?;
    port.send(Kind::Digest, &sender.sum.finalize())
}

impl Sender<'_> {
    fn folder(&mut self, folder: &Path, prefix: &[u8]) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let mut name = prefix.to_vec();
            name.extend_from_slice(entry.file_name().as_bytes());
            let about = entry.metadata()?;
            self.entry(&entry.path(), &name, &about)?;
            if about.is_dir() {
                name.push(b'/');
                self.folder(&entry.path(), &name)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, name: &[u8], about: &Metadata) -> io::Result<()> {
        let kind = about.file_type();
        if kind.is_socket() || kind.is_fifo() || kind.is_block_device() || kind.is_char_device() {
            let text = format!("{}: left out, as it is no file", path.display());
            return self.port.send(Kind::Note, text.as_bytes());
        }
        let target = if kind.is_symlink() {
            fs::read_link(path)?.into_os_string()
        } else {
            Default::default()
        };
        let size = if kind.is_file() { about.len() } else { target.len() as u64 };
        let size = u32::try_from(size)
            .map_err(|_| io::Error::other(format!("{}: 4 GiB or more", path.display())))?;
        self.inodes += 1;
        let mtime = u32::try_from(about.mtime()).unwrap_or(0);
        let (mode, ino) = (about.mode(), self.inodes);
        let header = Header { ino, mode, nlink: 1, mtime, size, ..Header::default() };
        self.put(&alea_cpio::entry(&header, name))?;
        if kind.is_file() {
            self.contents(path, u64::from(size))?;
        } else {
            self.put(target.as_bytes())?;
        }
        let padding = self.length.next_multiple_of(4) - self.length;
        self.put(&[0; 4][..padding as usize])
    }

    fn contents(&mut self, path: &Path, size: u64) -> io::Result<()> {
        let mut file = File::open(path)?.take(size);
        let mut buffer = vec![0; PIECE];
        let mut left = size;
        while left > 0 {
            let length = file.read(&mut buffer)?;
            if length == 0 {
                return Err(io::Error::other(format!("{}: became shorter", path.display())));
            }
            self.put(&buffer[..length])?;
            left -= length as u64;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        for piece in self.pending.chunks(PIECE) {
            self.sum.update(piece);
            self.port.send(Kind::Archive, piece)?;
        }
        self.pending.clear();
        Ok(())
    }
}
