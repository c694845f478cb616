//! [`Inode`]: one object of a file system, and [`InodeAttr`], the attributes they all carry.
//!
//! The defaults of the trait give the error that Linux gives for an object that does not support the operation. Names,
//! permissions and mounts are the caller's business (`namei`, `dentry`); an inode method may assume they
//! have been checked. Owns the attributes. Never checks the permissions that mode bits give. Locks: `Inode`, for
//! the times, and for the slot of a fifo or socket.
#![forbid(unsafe_code)]

use super::file::FileOps;
use super::locks::FileLocks;
use super::path::Path;
use super::types::{DevId, DirEntry, FileType, Metadata, Rights, SetAttr, Times, Timestamp};
use crate::mm::PageCache;
use crate::sync::{Once, SpinLock, level};
use crate::vfs::cred::Cred;
use crate::vfs::object::seals::Seals;
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The attributes that every inode has.
pub struct InodeAttr {
    dev: DevId,
    ino: u64,
    rdev: DevId,
    // Relaxed throughout: each is valid by itself. A check that reads two of them may see one from before a change and
    // one from after it: where that matters, `rights` has them of one moment. They change with `times` locked.
    mode: AtomicU32,
    uid: AtomicU32,
    gid: AtomicU32,
    nlink: AtomicU32,
    times: SpinLock<Times, level::Inode>,
    /// The inotify events of this object that somebody wants; 0 if nobody watches it.
    watched: AtomicU32,
    /// Whether it has, or has had, the attribute `security.capability`; its file system says so.
    has_file_caps: AtomicBool,
    /// Made with the first lock.
    locks: Once<Arc<FileLocks>>,
}

impl InodeAttr {
    /// Attributes of a fresh object; every time is `now`.
    pub fn new(dev: DevId, ino: u64, mode: u32, owner: Owner, rdev: DevId, now: Timestamp) -> Self {
        let links = if mode & abi::fs::S_IFMT == abi::fs::S_IFDIR { 2 } else { 1 };
        let times = Times { atime: now, mtime: now, ctime: now, btime: now };
        Self {
            dev,
            ino,
            rdev,
            mode: AtomicU32::new(mode),
            uid: AtomicU32::new(owner.uid),
            gid: AtomicU32::new(owner.gid),
            nlink: AtomicU32::new(links),
            times: SpinLock::new(times),
            watched: AtomicU32::new(0),
            has_file_caps: AtomicBool::new(false),
            locks: Once::new(),
        }
    }

    /// Whether it may have capabilities: whoever needs them asks for the attribute then.
    #[inline]
    pub fn has_file_caps(&self) -> bool {
        self.has_file_caps.load(Ordering::Relaxed)
    }
    /// Its file system is about to give it capabilities. It is never taken back: then nobody could miss what another has just set.
    pub fn set_file_caps(&self) {
        self.has_file_caps.store(true, Ordering::Relaxed);
    }

    /// The file locks, if there ever was one.
    #[inline]
    pub fn locks(&self) -> Option<&FileLocks> {
        self.locks.get().map(|locks| &**locks)
    }
    /// The file locks, made now if there never was one. ENOLCK without memory.
    pub fn make_locks(&self) -> Result<&FileLocks> {
        if let Some(locks) = self.locks() {
            return Ok(locks);
        }
        let made = FileLocks::new(self.dev, self.ino)?;
        Ok(self.locks.call_once(|| made))
    }

    /// The file system's device number.
    pub const fn dev(&self) -> DevId {
        self.dev
    }
    /// The inode number.
    pub const fn ino(&self) -> u64 {
        self.ino
    }
    /// The device that a device node names.
    pub const fn rdev(&self) -> DevId {
        self.rdev
    }
    /// Type and permission bits.
    #[inline]
    pub fn mode(&self) -> u32 {
        self.mode.load(Ordering::Relaxed)
    }
    /// The type.
    pub fn kind(&self) -> FileType {
        FileType::from_mode(self.mode()).unwrap_or(FileType::Anon)
    }
    /// The owner.
    #[inline]
    pub fn uid(&self) -> u32 {
        self.uid.load(Ordering::Relaxed)
    }
    /// The group.
    #[inline]
    pub fn gid(&self) -> u32 {
        self.gid.load(Ordering::Relaxed)
    }
    /// Number of names.
    pub fn nlink(&self) -> u32 {
        self.nlink.load(Ordering::Relaxed)
    }
    /// Sets the number of names, of an object that nobody else gives or takes one meanwhile.
    pub fn set_nlink(&self, nlink: u32) {
        self.nlink.store(nlink, Ordering::Relaxed);
    }
    /// Adds `by` names (may be negative): how many there were. A file may have names in several directories, whose mutexes do
    /// not order the callers: only this answer says which of them took the last.
    pub fn add_nlink(&self, by: i32) -> u32 {
        let add = |nlink: u32| Some(nlink.saturating_add_signed(by));
        // Relaxed: a number of its own.
        let (Ok(was) | Err(was)) =
            self.nlink.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        debug_assert!(was.checked_add_signed(by).is_some(), "a name went that there never was");
        was
    }
    /// Adds a name to an object that has `nlink` of them: false, and nothing, if that is no longer so.
    pub fn add_name_to(&self, nlink: u32) -> bool {
        let (order, one_more) = (Ordering::Relaxed, nlink.saturating_add(1));
        // Relaxed: as above.
        self.nlink.compare_exchange(nlink, one_more, order, order).is_ok()
    }
    /// The events of this object that somebody wants.
    #[inline]
    pub fn watched(&self) -> u32 {
        self.watched.load(Ordering::Relaxed)
    }
    /// Sets [`watched`](Self::watched); `notify`'s table of marks is locked.
    pub(in crate::vfs) fn set_watched(&self, mask: u32) {
        self.watched.store(mask, Ordering::Relaxed);
    }
    /// The times.
    pub fn times(&self) -> Times {
        *self.times.lock()
    }
    /// Changes the times.
    pub fn update_times(&self, change: impl FnOnce(&mut Times)) {
        change(&mut self.times.lock());
    }

