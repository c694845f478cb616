//! /proc/PID/{mounts,mountinfo,mountstats}.
#![forbid(unsafe_code)]

use crate::mm::fallible::{TryGrow, TrySlice, TryString, TryVec};
use crate::sync::Pace;
use crate::try_format;
use crate::vfs::object::filesystem::SuperFlags;
use crate::vfs::object::mount;
use crate::vfs::{Mount, MountFlags, Path};
use abi::Result;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The forms of the mount table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MountText {
    Mounts,
    MountInfo,
    MountStats,
}

impl MountText {
    pub fn mode(self) -> u32 {
        if self == Self::MountStats { 0o400 } else { 0o444 }
    }

    /// Whether a poll tells of changes.
    pub fn is_watched(self) -> bool {
        self != Self::MountStats
    }
}

/// The table of all mounts that can be reached from `root`.
pub(super) fn table(root: &Path, form: MountText) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    // Who unmounts one meanwhile waits: he would take the references of the list for a use of it.
    let changing = mount::change();
    for mount in mount::all(&changing)?.into_iter().paced() {
        let here = Path::root_of(mount.clone());
        if !here.is_below(root) {
            continue;
        }
        let point = escape(&here.to_absolute(root)?)?;
        line(&mut out, &mount, &point, form)?;
    }
    Ok(out)
}

fn line(out: &mut Vec<u8>, mount: &Arc<Mount>, point: &[u8], form: MountText) -> Result<()> {
    let sb = mount.super_block();
    let name = sb.fs().name();
    let source = escape(if mount.source().is_empty() { b"none" } else { mount.source() })?;
    let read_only = |ro| if ro { "ro" } else { "rw" };
    let own = sb.fs().options()?;
    let shared = super_options(sb.flags())?;
    match form {
        MountText::Mounts => {
            let ro = sb.read_only() || mount.flags().contains(MountFlags::RDONLY);
            out.try_extend_from_slice(&source)?;
            out.try_push(b' ')?;
            out.try_extend_from_slice(point)?;
            let options = options(mount.flags())?;
            out.try_extend_from_slice(
                try_format!(" {name} {}{shared}{options}{own} 0 0\n", read_only(ro))?.as_bytes(),
            )?;
        }
        MountText::MountInfo => {
            let place = mount.place();
            let parent = place.as_ref().map_or(1, |place| place.mount.id());
            let dev = sb.dev();
            let top = Path { mount: mount.clone(), dentry: sb.root().clone() };
            let shown = Path { mount: mount.clone(), dentry: mount.root().clone() };
            let within = within_super(&top, &shown)?;
            let head = try_format!("{} {parent} {}:{} ", mount.id(), dev.major(), dev.minor())?;
            out.try_extend_from_slice(head.as_bytes())?;
            out.try_extend_from_slice(&escape(&within)?)?;
            out.try_push(b' ')?;
            out.try_extend_from_slice(point)?;
            let ro = read_only(mount.flags().contains(MountFlags::RDONLY));
            let options = options(mount.flags())?;
            out.try_extend_from_slice(try_format!(" {ro}{options} - {name} ")?.as_bytes())?;
            out.try_extend_from_slice(&source)?;
            out.try_extend_from_slice(
                try_format!(" {}{shared}{own}\n", read_only(sb.read_only()))?.as_bytes(),
            )?;
        }
        MountText::MountStats => {
            out.try_extend_from_slice(b"device ")?;
            out.try_extend_from_slice(&source)?;
            out.try_extend_from_slice(b" mounted on ")?;
            out.try_extend_from_slice(point)?;
            out.try_extend_from_slice(try_format!(" with fstype {name}\n")?.as_bytes())?;
        }
    }
    Ok(())
}

/// The path of a mount's root within its file system.
fn within_super(top: &Path, shown: &Path) -> Result<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut at = shown.dentry.clone();
    while !Arc::ptr_eq(&at, &top.dentry) {
        let (parent, name) = at.parent_and_name();
        names.try_push(name.try_owned()?)?;
        match parent {
            Some(parent) => at = parent,
            None => break,
        }
    }
    let mut out = Vec::new();
    for name in names.iter().rev() {
        out.try_push(b'/')?;
        out.try_extend_from_slice(name)?;
    }
    if out.is_empty() {
        out.try_push(b'/')?;
    }
    Ok(out)
}

/// The options of the whole instance, each with a leading comma.
fn super_options(flags: SuperFlags) -> Result<String> {
    let shown = [
        (SuperFlags::SYNCHRONOUS, ",sync"),
        (SuperFlags::DIRSYNC, ",dirsync"),
        (SuperFlags::MANDLOCK, ",mand"),
        (SuperFlags::LAZYTIME, ",lazytime"),
    ];
    joined(shown.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, text)| *text))
}

/// The per-mount options, each with a leading comma.
fn options(flags: MountFlags) -> Result<String> {
    let shown = [
        (MountFlags::NOSUID, ",nosuid"),
        (MountFlags::NODEV, ",nodev"),
        (MountFlags::NOEXEC, ",noexec"),
        (MountFlags::NOATIME, ",noatime"),
        (MountFlags::NODIRATIME, ",nodiratime"),
        (MountFlags::RELATIME, ",relatime"),
        (MountFlags::NOSYMFOLLOW, ",nosymfollow"),
    ];
    joined(shown.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, text)| *text))
}

fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> Result<String> {
    let mut text = String::new();
    for part in parts {
        text.try_push_str(part)?;
    }
    Ok(text)
}

/// Spaces, tabs, newlines, backslashes and `#` as octal, so that a line can be split at its spaces.
fn escape(text: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_room(text.len())?;
    for &byte in text {
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\\' | b'#') {
            out.try_extend_from_slice(try_format!("\\{byte:03o}")?.as_bytes())?;
        } else {
            out.try_push(byte)?;
        }
    }
    Ok(out)
}
