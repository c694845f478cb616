//! Open regular files of tmpfs: `read`, `write`, `lseek`, `mmap`, `fallocate`.
//!
//! Owns nothing. Locks: the file's `writing` mutex, over everything that changes contents or length but stores through
//! mappings.
#![forbid(unsafe_code)]

use super::inode::TmpfsInode;
use super::options::PAGE;
use super::regular::MAX_SIZE;
use crate::mm::{Sink, Source};
use crate::vfs::file_caps;
use crate::vfs::object::seals::Change;
use crate::vfs::{
    Abilities, FileMapping, FileOps, MapTarget, OpenFile, SetAttr, Timestamp, Whence, ops,
};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;

impl TmpfsInode {
    /// A write or `fallocate` takes the file's capabilities away, and without CAP_FSETID the set-id bits.
    #[inline]
    fn drop_set_id(&self, f: &OpenFile) {
        file_caps::drop_from(self);
        let drops = ops::set_id_lost_by_change(&self.attr);
        if drops != 0 {
            let change = SetAttr { drops, now: Timestamp::now(), ..SetAttr::default() };
            let applied = self.attr.apply(&change);
            debug_assert!(applied, "a change without conditions");
            crate::vfs::notify::attr_changed(&f.path().dentry, &change);
        }
    }
}

impl FileOps for TmpfsInode {
    fn read(&self, f: &OpenFile, dst: &mut Sink<'_>, pos: &mut u64) -> Result<usize> {
        let file = self.regular()?;
        let done = file.cache.read(*pos, dst)?;
        *pos = pos.saturating_add(done as u64);
        crate::vfs::touch_file(f);
        Ok(done)
    }

    fn write(&self, f: &OpenFile, src: &mut Source<'_>, pos: &mut u64) -> Result<usize> {
        let file = self.regular()?;
        let wanted = src.remaining();
        if wanted == 0 {
            return Ok(0);
        }
        let _writing = file.writing.lock();
        let old_size = file.cache.size();
        let at = if f.flags().contains(OpenFlags::APPEND) { old_size } else { *pos };
        let end = at.checked_add(wanted as u64).filter(|&end| end <= MAX_SIZE);
        let end = end.ok_or(Errno::EFBIG)?;
        file.seals().check(Change::Write { size: old_size, end })?;
        self.drop_set_id(f);
        let done = file.cache.write(at, src)?;
        *pos = at + done as u64;
        let now = Timestamp::now();
        self.attr.update_times(|times| {
            times.mtime = now;
            times.ctime = now;
        });
        Ok(done)
    }

    fn lseek(&self, _: &OpenFile, pos: u64, offset: i64, whence: Whence) -> Result<u64> {
        let cache = &self.regular()?.cache;
        let size = cache.size();
        match whence {
            Whence::Data | Whence::Hole => {
                let at = u64::try_from(offset).ok().filter(|&at| at < size).ok_or(Errno::ENXIO)?;
                if whence == Whence::Hole {
                    return Ok(cache.next_hole(at));
                }
                cache.next_data(at).filter(|&data| data < size).ok_or(Errno::ENXIO)
            }
            _ => whence.resolve(pos, size, offset),
        }
    }

    fn mmap(&self, f: &Arc<OpenFile>) -> Result<MapTarget> {
        FileMapping::target(f)
    }

    fn fsync(&self, _: &OpenFile, _: bool) -> Result<()> {
        Ok(())
    }

    fn fallocate(&self, f: &OpenFile, mode: u32, offset: u64, len: u64) -> Result<()> {
        const KEEP_SIZE: u32 = 1;
        const PUNCH_HOLE: u32 = 2;
        let file = self.regular()?;
        if mode & !(KEEP_SIZE | PUNCH_HOLE) != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let end = offset.checked_add(len).filter(|&end| end <= MAX_SIZE).ok_or(Errno::EFBIG)?;
        let _writing = file.writing.lock();
        if mode & PUNCH_HOLE != 0 {
            file.seals().check(Change::Punch)?;
            file.cache.punch(offset..end)?;
        } else {
            let grows = mode & KEEP_SIZE == 0 && end > file.cache.size();
            file.seals().check(Change::Allocate { size: file.cache.size(), end })?;
            file.cache.allocate(offset / PAGE..end.div_ceil(PAGE))?;
            if grows {
                file.cache.set_size(end);
            }
        }
        self.drop_set_id(f);
        let now = Timestamp::now();
        self.attr.update_times(|times| {
            times.mtime = now;
            times.ctime = now;
        });
        Ok(())
    }

    fn abilities(&self) -> Abilities {
        Abilities::DIRECT | Abilities::SPLICES
    }
}
