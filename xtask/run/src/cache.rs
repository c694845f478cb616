//! Packed roots below `target/alea/roots`, by what they were made of: a folder by the names, times and sizes of what it
//! holds, a file by its own.

use std::fs;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use xtask_host::paths;

use crate::image::{About, Contents, DIRECTORY, Image, REGULAR};
use crate::oci::{self, Wishes};
use crate::tarball::{self, Names};
use crate::{compression, folder};

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
    let mut sum = Sha256::new();
    sum.update(fs::read(&init).with_context(|| paths::shown(&init))?);
    for source in std::iter::once(root).chain(overlays.iter().map(PathBuf::as_path)) {
        sum.update([0]);
        sum.update(fs::canonicalize(source)?.as_os_str().as_bytes());
        identify(source, &mut sum)?;
    }
    let name: String = sum.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let folder = paths::alea().join("roots");
    fs::create_dir_all(&folder)?;
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
    let (mut image, wishes) = read(root, overlays)?;
    image.add_init(fs::read(&init)?);
    let half = tempfile::NamedTempFile::new_in(&folder)?;
    let mut to = BufWriter::with_capacity(1 << 20, &half);
    image.write(&mut to).and_then(|()| Ok(to.flush()?)).context("cannot pack the root")?;
    drop(to);
    half.persist(&archive)?;
    fs::write(&beside, serde_json::to_vec(&Beside { wishes: wishes.clone() })?)?;
    prune(&folder)?;
    Ok(Packed { archive, wishes })
}

/// The contents of `root` and what lies over it.
fn read(root: &Path, overlays: &[PathBuf]) -> Result<(Image, Wishes)> {
    let mut image = Image::new()?;
    let mut wishes = Wishes::default();
    if root.is_dir() && oci::is_layout(root) {
        wishes = oci::add(&mut image, root)?;
    } else if root.is_dir() {
        folder::add(&mut image, root)?;
    } else {
        let unpacked = tempfile::tempdir_in(paths::alea())?;
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
    /// Adds process 1.
    fn add_init(&mut self, program: Vec<u8>) {
        let folder = About { mode: DIRECTORY | 0o700, ..About::default() };
        self.add(alea_init::FOLDER.into(), folder, None);
        let file = About { mode: REGULAR | 0o700, ..About::default() };
        let contents = Some(Rc::new(Contents::Bytes(program)));
        self.add(alea_init::PROGRAM.into(), file, contents);
    }
}

/// Everything by which a change of `path` shows.
fn identify(path: &Path, sum: &mut Sha256) -> Result<()> {
    let data = fs::symlink_metadata(path).with_context(|| paths::shown(path))?;
    let data = if data.is_symlink() { fs::metadata(path)? } else { data };
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

/// Removes all but the newest.
fn prune(folder: &Path) -> Result<()> {
    let mut archives = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
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
