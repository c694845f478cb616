//! [`Dentry`]: a name in the tree. In the file systems of this kernel (tmpfs, devtmpfs, the fixed part of
//! proc and sysfs) the dentries *are* the directories: a name exists while its parent's table holds it.
//! Dynamic directories (/proc/PID) make dentries for their names on demand, which live as long as they
//! are used.
//!
//! A dentry owns a reference to its parent, and a directory's table one to each child. Locks: whoever adds, removes or
//! moves names holds the directory's `change` mutex (of two, an ancestor's first, otherwise by address) and takes the
//! table's spinlock for the moment of the change; readers take only the spinlock. A dentry's own link lock may be taken
//! inside its parent's table lock, never the other way. A rename is one step for all readers: it holds the spinlocks of both
//! tables, and to exchange two names both links. Renames between two directories are ordered by a mutex, and nobody else holds
//! two tables or two links ([`SpinLock::lock_second`] is the only way, and only here): so no order among them is needed.
#![forbid(unsafe_code)]

use super::inode::Inode;
use super::name_hash::NameHash;
use super::types::FileType;
use crate::mm::fallible::{Room, try_box, try_small};
use crate::sync::counted::{Counted, Kind};
use crate::sync::{Mutex, MutexGuard, SpinGuard, SpinLock, cond_resched, level};
use crate::vfs::notify;
use abi::fs::NAME_MAX;
use abi::{Errno, Result};
use alea_names::{Names, OutOfMemory, Reserved};
use alloc::boxed::Box;
use alloc::sync::Arc;
use arrayvec::ArrayVec;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU32, Ordering};
use smallvec::SmallVec;

/// The bytes of one path component.
pub type Name = SmallVec<[u8; 24]>;

/// A copy of a name that needs no allocation; no name is longer.
pub type NameCopy = ArrayVec<u8, NAME_MAX>;

/// A name, what it names, and for a directory the names below.
pub struct Dentry {
    _counted: Counted,
    inode: Arc<dyn Inode>,
    kind: FileType,
    /// The inode's number, for listings of the directory.
    ino: u64,
    /// Number of mounts on top. Relaxed: a walk that misses a mount being made came before it.
    mounts: AtomicU32,
    link: SpinLock<Link, level::DentryLink>,
    dir: Option<Box<Directory>>,
}

struct Link {
    parent: Option<Arc<Dentry>>,
    name: Name,
    /// The cursor in the parent's table; 0 if the table does not hold it.
    cursor: u64,
    unlinked: bool,
}

/// The table of a directory.
type Children = Names<Arc<Dentry>>;

struct Directory {
    change: Mutex<()>,
    children: SpinLock<Children, level::Dentry>,
    dynamic: bool,
}

impl Dentry {
    /// A dentry with no place in any table: the root of a file system, or a nameless file.
    pub fn new_root(inode: Arc<dyn Inode>, name: &[u8]) -> Result<Arc<Self>> {
        Self::build(inode, None, name)
    }

    /// A dentry below `parent` that its table does not (yet) hold.
    pub fn new_below(
        parent: &Arc<Dentry>,
        name: &[u8],
        inode: Arc<dyn Inode>,
    ) -> Result<Arc<Self>> {
        Self::build(inode, Some(parent.clone()), name)
    }

    /// A dentry for a file that never had a name in its directory (`O_TMPFILE`, memfd).
    pub fn new_unlinked(
        parent: Option<Arc<Dentry>>,
        name: &[u8],
        inode: Arc<dyn Inode>,
    ) -> Result<Arc<Self>> {
        let dentry = Self::build(inode, parent, name)?;
        dentry.link.lock().unlinked = true;
        Ok(dentry)
    }

    fn build(inode: Arc<dyn Inode>, parent: Option<Arc<Dentry>>, name: &[u8]) -> Result<Arc<Self>> {
        // Allocated first, so that the dentry is written in place.
        let room = Room::new()?;
        let attr = inode.attr();
        let (kind, ino) = (attr.kind(), attr.ino());
        let dir = match kind {
            FileType::Dir => Some(try_box(Directory {
                change: Mutex::new(()),
                children: SpinLock::new(Children::new()),
                dynamic: inode.is_dynamic(),
            })?),
            _ => None,
        };
        let name = try_small(name)?;
        Ok(room.arc(Self {
            _counted: Counted::new(Kind::Dentry),
            inode,
            kind,
            ino,
            mounts: AtomicU32::new(0),
            link: SpinLock::new(Link { parent, name, cursor: 0, unlinked: false }),
            dir,
        }))
    }

