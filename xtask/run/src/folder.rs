//! A folder of this machine as a root, or over one.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::rc::Rc;

use alea_init::attributes::is_kept;
use anyhow::{Context, Result, bail};
use rustix::fs::{lgetxattr, llistxattr, llistxattr_query, major, minor};
use xtask_host::paths;

use crate::image::{About, Contents, Image, TYPE};

/// How many names a message lists.
const SHOWN: usize = 5;

/// Adds all below `folder`. Sockets are left out, with a note; a file that may not be read is an error.
pub fn add(image: &mut Image, folder: &Path) -> Result<()> {
    let mut walk = Walk { image, links: HashMap::new(), sockets: Vec::new(), closed: Vec::new() };
    walk.folder(folder, &[])?;
    let list = |all: &[String]| {
        let more = if all.len() > SHOWN { ", ..." } else { "" };
        format!("{}{more}", all[..all.len().min(SHOWN)].join(", "))
    };
    if !walk.closed.is_empty() {
        bail!(
            "{} of the files below {} may not be read by you ({}): pack them into a tar as who may, and name that",
            walk.closed.len(),
            paths::shown(folder),
            list(&walk.closed)
        );
    }
    if !walk.sockets.is_empty() {
        eprintln!("note: sockets are left out: {}", list(&walk.sockets));
    }
    Ok(())
}

struct Walk<'a> {
    image: &'a mut Image,
    /// The first name in the image of each file that has several.
    links: HashMap<(u64, u64), Vec<u8>>,
    sockets: Vec<String>,
    closed: Vec<String>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, prefix: &[u8]) -> Result<()> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                self.closed.push(paths::shown(folder));
                return Ok(());
            }
            Err(error) => return Err(error).with_context(|| paths::shown(folder)),
        };
        let mut entries = entries.collect::<std::io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let mut name = prefix.to_vec();
            name.extend_from_slice(entry.file_name().as_bytes());
            let path = entry.path();
            let data = fs::symlink_metadata(&path).with_context(|| paths::shown(&path))?;
            self.entry(&path, name.clone(), &data)?;
            if data.is_dir() {
                name.push(b'/');
                self.folder(&path, &name)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, name: Vec<u8>, data: &Metadata) -> Result<()> {
        let kind = data.file_type();
        if kind.is_socket() {
            self.sockets.push(paths::shown(path));
            return Ok(());
        }
        if kind.is_file() && File::open(path).is_err_and(|error| is_denied(&error)) {
            self.closed.push(paths::shown(path));
            return Ok(());
        }
        if data.nlink() > 1 && !kind.is_dir() {
            let key = (data.dev(), data.ino());
            if let Some(first) = self.links.get(&key) {
                return self.image.link(name, first);
            }
            self.links.insert(key, name.clone());
        }
        let contents = if kind.is_symlink() {
            Some(Contents::Bytes(fs::read_link(path)?.as_os_str().as_bytes().to_vec()))
        } else if kind.is_file() {
            Some(Contents::Host(path.to_owned(), data.len()))
        } else {
            None
        };
        let about = About { attributes: attributes(path)?, ..about(data) };
        self.image.add(name, about, contents.map(Rc::new));
        Ok(())
    }
}

fn is_denied(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}

/// The extended attributes that are kept; none where the file system has no such thing.
fn attributes(path: &Path) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    if llistxattr_query(path).is_ok_and(|length| length == 0) {
        return Ok(Vec::new());
    }
    // As long as Linux lets a list and a value be.
    let mut names = vec![0; 1 << 16];
    let Ok(length) = llistxattr(path, &mut names) else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for name in names[..length].split(|&byte| byte == 0).filter(|name| is_kept(name)) {
        let mut value = vec![0; 1 << 16];
        let length = lgetxattr(path, name, &mut value).with_context(|| paths::shown(path))?;
        value.truncate(length);
        all.push((name.to_vec(), value));
    }
    Ok(all)
}

/// Files of who runs this are root's in the guest, as in a root that he unpacked without being root.
pub fn about(data: &Metadata) -> About {
    let me = rustix::process::getuid().as_raw();
    let (uid, gid) = if data.uid() == me { (0, 0) } else { (data.uid(), data.gid()) };
    let (uid, gid) = if me == 0 { (data.uid(), data.gid()) } else { (uid, gid) };
    About {
        mode: data.mode() & (TYPE | 0o7777),
        uid,
        gid,
        mtime: u32::try_from(data.mtime()).unwrap_or(0),
        rdev: (major(data.rdev()), minor(data.rdev())),
        attributes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use rustix::process::getuid;
    use rustix::thread::set_thread_uid;

    use super::*;

    #[test]
    fn attributes_of_users_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let [with, without] = ["with", "without"].map(|name| folder.path().join(name));
        [&with, &without].into_iter().for_each(|path| fs::write(path, "").unwrap());
        let set = |name: &str, value: &[u8]| {
            rustix::fs::lsetxattr(&with, name, value, rustix::fs::XattrFlags::empty())
        };
        if set("user.note", b"a\nb\0").is_err() {
            // A file system without them.
            return;
        }
        set("user.empty", b"").unwrap();
        let mut read = attributes(&with).unwrap();
        read.sort();
        let wanted = [("user.empty", &b""[..]), ("user.note", b"a\nb\0")];
        assert_eq!(read, wanted.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(attributes(&without).unwrap(), []);
    }

    #[test]
    fn what_may_not_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let allow = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        for name in ["open", "secret", "closed/file"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        allow(folder.path(), 0o755).unwrap();
        allow(&folder.path().join("secret"), 0).unwrap();
        allow(&folder.path().join("closed"), 0).unwrap();
        let path = folder.path().to_owned();
        // Root may read all; the thread is nobody from here on, and its process is not.
        let told = std::thread::spawn(move || {
            if getuid().is_root() {
                set_thread_uid(rustix::fs::Uid::from_raw(65534)).unwrap();
            }
            add(&mut Image::new().unwrap(), &path).unwrap_err().to_string()
        });
        let told = told.join().unwrap();
        allow(&folder.path().join("closed"), 0o755).unwrap();
        assert!(told.starts_with("2 of the files"), "{told}");
        assert!(told.contains("/secret") && told.contains("/closed"), "{told}");
        assert!(!told.contains("/open"), "{told}");
    }
}
