//! Which mappings a core has, and how much of each: Linux's `vma_dump_size`.
//!
//! Owns nothing. Never decides by what a page holds, but for the first of a file. Locks: none.

use crate::base::PAGE_SIZE;
use crate::mm::AddressSpace;
use crate::mm::fallible::TryCollect;
use crate::mm::space::dump::CoreMapping;
use crate::mm::space::request::VmFlags;
use abi::Result;
use alloc::vec::Vec;

/// The bits of /proc/PID/coredump_filter.
const ANON_PRIVATE: u32 = 1 << 0;
const ANON_SHARED: u32 = 1 << 1;
const MAPPED_PRIVATE: u32 = 1 << 2;
const MAPPED_SHARED: u32 = 1 << 3;
const ELF_HEADERS: u32 = 1 << 4;

/// A mapping and how many of its bytes the core has.
pub(super) struct Segment {
    pub mapping: CoreMapping,
    pub size: u64,
}

/// All mappings of `mm`, by `filter`.
pub(super) fn choose(mm: &AddressSpace, filter: u32) -> Result<Vec<Segment>> {
    let mappings = mm.core_mappings()?;
    mappings
        .into_iter()
        .map(|mapping| Segment { size: size_of(mm, &mapping, filter), mapping })
        .try_to_vec()
}

fn size_of(mm: &AddressSpace, mapping: &CoreMapping, filter: u32) -> u64 {
    let whole = mapping.range.end - mapping.range.start;
    let has = |bit: u32| filter & bit != 0;
    if mapping.is_special {
        return whole;
    }
    if mapping.flags.contains(VmFlags::DONTDUMP) {
        return 0;
    }
    let Some(source) = &mapping.source else {
        return if mapping.was_written && has(ANON_PRIVATE) { whole } else { 0 };
    };
    if mapping.flags.contains(VmFlags::SHARED) {
        let bit = if source.is_unlinked() { ANON_SHARED } else { MAPPED_SHARED };
        return if has(bit) { whole } else { 0 };
    }
    if mapping.was_written && has(ANON_PRIVATE) || has(MAPPED_PRIVATE) {
        return whole;
    }
    let may_begin_file = mapping.offset == 0 && mapping.flags.contains(VmFlags::READ);
    if has(ELF_HEADERS) && may_begin_file && (source.is_executable() || is_elf(mm, mapping)) {
        return PAGE_SIZE as u64;
    }
    0
}

/// Libraries need not be executable.
fn is_elf(mm: &AddressSpace, mapping: &CoreMapping) -> bool {
    let mut magic = [0; 4];
    mm.read_bytes(mapping.range.start, &mut magic) == magic.len() && magic == *b"\x7fELF"
}