    /// What the name stands for.
    #[inline]
    pub fn inode(&self) -> &Arc<dyn Inode> {
        &self.inode
    }
    /// Its type.
    #[inline]
    pub fn kind(&self) -> FileType {
        self.kind
    }
    /// The inode's number.
    #[inline]
    pub fn ino(&self) -> u64 {
        self.ino
    }
    /// Whether it is a directory.
    #[inline]
    pub fn is_dir(&self) -> bool {
        self.dir.is_some()
    }
    /// Whether something is mounted on it, in any mount.
    #[inline]
    pub fn is_mountpoint(&self) -> bool {
        self.mounts.load(Ordering::Relaxed) != 0
    }
    /// Counts a mount on top (`by` 1) or its end (-1); the mount tree's lock orders the callers.
    pub(super) fn add_mounts(&self, by: i32) {
        let now = self.mounts.load(Ordering::Relaxed).saturating_add_signed(by);
        self.mounts.store(now, Ordering::Relaxed);
    }
    /// The directory above; `None` at a root.
    pub fn parent(&self) -> Option<Arc<Dentry>> {
        self.link.lock().parent.clone()
    }
    /// The directory above and the name there.
    pub fn parent_and_name(&self) -> (Option<Arc<Dentry>>, NameCopy) {
        let link = self.link.lock();
        #[expect(clippy::disallowed_methods, reason = "collects into an array of that size")]
        let name = link.name.iter().copied().take(NAME_MAX).collect();
        (link.parent.clone(), name)
    }
    /// Whether the name is gone while the object lives on.
    pub fn is_unlinked(&self) -> bool {
        self.link.lock().unlinked
    }
    /// Whether this is `other` or lies above it.
    pub fn is_above(self: &Arc<Self>, other: &Arc<Dentry>) -> bool {
        let mut at = other.clone();
        loop {
            cond_resched();
            if Arc::ptr_eq(self, &at) {
                return true;
            }
            match at.parent() {
                Some(parent) => at = parent,
                None => return false,
            }
        }
    }

    /// Finds a name in the table, or asks a dynamic directory for it.
    #[inline]
    pub fn lookup(self: &Arc<Self>, name: &[u8]) -> Result<Arc<Dentry>> {
        let dir = self.directory()?;
        if name.len() > abi::fs::NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let found = {
            let children = dir.children.lock();
            children
                .find(NameHash::of(name).value(), |child| *child.link.lock().name == *name)
                .cloned()
        };
        match found {
            Some(child) => Ok(child),
            None if dir.dynamic => Self::new_below(self, name, self.inode.lookup(name)?),
            None => Err(Errno::ENOENT),
        }
    }

    /// Finds a name in the table only, even if the directory is dynamic.
    pub fn lookup_fixed(&self, name: &[u8]) -> Option<Arc<Dentry>> {
        let children = self.dir.as_deref()?.children.lock();
        children.find(NameHash::of(name).value(), |child| *child.link.lock().name == *name).cloned()
    }

