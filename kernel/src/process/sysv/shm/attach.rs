//! shmat: a segment in an address space.

use super::segment::{Segment, all};
use crate::mm::fallible::try_arc;
use crate::mm::is_low;
use crate::mm::space::request::{Backing, MapFixed, MapRequest, Prot, VmFlags};
use crate::mm::{MapObserver, MapSource, PageCache};
use crate::process::current;
use crate::process::sysv::now;
use crate::process::sysv::table::Object;
use crate::try_format;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use x86_64::VirtAddr;

/// What shmat asks for.
pub struct Attach {
    /// The exact place, page-aligned.
    pub addr: Option<u64>,
    /// What is there may be replaced.
    pub replaces: bool,
    /// The place may be among the first pages.
    pub may_be_low: bool,
    pub prot: Prot,
    /// Permission bits that the call needs.
    pub wanted: u32,
}

/// Attaches the segment: where it is now. Errors as shmat(2).
pub fn attach(id: i32, request: Attach) -> Result<u64> {
    let segment = all().table.get(id)?;
    let task = current();
    segment.state().perm.check(&task.cred(), request.wanted)?;
    segment.enter()?;
    let result = map(&segment, &request);
    segment.leave(|_| ());
    result
}

fn map(segment: &Arc<Segment>, request: &Attach) -> Result<u64> {
    let fixed = match request.addr {
        None => MapFixed::No,
        Some(_) if request.replaces => MapFixed::Replace,
        Some(_) => MapFixed::NoReplace,
    };
    let overflows = |addr: u64| addr.checked_add(segment.size).is_none();
    if fixed == MapFixed::NoReplace && request.addr.is_some_and(overflows) {
        return Err(Errno::EINVAL);
    }
    if request.addr.is_some_and(is_low) && !request.may_be_low {
        return Err(Errno::EPERM);
    }
    let addr = request.addr.map(VirtAddr::try_new).transpose().map_err(|_| Errno::ENOMEM)?;
    let writable = request.prot.contains(Prot::WRITE);
    let source = try_arc(Attachment { segment: segment.clone(), writable })?;
    let mapped = current().mm().map(MapRequest {
        addr,
        fixed,
        len: segment.size,
        prot: request.prot,
        shared: true,
        backing: Backing::File { source, offset: 0 },
        flags: VmFlags::empty(),
        populate: false,
    });
    match mapped {
        Err(Errno::EEXIST) => Err(Errno::EINVAL),
        mapped => mapped.map(VirtAddr::as_u64),
    }
}

/// A segment behind mappings: those of one shmat.
struct Attachment {
    segment: Arc<Segment>,
    writable: bool,
}

impl MapSource for Attachment {
    fn cache(&self) -> &Arc<PageCache> {
        &self.segment.cache
    }
    fn name(&self) -> Result<String> {
        try_format!("/SYSV{:08x} (deleted)", self.segment.made_with)
    }
    fn dev_ino(&self) -> (u64, u64) {
        // Linux's number for its internal shm mount is 0:1.
        (1, self.segment.id() as u64)
    }
    fn rights(&self, _: bool, _: Prot) -> Result<VmFlags> {
        let mut may = VmFlags::MAY_READ | VmFlags::MAY_EXEC;
        may.set(VmFlags::MAY_WRITE, self.writable);
        Ok(may)
    }
    fn observer(&self) -> Option<&dyn MapObserver> {
        Some(self)
    }
    fn is_shmem(&self) -> bool {
        true
    }
}

/// One mapping is one that is attached. As on Linux, a copy by fork is an attachment too, by the parent.
impl MapObserver for Attachment {
    fn mapped(&self) {
        let mut state = self.segment.state();
        state.attached += 1;
        state.atime = now();
        state.lpid = current().process().pid();
    }
    fn unmapped(&self) {
        self.segment.leave(|state| {
            state.dtime = now();
            state.lpid = current().process().pid();
        });
    }
    fn size(&self) -> u64 {
        self.segment.size
    }
}