    /// Mode and owners of one moment.
    pub fn rights(&self) -> Rights {
        let _unchanged = self.times.lock();
        self.rights_now()
    }

    /// The same; `times` is locked.
    fn rights_now(&self) -> Rights {
        Rights { mode: self.mode(), uid: self.uid(), gid: self.gid() }
    }

    /// Applies everything but the size. False, and nothing, if it was checked by other rights than there are now.
    #[must_use]
    pub fn apply(&self, change: &SetAttr) -> bool {
        let mut times = self.times.lock();
        if change.checked.is_some_and(|rights| rights != self.rights_now()) {
            return false;
        }
        if let Some(mode) = change.mode {
            self.mode.store((self.mode() & abi::fs::S_IFMT) | (mode & 0o7777), Ordering::Relaxed);
        }
        if change.drops != 0 {
            self.mode.fetch_and(!(change.drops & 0o7777), Ordering::Relaxed);
        }
        if let Some(uid) = change.uid {
            self.uid.store(uid, Ordering::Relaxed);
        }
        if let Some(gid) = change.gid {
            self.gid.store(gid, Ordering::Relaxed);
        }
        if let Some(atime) = change.atime {
            times.atime = atime;
        }
        if let Some(mtime) = change.mtime {
            times.mtime = mtime;
        }
        times.ctime = change.now;
        true
    }

    /// These attributes as `stat` reports them, with no size.
    pub fn metadata(&self) -> Metadata {
        Metadata {
            dev: self.dev,
            ino: self.ino,
            mode: self.mode(),
            nlink: self.nlink(),
            uid: self.uid(),
            gid: self.gid(),
            rdev: self.rdev,
            size: 0,
            blocks: 0,
            blksize: 4096,
            times: self.times(),
        }
    }
}

/// Who will own a new object: worked out by the caller from credentials and the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

/// A slot for what belongs to a fifo or a bound socket while it is in use: the pipe, the socket.
pub type SpecialSlot = SpinLock<Option<Arc<dyn Any + Send + Sync>>, level::Inode>;

/// The value of an extended attribute.
pub type XattrValue = Arc<Vec<u8>>;

bitflags::bitflags! {
    /// What `setxattr` demands of a name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct XattrFlags: u32 {
        /// It is new.
        const CREATE = 1;
        /// It is there already.
        const REPLACE = 2;
    }
}

/// How to rename: what the source, the target and their directories are.
pub struct Rename<'a> {
    /// What is moved.
    pub moved: &'a Arc<dyn Inode>,
    pub new_dir: &'a Arc<dyn Inode>,
    /// What has the new name now; it goes, or with `exchange` takes the old name.
    pub replaced: Option<&'a Arc<dyn Inode>>,
    pub exchange: bool,
}

/// The text of a symbolic link. Its bytes are not in the allocation of the `Arc`, whose counters would make a text of a
/// whole page need more than a page.
pub type LinkText = Arc<Vec<u8>>;

/// One file-system object.
pub trait Inode: Any + Send + Sync {
    /// The common attributes.
    fn attr(&self) -> &InodeAttr;

    /// What `stat` reports; override to add size and blocks.
    fn meta(&self) -> Metadata {
        self.attr().metadata()
    }
    /// The length, for appending and seeking from the end.
    fn size(&self) -> u64 {
        0
    }
    /// Changes attributes: as [`InodeAttr::apply`].
    fn set_attr(&self, change: &SetAttr) -> Result<bool> {
        if change.size.is_some() {
            return Err(Errno::EINVAL);
        }
        Ok(self.attr().apply(change))
    }

