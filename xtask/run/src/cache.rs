//! Packed roots below `target/alea/roots`, by what they were made of: a folder by the names, times and sizes of what it
//! holds, a file by its own, and by who packs them.

use std::fs;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use xtask_host::{paths, term};

use crate::image::{About, Contents, DIRECTORY, Image, REGULAR};
use crate::oci::{self, Wishes};
use crate::tarball::{self, Names};
use crate::{compression, folder};

/// How the names of what is not ready begin.
const HALF: &str = ".half-";

/// What has not been touched for so long was left by a packing that a signal ended.
const LEFT: Duration = Duration::from_secs(3600);

/// How many packed roots are kept, the one in use among them.
const KEPT: usize = 6;

/// A root that is ready to boot.
pub struct Packed {
    pub archive: PathBuf,
    pub wishes: Wishes,
}

/// What is kept beside the archive.
#[derive(Default, Serialize, Deserialize)]
struct Beside {
    wishes: Wishes,
}

/// The archive of `root`, the folders `overlays` over it, and process 1.
pub fn packed(root: &Path, overlays: &[PathBuf]) -> Result<Packed> {
    let init = paths::init();
    let program = fs::read(&init).with_context(|| paths::shown(&init))?;
    packed_in(&paths::alea().join("roots"), &program, root, overlays)
}

