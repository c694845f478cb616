//! What is in a process directory besides the files that the layer of processes provides: links, descriptors, mounts.
//!
//! Owns the list of these entries. Never keeps a reference to a process: it is looked up by number each time. Locks: none
//! of its own; that of a file's position is tried.
#![forbid(unsafe_code)]

use super::mounts::{self, MountText};
use super::ns::{self, Namespace};
use super::process::{PidFile, processes};
use crate::try_format;
use crate::vfs::object::inode::DYNAMIC_CURSOR;
use crate::vfs::object::mount;
use crate::vfs::{DirEntry, Fd, FileType, Path};
use abi::{Errno, Result};
use alloc::vec::Vec;

/// A task as the path names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub tid: u32,
    /// Whether the path is below /proc/PID/task.
    pub in_task: bool,
}

/// A magic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Exe,
    Cwd,
    Root,
    Fd(Fd),
    Namespace(&'static Namespace),
}

/// An entry of a process directory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    Tasks,
    Fds,
    FdInfos,
    Namespaces,
    /// The directory with the entries of /proc/net.
    Net,
    /// A directory: the files whose names begin with this name and a slash.
    Folder(&'static str),
    Link(Link),
    Mounts(MountText),
    File(&'static PidFile),
}

impl Entry {
    fn kind(self) -> FileType {
        match self {
            Self::Tasks | Self::Fds | Self::FdInfos | Self::Namespaces => FileType::Dir,
            Self::Net | Self::Folder(_) => FileType::Dir,
            Self::Link(_) => FileType::Symlink,
            Self::Mounts(_) | Self::File(_) => FileType::Regular,
        }
    }
}

static OWN: [(&str, Entry); 12] = [
    ("task", Entry::Tasks),
    ("fd", Entry::Fds),
    ("fdinfo", Entry::FdInfos),
    ("ns", Entry::Namespaces),
    ("net", Entry::Net),
    ("alea", Entry::Folder("alea")),
    ("cwd", Entry::Link(Link::Cwd)),
    ("root", Entry::Link(Link::Root)),
    ("exe", Entry::Link(Link::Exe)),
    ("mounts", Entry::Mounts(MountText::Mounts)),
    ("mountinfo", Entry::Mounts(MountText::MountInfo)),
    ("mountstats", Entry::Mounts(MountText::MountStats)),
];

/// Everything in the directory, with its index.
fn entries(task: Task) -> impl Iterator<Item = (u64, &'static str, Entry)> {
    let files = processes().map_or(&[][..], |p| p.pid_files());
    let others = files
        .iter()
        .filter(move |file| file.per_task || !task.in_task)
        .map(|file| (file.name, Entry::File(file)));
    // These two are about the whole process.
    let own = OWN
        .iter()
        .copied()
        .filter(move |(name, _)| !(task.in_task && matches!(*name, "task" | "alea")));
    own.chain(others).zip(1u64..).map(|((name, entry), index)| (index, name, entry))
}

/// What a name in an [`Entry::Folder`] stands for.
pub(super) fn find_in(task: Task, folder: &str, name: &[u8]) -> Option<(u64, Entry)> {
    entries(task)
        .find(|(_, known, _)| within(known, folder).is_some_and(|known| known.as_bytes() == name))
        .map(|(index, _, entry)| (index, entry))
}

/// The rest of a name that lies in a directory.
fn within<'a>(name: &'a str, folder: &str) -> Option<&'a str> {
    name.strip_prefix(folder)?.strip_prefix('/')
}

