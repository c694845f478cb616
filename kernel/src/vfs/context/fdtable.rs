//! [`FdTable`]: a process's descriptors; shared by `CLONE_FILES`.
//!
//! An array of slots and two bitmaps (in use, close-on-exec), so that a descriptor is found by one indexed
//! load, and the lowest free one by a bit scan. Only a task that has a part changes it: [`super::files`].
//! Owns a reference to each open file. Locks: `FdTable`; a file is never dropped under it, because closing may block: the checking
//! kernel panics where one is, under any spinlock.
#![forbid(unsafe_code)]

use crate::base::speculation::clamp;
use crate::sync::{Ended, Guarded, Pace, PartLock, Parted, Parts, level};
use crate::vfs::notify::marks;
use crate::vfs::object::file::OpenFile;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// The fewest slots of a table that is not empty.
const FEWEST: usize = 4;

/// A file descriptor number as user space passes it: any value, checked at use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fd(pub i32);

/// The descriptors of a process.
pub struct FdTable {
    inner: PartLock<Slots, level::FdTable>,
    /// Those of the tasks that share it.
    parts: Parts,
}

/// The files of a table, which does not change as long as this lives.
#[derive(Clone, Copy)]
pub struct OpenFiles<'a>(&'a [Option<Arc<OpenFile>>]);

impl<'a> OpenFiles<'a> {
    /// The file behind `fd` that can be read, written or controlled.
    #[inline]
    pub fn get(self, fd: Fd) -> Option<&'a Arc<OpenFile>> {
        let file = file_at(self.0, fd)?;
        (!file.is_path()).then_some(file)
    }
}

/// The file at a descriptor that a program chose. The index is clamped, so that a CPU that speculates past the bounds
/// check loads no slot beyond the table. A negative descriptor lies beyond each table.
#[inline]
fn file_at(files: &[Option<Arc<OpenFile>>], fd: Fd) -> Option<&Arc<OpenFile>> {
    let at = fd.0.cast_unsigned() as usize;
    if at >= files.len() {
        return None;
    }
    files.get(clamp(at, files.len()))?.as_ref()
}

/// A bitmap whose first 64 bits need no memory of their own.
type Bits = SmallVec<[u64; 1]>;

pub struct Slots {
    pub(super) files: Vec<Option<Arc<OpenFile>>>,
    used: Bits,
    pub(super) cloexec: Bits,
    /// No free descriptor lies below this word of `used`.
    first_free_word: usize,
}

impl Default for Slots {
    fn default() -> Self {
        // One word of each bitmap is there from the start: most tables never need another.
        let bits = || Bits::from_const([0]);
        Self { files: Vec::new(), used: bits(), cloexec: bits(), first_free_word: 0 }
    }
}

