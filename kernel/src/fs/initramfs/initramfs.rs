//! Unpacks the initramfs into the root file system.
//!
//! Archives may be plain cpio or compressed with gzip, xz or zstd, several one after the other. Contents stream into page
//! frames that become the files' page caches: no file is collected in memory first. Runs once, at boot, on one
//! CPU.

use super::gzip;
use super::stream::Decoded;
use crate::mm::Frame;
use crate::vfs::namei::{self, LookupCtx, LookupFlags};
use crate::vfs::ops::{self, Change};
use crate::vfs::{Cred, DevId, Fd, FdTable, FsContext, Path, SetAttr, Timestamp};
use abi::fs::{AT_FDCWD, PATH_MAX, S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};
use abi::{Errno, Result};
use alea_cpio::{Archive, Header, Input, NAME_LIMIT};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

const HERE: Fd = Fd(AT_FDCWD);
const PAGE: usize = crate::base::PAGE_SIZE;

/// Why unpacking stopped; what came before it stays.
#[derive(Debug)]
pub enum Error {
    /// The archive is corrupt.
    Archive(alea_cpio::Error),
    /// The gzip data are corrupt.
    Gzip(&'static str),
    /// The xz or zstd data are corrupt.
    Stream(&'static str),
    /// Neither cpio nor a compression that is supported: the name of the format, if it is recognised, and at which byte it
    /// begins.
    Format(&'static str, usize),
    /// A file could not be made.
    File(Errno, Vec<u8>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive(error) => error.fmt(f),
            Self::Gzip(what) => write!(f, "gzip: {what}"),
            Self::Stream(what) => write!(f, "xz or zstd: {what}"),
            Self::Format(format, at) => {
                write!(f, "{format} at byte {at}: cpio is known plain, and in gzip, xz and zstd")
            }
            Self::File(errno, name) => {
                write!(f, "{}: {errno}", alloc::string::String::from_utf8_lossy(name))
            }
        }
    }
}

impl From<alea_cpio::Error> for Error {
    fn from(error: alea_cpio::Error) -> Self {
        Self::Archive(error)
    }
}

/// Linux's own archive, which it unpacks before any other: without a console an init has no descriptors.
const BUILT_IN: [(&[u8], u32, DevId); 3] = [
    (b"/dev", S_IFDIR | 0o755, DevId::NONE),
    (b"/dev/console", S_IFCHR | 0o600, DevId::new(5, 1)),
    (b"/root", S_IFDIR | 0o700, DevId::NONE),
];

/// Makes what Linux's built-in archive holds.
pub fn unpack_built_in(root: &Path) -> Result<(), Error> {
    let unpacker = Unpacker::new(root);
    BUILT_IN.iter().try_for_each(|&(name, mode, rdev)| {
        let made = match mode & S_IFMT {
            S_IFDIR => ops::mkdir(&unpacker.ctx(), HERE, name, mode),
            _ => ops::mknod(&unpacker.ctx(), HERE, name, mode, rdev),
        };
        made.map_err(|errno| Error::File(errno, name.to_vec()))
    })
}

/// Unpacks `archives` below `root`; returns the number of entries.
pub fn unpack(archives: &[u8], root: &Path) -> Result<usize, Error> {
    let mut unpacker = Unpacker::new(root);
    let mut rest = archives;
    loop {
        let zeros = rest.iter().position(|&b| b != 0).unwrap_or(rest.len());
        rest = &rest[zeros..];
        if rest.is_empty() {
            break;
        }
        if gzip::is_gzip(rest) {
            let mut archive = Archive::new(gzip::Inflate::new(rest).map_err(Error::Gzip)?);
            let result = unpacker.archive(&mut archive);
            let mut input = archive.into_input();
            // An error of the inflater is nearer to the cause than the cpio error that follows from it.
            rest = input.finish().map_err(Error::Gzip)?;
            result?;
        } else if let Some(decoded) = Decoded::new(rest).map_err(Error::Stream)? {
            let mut archive = Archive::new(decoded);
            let result = unpacker.archive(&mut archive);
            let mut input = archive.into_input();
            rest = input.finish().map_err(Error::Stream)?;
            result?;
        } else if rest.starts_with(b"07070") {
            let mut archive = Archive::new(rest);
            unpacker.archive(&mut archive)?;
            rest = archive.into_input();
        } else {
            return Err(Error::Format(format_name(rest), archives.len() - rest.len()));
        }
    }
    unpacker.finish();
    Ok(unpacker.entries)
}

fn format_name(bytes: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 4] = [
        (b"\x02\x21\x4c\x18", "lz4 data"),
        (b"BZh", "bzip2 data"),
        (b"\x5d\x00\x00", "lzma data"),
        (b"\x89LZO", "lzo data"),
    ];
    KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)).map_or("no archive", |(_, name)| name)
}

