//! Where things lie in a new address space, randomised as on Linux.
//!
//! Owns the settings how much is randomised and whether mappings go up. Never draws a secret again. Locks: none.

use crate::base::PAGE_SIZE;
use crate::base::page::USER_END;
use crate::mm::{BOTTOM_UP_BASE, MmapBase, STACK_GUARD};
use crate::process::task::current::Current;
use crate::process::task::limits::Resource;
use crate::random;
use crate::vfs::OpenFile;
use abi::fs::{S_ISGID, S_ISUID};
use abi::process::personality;
use core::sync::atomic::Ordering;

const PAGE: u64 = PAGE_SIZE as u64;
/// Where position-independent programs start, before randomisation.
const PROGRAM_BASE: u64 = (USER_END / 3 * 2) & !(PAGE - 1);
/// Random bits, as on Linux: pages of mappings and programs, pages of the stack, bytes of the heap.
const MMAP_BITS: u32 = 28;
const STACK_BITS: u32 = 22;
const BRK_RANGE: u64 = 0x200_0000;
/// The gap that mappings leave to the stack, at least and at most.
const MIN_GAP: u64 = 128 << 20;
const MAX_GAP: u64 = USER_END / 6 * 5;

crate::setting! {
    /// `kernel.randomize_va_space`: 0 draws no addresses, 1 all but the heap's, 2 all.
    pub static RANDOMIZE_VA_SPACE = 2, i32::MIN..=i32::MAX;
    /// `vm.legacy_va_layout`: whether every program's mappings go from the bottom up.
    pub static LEGACY_VA_LAYOUT = 0, 0..=i32::MAX;
}

/// The addresses drawn for one program.
pub(super) struct Layout {
    pub(super) stack_top: u64,
    pub(super) mmap_base: MmapBase,
    program: u64,
    brk: u64,
    /// Chooses the vDSO's place.
    pub(super) vdso: u64,
    /// What AT_RANDOM points to.
    pub(super) secret: [u64; 2],
}

/// How far into its first page the block at the start of the stack of a program in `file` lies: the bits of the stack pointer below
/// those of pages, as Linux's `arch_align_stack` draws them. A multiple of 16.
pub(super) fn stack_offset(task: Current, file: &OpenFile) -> usize {
    // Before it is known whether the program sets ids, which would clear the caller's wish.
    let may_set_id = || file.inode().attr().mode() & (S_ISUID | S_ISGID) != 0;
    if moves(task) == 0 && (RANDOMIZE_VA_SPACE.get() == 0 || !may_set_id()) {
        return 0;
    }
    let [word] = random::secret_words::<1>();
    (word as usize % PAGE_SIZE) & !15
}

/// Whether the running thread's personality says so.
fn has(task: Current, flag: u32) -> bool {
    // Relaxed: the thread's own setting.
    task.settings.personality.load(Ordering::Relaxed) & flag != 0
}

/// What the setting and the running thread's personality say together.
fn moves(task: Current) -> i32 {
    if has(task, personality::ADDR_NO_RANDOMIZE) { 0 } else { RANDOMIZE_VA_SPACE.get() }
}

impl Layout {
    /// Draws a layout, and what else an exec needs to draw.
    pub(super) fn draw(task: Current) -> Self {
        let moves = moves(task);
        let [secret @ .., stack, mmap, program, brk, vdso] = random::secret_words::<7>();
        let draw = |word: u64| if moves == 0 { 0 } else { word };
        let pages = |word: u64, bits: u32| (draw(word) & ((1 << bits) - 1)) * PAGE;
        let stack_limit = task.process().limits().soft(Resource::Stack);
        // How far the stack may be moved down, and the gap below it.
        let room = if moves == 0 { 0 } else { (1u64 << STACK_BITS) * PAGE } + STACK_GUARD;
        let gap = stack_limit.saturating_add(room).clamp(MIN_GAP, MAX_GAP);
        Self {
            stack_top: USER_END - pages(stack, STACK_BITS),
            mmap_base: match has(task, personality::ADDR_COMPAT_LAYOUT)
                || LEGACY_VA_LAYOUT.get() != 0
            {
                true => MmapBase::Bottom(BOTTOM_UP_BASE + pages(mmap, MMAP_BITS)),
                false => MmapBase::Top((USER_END - gap - pages(mmap, MMAP_BITS)) & !(PAGE - 1)),
            },
            program: pages(program, MMAP_BITS),
            brk: if moves < 2 { 0 } else { brk },
            vdso: draw(vdso),
            secret,
        }
    }

    /// Where a position-independent program starts.
    pub(super) fn program_base(&self, align: u64) -> u64 {
        (PROGRAM_BASE + self.program) & !(align.max(PAGE) - 1)
    }

    /// Where the heap of a program that ends at `end` starts.
    pub(super) fn brk_start(&self, end: u64) -> u64 {
        let start = end.saturating_add(PAGE - 1) & !(PAGE - 1);
        start.saturating_add((self.brk % BRK_RANGE) & !(PAGE - 1))
    }
}
