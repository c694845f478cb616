//! [`AddressSpace`]: a process's mappings and page tables.
//!
//! Owns the list of mappings, the page tables and the counts that go with them, all under one sleeping lock.
//! Nothing here touches user memory through user addresses: the lock may never be held across a user
//! access, whose fault would take it again. Lock order: a file's locks, then a space (two only in fork,
//! where no task has the child's yet), then a page cache.

use super::hot::HotPages;
use super::registry;
use super::request::VmFlags;
use super::run::Run;
use super::table::tlb::CpuMask;
use super::table::{DIRTY, KNOWN, PageTable, WRITABLE, frame_of};
use super::vma::Vma;
use crate::base::cpu::without_interrupts;
use crate::base::isolation::{self, Roots};
use crate::base::page::{self, USER_END};
use crate::base::percpu::cpu_id;
use crate::mm::commit;
use crate::mm::fallible::{Room, try_arc};
use crate::mm::frames;
use crate::mm::frames::root::kernel_root;
use crate::mm::layout::MmapBase;
use crate::per_cpu;
use crate::sync::counted::{Counted, Kind};
use crate::sync::{Ended, Mutex, Pace, Parted, Parts};
use abi::{Errno, Result};
use alea_ranges::RangeMap;
use alloc::sync::Arc;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use x86_64::PhysAddr;

/// A process's mappings and page tables.
pub struct AddressSpace {
    _counted: Counted,
    /// Names it in the registry; ascending in order of creation.
    pub(super) id: u64,
    roots: Roots,
    pub(super) cpus: CpuMask,
    /// Pages that were copied soon after forks of this program.
    pub(super) hot: Arc<HotPages>,
    /// Made by fork: pages that it touches first are remembered for the next fork.
    pub(super) forked: bool,
    /// Being dropped: a CPU that still has it loaded must unload it.
    dying: AtomicBool,
    /// Those of the tasks that have it.
    parts: Parts,
    /// The last of them is gone.
    has_ended: AtomicBool,
    /// The program wants no large pages (PR_SET_THP_DISABLE).
    pub(super) without_large: AtomicBool,
    /// What membarrier was registered for.
    pub(super) membarrier: AtomicU32,
    pub(super) inner: Mutex<Inner>,
}

/// What the lock guards.
pub(super) struct Inner {
    pub(super) vmas: RangeMap<Vma>,
    pub(super) table: PageTable,
    pub(super) counts: Counts,
    pub(super) layout: Layout,
    /// mlockall(MCL_FUTURE): new mappings are locked.
    pub(super) lock_future: bool,
    /// How many pages of zeros that are written count as written soon after the fork that made this space.
    pub(super) early_writes: u32,
    /// The writes to fresh memory that followed each other.
    pub(super) run: Run,
}

/// Pages of zeros that a child writes at first and that its siblings are likely to write, too.
const EARLY_WRITES: u32 = 8;

/// Pages by kind.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) size: u64,
    pub(super) peak: u64,
    pub(super) rss_anon: u64,
    pub(super) rss_file: u64,
    pub(super) rss_shmem: u64,
    /// What of `rss_file` lies in the vDSO's mappings.
    pub(super) rss_special: u64,
    pub(super) rss_peak: u64,
    pub(super) data: u64,
    pub(super) stack: u64,
    pub(super) text: u64,
    pub(super) locked: u64,
    /// Committed memory.
    pub(super) promised: u64,
}

/// Addresses that exec draws.
#[derive(Clone, Copy, Default)]
pub(super) struct Layout {
    pub(super) mmap_base: MmapBase,
    pub(super) brk_start: u64,
    pub(super) brk: u64,
    /// An address in the initial stack.
    pub(super) stack: u64,
    /// The lowest page of the program's arguments.
    pub(super) stack_base: u64,
    /// Where the program's image lies; 0 before there is one.
    pub(super) image: u64,
    pub(super) image_end: u64,
}

per_cpu! {
    /// The space that this CPU has loaded; null for the kernel's own tables.
    static LOADED: Cell<*const AddressSpace> = Cell::new(core::ptr::null());
    /// No task of that space runs here: it stays loaded in case one of them comes back.
    static LAZY: Cell<bool> = Cell::new(false);
}