    /// Whether names in this directory appear and disappear by themselves, so that [`lookup`](Self::lookup)
    /// must be asked for those that are not in the dentry's table.
    fn is_dynamic(&self) -> bool {
        false
    }
    /// Finds a name that is not in the dentry's table; called only for dynamic directories.
    fn lookup(&self, _name: &[u8]) -> Result<Arc<dyn Inode>> {
        Err(Errno::ENOENT)
    }
    /// For a directory where users cannot create names: the error of an `open` that would create one, and that of other calls.
    fn refuses_names(&self) -> Option<[Errno; 2]> {
        None
    }
    /// Makes a new object (regular file, directory, node, fifo, socket) for `name`.
    fn create(
        &self,
        _name: &[u8],
        _mode: u32,
        _rdev: DevId,
        _owner: Owner,
    ) -> Result<Arc<dyn Inode>> {
        Err(Errno::EPERM)
    }
    /// Makes a regular file without a name, which may be given one later if it is `linkable`.
    fn create_tmpfile(&self, _mode: u32, _owner: Owner, _linkable: bool) -> Result<Arc<dyn Inode>> {
        Err(Errno::EOPNOTSUPP)
    }
    /// Makes a symbolic link.
    fn symlink(&self, _name: &[u8], _target: &[u8], _owner: Owner) -> Result<Arc<dyn Inode>> {
        Err(Errno::EPERM)
    }
    /// Gives `target` one more name in this directory.
    fn link(&self, _name: &[u8], _target: &Arc<dyn Inode>) -> Result<()> {
        Err(Errno::EPERM)
    }
    /// Removes a name of `target` from this directory.
    fn unlink(&self, _name: &[u8], _target: &Arc<dyn Inode>) -> Result<()> {
        Err(Errno::EPERM)
    }
    /// Removes an empty directory from this one.
    fn rmdir(&self, _name: &[u8], _target: &Arc<dyn Inode>) -> Result<()> {
        Err(Errno::EPERM)
    }
    /// Moves an entry of this directory.
    fn rename(&self, _how: &Rename<'_>) -> Result<()> {
        Err(Errno::EPERM)
    }
    /// Emits the entries that are not in the dentry's table, from cursor `pos` (their cursors start at
    /// [`DYNAMIC_CURSOR`]), until `emit` returns false.
    fn readdir(&self, _pos: u64, _emit: &mut dyn FnMut(DirEntry<'_>) -> bool) -> Result<()> {
        Ok(())
    }

    /// The text of a symbolic link.
    fn readlink(&self) -> Result<LinkText> {
        Err(Errno::EINVAL)
    }
    /// Where a magic link leads (/proc/self/exe, fd, cwd, root); `None` for an ordinary one.
    fn follow(&self) -> Option<Result<Path>> {
        None
    }

    /// The operations of an open file of this object. The caller finds those of directories, character devices and fifos.
    fn open(self: Arc<Self>, _flags: OpenFlags) -> Result<Arc<dyn FileOps>> {
        Err(Errno::ENXIO)
    }
    /// Its seals: the changes that are forbidden for good.
    fn seals(&self) -> Seals {
        Seals::NONE
    }
    /// The contents, where they live in memory.
    fn page_cache(&self) -> Option<&Arc<PageCache>> {
        None
    }
    /// Where the pipe of a fifo or the socket bound to this name is kept.
    fn special(&self) -> Option<&SpecialSlot> {
        None
    }
    /// A check of the object's own (/proc/PID), in addition to that of the mode bits; the default allows everything.
    fn permission(&self, _cred: &crate::vfs::cred::Cred, _want: u32) -> Result<()> {
        Ok(())
    }
    /// Counts of writers and executors, where the object keeps them.
    fn usage(&self) -> Option<&super::usage::Usage> {
        None
    }
    /// The value of an extended attribute: ENODATA if there is none, EOPNOTSUPP where such names are not supported.
    fn xattr(&self, _name: &[u8]) -> Result<XattrValue> {
        Err(Errno::EOPNOTSUPP)
    }
    /// Gives an extended attribute a value.
    fn set_xattr(&self, _name: &[u8], _value: Vec<u8>, _flags: XattrFlags) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }
    /// Removes an extended attribute.
    fn remove_xattr(&self, _name: &[u8]) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }
    /// Calls `each`, which must not block, with the names of all extended attributes.
    fn xattr_names(&self, _each: &mut dyn FnMut(&[u8])) {}
}

impl dyn Inode {
    /// As the type that it is.
    #[inline]
    pub fn downcast<T: 'static>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// First cursor of entries that an inode's own `readdir` emits; dentries' cursors lie below.
pub const DYNAMIC_CURSOR: u64 = 1 << 40;

/// How a fifo is opened: makes or finds the pipe in the inode's [`SpecialSlot`] and waits for the other end.
pub type FifoOpener = fn(&Arc<dyn Inode>, OpenFlags, &Cred) -> Result<Arc<dyn FileOps>>;

static FIFO_OPENER: crate::sync::Once<FifoOpener> = crate::sync::Once::new();

/// Sets the opener; called once at boot by the pipe code.
pub fn register_fifo_opener(opener: FifoOpener) {
    FIFO_OPENER.call_once(|| opener);
}

/// Opens a fifo; ENXIO before the pipe code has registered.
pub(in crate::vfs) fn open_fifo(
    inode: &Arc<dyn Inode>,
    flags: OpenFlags,
    cred: &Cred,
) -> Result<Arc<dyn FileOps>> {
    let opener = FIFO_OPENER.get().ok_or(Errno::ENXIO)?;
    opener(inode, flags, cred)
}
