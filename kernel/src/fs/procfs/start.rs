//! The boot of procfs: registers its own files, and directories that are there even if empty.

use super::fixed::{add_directory, directory_of, super_block};
use super::{fs_files, kmsg, locks, node, slabs, sysctl, system};
use abi::Result;

/// Registers proc and its own files.
pub fn init() -> Result<()> {
    crate::vfs::registry::register("proc", |_| super_block());
    system::register()?;
    slabs::register()?;
    sysctl::register()?;
    kmsg::register()?;
    fs_files::register()?;
    locks::register()?;
    for directory in ["sys/fs", "sys/net", "sys/dev", "fs", "bus", "driver", "irq", "tty/driver"] {
        add_directory(directory)?;
    }
    add_directory("net")?;
    node::show_net(directory_of("net")?);
    Ok(())
}