impl AddressSpace {
    /// Its number: no two spaces ever have the same.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether a task has it still, for who has come by its number: the last one may wait for what is done to it from here on.
    pub(super) fn is_to_look_at(&self) -> bool {
        // SeqCst: see `ended`.
        fence(Ordering::SeqCst);
        !self.has_ended.load(Ordering::Relaxed)
    }

    /// An empty space.
    pub fn new() -> Result<Arc<Self>> {
        Self::with(RangeMap::new(), Layout::default(), try_arc(HotPages::new())?, false)
    }

    pub(super) fn with(
        vmas: RangeMap<Vma>,
        layout: Layout,
        hot: Arc<HotPages>,
        forked: bool,
    ) -> Result<Arc<Self>> {
        if crate::mm::frames::kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        // Before the tables, which only the space itself takes down again.
        let room = Room::new()?;
        let table = PageTable::new()?;
        let roots = table.roots();
        let (counts, lock_future) = (Counts::default(), false);
        let early_writes = if forked { EARLY_WRITES } else { 0 };
        let inner = Mutex::new(Inner {
            vmas,
            table,
            counts,
            layout,
            lock_future,
            early_writes,
            run: Run::default(),
        });
        let space = room.arc(Self {
            _counted: Counted::new(Kind::AddressSpace),
            id: registry::next_id(),
            roots,
            cpus: CpuMask::new(),
            hot,
            forked,
            dying: AtomicBool::new(false),
            parts: Parts::new(),
            has_ended: AtomicBool::new(false),
            without_large: AtomicBool::new(false),
            membarrier: AtomicU32::new(0),
            inner,
        });
        registry::add(&space)?;
        Ok(space)
    }

    /// Its top-level tables.
    pub(in crate::mm) fn roots(&self) -> Roots {
        self.roots
    }

    /// Loads it on this CPU. Cheap when it is loaded already. The caller keeps it alive while a task with it
    /// runs; when the last reference goes while it is still loaded, the kernel's own tables take its place.
    #[inline]
    pub fn activate(&self) {
        LAZY.set(false);
        if LOADED.get() != core::ptr::from_ref(self) {
            // In one piece: the interrupt of another CPU's flush may unload what is loaded.
            without_interrupts(|| self.load());
        }
    }

    fn load(&self) {
        let (cpu, old) = (cpu_id(), LOADED.get());
        self.cpus.add(cpu);
        // SAFETY: the roots map the kernel like all others; `Drop` unloads them before they are freed.
        unsafe { isolation::load_space(&self.roots) };
        LOADED.set(self);
        // SAFETY: a space that is dropped while loaded here sets `LOADED` to null first (`unload`), so `old` is
        // null or alive, until this CPU is out of its mask.
        if let Some(old) = unsafe { old.as_ref() } {
            old.cpus.remove(cpu);
        }
    }

    /// A task without user memory begins to run on this CPU. What is loaded stays, until a flush of it is asked
    /// for: then it goes, so that an idle CPU is interrupted once at most.
    #[inline]
    pub fn leave_lazily() {
        LAZY.set(true);
    }

    /// Makes this CPU use the kernel's own tables, if it has a space loaded: for CPUs that go idle for long
    /// and for the flush that a dying space asks of other CPUs.
    pub fn unload() {
        without_interrupts(Self::unload_now);
    }

    fn unload_now() {
        let old = LOADED.get();
        // SAFETY: as in `load`.
        if let Some(old) = unsafe { old.as_ref() } {
            LOADED.set(core::ptr::null());
            // SAFETY: the kernel's own tables map the kernel and are never freed.
            unsafe { isolation::load_kernel(PhysAddr::new_truncate(kernel_root().phys())) };
            old.cpus.remove(cpu_id());
        }
    }

    /// What another CPU's flush asks of this one. Interrupts are off.
    pub(super) fn flush_here(pages: Option<&[u64]>) {
        if let Some(pages) =
            pages.filter(|pages| pages.first().is_some_and(|&addr| addr >> 63 != 0))
        {
            // The kernel's own, which are in every space.
            return pages.iter().for_each(|&addr| page::invlpg(addr));
        }
        // SAFETY: as in `load`.
        let dying = unsafe { LOADED.get().as_ref() }
            // Acquire: pairs with the Release in `Drop`.
            .is_some_and(|space| space.dying.load(Ordering::Acquire));
        match pages {
            // An interrupt cannot come between a task's `activate` and its return to user mode and find this
            // set: it is cleared first.
            _ if dying || (LAZY.get() && !is_barrier(pages)) => Self::unload_now(),
            Some(pages) => pages.iter().for_each(|&addr| page::invlpg(addr)),
            None => page::flush_tlb(),
        }
    }

