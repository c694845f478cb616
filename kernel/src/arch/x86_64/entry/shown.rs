//! What of the kernel a program's isolated page table maps: the list that `mm` makes it by, and the self test looks at it by.
//!
//! Owns the list. Whatever is added to it can be read by every program on a CPU with Meltdown. Never names a page that holds more
//! than what entries and exits need. Locks: none.

use super::idt;
use crate::base::page::{PAGE_SIZE, PteFlags, nx};
use crate::base::percpu;
use core::ops::Range;

unsafe extern "C" {
    static __entry_text_start: u8;
    static __entry_text_end: u8;
}

/// Some whole pages, and how they are mapped.
pub struct Part {
    pub pages: Range<u64>,
    pub flags: PteFlags,
}

impl Part {
    /// The first address of each page.
    pub fn each_page(&self) -> impl Iterator<Item = u64> {
        self.pages.clone().step_by(PAGE_SIZE)
    }
}

const READ: PteFlags = PteFlags::PRESENT.union(PteFlags::ACCESSED);

/// What all CPUs need: the entry code, which also is in the kernel's file, and the table of interrupts, whose addresses are that code's.
pub fn of_all() -> [Part; 2] {
    let code = &raw const __entry_text_start as u64..&raw const __entry_text_end as u64;
    [Part { pages: code, flags: READ }, Part { pages: idt::place(), flags: READ | nx() }]
}

/// What a CPU needs that runs: its entry page, which lies in front of its block.
pub fn of_cpu(cpu: usize) -> Option<Part> {
    let start = percpu::block_of(cpu)? as u64 - PAGE_SIZE as u64;
    let flags = READ | PteFlags::WRITABLE | PteFlags::DIRTY | nx();
    Some(Part { pages: start..start + PAGE_SIZE as u64, flags })
}
