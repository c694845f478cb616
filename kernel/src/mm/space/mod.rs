//! [`AddressSpace`]: a process's mappings and page tables.

mod request;

pub use request::*;

use super::Frame;
use abi::Result;
use alloc::sync::Arc;
use core::ops::Range;
use x86_64::VirtAddr;

/// A process's mappings and page tables.
pub struct AddressSpace {}

impl AddressSpace {
    /// An empty space.
    pub fn new() -> Result<Arc<Self>> {
        todo!()
    }

    /// A copy-on-write copy.
    pub fn fork(&self) -> Result<Arc<Self>> {
        todo!()
    }

    /// Loads it on this CPU. Cheap when it is loaded already.
    pub fn activate(&self) {
        todo!()
    }

    /// Sets where `mmap` searches from (downwards); exec draws it.
    pub fn set_mmap_base(&self, _base: u64) {
        todo!()
    }

    /// Sets the resource limits that mappings obey.
    pub fn set_limits(&self, _limits: MmLimits) {
        todo!()
    }

    /// The resource limits that mappings obey.
    pub fn limits(&self) -> MmLimits {
        todo!()
    }

    /// mmap: the address chosen.
    pub fn map(&self, _request: MapRequest) -> Result<VirtAddr> {
        todo!()
    }

    /// munmap.
    pub fn unmap(&self, _addr: u64, _len: u64) -> Result<()> {
        todo!()
    }

    /// mprotect.
    pub fn protect(&self, _addr: u64, _len: u64, _prot: Prot) -> Result<()> {
        todo!()
    }

    /// mremap, with Linux's MREMAP_* flags.
    pub fn remap(
        &self,
        _old: u64,
        _old_len: u64,
        _new_len: u64,
        _flags: u32,
        _new: u64,
    ) -> Result<u64> {
        todo!()
    }

    /// madvise.
    pub fn advise(&self, _addr: u64, _len: u64, _advice: Advice) -> Result<()> {
        todo!()
    }

    /// msync: nothing is ever dirty against a device; checks only.
    pub fn msync(&self, _addr: u64, _len: u64) -> Result<()> {
        todo!()
    }

    /// mlock (`lock`) and munlock; `on_fault` leaves populating to faults.
    pub fn mlock(&self, _addr: u64, _len: u64, _lock: bool, _on_fault: bool) -> Result<()> {
        todo!()
    }

    /// mincore: calls `emit` with one byte per page.
    pub fn mincore(&self, _addr: u64, _len: u64, _emit: &mut dyn FnMut(u8)) -> Result<()> {
        todo!()
    }

    /// Sets where the heap starts; exec draws it.
    pub fn set_brk(&self, _start: u64) {
        todo!()
    }

    /// brk: the break after the call, unchanged if it could not be moved.
    pub fn brk(&self, _new: u64) -> u64 {
        todo!()
    }

    /// Maps the initial stack below `top`, `size` bytes now, growing down to the stack limit.
    pub fn map_stack(&self, _top: u64, _size: u64, _exec: bool) -> Result<()> {
        todo!()
    }

    /// Mends a page fault.
    pub fn fault(&self, _addr: u64, _access: FaultAccess) -> Result<(), Fault> {
        todo!()
    }

    /// Maps pages ahead: for `write`, private copies (or zero pages) are made at once; otherwise pages of
    /// files that are in their cache are mapped read-only. Pages that are mapped already stay.
    pub fn prefault(&self, _range: Range<u64>, _write: bool) -> Result<()> {
        todo!()
    }

    /// Puts `frame` at `addr` of a private mapping where nothing is mapped yet (exec's stack and data).
    pub fn install(&self, _addr: u64, _frame: Frame) -> Result<()> {
        todo!()
    }

    /// Writes into a space that need not be active, protection ignored; `EFAULT` where nothing is mapped.
    pub fn write_bytes(&self, _addr: u64, _src: &[u8]) -> Result<()> {
        todo!()
    }

    /// Reads from a space that need not be active; the count before the first hole.
    pub fn read_bytes(&self, _addr: u64, _dst: &mut [u8]) -> usize {
        todo!()
    }

    /// Zeros memory of a space that need not be active.
    pub fn zero(&self, _addr: u64, _len: u64) -> Result<()> {
        todo!()
    }

    /// What a shared futex at `addr` is known by: a number for the shared object that is mapped there and the
    /// offset in it; `None` for private memory.
    pub fn shared_object_at(&self, _addr: u64) -> Option<(u64, u64)> {
        todo!()
    }

    /// Visits the mappings in order.
    pub fn maps(&self, _visit: &mut dyn FnMut(&VmaInfo)) {
        todo!()
    }

    /// Memory use.
    pub fn usage(&self) -> VmUsage {
        todo!()
    }
}

/// Takes pages of `cache` out of every address space that maps them.
pub(super) fn unmap_everywhere(_cache: &super::PageCache, _indices: Range<u64>, _copies: bool) {
    todo!()
}
