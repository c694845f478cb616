//! The dynamic inodes: /proc itself and everything below a process directory.
//!
//! A node is made by each path walk that comes through it and holds only the process's number: the process may be gone
//! when the node is used, which then gives ESRCH or ENOENT, as on Linux.
//!
//! Owns a reference to /proc/net, which every process directory shows. Never keeps a reference to a process. Locks: none.
#![forbid(unsafe_code)]

use super::list::{
    NAMESPACES_AT, ROOT_INO, digits, ino_of, number, read_fds, read_namespaces, read_net,
    read_root, read_tasks,
};
use super::mounts::MountText;
use super::ns::NAMESPACES;
use super::pid::{self, Entry, Link, Task};
use super::process::{PidFile, ProcessTable, processes};
use super::text::{TextBuf, TextOps, TextSource};
use crate::mm::fallible::{try_arc, try_copy};
use crate::mm::{Sink, Source};
use crate::sync::Once;
use crate::try_format;
use crate::vfs::object::inode::{DYNAMIC_CURSOR, LinkText};
use crate::vfs::object::mount::{self, Changes};
use crate::vfs::{
    Cred, Dentry, DevId, DirEntry, Fd, FileOps, FileType, Inode, InodeAttr, Metadata, Owner, Path,
    SetAttr, Timestamp,
};
use abi::fs::{OpenFlags, PATH_MAX, S_IFDIR, S_IFLNK, S_IFREG};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What a node stands for. A task's `tid` is the number in the path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Root,
    SelfLink,
    ThreadSelfLink,
    Process(Task),
    Tasks(Task),
    Fds(Task),
    FdInfos(Task),
    Namespaces(Task),
    Net(Task),
    /// A directory of files that the layer of processes provides.
    Folder(Task, &'static str),
    Link(Task, Link),
    FdInfo(Task, Fd),
    File(Task, &'static PidFile),
    Mounts(Task, MountText),
}

/// One dynamic inode.
pub(super) struct Node {
    attr: InodeAttr,
    kind: Kind,
}

static NET: Once<Arc<Dentry>> = Once::new();

/// Sets the directory that /proc/PID/net shows.
pub(super) fn show_net(directory: Arc<Dentry>) {
    NET.call_once(|| directory);
}

impl Node {
    /// /proc itself.
    pub fn root(dev: DevId) -> Self {
        let owner = Owner::default();
        let mode = S_IFDIR | 0o555;
        let attr = InodeAttr::new(dev, ROOT_INO, mode, owner, DevId::NONE, Timestamp::now());
        Self { attr, kind: Kind::Root }
    }

    fn child(&self, kind: Kind, mode: u32, ino: u64) -> Result<Arc<dyn Inode>> {
        let owner = match kind {
            Kind::SelfLink | Kind::ThreadSelfLink | Kind::Root => Owner::default(),
            Kind::Process(t)
            | Kind::Tasks(t)
            | Kind::Fds(t)
            | Kind::FdInfos(t)
            | Kind::Namespaces(t)
            | Kind::Net(t)
            | Kind::Folder(t, _)
            | Kind::Link(t, _)
            | Kind::FdInfo(t, _)
            | Kind::File(t, _)
            | Kind::Mounts(t, _) => processes()?.owner(t.tid, mode == S_IFDIR | 0o555),
        };
        let attr = InodeAttr::new(self.attr.dev(), ino, mode, owner, DevId::NONE, Timestamp::now());
        Ok(try_arc(Self { attr, kind })?)
    }

    fn process(&self, task: Task) -> Result<Arc<dyn Inode>> {
        let node = self.child(Kind::Process(task), S_IFDIR | 0o555, ino_of(task, 0))?;
        node.attr().set_nlink(if task.in_task { 7 } else { 9 });
        Ok(node)
    }

    fn lookup_root(&self, name: &[u8]) -> Result<Arc<dyn Inode>> {
        match name {
            b"self" => return self.child(Kind::SelfLink, S_IFLNK | 0o777, ROOT_INO + 1),
            b"thread-self" => {
                return self.child(Kind::ThreadSelfLink, S_IFLNK | 0o777, ROOT_INO + 2);
            }
            _ => {}
        }
        let tid = number(name).ok_or(Errno::ENOENT)?;
        processes().ok().and_then(|p| p.process_of(tid)).ok_or(Errno::ENOENT)?;
        self.process(Task { tid, in_task: false })
    }

    fn lookup_task(&self, of: Task, name: &[u8]) -> Result<Arc<dyn Inode>> {
        let tid = number(name).ok_or(Errno::ENOENT)?;
        let processes = processes()?;
        let mine = processes.process_of(of.tid).ok_or(Errno::ENOENT)?;
        if processes.process_of(tid) != Some(mine) {
            return Err(Errno::ENOENT);
        }
        self.process(Task { tid, in_task: true })
    }

    fn lookup_entry(&self, task: Task, found: Option<(u64, Entry)>) -> Result<Arc<dyn Inode>> {
        processes()?.process_of(task.tid).ok_or(Errno::ENOENT)?;
        let (index, entry) = found.ok_or(Errno::ENOENT)?;
        let (kind, mode) = match entry {
            Entry::Tasks => (Kind::Tasks(task), S_IFDIR | 0o555),
            Entry::Fds => (Kind::Fds(task), S_IFDIR | 0o500),
            Entry::FdInfos => (Kind::FdInfos(task), S_IFDIR | 0o555),
            Entry::Namespaces => (Kind::Namespaces(task), S_IFDIR | 0o511),
            Entry::Net => (Kind::Net(task), S_IFDIR | 0o555),
            Entry::Folder(folder) => (Kind::Folder(task, folder), S_IFDIR | 0o555),
            Entry::Link(link) => (Kind::Link(task, link), S_IFLNK | 0o777),
            Entry::Mounts(text) => (Kind::Mounts(task, text), S_IFREG | text.mode()),
            Entry::File(file) => (Kind::File(task, file), S_IFREG | file.mode),
        };
        self.child(kind, mode, ino_of(task, index))
    }

    fn lookup_namespace(&self, task: Task, name: &[u8]) -> Result<Arc<dyn Inode>> {
        processes()?.process_of(task.tid).ok_or(Errno::ENOENT)?;
        let all = NAMESPACES.iter().enumerate();
        let found = all.into_iter().find(|(_, space)| space.name.as_bytes() == name);
        let (index, space) = found.ok_or(Errno::ENOENT)?;
        let kind = Kind::Link(task, Link::Namespace(space));
        self.child(kind, S_IFLNK | 0o777, ino_of(task, NAMESPACES_AT + index as u64))
    }

    fn lookup_fd(&self, task: Task, name: &[u8], info: bool) -> Result<Arc<dyn Inode>> {
        let number = number(name).ok_or(Errno::ENOENT)?;
        let fd = Fd(i32::try_from(number).map_err(|_| Errno::ENOENT)?);
        let files = processes()?.files(task.tid).ok_or(Errno::ENOENT)?;
        let file = files.get_any(fd).map_err(|_| Errno::ENOENT)?;
        let ino = ino_of(task, 0x100 + u64::from(number));
        if info {
            return self.child(Kind::FdInfo(task, fd), S_IFREG | 0o444, ino);
        }
        let mut mode = S_IFLNK;
        if file.flags().readable() {
            mode |= 0o500;
        }
        if file.flags().writable() {
            mode |= 0o300;
        }
        self.child(Kind::Link(task, Link::Fd(fd)), mode, ino)
    }
}

impl Inode for Node {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }

    fn meta(&self) -> Metadata {
        let mut meta = self.attr.metadata();
        meta.blksize = 1024;
        match self.kind {
            // What Linux shows for every fd link.
            Kind::Link(_, Link::Fd(_)) => meta.size = 64,
            Kind::Root => {
                let mut pid = 0;
                while let Some(next) = processes().ok().and_then(|p| p.next_pid(pid)) {
                    meta.nlink = meta.nlink.saturating_add(1);
                    pid = next.saturating_add(1);
                }
            }
            // One link for each thread besides the directory's own two: programs count threads that way.
            Kind::Tasks(task) => {
                let count = |processes: &'static dyn ProcessTable| {
                    Some(processes.task_count(processes.process_of(task.tid)?))
                };
                let tasks = processes().ok().and_then(count).unwrap_or(0);
                meta.nlink = tasks.saturating_add(2);
            }
            _ => {}
        }
        meta
    }

    fn set_attr(&self, change: &SetAttr) -> Result<bool> {
        if change.mode.is_some() || change.uid.is_some() || change.gid.is_some() {
            return Err(Errno::EPERM);
        }
        Ok(true)
    }

    fn is_dynamic(&self) -> bool {
        true
    }

    fn refuses_names(&self) -> Option<[Errno; 2]> {
        Some([Errno::ENOENT; 2])
    }

    fn lookup(&self, name: &[u8]) -> Result<Arc<dyn Inode>> {
        match self.kind {
            Kind::Root => self.lookup_root(name),
            Kind::Process(task) => self.lookup_entry(task, pid::find(task, name)),
            Kind::Folder(task, folder) => self.lookup_entry(task, pid::find_in(task, folder, name)),
            Kind::Tasks(task) => self.lookup_task(task, name),
            Kind::Fds(task) => self.lookup_fd(task, name, false),
            Kind::FdInfos(task) => self.lookup_fd(task, name, true),
            Kind::Namespaces(task) => self.lookup_namespace(task, name),
            Kind::Net(_) => {
                let found = NET.get().and_then(|net| net.lookup_fixed(name));
                found.map(|entry| entry.inode().clone()).ok_or(Errno::ENOENT)
            }
            _ => Err(Errno::ENOENT),
        }
    }

    fn readdir(&self, pos: u64, emit: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
        let from = pos.saturating_sub(DYNAMIC_CURSOR);
        match self.kind {
            Kind::Root => read_root(from, emit),
            Kind::Process(task) => pid::read_entries(task, from, ino_of, emit),
            Kind::Tasks(task) => read_tasks(task, from, emit),
            Kind::Fds(task) => read_fds(task, from, FileType::Symlink, emit),
            Kind::FdInfos(task) => read_fds(task, from, FileType::Regular, emit),
            Kind::Namespaces(task) => read_namespaces(task, from, emit),
            Kind::Net(_) => read_net(NET.get().ok_or(Errno::ENOENT)?, from, emit),
            Kind::Folder(task, folder) => pid::read_folder(task, folder, from, ino_of, emit),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn readlink(&self) -> Result<LinkText> {
        let text = match self.kind {
            Kind::SelfLink => {
                let (pid, _) = processes()?.current().ok_or(Errno::ENOENT)?;
                return try_arc(try_copy(digits(pid).as_slice())?);
            }
            Kind::ThreadSelfLink => {
                let (pid, tid) = processes()?.current().ok_or(Errno::ENOENT)?;
                try_format!("{pid}/task/{tid}")?.into_bytes()
            }
            Kind::Link(task, link) => {
                let text = pid::link_text(task, link)?;
                // `PATH_MAX` counts the NUL.
                if text.len() >= PATH_MAX {
                    return Err(Errno::ENAMETOOLONG);
                }
                text
            }
            _ => return Err(Errno::EINVAL),
        };
        try_arc(text)
    }

    fn follow(&self) -> Option<Result<Path>> {
        match self.kind {
            Kind::Link(task, link) => Some(pid::link_target(task, link)),
            _ => None,
        }
    }

    fn open(self: Arc<Self>, _: OpenFlags) -> Result<Arc<dyn FileOps>> {
        match self.kind {
            Kind::File(task, file) => {
                // `TextOps::new` notes which memory the process has, before access is checked: should it exec in
                // between, the file is about the old memory and reads as empty.
                let ops = TextOps::new(self.clone())?;
                if OF_MEMORY.contains(&file.name) && processes()?.memory(task.tid) == 0 {
                    return Err(Errno::ESRCH);
                }
                if file.guarded && !processes()?.may_access(task.tid) {
                    return Err(Errno::EACCES);
                }
                Ok(ops)
            }
            // A zombie has left its mount namespace.
            Kind::Mounts(task, _) if processes()?.fs_context(task.tid).is_none() => {
                Err(Errno::EINVAL)
            }
            Kind::FdInfo(..) | Kind::Mounts(..) => Ok(TextOps::new(self)?),
            _ => Err(Errno::ENXIO),
        }
    }

    fn permission(&self, _: &Cred, _: u32) -> Result<()> {
        match self.kind {
            Kind::Process(task) => processes()?.process_of(task.tid).map(drop).ok_or(Errno::ESRCH),
            Kind::FdInfos(task) if !processes()?.may_access(task.tid) => Err(Errno::EACCES),
            _ => Ok(()),
        }
    }
}

/// The files that cannot be opened where there is no memory: of a zombie or a kernel thread.
const OF_MEMORY: [&str; 3] = ["auxv", "environ", "mem"];

/// The process whose directory in /proc this is.
pub fn process_of(inode: &dyn Inode) -> Option<u32> {
    match inode.downcast::<Node>()?.kind {
        Kind::Process(task) if !task.in_task => Some(task.tid),
        _ => None,
    }
}

impl TextSource for Node {
    fn piece(&self, from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
        if let Kind::File(task, file) = self.kind {
            let processes = processes()?;
            processes.process_of(task.tid).ok_or(Errno::ESRCH)?;
            if let Some(next) = processes.piece(task.tid, file.name, from, text) {
                return next;
            }
        }
        text.replace(self.text()?);
        Ok(None)
    }

    fn text(&self) -> Result<Vec<u8>> {
        match self.kind {
            Kind::File(task, file) => {
                let processes = processes()?;
                processes.process_of(task.tid).ok_or(Errno::ESRCH)?;
                processes.read(task.tid, task.in_task, file.name)
            }
            Kind::FdInfo(task, fd) => pid::fdinfo(task, fd),
            Kind::Mounts(task, text) => pid::mounts(task, text),
            _ => Err(Errno::EINVAL),
        }
    }

    fn take(&self, data: &[u8]) -> Result<usize> {
        match self.kind {
            Kind::File(task, file) => processes()?.write(task.tid, file.name, data),
            _ => Err(Errno::EINVAL),
        }
    }

    fn changes(&self) -> Option<&'static Changes> {
        matches!(self.kind, Kind::Mounts(_, text) if text.is_watched()).then_some(&mount::CHANGES)
    }

    fn is_value(&self) -> bool {
        matches!(self.kind, Kind::File(_, file) if file.name == "loginuid")
    }

    fn subject(&self) -> u64 {
        match self.kind {
            Kind::File(task, file) if file.guarded => {
                processes().map_or(0, |processes| processes.memory(task.tid))
            }
            _ => 0,
        }
    }

    fn read_at(&self, dst: &mut Sink<'_>, pos: u64, subject: u64) -> Option<Result<usize>> {
        match self.kind {
            Kind::File(_, file) if file.name == "mem" => {
                Some(processes().and_then(|all| all.read_memory(subject, dst, pos)))
            }
            _ => None,
        }
    }

    fn write_at(&self, src: &mut Source<'_>, pos: u64, subject: u64) -> Option<Result<usize>> {
        match self.kind {
            Kind::File(_, file) if file.name == "mem" => {
                Some(processes().and_then(|all| all.write_memory(subject, src, pos)))
            }
            _ => None,
        }
    }
}
