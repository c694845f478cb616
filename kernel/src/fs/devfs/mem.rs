//! /dev/null, /dev/zero and /dev/full.
#![forbid(unsafe_code)]

use super::devfs::register_char;
use crate::base::PAGE_SIZE;
use crate::mm::{Sink, Source};
use crate::sync::pace::interrupted;
use crate::vfs::chardev::CharDriver;
use crate::vfs::{FileOps, MapTarget, OpenFile, Whence};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;

const MAJOR: u32 = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Zero,
    Full,
}

struct Mem(Kind);

/// Opening allocates nothing: every open shares the device.
struct Driver(Arc<Mem>);

impl CharDriver for Driver {
    fn open(&self, _: u32, _: OpenFlags) -> Result<Arc<dyn FileOps>> {
        Ok(self.0.clone())
    }
}

impl FileOps for Mem {
    fn read(&self, _: &OpenFile, dst: &mut Sink<'_>, _: &mut u64) -> Result<usize> {
        match self.0 {
            Kind::Null => Ok(0),
            Kind::Zero | Kind::Full => zeros(dst),
        }
    }
    fn write(&self, _: &OpenFile, src: &mut Source<'_>, _: &mut u64) -> Result<usize> {
        match self.0 {
            Kind::Null | Kind::Zero => Ok(src.remaining()),
            Kind::Full => Err(Errno::ENOSPC),
        }
    }
    fn lseek(&self, _: &OpenFile, _: u64, _: i64, _: Whence) -> Result<u64> {
        Ok(0)
    }
    fn is_watchable(&self, _: &OpenFile) -> bool {
        false
    }
    fn mmap(&self, _: &Arc<OpenFile>) -> Result<MapTarget> {
        if self.0 == Kind::Zero { Ok(MapTarget::Zero) } else { Err(Errno::ENODEV) }
    }
}

/// Fills all of `dst`, page by page; a signal ends it between two pages, as on Linux.
fn zeros(dst: &mut Sink<'_>) -> Result<usize> {
    let mut done = 0;
    while dst.remaining() != 0 {
        let want = dst.remaining().min(PAGE_SIZE);
        match dst.put_zeros(want) {
            Ok(put) if put == want => done += put,
            Ok(put) => return Ok(done + put),
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        if interrupted() {
            break;
        }
    }
    Ok(done)
}

#[expect(clippy::disallowed_methods, reason = "boot: before any user")]
pub(super) fn register() {
    for (minor, name, kind) in
        [(3, "null", Kind::Null), (5, "zero", Kind::Zero), (7, "full", Kind::Full)]
    {
        register_char(MAJOR, minor, name, 0o666, Arc::new(Driver(Arc::new(Mem(kind)))));
    }
}
