//! /proc's files about file systems and devices.
#![forbid(unsafe_code)]

use super::register_file;
use super::system::{Fixed, Text};
use crate::fs::{devfs, registry};
use abi::Result;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub(super) fn register() -> Result<()> {
    register_file("filesystems", 0o444, Arc::new(Text(filesystems)))?;
    register_file("devices", 0o444, Arc::new(Text(devices)))?;
    register_file("partitions", 0o444, Arc::new(Fixed("")))?;
    register_file("diskstats", 0o444, Arc::new(Fixed("")))?;
    register_file("modules", 0o444, Arc::new(Fixed("")))?;
    super::fixed::add_link(&super::super_block()?, "mounts", "self/mounts")
}

fn filesystems() -> Result<String> {
    // None of them lives on a block device.
    Ok(registry::names().iter().map(|name| format!("nodev\t{name}\n")).collect())
}

fn devices() -> Result<String> {
    let mut out = String::from("Character devices:\n");
    let mut seen: Vec<(u32, &str)> = Vec::new();
    for (dev, name) in devfs::char_devices() {
        let name = driver_name(dev.major(), name);
        if !seen.contains(&(dev.major(), name)) {
            seen.push((dev.major(), name));
            out.push_str(&format!("{:3} {name}\n", dev.major()));
        }
    }
    out.push_str("\nBlock devices:\n");
    Ok(out)
}

/// What Linux calls the driver of a major number, where that is not the node's name.
fn driver_name(major: u32, node: &'static str) -> &'static str {
    match (major, node) {
        (1, _) => "mem",
        (4, "ttyS0" | "ttyS1") => "ttyS",
        (5, "tty") => "/dev/tty",
        (5, "console") => "/dev/console",
        (5, "ptmx") => "/dev/ptmx",
        (136..=143, _) => "pts",
        _ => node,
    }
}
