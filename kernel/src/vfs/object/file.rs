//! Open files: [`OpenFile`], the open file description, and [`FileOps`], what it does.
//!
//! An `OpenFile` is shared by every descriptor that was duplicated from the same open. It owns the position and the
//! flags. It never knows who opened it: the rights of a change are those of the task that makes it.
//!
//! Locks: the position is guarded by a sleeping mutex, which a transfer holds if it depends on the position
//! ([`FileOps::position`]): so two threads that read through one description get different bytes, and a reader that
//! waits for a terminal blocks nobody else. `Leaf` for whom to signal and for the watchers.
#![forbid(unsafe_code)]

use super::abilities::Abilities;
use super::file_pos::FilePos;
use super::inode::Inode;
use super::mode::{FileMode, Position};
use super::owner::{OwnerSlot, SignalOwner};
use super::path::Path;
use super::seek::Whence;
use super::types::FileType;
use crate::mm::{MapSource, Sink, Source};
use crate::sync::{PollTable, SpinLock, level};
use crate::vfs::admission::Admission;
use crate::vfs::notify::event;
use crate::vfs::{grow, notify};
use abi::fs::{OpenFlags, PollEvents};
use abi::{Errno, Result};
use alea_elf::Plan;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicU32, Ordering};

/// What `mmap` of a file maps.
pub enum MapTarget {
    /// The inode's page cache.
    File(Arc<dyn MapSource>),
    /// Fresh zero pages (`/dev/zero`).
    Zero,
}

/// What somebody wants to map of a file.
#[derive(Clone, Copy, Debug)]
pub struct MapRange {
    pub offset: u64,
    /// In whole pages.
    pub len: u64,
    pub shared: bool,
    pub writable: bool,
}

/// The behaviour of an open file. The defaults give Linux's error for what a file cannot do.
pub trait FileOps: Any + Send + Sync {
    /// Reads at `*pos` and moves it. A file that is not seekable ignores `pos`.
    fn read(&self, _f: &OpenFile, _dst: &mut Sink<'_>, _pos: &mut u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }
    /// Writes at `*pos` (or at the end, if the file appends) and moves it.
    fn write(&self, _f: &OpenFile, _src: &mut Source<'_>, _pos: &mut u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }
    /// Whether EPIPE of a write comes with SIGPIPE: sockets of messages only fail.
    fn raises_sigpipe(&self) -> bool {
        true
    }
    /// What the file's position means; the same for all its life. Without one, `lseek` gives what
    /// [`lseek_nowhere`](Self::lseek_nowhere) says.
    fn position(&self) -> Position {
        Position::Used
    }
    /// Whether a transfer is sure not to wait, as `RWF_NOWAIT` demands; a file that cannot tell says no.
    fn never_waits(&self) -> bool {
        false
    }
    /// What `lseek` gives on a file without a position: an error, or always 0, as on some files of Linux.
    fn lseek_nowhere(&self) -> Result<u64> {
        Err(Errno::ESPIPE)
    }
    /// The new position for `lseek`; called with the position locked.
    fn lseek(&self, f: &OpenFile, pos: u64, offset: i64, whence: Whence) -> Result<u64> {
        whence.resolve(pos, f.inode().size(), offset)
    }
    /// Registers with all queues that are woken when the answer may change, then returns what is ready.
    fn poll(&self, _f: &OpenFile, _table: &mut PollTable) -> PollEvents {
        PollEvents::ALWAYS
    }
    /// Whether it can be waited for, so that an epoll takes it; whoever else polls finds another ready.
    fn is_watchable(&self, f: &OpenFile) -> bool {
        use FileType::{Block, Dir, Regular, Symlink};
        !matches!(f.kind(), Regular | Dir | Symlink | Block)
    }
    /// Device-specific control; the generic commands have been handled.
    fn ioctl(&self, _f: &OpenFile, _cmd: u32, _arg: u64) -> Result<i64> {
        Err(Errno::ENOTTY)
    }
    /// `io_uring_enter` of a ring: up to `n` entries are taken, at least `least` completions waited for.
    fn enter_ring(&self, _n: u32, _least: u32, _flags: u32, _arg: u64, _len: usize) -> Result<u32> {
        Err(Errno::EOPNOTSUPP)
    }
    /// What to map.
    fn mmap(&self, _f: &Arc<OpenFile>) -> Result<MapTarget> {
        Err(Errno::ENODEV)
    }
    /// As [`mmap`](Self::mmap), for a file to which the range matters.
    fn mmap_range(&self, f: &Arc<OpenFile>, _range: &MapRange) -> Result<MapTarget> {
        self.mmap(f)
    }
    /// Whether a mapping is not inherited by fork, is never split, and is left out of core dumps.
    fn is_mapped_alone(&self) -> bool {
        false
    }
    /// Whether mappings are locked.
    fn is_mapped_locked(&self) -> bool {
        false
    }
    /// Whether a socket may pass it to another process (`SCM_RIGHTS`): not a file that could then keep alive the socket in
    /// which it is queued.
    fn may_be_passed(&self) -> bool {
        true
    }
    /// Makes contents durable.
    fn fsync(&self, _f: &OpenFile, _data_only: bool) -> Result<()> {
        Err(Errno::EINVAL)
    }
    /// Allocates, punches or zeroes a range.
    fn fallocate(&self, _f: &OpenFile, _mode: u32, _offset: u64, _len: u64) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }
    /// What it can do beyond what all can.
    fn abilities(&self) -> Abilities {
        Abilities::SPLICES
    }
    /// A change of status flags by `fcntl`; refuse what the file cannot do.
    fn set_flags(&self, _f: &OpenFile, _flags: OpenFlags) -> Result<()> {
        Ok(())
    }
    /// O_ASYNC was set or taken away through the descriptor `fd`, or without one the owner of the file's signals has changed.
    fn signals_changed(&self, _f: &OpenFile, _fd: Option<i32>) -> Result<()> {
        Ok(())
    }
    /// Called at every `close` of a descriptor.
    fn flush(&self, _f: &OpenFile) -> Result<()> {
        Ok(())
    }
    /// Called once, when the last reference (descriptor, mapping, running call) is dropped.
    fn release(&self, _f: &OpenFile) {}
    /// What `/proc/pid/fdinfo` adds after the common lines.
    fn fdinfo(&self, _f: &OpenFile) -> Result<String> {
        Ok(String::new())
    }
}

impl dyn FileOps {
    /// As the type that it is.
    #[inline]
    pub fn downcast<T: 'static>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Told when the last reference to a file that it watches is dropped (epoll), or when a descriptor of it is closed (dnotify).
pub trait FileWatcher: Any + Send + Sync {
    /// The file is about to be released, or [`table`](Self::table) has closed a descriptor of it; its queues still exist.
    fn file_closed(&self, f: &OpenFile);

