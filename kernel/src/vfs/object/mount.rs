//! [`Mount`]: a file system instance attached to the tree, and the one mount tree of the machine.
//!
//! Owns the tree. Locks: a mutex orders all changes, and whoever changes the tree shows that it is held ([`Changing`]); then
//! `MountTable` for the tree (what is mounted where), taken to cross a mount point, to look through the list of mounts and to change
//! the tree. A mount's place is read without them, under the mount's own leaf lock. A mount is never dropped under either spinlock.
#![forbid(unsafe_code)]

use super::dentry::Dentry;
use super::filesystem::Super;
use super::path::Path;
use crate::mm::fallible::{TryGrow, TryMap, TrySlice, TryVec, try_arc};
use crate::sync::counted::{Counted, Kind};
use crate::sync::{Mutex, MutexGuard, Pace, PollTable, SpinLock, WaitQueue, level};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bitflags::bitflags;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

bitflags! {
    /// Per-mount flags, with the values of `MS_*`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct MountFlags: u32 {
        const RDONLY = 1;
        const NOSUID = 2;
        const NODEV = 4;
        const NOEXEC = 8;
        const NOSYMFOLLOW = 256;
        const NOATIME = 1024;
        const NODIRATIME = 2048;
        const RELATIME = 1 << 21;
    }
}

/// One attachment of a file system (or of a part of it).
pub struct Mount {
    _counted: Counted,
    id: u32,
    super_block: Arc<Super>,
    root: Arc<Dentry>,
    source: Vec<u8>,
    /// Relaxed: a call that misses a remount came before it.
    flags: AtomicU32,
    /// Where it is attached; `None` for the root mount, before it is attached, after umount, and for kernel-internal mounts.
    place: SpinLock<Option<Path>, level::Leaf>,
    /// An `umount` with `MNT_EXPIRE` has marked it. Relaxed: nothing else depends on it.
    expired: AtomicBool,
}

static NEXT_ID: AtomicU32 = AtomicU32::new(1);

impl Mount {
    /// A mount that is not attached anywhere.
    pub fn new(
        sb: Arc<Super>,
        root: Arc<Dentry>,
        source: &[u8],
        flags: MountFlags,
    ) -> Result<Arc<Self>> {
        try_arc(Self {
            _counted: Counted::new(Kind::Mount),
            // Relaxed: only uniqueness matters.
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            super_block: sb,
            root,
            source: source.try_owned()?,
            flags: AtomicU32::new(flags.bits()),
            place: SpinLock::new(None),
            expired: AtomicBool::new(false),
        })
    }

    /// Its number in /proc/self/mountinfo.
    pub fn id(&self) -> u32 {
        self.id
    }
    /// The instance it shows.
    pub fn super_block(&self) -> &Arc<Super> {
        &self.super_block
    }
    /// The topmost dentry that it shows.
    #[inline]
    pub fn root(&self) -> &Arc<Dentry> {
        &self.root
    }
    /// The first column of /proc/mounts.
    pub fn source(&self) -> &[u8] {
        &self.source
    }
    /// The flags.
    #[inline]
    pub fn flags(&self) -> MountFlags {
        MountFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }
    /// Replaces the flags (remount).
    pub fn set_flags(&self, flags: MountFlags) {
        self.flags.store(flags.bits(), Ordering::Relaxed);
        CHANGES.tell();
    }
    /// Where it is attached.
    pub fn place(&self) -> Option<Path> {
        self.place.lock().clone()
    }
    /// Takes the mark of `MNT_EXPIRE` away: it was used.
    #[inline]
    pub fn note_use(&self) {
        if self.expired.load(Ordering::Relaxed) {
            self.expired.store(false, Ordering::Relaxed);
        }
    }
    /// Marks it for `MNT_EXPIRE`; returns whether it was marked before and not used since.
    pub fn mark_expired(&self) -> bool {
        self.expired.swap(true, Ordering::Relaxed)
    }
    /// EROFS if nothing may be changed through it.
    #[inline]
    pub fn check_writable(&self) -> Result<()> {
        if self.flags().contains(MountFlags::RDONLY) || self.super_block.read_only() {
            return Err(Errno::EROFS);
        }
        Ok(())
    }
}

