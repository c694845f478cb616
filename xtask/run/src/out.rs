//! What comes out of the guest: archives, compared with their checksums and then unpacked.
//!
//! The guest is not trusted: nothing is written but below the folder that the user named, and never through a link.

use std::collections::VecDeque;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use alea_cpio::{Archive, BrokenInput, Header, Input, NAME_LIMIT};
use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use xtask_host::paths;

use crate::image::{DIRECTORY, LONGEST_TARGET, REGULAR, SYMLINK, TYPE, relative};

/// The folders that are filled, one after the other.
pub struct Outs {
    folders: VecDeque<PathBuf>,
    archive: Option<File>,
    sum: Sha256,
}

impl Outs {
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders: folders.into(), archive: None, sum: Sha256::new() }
    }

    /// Keeps a piece of the archive for the first folder.
    pub fn piece(&mut self, bytes: &[u8]) -> Result<()> {
        self.sum.update(bytes);
        let archive = match &mut self.archive {
            Some(archive) => archive,
            none => none.insert(tempfile::tempfile()?),
        };
        archive.write_all(bytes).context("no room for what comes out of the guest")
    }

    /// Unpacks the archive, if it is what the guest has sent.
    pub fn end(&mut self, digest: &[u8]) -> Result<()> {
        let folder = self.folders.pop_front().context("the guest sends more than was wanted")?;
        let shown = paths::shown(&folder);
        let found = self.sum.finalize_reset();
        ensure!(found[..] == *digest, "{shown}: the checksum does not match, nothing is unpacked");
        let mut archive = self.archive.take().context("the guest sent no archive")?;
        archive.rewind()?;
        unpack(archive, &folder).with_context(|| format!("cannot fill {shown}"))
    }
}

struct Pieces(BufReader<File>);

impl Input for Pieces {
    fn chunk(&mut self) -> Result<&[u8], BrokenInput> {
        self.0.fill_buf().map_err(|_| BrokenInput)
    }

    fn consume(&mut self, length: usize) {
        self.0.consume(length);
    }
}

fn unpack(archive: File, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut archive = Archive::new(Pieces(BufReader::new(archive)));
    let mut name = [0; NAME_LIMIT];
    let mut folders = Vec::new();
    while let Some((header, length)) = archive.next(&mut name)? {
        let Some(path) = relative(&name[..length])? else { continue };
        let place = folder.join(std::ffi::OsStr::from_bytes(&path));
        no_links_above(folder, &place)?;
        entry(&mut archive, &header, &place).with_context(|| paths::shown(&place))?;
        if header.mode & TYPE == DIRECTORY {
            folders.push((place, header));
        }
    }
    // Last: a folder that may not be written to is filled first. By now a link may stand in the place of one, or above it.
    for (place, header) in folders.into_iter().rev() {
        no_links_above(folder, &place)?;
        if fs::symlink_metadata(&place).is_ok_and(|data| data.is_dir()) {
            finish(&File::open(&place)?, &header)?;
        }
    }
    Ok(())
}

/// Refuses a path below a link, by which the guest would choose where its bytes go.
fn no_links_above(folder: &Path, place: &Path) -> Result<()> {
    for above in place.ancestors().skip(1).take_while(|above| *above != folder) {
        let is_folder = fs::symlink_metadata(above).is_ok_and(|data| data.is_dir());
        ensure!(is_folder, "{} is no folder", paths::shown(above));
    }
    Ok(())
}

fn entry(archive: &mut Archive<Pieces>, header: &Header, place: &Path) -> Result<()> {
    let there = fs::symlink_metadata(place).ok();
    let kind = header.mode & TYPE;
    match there {
        Some(data) if data.is_dir() && kind == DIRECTORY => return Ok(()),
        Some(data) if data.is_dir() => fs::remove_dir(place)?,
        Some(_) => fs::remove_file(place)?,
        None => {}
    }
    match kind {
        DIRECTORY => fs::create_dir(place)?,
        SYMLINK => {
            ensure!(header.size as usize <= LONGEST_TARGET, "the target of a link is too long");
            let mut target = Vec::new();
            contents(archive, &mut target)?;
            symlink(std::ffi::OsStr::from_bytes(&target), place)?;
        }
        REGULAR => {
            let mut file = File::options().write(true).create_new(true).open(place)?;
            contents(archive, &mut file)?;
            finish(&file, header)?;
        }
        _ => {}
    }
    Ok(())
}

fn contents(archive: &mut Archive<Pieces>, to: &mut impl Write) -> Result<()> {
    loop {
        let data = archive.data()?;
        if data.is_empty() {
            return Ok(());
        }
        to.write_all(data)?;
        let length = data.len();
        archive.consume(length)?;
    }
}

/// Permissions, without the bits that change the user, and the time.
fn finish(file: &File, header: &Header) -> Result<()> {
    file.set_permissions(Permissions::from_mode(header.mode & 0o777))?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(header.mtime.into());
    Ok(file.set_modified(time)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bring(archive: &[u8], digest: &[u8], folder: &Path) -> Result<()> {
        let mut outs = Outs::new(vec![folder.to_owned()]);
        for piece in archive.chunks(100) {
            outs.piece(piece)?;
        }
        outs.end(digest)
    }

    #[test]
    fn files_come_out_and_a_wrong_checksum_keeps_them_in() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = alea_cpio::Writer::new();
        writer.dir("d", 0o500).file("d/f", 0o4755, b"contents").symlink("l", "/etc");
        let archive = writer.finish();
        let digest = Sha256::digest(&archive);
        let to = folder.path().join("new");
        assert!(bring(&archive, &[0; 32], &to).is_err());
        assert!(!to.exists());
        bring(&archive, &digest, &to).unwrap();
        bring(&archive, &digest, &to).expect("again, over what is there");
        assert_eq!(fs::read(to.join("d/f")).unwrap(), b"contents");
        assert_eq!(fs::metadata(to.join("d/f")).unwrap().permissions().mode() & 0o7777, 0o755);
        assert_eq!(fs::read_link(to.join("l")).unwrap(), Path::new("/etc"));
    }

    #[test]
    fn a_guest_changes_no_folder_behind_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other/below");
        fs::create_dir_all(&other).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        fs::set_permissions(&other, Permissions::from_mode(0o700)).unwrap();
        // A folder that becomes a link once its permissions have been noted; the same with the folder above it.
        let mut last = alea_cpio::Writer::new();
        last.dir("l", 0o777).symlink("l", "../other/below");
        let mut above = alea_cpio::Writer::new();
        above.dir("l", 0o777).dir("l/below", 0o777).char_device("l/below", 0o644, (1, 3));
        above.symlink("l", "../other");
        for (nth, archive) in [last.finish(), above.finish()].into_iter().enumerate() {
            let to = folder.path().join(nth.to_string());
            let _ = bring(&archive, &Sha256::digest(&archive), &to);
            assert_eq!(mode(&other), 0o700, "{nth}");
        }
    }

    #[test]
    fn a_guest_writes_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let (to, other) = (folder.path().join("to"), folder.path().join("other"));
        fs::create_dir(&other).unwrap();
        let mut through = alea_cpio::Writer::new();
        through.symlink("l", "../other").file("l/f", 0o644, b"x");
        let mut above = alea_cpio::Writer::new();
        above.file("../other/f", 0o644, b"x");
        for archive in [through.finish(), above.finish()] {
            assert!(bring(&archive, &Sha256::digest(&archive), &to).is_err());
        }
        assert!(!other.join("f").exists());
    }
}