    /// The descriptor table (its [`lock_owner`](crate::vfs::FdTable::lock_owner)) that it belongs to, if any: it is told and
    /// removed when that table closes a descriptor of the file.
    fn table(&self) -> Option<usize> {
        None
    }
}

/// One open file description.
pub struct OpenFile {
    _admission: Admission,
    ops: Arc<dyn FileOps>,
    path: Path,
    mode: FileMode,
    /// Access mode and status flags. Relaxed: a flag decides nothing but the behaviour of later calls.
    flags: AtomicU32,
    pos: FilePos,
    owner: OwnerSlot,
    /// Whether this file counts as a writer of its inode.
    counts_as_writer: bool,
    watchers: SpinLock<Vec<Arc<dyn FileWatcher>>, level::Leaf>,
}

impl OpenFile {
    /// A new description. Flags that matter only to `open` itself are left out.
    #[inline]
    pub fn new(admission: Admission, ops: Arc<dyn FileOps>, path: Path, flags: OpenFlags) -> Self {
        let once = OpenFlags::CREAT
            .union(OpenFlags::EXCL)
            .union(OpenFlags::NOCTTY)
            .union(OpenFlags::TRUNC)
            .union(OpenFlags::CLOEXEC);
        Self {
            _admission: admission,
            mode: FileMode::new(flags, ops.position()),
            ops,
            path,
            flags: AtomicU32::new(flags.difference(once).bits()),
            pos: FilePos::new(),
            owner: OwnerSlot::new(),
            counts_as_writer: false,
            watchers: SpinLock::new(Vec::new()),
        }
    }

    /// As [`new`](Self::new), for a file that has been counted as a writer of its inode.
    #[inline]
    pub(in crate::vfs) fn new_writer(
        admission: Admission,
        ops: Arc<dyn FileOps>,
        path: Path,
        flags: OpenFlags,
    ) -> Self {
        let mut file = Self::new(admission, ops, path, flags);
        file.counts_as_writer = true;
        file
    }