pub(super) fn read_folder(
    task: Task,
    folder: &str,
    from: u64,
    ino_of: fn(Task, u64) -> u64,
    emit: &mut dyn FnMut(DirEntry<'_>) -> bool,
) -> Result<()> {
    processes()?.process_of(task.tid).ok_or(Errno::ENOENT)?;
    for (index, name, entry) in entries(task).filter(|(index, ..)| *index > from) {
        let Some(name) = within(name, folder) else { continue };
        let (next, ino) = (DYNAMIC_CURSOR + index, ino_of(task, index));
        if !emit(DirEntry { name: name.as_bytes(), ino, kind: entry.kind(), next }) {
            break;
        }
    }
    Ok(())
}

/// What a name stands for.
pub(super) fn find(task: Task, name: &[u8]) -> Option<(u64, Entry)> {
    entries(task)
        .find(|(_, known, _)| known.as_bytes() == name)
        .map(|(index, _, entry)| (index, entry))
}

pub(super) fn read_entries(
    task: Task,
    from: u64,
    ino_of: fn(Task, u64) -> u64,
    emit: &mut dyn FnMut(DirEntry<'_>) -> bool,
) -> Result<()> {
    processes()?.process_of(task.tid).ok_or(Errno::ENOENT)?;
    let listed = entries(task).filter(|(_, name, _)| !name.contains('/'));
    for (index, name, entry) in listed.filter(|(index, ..)| *index > from) {
        let next = DYNAMIC_CURSOR + index;
        let ino = ino_of(task, index);
        if !emit(DirEntry { name: name.as_bytes(), ino, kind: entry.kind(), next }) {
            break;
        }
    }
    Ok(())
}

/// Where a magic link leads; EACCES if the caller may not look into the process.
pub(super) fn link_target(task: Task, link: Link) -> Result<Path> {
    let processes = processes()?;
    if !processes.may_access(task.tid) {
        return Err(Errno::EACCES);
    }
    match link {
        Link::Exe => processes.exe(task.tid).ok_or(Errno::ENOENT),
        Link::Cwd => processes.fs_context(task.tid).map(|fs| fs.cwd()).ok_or(Errno::ENOENT),
        Link::Root => processes.fs_context(task.tid).map(|fs| fs.root()).ok_or(Errno::ENOENT),
        Link::Namespace(space) => match processes.fs_context(task.tid) {
            None if !space.is_kept_by_zombies() => Err(Errno::ENOENT),
            _ => ns::path(space),
        },
        Link::Fd(fd) => {
            let files = processes.files(task.tid).ok_or(Errno::ENOENT)?;
            let file = files.get_any(fd).map_err(|_| Errno::ENOENT)?;
            Ok(file.path().clone())
        }
    }
}

/// What `readlink` gives for a magic link: the path as seen from the caller's root.
pub(super) fn link_text(task: Task, link: Link) -> Result<Vec<u8>> {
    link_target(task, link)?.to_absolute(&callers_root()?)
}

fn callers_root() -> Result<Path> {
    let processes = processes()?;
    let fs = processes.current().and_then(|(_, tid)| processes.fs_context(tid));
    fs.map(|fs| fs.root()).or_else(mount::root).ok_or(Errno::ENOENT)
}

/// /proc/PID/fdinfo/N.
pub(super) fn fdinfo(task: Task, fd: Fd) -> Result<Vec<u8>> {
    let files = processes()?.files(task.tid).ok_or(Errno::ESRCH)?;
    let file = files.get_any(fd).map_err(|_| Errno::ENOENT)?;
    let mut flags = file.flags().bits();
    if files.cloexec(fd).unwrap_or(false) {
        flags |= abi::fs::OpenFlags::CLOEXEC.bits();
    }
    let pos = file.pos().peek();
    let mount = file.path().mount.id();
    let ino = file.inode().attr().ino();
    let more = file.ops().fdinfo(&file)?;
    let text =
        try_format!("pos:\t{pos}\nflags:\t0{flags:o}\nmnt_id:\t{mount}\nino:\t{ino}\n{more}")?;
    Ok(text.into_bytes())
}

/// The mount table as the process sees it.
pub(super) fn mounts(task: Task, form: MountText) -> Result<Vec<u8>> {
    let fs = processes()?.fs_context(task.tid).ok_or(Errno::EINVAL)?;
    mounts::table(&fs.root(), form)
}
