//! Mapping ahead the pages that earlier runs of a program touched: docs/memory.md.
//!
//! Owns nothing: the records are the page cache's (`Footprint`) and the space's (`HotPages`). Never makes a page that
//! differs from what a fault would make of it. Locks: the space's, which guards none of the records.

use crate::base::PAGE_SIZE;
use crate::mm::frames::{self, For};
use crate::mm::layout::{PAGE_SHIFT, page_down};
use crate::mm::page_cache::PageCache;
use crate::mm::page_cache::footprint::{Footprint, ProgramPage};
use crate::mm::space::fault::fault::private_copy;
use crate::mm::space::hot::HotPages;
use crate::mm::space::request::VmFlags;
use crate::mm::space::space::{AddressSpace, Inner};
use crate::mm::space::table::tlb::CpuMask;
use crate::mm::space::table::{KNOWN, LEAF_SPAN, OWNED, Table, WRITABLE, index_at};
use crate::mm::space::vma::Vma;
use abi::Result;
use alea_frames::Owner;
use alea_ranges::Pos;
use core::ops::Range;

/// Heap pages that are remembered.
const HEAP_PAGES: u64 = 64;
/// Stack pages that are remembered.
const STACK_PAGES: u64 = 32;

impl AddressSpace {
    /// Maps what earlier executions of the image just mapped at `range` touched of it. The first image of a
    /// space is the program; its faults are recorded for the next time.
    pub fn map_known(&self, range: Range<u64>) -> Result<()> {
        let mut inner = self.inner.lock();
        if inner.layout.image_end == 0 {
            (inner.layout.image, inner.layout.image_end) = (page_down(range.start), range.end);
        }
        let mut next = inner.vmas.at_or_after(range.start);
        let mut counted = false;
        while let Some(pos) = next {
            let Some(vma) = inner.vmas.get(pos).filter(|vma| vma.start < range.end) else { break };
            next = inner.vmas.next(pos);
            if let Some(file) = vma.file.as_ref().filter(|_| vma.is_private())
                && let Some(footprint) = file.cache.make_footprint()
            {
                if !counted {
                    footprint.count_use();
                    counted = true;
                }
                inner.map_known_file(pos, &self.cpus)?;
            }
        }
        inner.map_known_zeros(&self.cpus, |zero| matches!(zero, ProgramPage::Image(_)))
    }

    /// Makes the stack pages below `base` (the lowest page of the arguments) that earlier executions wrote.
    pub fn map_known_stack(&self, base: u64) -> Result<()> {
        let mut inner = self.inner.lock();
        inner.layout.stack_base = page_down(base);
        inner.map_known_zeros(&self.cpus, |zero| matches!(zero, ProgramPage::Stack(_)))
    }
}

impl Inner {
    /// Maps the known pages of the file mapping at `pos`.
    pub(super) fn map_known_file(&mut self, pos: Pos, cpus: &CpuMask) -> Result<()> {
        let Self { vmas, table, .. } = self;
        let Some(vma) = vmas.get(pos) else { return Ok(()) };
        let Some(file) = &vma.file else { return Ok(()) };
        let Some(footprint) = file.cache.footprint() else { return Ok(()) };
        let first = vma.index_of(vma.start);
        let pages = first..first + vma.pages();
        let addr_of = |index: u64| vma.start + ((index - first) << PAGE_SHIFT);
        let (mut owned, mut borrowed) = (0i64, 0i64);
        let mut result = Ok(());
        if vma.flags.contains(VmFlags::WRITE) {
            footprint.written(pages.clone(), |run| {
                for index in run {
                    // Without memory, or beyond the end, the page is left to a fault.
                    let addr = addr_of(index);
                    let Ok(leaf) = table.leaf_or_alloc(addr, cpus) else { return };
                    if leaf.get(index_at(addr, 0)) == 0
                        && let Ok(frame) = private_copy(&file.cache, index)
                    {
                        let flags = vma.entry_flags() | OWNED | WRITABLE | KNOWN;
                        leaf.set(index_at(addr, 0), frame.phys() | flags);
                        owned += 1;
                    }
                }
            });
        }
        let mut at = vma.start;
        while at < vma.end && result.is_ok() {
            let upto = ((at & !(LEAF_SPAN - 1)) + LEAF_SPAN).min(vma.end);
            let indices = vma.index_of(at)..vma.index_of(upto - 1) + 1;
            if footprint.any_touched(indices.clone()) {
                match table.leaf_or_alloc(at, cpus) {
                    Ok(leaf) => {
                        borrowed += map_touched(vma, &file.cache, footprint, leaf, at, indices)
                    }
                    Err(error) => result = Err(error),
                }
            }
            at = upto;
        }
        let flags = vma.flags;
        if owned > 0
            && let Some(vma) = self.vmas.get_mut(pos)
        {
            vma.flags.insert(VmFlags::HAS_ANON);
        }
        self.count_rss(flags, true, owned);
        self.count_rss(flags, false, borrowed);
        result
    }