    /// What the file does.
    #[inline]
    pub fn ops(&self) -> &Arc<dyn FileOps> {
        &self.ops
    }
    /// The file's behaviour as a concrete type.
    #[inline]
    pub fn downcast<T: 'static>(&self) -> Option<&T> {
        self.ops.downcast()
    }
    /// Where it was opened.
    #[inline]
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// The object it was opened on.
    #[inline]
    pub fn inode(&self) -> &Arc<dyn Inode> {
        self.path.dentry.inode()
    }
    /// The type of that object.
    pub fn kind(&self) -> FileType {
        self.path.dentry.kind()
    }
    /// Access mode and status flags.
    #[inline]
    pub fn flags(&self) -> OpenFlags {
        OpenFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }
    /// Replaces the status flags that `change` covers.
    pub fn set_flags(&self, change: OpenFlags, to: OpenFlags) {
        let _ = self.flags.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |flags| {
            Some((flags & !change.bits()) | (to.bits() & change.bits()))
        });
    }
    /// Whether calls on it must not block.
    #[inline]
    pub fn nonblock(&self) -> bool {
        self.flags().contains(OpenFlags::NONBLOCK)
    }
    /// Whether it may be read.
    #[inline]
    pub fn readable(&self) -> bool {
        self.mode.contains(FileMode::READ)
    }
    /// Whether it may be written.
    #[inline]
    pub fn writable(&self) -> bool {
        self.mode.contains(FileMode::WRITE)
    }
    /// Whether it only names a place (`O_PATH`).
    #[inline]
    pub fn is_path(&self) -> bool {
        self.mode.contains(FileMode::PATH)
    }
    /// Whether `lseek`, `pread` and `pwrite` are allowed.
    #[inline]
    pub fn seekable(&self) -> bool {
        self.mode.contains(FileMode::SEEK)
    }
    /// Whether transfers depend on the position.
    #[inline]
    pub fn uses_position(&self) -> bool {
        self.mode.contains(FileMode::POSITION)
    }
    /// The position; locked over a whole transfer.
    #[inline]
    pub fn pos(&self) -> &FilePos {
        &self.pos
    }
    /// Whom to signal.
    pub fn signal_owner(&self) -> SignalOwner {
        self.owner.get()
    }
    /// Changes whom to signal, as [`OwnerSlot::change`] does.
    pub fn change_signal_owner(&self, change: impl FnOnce(&mut SignalOwner)) -> Result<()> {
        self.owner.change(change)
    }

    /// Reads at the file's position.
    #[inline(always)]
    pub fn read(&self, dst: &mut Sink<'_>) -> Result<usize> {
        notify::transferred(self, self.read_unnotified(dst), event::ACCESS)
    }

    #[inline(always)]
    fn read_unnotified(&self, dst: &mut Sink<'_>) -> Result<usize> {
        if !self.readable() {
            return Err(Errno::EBADF);
        }
        if !self.uses_position() {
            return self.ops.read(self, dst, &mut 0);
        }
        let mut pos = self.pos.lock();
        check_end(*pos, dst.remaining())?;
        self.ops.read(self, dst, &mut pos)
    }

    /// Writes at the file's position.
    #[inline(always)]
    pub fn write(&self, src: &mut Source<'_>) -> Result<usize> {
        notify::transferred(self, self.write_unnotified(src), event::MODIFY)
    }

    /// As [`write`](Self::write), but those who watch the file are told by the caller.
    #[inline(always)]
    pub fn write_unnotified(&self, src: &mut Source<'_>) -> Result<usize> {
        if !self.writable() {
            return Err(Errno::EBADF);
        }
        if !self.uses_position() {
            return self.ops.write(self, src, &mut 0);
        }
        let mut pos = self.pos.lock();
        check_end(*pos, src.remaining())?;
        self.ops.write(self, src, &mut pos)
    }

    /// Reads at `pos`, leaving the file's position alone.
    pub fn read_at(&self, dst: &mut Sink<'_>, pos: u64) -> Result<usize> {
        notify::transferred(self, self.read_at_unnotified(dst, pos), event::ACCESS)
    }

    /// As [`read_at`](Self::read_at), but those who watch the file are told by the caller.
    pub fn read_at_unnotified(&self, dst: &mut Sink<'_>, mut pos: u64) -> Result<usize> {
        if !self.seekable() {
            return Err(Errno::ESPIPE);
        }
        if !self.readable() {
            return Err(Errno::EBADF);
        }
        check_end(pos, dst.remaining())?;
        self.ops.read(self, dst, &mut pos)
    }