impl Slots {
    /// The files.
    #[inline]
    pub fn open_files(&self) -> OpenFiles<'_> {
        OpenFiles(&self.files)
    }

    pub(super) fn index(&self, fd: Fd) -> Result<usize> {
        let at = usize::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        if at < self.files.len() { Ok(at) } else { Err(Errno::EBADF) }
    }

    fn lowest_free(&self, from: usize) -> usize {
        let mut word = (from / 64).max(self.first_free_word);
        let mut skip = if word == from / 64 { (1u64 << (from % 64)) - 1 } else { 0 };
        while let Some(&used) = self.used.get(word) {
            let taken = used | skip;
            if taken != u64::MAX {
                return word * 64 + taken.trailing_ones() as usize;
            }
            skip = 0;
            word += 1;
        }
        (word * 64).max(from)
    }

    /// Grows the arrays to hold `at`. Most tables hold few descriptors, and every fork copies a table and frees it later,
    /// so they grow no further than to the next power of two.
    pub(super) fn grow(&mut self, at: usize) -> Result<()> {
        if at < self.files.len() {
            return Ok(());
        }
        let slots = (at + 1).next_power_of_two().max(FEWEST);
        let words = slots.div_ceil(64);
        self.files.try_reserve_exact(slots - self.files.len()).map_err(|_| Errno::ENOMEM)?;
        for bits in [&mut self.used, &mut self.cloexec] {
            if words > 1 {
                bits.try_reserve_exact(words - bits.len()).map_err(|_| Errno::ENOMEM)?;
            }
        }
        self.fill(slots, words);
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "there is room")]
    fn fill(&mut self, slots: usize, words: usize) {
        self.files.resize_with(slots, || None);
        if words > 1 {
            self.used.resize(words, 0);
            self.cloexec.resize(words, 0);
        }
    }

    /// Takes the lowest free number of at least `from`: EMFILE at `limit`.
    #[inline]
    pub(super) fn claim_lowest(
        &mut self,
        from: usize,
        cloexec: bool,
        limit: usize,
    ) -> Result<usize> {
        let at = self.lowest_free(from);
        if at >= limit.min(i32::MAX as usize) {
            return Err(Errno::EMFILE);
        }
        self.grow(at)?;
        self.claim(at, cloexec);
        Ok(at)
    }

    /// Marks `at`, for which there is room, as in use.
    #[inline]
    pub(super) fn claim(&mut self, at: usize, cloexec: bool) {
        let (word, bit) = (at / 64, 1u64 << (at % 64));
        self.used[word] |= bit;
        self.set_cloexec(at, cloexec);
        if self.first_free_word == word && self.used[word] == u64::MAX {
            self.first_free_word += 1;
        }
    }

    pub(super) fn is_used(&self, at: usize) -> bool {
        self.used[at / 64] & (1 << (at % 64)) != 0
    }

    pub(super) fn set_cloexec(&mut self, at: usize, cloexec: bool) {
        let (word, bit) = (at / 64, 1u64 << (at % 64));
        if cloexec {
            self.cloexec[word] |= bit;
        } else {
            self.cloexec[word] &= !bit;
        }
    }

    /// Puts a file at a number that is in use without one.
    #[inline]
    pub(super) fn put(&mut self, at: usize, file: Arc<OpenFile>) {
        debug_assert!(self.is_used(at), "a file at a number that is free");
        let before = self.files[at].replace(file);
        debug_assert!(before.is_none(), "a file in the place of another");
    }

    pub(super) fn take(&mut self, at: usize) -> Option<Arc<OpenFile>> {
        let file = self.files.get_mut(at)?.take()?;
        self.free(at);
        Some(file)
    }

    /// Gives back a number that has no file.
    #[inline]
    pub(super) fn free(&mut self, at: usize) {
        let (word, bit) = (at / 64, 1u64 << (at % 64));
        self.used[word] &= !bit;
        self.cloexec[word] &= !bit;
        self.first_free_word = self.first_free_word.min(word);
    }
}

impl Parted for FdTable {
    fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Closes all of them: nobody uses them any more.
    fn ended(self: &Arc<Self>, end: Ended) {
        let slots = core::mem::take(&mut *self.inner.end(&end));
        for file in slots.files.into_iter().flatten().paced() {
            // The process is gone: nobody is left to get an error of the close.
            let _ = self.finish_close(file);
        }
    }
}

impl Guarded for FdTable {
    type Value = Slots;
    type Level = level::FdTable;
    type Kept = OpenFile;

    #[inline]
    fn lock(&self) -> &PartLock<Slots, level::FdTable> {
        &self.inner
    }
}

