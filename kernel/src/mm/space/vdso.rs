//! The vDSO in every address space: the image, and before it the page of data.
//!
//! Owns their frames, made once at boot and never freed, and the mappings as exec makes them: above the
//! stack, in the page table that maps the stack where they fit, with their pages in place, so that no
//! program takes a fault for them. A fork leaves the pages out: a child that uses them takes one fault. The data is
//! written through the reference that [`init`] gives away, by atomics only; user space can never write to it. Locks: the
//! space's own.

use super::request::{Fault, VmFlags};
use super::space::{AddressSpace, Inner};
use super::table::tlb::CpuMask;
use super::table::{LEAF_SPAN, Table, index_at};
use super::vma::{FileOfVma, MappedFile, Vma};
use crate::base::PAGE_SIZE;
use crate::base::page::USER_END;
use crate::mm::fallible::{try_arc, try_string};
use crate::mm::frames::Pfn;
use crate::mm::frames::frame::Frame;
use crate::mm::layout::page_down;
use crate::mm::page_cache::PageCache;
use crate::mm::page_cache::source::MapSource;
use crate::sync::Once;
use abi::{Errno, Result};
use alea_ranges::Pos;
use alea_vdso::data::Data;
use alloc::string::String;
use alloc::sync::Arc;
use arrayvec::ArrayVec;
use x86_64::PhysAddr;

const PAGE: u64 = PAGE_SIZE as u64;
const IMAGE_PAGES: usize = alea_vdso::IMAGE.len().div_ceil(PAGE_SIZE);
/// The page of the machine's generation id, if there is one, and the page of data.
const DATA_PAGES: usize = 2;

static VDSO: Once<Vdso> = Once::new();

/// What is mapped; frames in the order of their addresses.
struct Vdso {
    data: Arc<MappedFile>,
    data_frames: ArrayVec<u32, DATA_PAGES>,
    image: Arc<MappedFile>,
    image_frames: ArrayVec<u32, IMAGE_PAGES>,
}

/// Makes the pages; gives the page of data to those who keep it up to date. `machine_id` is where the
/// virtual machine's generation id lies. Called once, before the first address space.
pub fn init(machine_id: Option<PhysAddr>) -> Result<&'static Data> {
    let mut data_frames = ArrayVec::new();
    if let Some(id) = machine_id {
        data_frames.push(Pfn::of_phys(id.as_u64()).0);
    }
    let page = Frame::alloc_zeroed()?;
    let data_index = data_frames.len() as u64;
    data_frames.push(page.pfn().0);
    // SAFETY: the frame is `Data`'s size and alignment and all zeros, which is its default; the cache below
    // keeps it for ever; everything in it is atomic, and only the kernel can write to it.
    let data: &'static Data = unsafe { &*page.ptr_at(0).cast::<Data>() };
    let data_cache = PageCache::new();
    data_cache.set_size((data_index + 1) * PAGE);
    data_cache.insert(data_index, page)?;
    let (image, image_frames) = image_pages()?;
    let (data_file, image) =
        (Special::file("[vvar]", data_cache)?, Special::file("[vdso]", image)?);
    VDSO.call_once(|| Vdso { data: data_file, data_frames, image, image_frames });
    Ok(data)
}

fn image_pages() -> Result<(PageCache, ArrayVec<u32, IMAGE_PAGES>)> {
    let (cache, mut frames) = (PageCache::new(), ArrayVec::new());
    cache.set_size((IMAGE_PAGES * PAGE_SIZE) as u64);
    for (index, bytes) in (0..).zip(alea_vdso::IMAGE.chunks(PAGE_SIZE)) {
        let page = Frame::alloc_zeroed()?;
        page.write(0, bytes);
        frames.push(page.pfn().0);
        cache.insert(index, page)?;
    }
    Ok((cache, frames))
}

impl AddressSpace {
    /// Maps it above the stack, which ends at `stack_top`, at a place that `draw` chooses: where the image's
    /// header lies.
    pub fn map_vdso(&self, stack_top: u64, draw: u64) -> Result<Option<u64>> {
        let Some(vdso) = VDSO.get() else { return Ok(None) };
        let data_len = vdso.data_frames.len() as u64 * PAGE;
        let len = data_len + vdso.image_frames.len() as u64 * PAGE;
        let mut inner = self.inner.lock();
        let start = inner.place_above(stack_top, len, draw)?;
        let image = start + data_len;
        let flags = VmFlags::READ | VmFlags::MAY_READ | VmFlags::DONTDUMP | VmFlags::SPECIAL;
        inner.put_special(start, &vdso.data_frames, flags, &vdso.data, &self.cpus)?;
        let flags = VmFlags::READ | VmFlags::EXEC | VmFlags::MAY_ALL | VmFlags::SPECIAL;
        inner.put_special(image, &vdso.image_frames, flags, &vdso.image, &self.cpus)?;
        Ok(Some(image))
    }
}

