//! Gives the files of the root the extended attributes that they were packed with.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use alea_init::attributes::{Attribute, FILE, decode};
use rustix::fs::{XattrFlags, lsetxattr};

/// Sets all of them; what to tell the user if some cannot be set.
pub fn give_all() -> Option<String> {
    let file = format!("/{FILE}");
    let bytes = match fs::read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        read => read,
    };
    let _ = fs::remove_file(file);
    match bytes.and_then(|bytes| decode(&bytes)) {
        Ok(all) => all.iter().find_map(|one| give(one).err()),
        Err(error) => Some(format!("extended attributes are not set: {error}")),
    }
}

fn give(attribute: &Attribute) -> Result<(), String> {
    let path = Path::new("/").join(OsStr::from_bytes(&attribute.path));
    let name = OsStr::from_bytes(&attribute.name);
    lsetxattr(&path, name, &attribute.value, XattrFlags::empty())
        .map_err(|error| format!("{}: {} is not set: {error}", path.display(), name.display()))
}