impl FdTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::of(Slots::default())
    }

    /// A table with one file, at 0.
    pub fn with(file: Arc<OpenFile>) -> Result<Self> {
        let mut slots = Slots::default();
        let at = slots.claim_lowest(0, false, 1)?;
        slots.put(at, file);
        Ok(Self::of(slots))
    }

    fn of(slots: Slots) -> Self {
        Self { inner: PartLock::new(slots), parts: Parts::new() }
    }

    /// A copy with the same files, for fork. What is reserved is free there.
    pub fn fork(&self) -> Result<Self> {
        let inner = self.inner.read();
        let mut slots = Slots::default();
        let last = inner.used.iter().rposition(|&word| word != 0);
        slots.first_free_word = inner.first_free_word;
        if let Some(word) = last {
            slots.grow(word * 64 + inner.used[word].ilog2() as usize)?;
        }
        for (word, &used) in inner.used.iter().enumerate().take(slots.used.len()) {
            let (mut bits, mut reserved) = (used, 0);
            while bits != 0 {
                let at = word * 64 + bits.trailing_zeros() as usize;
                match &inner.files[at] {
                    Some(file) => slots.files[at] = Some(file.clone()),
                    None => reserved |= bits & bits.wrapping_neg(),
                }
                bits &= bits - 1;
            }
            slots.used[word] = used & !reserved;
            slots.cloexec[word] = inner.cloexec[word] & !reserved;
            if reserved != 0 {
                slots.first_free_word = slots.first_free_word.min(word);
            }
        }
        Ok(Self::of(slots))
    }

    /// The file behind `fd`; EBADF if there is none. Also gives `O_PATH` files: most callers want
    /// [`get`](Self::get).
    #[inline]
    pub fn get_any(&self, fd: Fd) -> Result<Arc<OpenFile>> {
        let inner = self.inner.read();
        file_at(&inner.files, fd).cloned().ok_or(Errno::EBADF)
    }

    /// The file behind `fd` that can be read, written or controlled; EBADF for `O_PATH` files too.
    #[inline]
    pub fn get(&self, fd: Fd) -> Result<Arc<OpenFile>> {
        let file = self.get_any(fd)?;
        if file.is_path() {
            return Err(Errno::EBADF);
        }
        Ok(file)
    }

    /// Looks at several descriptors under one lock: `act` must not block.
    #[inline]
    pub fn look<R>(&self, act: impl FnOnce(OpenFiles<'_>) -> R) -> R {
        act(OpenFiles(&self.inner.read().files))
    }

    /// Whether `fd` is close-on-exec.
    pub fn cloexec(&self, fd: Fd) -> Result<bool> {
        let inner = self.inner.read();
        let at = inner.index(fd)?;
        if inner.files[at].is_none() {
            return Err(Errno::EBADF);
        }
        Ok(inner.cloexec[at / 64] & (1 << (at % 64)) != 0)
    }

    /// The lowest open descriptor of at least `from`: for /proc/pid/fd.
    pub fn next_open(&self, from: usize) -> Option<(Fd, Arc<OpenFile>)> {
        let inner = self.inner.read();
        let found =
            inner.files.iter().enumerate().skip(from).find_map(|(at, f)| Some((at, f.clone()?)));
        found.map(|(at, file)| (Fd(at as i32), file))
    }

    /// Number of slots, at least 64 as on Linux (`FDSize` in /proc/pid/status).
    pub fn capacity(&self) -> usize {
        self.inner.read().files.len().max(64)
    }

    /// What every close of a descriptor does: flushes the file, and releases this table's record locks on it.
    pub(super) fn finish_close(&self, file: Arc<OpenFile>) -> Result<()> {
        let result = file.ops().flush(&file);
        if let Some(locks) = file.inode().attr().locks() {
            locks.release(self.lock_owner());
        }
        if marks::any() {
            file.closed_by(self.lock_owner());
        }
        drop(file);
        result
    }

    /// Who owns the record locks made through this table.
    pub fn lock_owner(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }
}

impl Default for FdTable {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for FdTable {
    fn drop(&mut self) {
        // There are some only if no task ever got a part in it: nothing was done through it that a close would end.
        core::mem::take(&mut self.inner.get_mut().files)
            .into_iter()
            .flatten()
            .paced()
            .for_each(drop);
    }
}