/// The frames behind a mapping of the vDSO, from the start of its file.
fn frames_of(vma: &Vma) -> Option<&'static [u32]> {
    let vdso = VDSO.get()?;
    let is_data = vma.file.as_ref().is_some_and(|file| Arc::ptr_eq(file.shared(), &vdso.data));
    Some(if is_data { &vdso.data_frames } else { &vdso.image_frames })
}

impl Inner {
    /// Maps the pages of the mapping of the vDSO at `pos` that lie in `leaf`, of which the one at `addr` is
    /// wanted: a child's first use of it.
    #[cold]
    pub(super) fn fill_special(&mut self, pos: Pos, leaf: Table, addr: u64) -> Result<Pfn, Fault> {
        let vma = self.vmas.get(pos).ok_or(Fault::SegvMap)?;
        let frames = frames_of(vma).ok_or(Fault::Bus)?;
        let low = (addr & !(LEAF_SPAN - 1)).max(vma.start);
        let high = ((addr & !(LEAF_SPAN - 1)) + LEAF_SPAN).min(vma.end);
        let wanted = frames.get(vma.index_of(addr) as usize).ok_or(Fault::Bus)?;
        let first = vma.index_of(low) as usize;
        let here = frames.get(first..first + ((high - low) / PAGE) as usize).ok_or(Fault::Bus)?;
        let mapped = leaf.fill(index_at(low, 0), here, vma.borrowed_flags());
        let flags = vma.flags;
        self.count_rss(flags, false, mapped);
        Ok(Pfn(*wanted))
    }

    /// A free place for `len` bytes above `from`, if possible in the same page table.
    fn place_above(&mut self, from: u64, len: u64, draw: u64) -> Result<u64> {
        let from = page_down(from.saturating_add(PAGE - 1));
        let ceiling = from.saturating_add(len).next_multiple_of(LEAF_SPAN).min(USER_END);
        let room = ceiling.checked_sub(from).and_then(|room| room.checked_sub(len));
        if let Some(room) = room {
            let at = from + draw % (room / PAGE + 1) * PAGE;
            if self.vmas.is_free(at, at + len) {
                return Ok(at);
            }
        }
        self.choose(None, len)
    }

    /// Maps `frames`, all of `file`, at `start`.
    fn put_special(
        &mut self,
        start: u64,
        frames: &[u32],
        flags: VmFlags,
        file: &Arc<MappedFile>,
        cpus: &CpuMask,
    ) -> Result<()> {
        let end = start + frames.len() as u64 * PAGE;
        let vma = Vma { start, end, flags, offset: 0, file: Some(FileOfVma::new(file.clone())) };
        let entry = vma.borrowed_flags();
        self.vmas.insert(vma).map_err(|_| Errno::ENOMEM)?;
        self.account(flags, frames.len() as u64, 1);
        let mut mapped = 0;
        let (mut at, mut left) = (start, frames);
        while !left.is_empty() {
            let index = index_at(at, 0);
            let (now, later) = left.split_at(left.len().min(512 - index));
            mapped += self.table.leaf_or_alloc(at, cpus)?.fill(index, now, entry);
            (at, left) = (at + now.len() as u64 * PAGE, later);
        }
        self.count_rss(flags, false, mapped);
        Ok(())
    }
}

/// What stands behind the two mappings.
struct Special {
    name: &'static str,
    cache: Arc<PageCache>,
}

impl Special {
    fn file(name: &'static str, cache: PageCache) -> Result<Arc<MappedFile>> {
        let cache = try_arc(cache)?;
        try_arc(MappedFile::new(try_arc(Self { name, cache })?))
    }
}

impl MapSource for Special {
    fn cache(&self) -> &Arc<PageCache> {
        &self.cache
    }
    fn name(&self) -> Result<String> {
        try_string(self.name)
    }
    fn dev_ino(&self) -> (u64, u64) {
        (0, 0)
    }
}