/// What is mounted where.
struct Tree {
    /// By parent mount and dentry.
    by_point: BTreeMap<(u32, usize), Arc<Mount>>,
    /// All attached mounts in the order in which they were attached; the root mount is the first.
    all: Vec<Arc<Mount>>,
}

crate::setting! {
    /// How many mounts there may be (`fs.mount-max`).
    pub static MOUNT_MAX = 100_000, 1..=i32::MAX;
}

static TREE: SpinLock<Tree, level::MountTable> =
    SpinLock::new(Tree { by_point: BTreeMap::new(), all: Vec::new() });

/// That the tree does not change meanwhile but by the one who has this. A path walk takes none.
pub struct Changing {
    _held: MutexGuard<'static, ()>,
}

/// Begins to change the tree, when nobody else does.
pub fn change() -> Changing {
    static CHANGING: Mutex<()> = Mutex::new(());
    Changing { _held: CHANGING.lock() }
}

/// What tells of changes of a text, to who polls it.
pub struct Changes {
    count: AtomicU64,
    queue: WaitQueue,
}

/// Those of the mount table.
pub static CHANGES: Changes = Changes { count: AtomicU64::new(0), queue: WaitQueue::new() };

impl Changes {
    /// How many there were.
    pub fn count(&self) -> u64 {
        // Acquire: pairs with the Release of `tell`.
        self.count.load(Ordering::Acquire)
    }

    /// Lets a poll wait for the next; who then asks for the count misses none.
    pub fn watch(&self, table: &mut PollTable) {
        table.watch(&self.queue);
    }

    /// There was one. Nothing is locked.
    fn tell(&self) {
        // Release: whoever sees the number sees the change.
        self.count.fetch_add(1, Ordering::Release);
        self.queue.wake_all();
    }
}

impl Tree {
    fn holds(&self, mount: &Arc<Mount>) -> bool {
        self.all.iter().any(|m| Arc::ptr_eq(m, mount))
    }

    fn check_room(&self, more: usize) -> Result<()> {
        let most = MOUNT_MAX.get().unsigned_abs() as usize;
        if self.all.len().saturating_add(more) > most { Err(Errno::ENOSPC) } else { Ok(()) }
    }
}

/// Whether there is room for so many more; ENOSPC.
pub fn check_room(_: &Changing, more: usize) -> Result<()> {
    TREE.lock().check_room(more)
}

fn key(at: &Path) -> (u32, usize) {
    (at.mount.id, Arc::as_ptr(&at.dentry) as usize)
}

/// If something is mounted on `at`, goes to the root of the topmost mount.
#[inline]
pub fn descend(at: &mut Path) {
    while at.dentry.is_mountpoint() {
        let Some(mount) = TREE.lock().by_point.get(&key(at)).cloned() else { return };
        *at = Path::root_of(mount);
    }
}

/// Whether `mount` is in the tree: not after umount, and never if it is kernel-internal.
pub fn is_attached(mount: &Arc<Mount>) -> bool {
    TREE.lock().holds(mount)
}

/// Makes `mount` the root of the tree.
pub fn attach_root(mount: Arc<Mount>) {
    #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
    TREE.lock().all.insert(0, mount);
}