/// Identifies the file that several names link to: inode number, device and type.
type LinkKey = (u32, (u32, u32), u32);

struct Unpacker {
    fs: FsContext,
    files: FdTable,
    cred: Arc<Cred>,
    /// The first name of each file that has several.
    links: BTreeMap<LinkKey, Vec<u8>>,
    /// Directories whose times are set last, when nothing is added to them any more.
    dirs: Vec<(Vec<u8>, u32)>,
    entries: usize,
}

impl Unpacker {
    fn new(root: &Path) -> Self {
        let fs = FsContext::new(root.clone());
        fs.set_umask(0);
        Self {
            fs,
            files: FdTable::new(),
            cred: Arc::new(Cred::root()),
            links: BTreeMap::new(),
            dirs: Vec::new(),
            entries: 0,
        }
    }

    fn ctx(&self) -> LookupCtx<'_> {
        LookupCtx { fs: &self.fs, files: &self.files, cred: &self.cred }
    }

    fn archive<I: Input>(&mut self, archive: &mut Archive<I>) -> Result<(), Error> {
        // Made as a vector: `Box::new` of an array would build it on the stack first.
        let name = alloc::vec![0u8; NAME_LIMIT].into_boxed_slice();
        let mut name: Box<[u8; NAME_LIMIT]> = match name.try_into() {
            Ok(name) => name,
            Err(_) => return Err(Error::File(Errno::ENOMEM, Vec::new())),
        };
        while let Some((header, len)) = archive.next(&mut name)? {
            let name = &name[..len];
            self.entry(archive, &header, name)?;
            self.entries += 1;
        }
        self.links.clear();
        Ok(())
    }

    fn entry<I: Input>(
        &mut self,
        archive: &mut Archive<I>,
        header: &Header,
        name: &[u8],
    ) -> Result<(), Error> {
        let failed = |errno| Error::File(errno, name.to_vec());
        match header.mode & S_IFMT {
            S_IFREG => {
                let place = self.regular(header, name).map_err(failed)?;
                self.contents(archive, &place, name)?;
                self.attributes(&place, header).map_err(failed)
            }
            S_IFLNK => {
                let mut target = Vec::new();
                read_all(archive, &mut target, name)?;
                self.clear(name, S_IFLNK).map_err(failed)?;
                ops::symlink(&self.ctx(), &target, HERE, name).map_err(failed)?;
                let place = self.find(name).map_err(failed)?;
                self.attributes(&place, header).map_err(failed)
            }
            S_IFDIR => {
                self.clear(name, S_IFDIR).map_err(failed)?;
                match ops::mkdir(&self.ctx(), HERE, name, header.mode) {
                    Ok(()) | Err(Errno::EEXIST) => {}
                    Err(errno) => return Err(failed(errno)),
                }
                let place = self.find(name).map_err(failed)?;
                self.attributes(&place, header).map_err(failed)?;
                self.dirs.push((name.to_vec(), header.mtime));
                Ok(())
            }
            _ => self.node(header, name).map_err(failed),
        }
    }

    /// A file, empty as yet: a new one, or another name of one that came before.
    fn regular(&mut self, header: &Header, name: &[u8]) -> Result<Path> {
        if let Some(place) = self.linked(header, name)? {
            return Ok(place);
        }
        self.clear(name, S_IFREG)?;
        ops::mknod(&self.ctx(), HERE, name, S_IFREG | (header.mode & 0o7777), DevId::NONE)?;
        self.find(name)
    }

    fn node(&mut self, header: &Header, name: &[u8]) -> Result<()> {
        if self.linked(header, name)?.is_some() {
            return Ok(());
        }
        self.clear(name, header.mode & S_IFMT)?;
        let rdev = DevId::new(header.rdev.0, header.rdev.1);
        ops::mknod(&self.ctx(), HERE, name, header.mode, rdev)?;
        let place = self.find(name)?;
        self.attributes(&place, header)
    }

    /// Makes `name` a link to an earlier entry with the same inode and device numbers, if there was one.
    fn linked(&mut self, header: &Header, name: &[u8]) -> Result<Option<Path>> {
        if header.nlink < 2 {
            return Ok(None);
        }
        let key = (header.ino, header.dev, header.mode & S_IFMT);
        let Some(first) = self.links.get(&key) else {
            self.links.insert(key, name.to_vec());
            return Ok(None);
        };
        let place = self.find(first)?;
        self.clear(name, 0)?;
        ops::link(&self.ctx(), &place, HERE, name)?;
        Ok(Some(place))
    }

    /// Removes what an earlier entry left under `name`, unless it is a directory that stays one.
    fn clear(&self, name: &[u8], kind: u32) -> Result<()> {
        let Ok(old) = self.find(name) else { return Ok(()) };
        match old.inode().attr().mode() & S_IFMT {
            S_IFDIR if kind == S_IFDIR => Ok(()),
            S_IFDIR => ops::rmdir(&self.ctx(), HERE, name),
            _ => ops::unlink(&self.ctx(), HERE, name),
        }
    }

    fn find(&self, name: &[u8]) -> Result<Path> {
        namei::lookup(&self.ctx(), HERE, name, LookupFlags::empty())
    }

    /// Sets owner, mode and times. Set-id bits stay: this is not `chown`, which takes them away.
    fn attributes(&self, place: &Path, header: &Header) -> Result<()> {
        let mtime = Timestamp { secs: i64::from(header.mtime), nanos: 0 };
        let is_link = header.mode & S_IFMT == S_IFLNK;
        let new = SetAttr {
            uid: Some(header.uid),
            gid: Some(header.gid),
            mode: (!is_link).then_some(header.mode & 0o7777),
            atime: Some(mtime),
            mtime: Some(mtime),
            now: Timestamp::now(),
            ..SetAttr::default()
        };
        place.inode().set_attr(&new).map(drop)
    }

    /// Streams the contents into frames and the frames into the page cache.
    fn contents<I: Input>(
        &self,
        archive: &mut Archive<I>,
        place: &Path,
        name: &[u8],
    ) -> Result<(), Error> {
        let failed = |errno| Error::File(errno, name.to_vec());
        let cache = place.inode().page_cache().ok_or(Errno::EIO).map_err(failed)?;
        let mut size = 0u64;
        let mut frame: Option<Frame> = None;
        loop {
            let chunk = archive.data()?;
            if chunk.is_empty() {
                break;
            }
            let at = (size % PAGE as u64) as usize;
            let len = chunk.len().min(PAGE - at);
            let page = match frame.take() {
                Some(page) => page,
                None => Frame::alloc().map_err(failed)?,
            };
            page.write(at, &chunk[..len]);
            size += len as u64;
            if at + len == PAGE {
                cache.insert(size / PAGE as u64 - 1, page).map_err(failed)?;
            } else {
                frame = Some(page);
            }
            archive.consume(len)?;
        }
        if let Some(page) = frame {
            let used = (size % PAGE as u64) as usize;
            page.zero(used, PAGE - used);
            cache.insert(size / PAGE as u64, page).map_err(failed)?;
        }
        if size != 0 {
            cache.set_size(size);
        }
        Ok(())
    }

    fn finish(&self) {
        for (name, mtime) in &self.dirs {
            let to = Change::To(Timestamp { secs: i64::from(*mtime), nanos: 0 });
            if let Ok(place) = self.find(name) {
                // A time that cannot be set is no reason to fail: the directory is there.
                let _ = ops::set_times(&place, to, to, &self.cred);
            }
        }
    }
}

fn read_all<I: Input>(
    archive: &mut Archive<I>,
    to: &mut Vec<u8>,
    name: &[u8],
) -> Result<(), Error> {
    loop {
        let chunk = archive.data()?;
        if chunk.is_empty() {
            return Ok(());
        }
        if to.len() + chunk.len() > PATH_MAX {
            return Err(Error::File(Errno::ENAMETOOLONG, name.to_vec()));
        }
        to.extend_from_slice(chunk);
        let len = chunk.len();
        archive.consume(len)?;
    }
}