    /// Makes the known pages of zeros of the program's heap, which has just grown.
    pub(in crate::mm::space) fn map_known_heap(&mut self, cpus: &CpuMask) -> Result<()> {
        self.map_known_zeros(cpus, |zero| matches!(zero, ProgramPage::Heap(_)))
    }

    /// Makes the known pages of zeros of one kind that lie in mappings already.
    #[inline]
    fn map_known_zeros(
        &mut self,
        cpus: &CpuMask,
        kind: impl Fn(&ProgramPage) -> bool,
    ) -> Result<()> {
        let Some(footprint) = program_footprint(&self.vmas, self.layout.image) else {
            return Ok(());
        };
        let mut made = 0;
        for zero in footprint.zeros().filter(kind) {
            let addr = self.layout.addr_of(zero);
            let vma = self.vmas.find(addr).and_then(|pos| self.vmas.get(pos));
            let Some(vma) = vma.filter(|vma| vma.is_private_anon()) else { continue };
            if !vma.flags.contains(VmFlags::WRITE) {
                continue;
            }
            let leaf = self.table.leaf_or_alloc(addr, cpus)?;
            let index = index_at(addr, 0);
            if leaf.get(index) == 0
                && let Some(frame) = frames::alloc_zeroed(Owner::Anon, For::User)
            {
                leaf.set(index, frame.phys() | vma.entry_flags() | OWNED | WRITABLE | KNOWN);
                made += 1;
            }
        }
        self.count_rss(VmFlags::empty(), true, made);
        Ok(())
    }

    /// Remembers that the program wrote to a page of zeros at `addr`.
    pub(in crate::mm::space) fn note_zero(&self, addr: u64) {
        if let Some(zero) = self.layout.zero_page(addr)
            && let Some(footprint) = program_footprint(&self.vmas, self.layout.image)
        {
            footprint.zero(zero, true);
        }
    }

    /// Remembers for later forks of this program that a page was written soon after this one.
    pub(in crate::mm::space) fn note_hot(&self, hot: &HotPages, addr: u64) {
        if hot.remember(addr)
            && let Some(page) = self.layout.page_of(addr)
            && let Some(footprint) = program_footprint(&self.vmas, self.layout.image)
        {
            footprint.fork(page, true);
        }
    }

    /// Makes hot what earlier runs of the program wrote after forks.
    pub(super) fn recall_hot(&self, hot: &HotPages) {
        if let Some(footprint) = program_footprint(&self.vmas, self.layout.image) {
            for page in footprint.forks() {
                hot.remember(self.layout.addr_of(page));
            }
        }
    }