/// Attaches new mounts, all or none: each `of` is a mount and its place, the first where the name cannot change meanwhile
/// ([`Dentry::while_named`]), the others on those before them. ENOENT if the mount of the first place is not in the tree: no
/// path leads to such a place, so what the tree holds there could never be unmounted. ENOSPC beyond `MOUNT_MAX`.
pub fn attach_all<T>(
    _: &Changing,
    made: &[T],
    of: impl Fn(&T) -> (&Arc<Mount>, &Path),
) -> Result<()> {
    let Some((_, first)) = made.first().map(&of) else { return Ok(()) };
    let mut tree = TREE.lock();
    if !tree.holds(&first.mount) {
        return Err(Errno::ENOENT);
    }
    tree.check_room(made.len())?;
    tree.all.try_room(made.len())?;
    for (at, (mount, place)) in made.iter().map(&of).enumerate() {
        if let Err(errno) = tree.by_point.try_put(key(place), mount.clone()) {
            // The caller has all of them: none ends here.
            for (_, place) in made.iter().take(at).map(&of) {
                tree.by_point.remove(&key(place));
            }
            return Err(errno);
        }
    }
    for (mount, place) in made.iter().map(&of) {
        place.dentry.add_mounts(1);
        *mount.place.lock() = Some(place.clone());
        tree.all.try_push(mount.clone())?; // there is room
    }
    drop(tree);
    CHANGES.tell();
    Ok(())
}

/// Moves an attached mount to `at`, whose name cannot change meanwhile, or leaves it where it is. ENOENT as above.
pub fn relocate(_: &Changing, mount: &Arc<Mount>, at: Path) -> Result<()> {
    let mut tree = TREE.lock();
    if !tree.holds(&at.mount) {
        return Err(Errno::ENOENT);
    }
    tree.by_point.try_put(key(&at), mount.clone())?;
    at.dentry.add_mounts(1);
    let old = mount.place.lock().replace(at);
    let from = old.as_ref().and_then(|old| {
        old.dentry.add_mounts(-1);
        tree.by_point.remove(&key(old))
    });
    drop(tree);
    drop((from, old));
    CHANGES.tell();
    Ok(())
}

/// Detaches mounts, the last one first, or none without memory; whatever else is mounted below them stays attached to them. Returns
/// where they were, to be dropped with nothing locked. EBUSY for one that has more than `most` references.
pub fn detach_all(_: &Changing, mounts: &[Arc<Mount>], most: usize) -> Result<Vec<Path>> {
    let mut places = Vec::with_room(mounts.len())?;
    for mount in mounts.iter().rev().paced() {
        let mut tree = TREE.lock();
        // With the tree locked no walk enters it: a new reference comes of another one, which counts.
        if Arc::strong_count(mount) > most {
            return Err(Errno::EBUSY);
        }
        let place = mount.place.lock().take();
        let removed = place.as_ref().and_then(|place| {
            place.dentry.add_mounts(-1);
            tree.by_point.remove(&key(place))
        });
        drop(tree);
        drop(removed);
        if let Some(place) = place {
            places.try_push(place)?; // there is room
        }
    }
    let mut is_root = true;
    // Whoever has no place has left, but for the root. The caller has all of them: none ends here.
    TREE.lock().all.retain(|mount| core::mem::take(&mut is_root) || mount.place.lock().is_some());
    CHANGES.tell();
    Ok(places)
}

/// All attached mounts in the order in which they were attached. Who has `Changing` would take these references for uses, so
/// nobody has them without it.
pub fn all(_: &Changing) -> Result<Vec<Arc<Mount>>> {
    let mut all = Vec::new();
    loop {
        let tree = TREE.lock();
        // No reference may be dropped under the lock, so the room for all is made first.
        if all.capacity() >= tree.all.len() {
            all.try_extend(tree.all.iter().cloned())?;
            return Ok(all);
        }
        let wanted = tree.all.len();
        drop(tree);
        all.try_room(wanted)?;
    }
}

/// The root of the whole tree; `None` before the initramfs is there.
pub fn root() -> Option<Path> {
    let mount = TREE.lock().all.first().cloned()?;
    let mut root = Path::root_of(mount);
    descend(&mut root);
    Some(root)
}
