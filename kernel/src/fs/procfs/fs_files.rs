//! /proc's files about file systems and devices.
#![forbid(unsafe_code)]

use super::file::{Fixed, Text};
use super::fixed::register_file;
use crate::mm::fallible::{TryGrow, TryString, try_arc, try_string};
use crate::vfs::{chardev, registry};
use crate::{try_format, try_writeln};
use abi::Result;
use alloc::string::String;
use alloc::vec::Vec;

pub(super) fn register() -> Result<()> {
    register_file("filesystems", 0o444, try_arc(Text(filesystems))?)?;
    register_file("devices", 0o444, try_arc(Text(devices))?)?;
    register_file("partitions", 0o444, try_arc(Fixed(""))?)?;
    register_file("diskstats", 0o444, try_arc(Fixed(""))?)?;
    register_file("modules", 0o444, try_arc(Fixed(""))?)?;
    super::fixed::add_link(&super::fixed::super_block()?, "mounts", "self/mounts")
}

fn filesystems() -> Result<String> {
    // None of them lives on a block device.
    let mut out = String::new();
    for name in registry::names()? {
        try_writeln!(out, "nodev\t{name}")?;
    }
    Ok(out)
}

fn devices() -> Result<String> {
    let mut out = try_string("Character devices:\n")?;
    let mut seen: Vec<(u32, &str)> = Vec::new();
    for (dev, name) in chardev::char_devices()? {
        let name = driver_name(dev.major(), name);
        if !seen.contains(&(dev.major(), name)) {
            seen.try_push((dev.major(), name))?;
            out.try_push_str(&try_format!("{:3} {name}\n", dev.major())?)?;
        }
    }
    out.try_push_str("\nBlock devices:\n")?;
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