    /// Writes at `pos`, leaving the file's position alone.
    pub fn write_at(&self, src: &mut Source<'_>, pos: u64) -> Result<usize> {
        notify::transferred(self, self.write_at_unnotified(src, pos), event::MODIFY)
    }

    /// As [`write_at`](Self::write_at), but those who watch the file are told by the caller.
    pub fn write_at_unnotified(&self, src: &mut Source<'_>, mut pos: u64) -> Result<usize> {
        if !self.seekable() {
            return Err(Errno::ESPIPE);
        }
        if !self.writable() {
            return Err(Errno::EBADF);
        }
        check_end(pos, src.remaining())?;
        self.ops.write(self, src, &mut pos)
    }

    /// Moves the position.
    pub fn seek(&self, offset: i64, whence: Whence) -> Result<u64> {
        if !self.seekable() {
            return self.ops.lseek_nowhere();
        }
        let mut pos = self.pos.lock();
        *pos = self.ops.lseek(self, *pos, offset, whence)?;
        Ok(*pos)
    }

    /// Adds a watcher.
    pub fn watch(&self, watcher: Arc<dyn FileWatcher>) -> Result<()> {
        grow::push(&self.watchers, watcher)
    }

    /// Removes a watcher.
    pub fn unwatch(&self, watcher: &Arc<dyn FileWatcher>) {
        let mut watchers = self.watchers.lock();
        let at = watchers.iter().position(|w| Arc::ptr_eq(w, watcher));
        let removed = at.map(|at| watchers.swap_remove(at));
        drop(watchers);
        drop(removed);
    }

    /// A watcher that is removed when `table` closes a descriptor.
    pub fn watcher_of(&self, table: usize) -> Option<Arc<dyn FileWatcher>> {
        self.watchers.lock().iter().find(|watcher| watcher.table() == Some(table)).cloned()
    }

    /// A table has closed a descriptor of this file.
    #[cold]
    pub fn closed_by(&self, table: usize) {
        while let Some(watcher) = self.watcher_of(table) {
            watcher.file_closed(self);
            self.unwatch(&watcher);
        }
    }

    /// What is ready; `table` is registered with the queues that are woken when this may change.
    pub fn poll(&self, table: &mut PollTable) -> PollEvents {
        self.ops.poll(self, table)
    }

    /// Whether it can be waited for.
    pub fn is_watchable(&self) -> bool {
        self.ops.is_watchable(self)
    }
}

/// No transfer may reach beyond the largest position.
#[inline]
fn check_end(pos: u64, count: usize) -> Result<()> {
    match pos.checked_add(count as u64) {
        Some(end) if end <= i64::MAX as u64 => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // What a file does at its end may block: it never ends under a spinlock.
        crate::sync::assert_may_block();
        notify::closed(self);
        for watcher in core::mem::take(self.watchers.get_mut()) {
            watcher.file_closed(self);
        }
        if self.flags().contains(OpenFlags::ASYNC) {
            self.set_flags(OpenFlags::ASYNC, OpenFlags::empty());
            // Who listens no more needs no memory.
            let _ = self.ops.signals_changed(self, None);
        }
        self.ops.release(self);
        if let Some(locks) = self.inode().attr().locks() {
            // Its `flock` and its OFD locks.
            locks.release(core::ptr::from_ref(self) as usize);
        }
        if self.counts_as_writer
            && let Some(usage) = self.inode().usage()
        {
            usage.put_writer();
        }
    }
}

/// While it lives, its file is being executed: opening it for writing is ETXTBSY.
pub struct DenyWrite(Arc<OpenFile>);

impl DenyWrite {
    /// ETXTBSY while somebody has the file open for writing.
    pub fn new(file: Arc<OpenFile>) -> Result<Self> {
        if let Some(usage) = file.inode().usage() {
            usage.deny_write()?;
        }
        Ok(Self(file))
    }

    /// The file.
    pub fn file(&self) -> &Arc<OpenFile> {
        &self.0
    }

    /// What an earlier execution found out about the file, if nobody could write to it since.
    pub fn plan(&self) -> Option<Arc<Plan>> {
        self.0.inode().usage()?.plan()
    }

    /// Keeps what was found out about the file for the next execution.
    pub fn set_plan(&self, plan: &Arc<Plan>) {
        if let Some(usage) = self.0.inode().usage() {
            usage.set_plan(plan);
        }
    }
}

impl Drop for DenyWrite {
    fn drop(&mut self) {
        if let Some(usage) = self.0.inode().usage() {
            usage.allow_write();
        }
    }
}