    /// Forgets a page that was copied ahead by fork and never written.
    pub(in crate::mm::space) fn forget_hot(
        vmas: &Vmas,
        layout: &crate::mm::space::space::Layout,
        hot: &HotPages,
        addr: u64,
    ) {
        hot.forget(addr);
        if let Some(page) = layout.page_of(addr)
            && let Some(footprint) = program_footprint(vmas, layout.image)
        {
            footprint.fork(page, false);
        }
    }

    /// Forgets a page that was made ahead and never written.
    pub(in crate::mm::space) fn forget_known(
        vmas: &Vmas,
        layout: &crate::mm::space::space::Layout,
        addr: u64,
    ) {
        let Some(vma) = vmas.find(addr).and_then(|pos| vmas.get(pos)) else { return };
        match &vma.file {
            Some(file) => {
                if let Some(footprint) = file.cache.footprint() {
                    footprint.write(vma.index_of(addr), false);
                }
            }
            None => {
                if let Some(zero) = layout.zero_page(addr)
                    && let Some(footprint) = program_footprint(vmas, layout.image)
                {
                    footprint.zero(zero, false);
                }
            }
        }
    }
}

/// Maps the touched pages of `indices`, of which the first belongs at `addr`, in one leaf table: how many.
fn map_touched(
    vma: &Vma,
    cache: &PageCache,
    footprint: &Footprint,
    leaf: Table,
    addr: u64,
    indices: Range<u64>,
) -> i64 {
    let (flags, first) = (vma.borrowed_flags(), index_at(addr, 0));
    let mut mapped = 0i64;
    cache.runs(indices.clone(), |index, slots| {
        footprint.touched(index..index + slots.len() as u64, |start, bits| {
            let at = first + (start - indices.start) as usize;
            let frames = &slots[(start - index) as usize..];
            mapped = mapped.wrapping_add(leaf.fill_marked(at, frames, bits, flags));
        });
    });
    mapped
}

type Vmas = alea_ranges::RangeMap<Vma>;

impl crate::mm::space::space::Layout {
    /// Where a page of the program lies in this run.
    fn addr_of(&self, page: ProgramPage) -> u64 {
        match page {
            ProgramPage::Image(page) => self.image + (page << PAGE_SHIFT),
            ProgramPage::Heap(page) => page_down(self.brk_start) + (page << PAGE_SHIFT),
            ProgramPage::Stack(page) => self.stack_base.saturating_sub((page + 1) << PAGE_SHIFT),
            ProgramPage::Arguments(page) => self.stack_base + (page << PAGE_SHIFT),
        }
    }

    /// Which page of the program `addr` is, if it is one that is remembered.
    fn page_of(&self, addr: u64) -> Option<ProgramPage> {
        self.zero_page(addr).or_else(|| {
            let above = addr.checked_sub(self.stack_base)? >> PAGE_SHIFT;
            (above < STACK_PAGES).then_some(ProgramPage::Arguments(above))
        })
    }

    /// Which page of zeros of the program `addr` is, if it is one that is remembered.
    fn zero_page(&self, addr: u64) -> Option<ProgramPage> {
        let heap = page_down(self.brk_start);
        if addr >= self.image && addr < self.image_end {
            Some(ProgramPage::Image((addr - self.image) >> PAGE_SHIFT))
        } else if addr >= heap && addr < heap.saturating_add(HEAP_PAGES * PAGE_SIZE as u64) {
            Some(ProgramPage::Heap((addr - heap) >> PAGE_SHIFT))
        } else if addr < self.stack_base && self.stack_base - addr <= STACK_PAGES * PAGE_SIZE as u64
        {
            Some(ProgramPage::Stack((self.stack_base - addr - 1) >> PAGE_SHIFT))
        } else {
            None
        }
    }
}

/// The record of the program whose image starts at `image`.
fn program_footprint(vmas: &Vmas, image: u64) -> Option<&Footprint> {
    if image == 0 {
        return None;
    }
    vmas.get(vmas.find(image)?)?.file.as_ref()?.cache.footprint()
}