/// Who packs is in the name too: files of his are root's in the guest ([`folder::about`]).
fn name(program: &[u8], root: &Path, overlays: &[PathBuf], packer: u32) -> Result<String> {
    let mut sum = Sha256::new();
    sum.update(program);
    sum.update(packer.to_le_bytes());
    for source in std::iter::once(root).chain(overlays.iter().map(PathBuf::as_path)) {
        sum.update([0]);
        sum.update(fs::canonicalize(source)?.as_os_str().as_bytes());
        identify(source, &mut sum)?;
    }
    Ok(sum.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

fn packed_in(folder: &Path, init: &[u8], root: &Path, overlays: &[PathBuf]) -> Result<Packed> {
    let name = name(init, root, overlays, rustix::process::getuid().as_raw())?;
    fs::create_dir_all(folder)?;
    let archive = folder.join(format!("{name}.cpio"));
    let beside = archive.with_extension("json");
    if let Ok(text) = fs::read(&beside)
        && archive.is_file()
    {
        // The oldest goes first, and this one is not old.
        let _ = fs::File::open(&archive).and_then(|file| file.set_modified(SystemTime::now()));
        let Beside { wishes } = serde_json::from_slice(&text)?;
        return Ok(Packed { archive, wishes });
    }
    let spinner = term::silent_spinner("reading the root");
    let read = read(folder, root, overlays);
    spinner.finish_and_clear();
    let (mut image, wishes) = read?;
    image.add_init(init.to_vec());
    let half = tempfile::Builder::new().prefix(HALF).tempfile_in(folder)?;
    let mut to = BufWriter::with_capacity(1 << 20, &half);
    image.write(&mut to).and_then(|()| Ok(to.flush()?)).context("cannot pack the root")?;
    drop(to);
    half.persist(&archive)?;
    fs::write(&beside, serde_json::to_vec(&Beside { wishes: wishes.clone() })?)?;
    prune(folder)?;
    Ok(Packed { archive, wishes })
}

/// The contents of `root` and what lies over it; what is in between lies in `folder`.
fn read(folder: &Path, root: &Path, overlays: &[PathBuf]) -> Result<(Image, Wishes)> {
    let mut image = Image::new()?;
    let mut wishes = Wishes::default();
    if root.is_dir() && oci::is_layout(root) {
        wishes = oci::add(&mut image, root)?;
    } else if root.is_dir() {
        folder::add(&mut image, root)?;
    } else {
        let unpacked = tempfile::Builder::new().prefix(HALF).tempdir_in(folder)?;
        if oci::unpack_tar(root, unpacked.path()).unwrap_or(false) {
            wishes = oci::add(&mut image, unpacked.path())?;
        } else {
            let from = compression::open(root)?;
            tarball::add(&mut image, from, Names::AsTheyAre).with_context(|| paths::shown(root))?;
        }
    }
    for overlay in overlays {
        if !overlay.is_dir() {
            bail!("{} is no folder", paths::shown(overlay));
        }
        folder::add(&mut image, overlay)?;
    }
    Ok((image, wishes))
}

impl Image {
    /// Adds process 1, and what it needs to know of the root.
    fn add_init(&mut self, program: Vec<u8>) {
        let attributes = self.attributes();
        let folder = About { mode: DIRECTORY | 0o700, ..About::default() };
        self.add(alea_init::FOLDER.into(), folder, None);
        let file = About { mode: REGULAR | 0o700, ..About::default() };
        let contents = Some(Rc::new(Contents::Bytes(program)));
        self.add(alea_init::PROGRAM.into(), file.clone(), contents);
        if !attributes.is_empty() {
            let contents = Some(Rc::new(Contents::Bytes(attributes)));
            self.add(alea_init::attributes::FILE.into(), file, contents);
        }
    }
}

/// Everything by which a change of `path` shows.
fn identify(path: &Path, sum: &mut Sha256) -> Result<()> {
    let data = fs::symlink_metadata(path).with_context(|| paths::shown(path))?;
    let data = if data.is_symlink() { fs::metadata(path)? } else { data };
    // It is read more than once, and a fifo or a device may have no end.
    ensure!(
        data.is_dir() || data.is_file(),
        "{} is neither a folder nor a file",
        paths::shown(path)
    );
    if !data.is_dir() {
        identify_one(&data, sum);
        return Ok(());
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        // What may not be read is said when it is packed.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut entries = entries.collect::<std::io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let data = entry.metadata()?;
            sum.update(entry.path().as_os_str().as_bytes());
            sum.update([0]);
            identify_one(&data, sum);
            if data.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}

fn identify_one(data: &fs::Metadata, sum: &mut Sha256) {
    let numbers = [
        u64::from(data.mode()),
        u64::from(data.uid()),
        u64::from(data.gid()),
        data.len(),
        data.rdev(),
        data.ino(),
        data.mtime().cast_unsigned(),
        data.mtime_nsec().cast_unsigned(),
        data.ctime().cast_unsigned(),
        data.ctime_nsec().cast_unsigned(),
    ];
    numbers.iter().for_each(|number| sum.update(number.to_le_bytes()));
}

/// Removes all but the newest, and what others have left half done.
fn prune(folder: &Path) -> Result<()> {
    let mut archives = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(HALF.as_bytes()) {
            let age = entry.metadata().and_then(|data| data.modified()).map(|at| at.elapsed());
            if age.is_ok_and(|age| age.is_ok_and(|age| age > LEFT)) {
                // Somebody else may have removed it.
                let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
            }
            continue;
        }
        if entry.path().extension().is_some_and(|extension| extension == "cpio") {
            archives.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    archives.sort();
    archives.reverse();
    for (_, archive) in archives.into_iter().skip(KEPT) {
        // Somebody else may have removed it.
        let _ = fs::remove_file(archive.with_extension("json"));
        let _ = fs::remove_file(archive);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_that_has_not_changed_is_packed_once() {
        let folder = tempfile::tempdir().unwrap();
        let [root, overlay, roots] = ["root", "over", "roots"].map(|name| folder.path().join(name));
        for below in [&root, &overlay] {
            fs::create_dir(below).unwrap();
            fs::write(below.join("file"), "one").unwrap();
        }
        let overlays = [overlay.clone()];
        let packed = || packed_in(&roots, b"init", &root, &overlays).unwrap().archive;
        let first = packed();
        // A second packing would write it anew.
        fs::write(&first, "kept").unwrap();
        assert_eq!(packed(), first);
        assert_eq!(fs::read(&first).unwrap(), b"kept");
        let mut seen = vec![first];
        for changed in [&root, &overlay] {
            fs::write(changed.join("file"), "other").unwrap();
            let now = packed();
            assert!(!seen.contains(&now) && fs::read(&now).unwrap() != b"kept", "{now:?}");
            seen.push(now);
        }
        let other = packed_in(&roots, b"another init", &root, &overlays).unwrap().archive;
        assert!(!seen.contains(&other));
    }

    #[test]
    fn what_a_packing_left_half_done_goes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at(".half-old-folder/below")).unwrap();
        for name in [".half-old", ".half-new", "other"] {
            fs::write(at(name), "").unwrap();
        }
        for name in [".half-old", ".half-old-folder", "other"] {
            let file = fs::File::open(at(name)).unwrap();
            file.set_modified(SystemTime::now() - 2 * LEFT).unwrap();
        }
        prune(folder.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        left.sort_by_key(|entry| entry.as_ref().unwrap().file_name());
        let left = left.into_iter().map(|entry| entry.unwrap().file_name());
        assert!(left.eq([".half-new", "other"]));
    }

    #[test]
    fn what_has_no_end_is_no_root() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for path in [&fifo, Path::new("/dev/zero")] {
            let told = name(b"init", path, &[], 0).unwrap_err().to_string();
            assert!(told.contains("neither a folder nor a file"), "{told}");
        }
    }

    #[test]
    fn who_packs_a_root_is_in_its_name() {
        let root = tempfile::tempdir().unwrap();
        let of = |packer| name(b"init", root.path(), &[], packer).unwrap();
        assert_eq!(of(1000), of(1000));
        assert_ne!(of(1000), of(0));
    }
}
