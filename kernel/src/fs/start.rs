//! Boot: registers the file systems, mounts the root and unpacks the initramfs into it.
//!
//! Runs once, on one CPU, before process 1. No locks of its own.

use super::inotify::limits;
use super::{devfs, epoll, huge_pages, initramfs, pipe, procfs, sysfs, tmpfs};
use crate::cmdline::{self, words};
use crate::vfs::object::mount;
use crate::vfs::{Mount, MountFlags, Path, admission, anon, registry};

/// Mounts the root file system and unpacks `initramfs` into it. An error is for the boot log: what was
/// unpacked before it stays, as on Linux.
pub fn init(initramfs: &[u8]) -> core::result::Result<usize, initramfs::Error> {
    #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
    let failed = |errno| initramfs::Error::File(errno, b"/".to_vec());
    devfs::init();
    register_file_systems();
    procfs::init().and_then(|()| sysfs::init()).map_err(failed)?;
    huge_pages::init().map_err(failed)?;
    limits::register().map_err(failed)?;
    pipe::register().and_then(|()| epoll::register()).map_err(failed)?;
    let memory = crate::mm::frames::stats().total;
    admission::init(memory * (crate::base::PAGE_SIZE as u64 / 1024));
    // Half of all memory, as on Linux: what the archive takes now is free when it has been unpacked.
    let half = (memory + (initramfs.len() / crate::base::PAGE_SIZE) as u64) / 2;
    let options = root_options();
    let options = tmpfs::Options {
        pages: options.pages.or(Some(half)),
        inodes: options.inodes.or(Some(half)),
        ..options
    };
    let sb = tmpfs::Tmpfs::new_super("rootfs", &options, true).map_err(failed)?;
    let root = sb.root().clone();
    let mount = Mount::new(sb, root, b"rootfs", MountFlags::RELATIME).map_err(failed)?;
    mount::attach_root(mount.clone());
    anon::init().and_then(|()| tmpfs::init_memfds()).map_err(failed)?;
    let root = Path::root_of(mount);
    initramfs::unpack_built_in(&root)?;
    initramfs::unpack(initramfs, &root)
}

/// What the command line says of the root: `initramfs_options=`, as on Linux from 6.18 on, or `rootflags=`.
fn root_options() -> tmpfs::Options {
    let text =
        cmdline::value(words::INITRAMFS_OPTIONS).or_else(|| cmdline::value(words::ROOTFLAGS));
    let Some(text) = text else { return tmpfs::Options::default() };
    tmpfs::Options::parse(text.as_bytes()).unwrap_or_else(|_| {
        log::warn!("initramfs: {text}: options that the root cannot have are not used");
        tmpfs::Options::default()
    })
}

fn register_file_systems() {
    registry::register("tmpfs", |options| {
        tmpfs::Tmpfs::new_super("tmpfs", &tmpfs::Options::parse(options)?, false)
    });
    registry::register("ramfs", |options| {
        tmpfs::Tmpfs::new_super("ramfs", &tmpfs::Options::of_ramfs(options)?, false)
    });
    registry::register("devtmpfs", |_| devfs::super_block());
}
