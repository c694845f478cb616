//! What distributions expect to be mounted, and the folders for it. A kernel that has not all of it is no reason to give up.

use std::ffi::CStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::mount::{MountFlags, mount};

const SAFE: MountFlags = MountFlags::NOSUID.union(MountFlags::NOEXEC).union(MountFlags::NODEV);

/// Kind, place, flags, options.
const MOUNTS: [(&str, &str, MountFlags, Option<&CStr>); 6] = [
    ("proc", "/proc", SAFE, None),
    ("sysfs", "/sys", SAFE, None),
    ("devtmpfs", "/dev", MountFlags::NOSUID, Some(c"mode=0755")),
    ("devpts", "/dev/pts", MountFlags::NOSUID, Some(c"gid=5,mode=0620,ptmxmode=0666")),
    ("tmpfs", "/dev/shm", MountFlags::NOSUID.union(MountFlags::NODEV), Some(c"mode=1777")),
    ("mqueue", "/dev/mqueue", SAFE, None),
];

/// The links of every Linux's /dev.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Mounts everything, makes /tmp and /run where the root has none, and names the machine as the root wants it.
pub fn mount_all() {
    for (kind, place, flags, options) in MOUNTS {
        // Whatever fails here is missed by the program that wants it, which says so better.
        let _ = fs::create_dir(place);
        let _ = mount(kind, place, kind, flags, options);
    }
    for (name, target) in LINKS {
        let _ = symlink(target, Path::new("/dev").join(name));
    }
    for (folder, mode) in [("/tmp", 0o1777), ("/run", 0o755)] {
        if fs::create_dir(folder).is_ok() {
            let _ = fs::set_permissions(folder, fs::Permissions::from_mode(mode));
        }
    }
    let name = fs::read_to_string("/etc/hostname").unwrap_or_default();
    let name = name.trim();
    let _ = rustix::system::sethostname(if name.is_empty() { b"alea" } else { name.as_bytes() });
}