    /// Sets where `mmap` searches; exec draws it.
    pub fn set_mmap_base(&self, base: MmapBase) {
        self.inner.lock().layout.mmap_base = base;
    }
}

/// A request to flush no pages is a memory barrier.
fn is_barrier(pages: Option<&[u64]>) -> bool {
    pages.is_some_and(<[u64]>::is_empty)
}

impl Parted for AddressSpace {
    fn parts(&self) -> &Parts {
        &self.parts
    }

    /// khugepaged, which may look at it for long, holds nothing up: what it maps is gone when its last task is, as on Linux. Others, who come
    /// by a walk through all spaces, ask for less and keep it for as long only if they come between here and the end of its last part.
    fn ended(self: &Arc<Self>, _: Ended) {
        self.has_ended.store(true, Ordering::Relaxed);
        // SeqCst, with that in `is_to_look_at`: who comes to look sees that it has ended, or is seen here.
        fence(Ordering::SeqCst);
        if Arc::strong_count(self) > 1 {
            let all = self.unmap(0, USER_END);
            debug_assert!(all.is_ok(), "what takes all mappings out splits none");
        }
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        registry::remove(self.id);
        if LOADED.get() == core::ptr::from_ref(self) {
            Self::unload();
        }
        // Release: pairs with the Acquire in `flush_here`.
        self.dying.store(true, Ordering::Release);
        while self.cpus.get() != 0 {
            // Lazily loaded elsewhere: the remote flush makes those CPUs unload it.
            self.cpus.flush(None);
            core::hint::spin_loop();
        }
        let hot = &*self.hot;
        let Inner { vmas, table, layout, counts, .. } = self.inner.get_mut();
        commit::count(-counts.promised.cast_signed());
        table.tear_down(&mut |addr, entry| {
            frames::put(frame_of(entry));
            if entry & (WRITABLE | DIRTY) == WRITABLE {
                // Made ahead at exec or fork, but never written.
                if entry & KNOWN != 0 {
                    Inner::forget_known(vmas, layout, addr);
                } else {
                    Inner::forget_hot(vmas, layout, hot, addr);
                }
            }
        });
        if frames::is_reserve_in_use() {
            // What came out of the reserve goes back there: in this CPU's cache it would be anybody's.
            frames::drain();
        }
        core::mem::take(vmas).into_pieces().paced().for_each(drop);
    }
}

impl Inner {
    /// Counts a mapping in (`sign` 1) or out (-1).
    pub(super) fn account(&mut self, flags: VmFlags, pages: u64, sign: i64) {
        let delta = sign.wrapping_mul(pages as i64);
        let add = |count: &mut u64| *count = count.wrapping_add_signed(delta);
        let counts = &mut self.counts;
        add(&mut counts.size);
        if flags.contains(VmFlags::GROWSDOWN) {
            add(&mut counts.stack);
        } else if flags.is_private_writable() {
            add(&mut counts.data);
        } else if flags.contains(VmFlags::EXEC) {
            add(&mut counts.text);
        }
        if flags.contains(VmFlags::LOCKED) {
            add(&mut counts.locked);
        }
        if flags.contains(VmFlags::PROMISED) {
            add(&mut counts.promised);
            commit::count(delta);
        }
        counts.peak = counts.peak.max(counts.size);
    }

    /// Counts a resident page of a mapping in or out.
    #[inline]
    pub(super) fn count_rss(&mut self, flags: VmFlags, owned: bool, delta: i64) {
        let counts = &mut self.counts;
        let count = if owned {
            &mut counts.rss_anon
        } else if flags.contains(VmFlags::SHMEM) {
            &mut counts.rss_shmem
        } else {
            if flags.contains(VmFlags::SPECIAL) {
                counts.rss_special = counts.rss_special.wrapping_add_signed(delta);
            }
            &mut counts.rss_file
        };
        *count = count.wrapping_add_signed(delta);
        if delta > 0 {
            let rss = counts.rss_anon + counts.rss_file + counts.rss_shmem;
            counts.rss_peak = counts.rss_peak.max(rss);
        }
    }
}