    /// Takes this directory's `change` mutex.
    pub fn lock_changes(&self) -> Result<MutexGuard<'_, ()>> {
        Ok(self.directory()?.change.lock())
    }

    /// Calls `act` while nobody can remove, move or replace this name: every change of it holds the `change` mutex of the
    /// directory that the name is in. ENOENT if the name is gone.
    pub fn while_named<R>(&self, act: impl FnOnce() -> Result<R>) -> Result<R> {
        loop {
            cond_resched();
            let parent = self.parent();
            let changes = parent.as_ref().map(|parent| parent.lock_changes()).transpose()?;
            let (now, unlinked) = {
                let link = self.link.lock();
                (link.parent.as_ref().map(Arc::as_ptr), link.unlinked)
            };
            if unlinked {
                return Err(Errno::ENOENT);
            }
            // Otherwise it was moved before the mutex was held.
            if now == parent.as_ref().map(Arc::as_ptr) {
                return act();
            }
            drop(changes);
        }
    }

    /// Adds a dentry, made with [`new_below`](Self::new_below) for this directory, to the table; the caller holds the
    /// directory's `change` mutex and has checked that the name is free.
    pub fn insert(&self, child: &Arc<Dentry>) -> Result<()> {
        let dir = self.directory()?;
        let hash = NameHash::of(&child.link.lock().name);
        let mut children = dir.children.lock();
        let cursor =
            children.insert(hash.value(), child.clone()).map_err(|OutOfMemory| Errno::ENOMEM)?;
        child.link.lock().cursor = cursor;
        Ok(())
    }

    /// Makes room in the table, so that the next [`insert`](Self::insert) or [`relocate`](Self::relocate) cannot fail.
    pub fn reserve(&self) -> Result<Reserved> {
        self.directory()?.children.lock().reserve().map_err(|OutOfMemory| Errno::ENOMEM)
    }

    /// Takes `child` out of this directory's table and marks it unlinked.
    pub fn remove(&self, child: &Arc<Dentry>) {
        let cursor = child.cursor();
        let removed = self.dir.as_deref().and_then(|dir| dir.children.lock().remove(cursor));
        child.link.lock().unlinked = true;
        drop(removed);
    }

    /// Moves `child` from this directory's table to `new_dir`'s as `name`, in the place of `replaced`, which
    /// is unlinked. Both `change` mutexes are held, since before `room` was made in `new_dir`. Everybody sees all of it or nothing.
    pub fn relocate(
        &self,
        child: &Arc<Dentry>,
        new_dir: &Arc<Dentry>,
        (name, room): (Name, Reserved),
        replaced: Option<&Arc<Dentry>>,
    ) {
        let (Some(from), Some(to)) = (self.dir.as_deref(), new_dir.dir.as_deref()) else {
            return;
        };
        let old_cursor = child.cursor();
        let mut tables = Tables::lock(from, to);
        let mut gone = None;
        let cursor = match replaced {
            Some(replaced) => {
                let cursor = replaced.cursor();
                replaced.link.lock().unlinked = true;
                gone = tables.second().replace(cursor, child.clone());
                cursor
            }
            None => {
                let hash = NameHash::of(&name).value();
                tables.second().insert_reserved(room, hash, child.clone())
            }
        };
        let old = {
            let mut link = child.link.lock();
            link.cursor = cursor;
            (core::mem::replace(&mut link.name, name), link.parent.replace(new_dir.clone()))
        };
        let held = tables.first.remove(old_cursor);
        drop(tables);
        drop((gone, held, old));
    }

    /// Swaps `a`, an entry of this directory, with `b`, one of `b_dir`. Both `change` mutexes are held. Everybody sees all of
    /// it or nothing.
    pub fn exchange(&self, a: &Arc<Dentry>, b_dir: &Arc<Dentry>, b: &Arc<Dentry>) {
        let (Some(a_dir), Some(b_dir)) = (self.dir.as_deref(), b_dir.dir.as_deref()) else {
            return;
        };
        let mut tables = Tables::lock(a_dir, b_dir);
        let old_a = tables.first.replace(a.cursor(), b.clone());
        let old_b = tables.second().replace(b.cursor(), a.clone());
        core::mem::swap(&mut *a.link.lock(), &mut *b.link.lock_second());
        drop(tables);
        drop((old_a, old_b));
    }

    /// Where the parent's table holds this dentry.
    fn cursor(&self) -> u64 {
        self.link.lock().cursor
    }

    fn directory(&self) -> Result<&Directory> {
        self.dir.as_deref().ok_or(Errno::ENOTDIR)
    }

    /// Whether the table is empty.
    pub fn has_children(&self) -> bool {
        self.dir.as_deref().is_some_and(|dir| !dir.children.lock().is_empty())
    }

    /// A cursor above those of all children that are there now.
    pub fn children_end(&self) -> u64 {
        self.dir.as_deref().map_or(0, |dir| dir.children.lock().end())
    }

    /// Tells `begins` the cursor above those of all children, then calls `visit` with the cursor, dentry and name of each child
    /// whose cursor is at least `from`, in order, until it breaks; returns what it broke with. This table is locked meanwhile.
    #[inline]
    pub fn visit_children<B>(
        &self,
        from: u64,
        begins: impl FnOnce(u64),
        mut visit: impl FnMut(u64, &Dentry, &[u8]) -> ControlFlow<B>,
    ) -> Option<B> {
        let children = self.dir.as_deref()?.children.lock();
        begins(children.end());
        let outcome = children.visit(from, |cursor, child| {
            let link = child.link.lock();
            visit(cursor, child, &link.name)
        });
        outcome.break_value()
    }

    /// Empties this directory's table and every table below, so that parents and children no longer keep each other alive:
    /// the end of a file system.
    pub fn tear_down(self: &Arc<Self>) {
        // Down into each directory that has entries, and up again when its table is empty: this needs no memory.
        let mut at = self.clone();
        loop {
            cond_resched();
            let Some(dir) = at.dir.as_deref() else { return };
            let first = dir.children.lock().remove_first();
            at = match first {
                Some(child) if child.has_children() => child,
                Some(_) => continue,
                None if Arc::ptr_eq(&at, self) => return,
                None => match at.parent() {
                    Some(parent) => parent,
                    None => return,
                },
            };
        }
    }
}

/// The locked tables of the two directories of a rename, which may be one.
struct Tables<'a> {
    first: SpinGuard<'a, Children, level::Dentry>,
    other: Option<SpinGuard<'a, Children, level::Dentry>>,
}

impl<'a> Tables<'a> {
    fn lock(first: &'a Directory, second: &'a Directory) -> Self {
        let one = core::ptr::eq(first, second);
        let first = first.children.lock();
        Self { first, other: (!one).then(|| second.children.lock_second()) }
    }

    fn second(&mut self) -> &mut Children {
        self.other.as_mut().unwrap_or(&mut self.first)
    }
}

impl Drop for Dentry {
    /// Drops the chain of parents one by one: a deep tree that was unlinked below a working directory must not
    /// recurse on the kernel stack.
    fn drop(&mut self) {
        if self.link.get_mut().unlinked {
            notify::name_dropped(&self.inode);
        }
        let mut parent = self.link.get_mut().parent.take();
        while let Some(dentry) = parent {
            parent = Arc::into_inner(dentry).and_then(|mut d| d.link.get_mut().parent.take());
        }
    }
}
