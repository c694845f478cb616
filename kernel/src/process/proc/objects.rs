//! /proc/alea/objects: how many objects of each kind the kernel holds, one `name number` a line.
//!
//! Writing 1 first lets go of what is kept for a while: sockets that nobody can receive any more, ports that wait.
//!
//! Owns nothing, and never changes what programs see, but for those ports. The numbers are exact while nothing else runs: what caches keep free for the next user (magazines of the
//! heap, frames and page tables of the CPUs and the depot, unused kernel stacks) is not counted. The tests read them before
//! and after a program, so all are taken before anything is allocated for the text. No locks of its own.

use crate::fs::procfs::{ProcFile, register_file};
use crate::mm::fallible::try_arc;
use crate::mm::{self, frames, heap};
use crate::net::unix;
use crate::process::tree::table;
use crate::process::{perf, sched};
use crate::sync::counted::{self, KINDS};
use crate::time;
use crate::try_writeln;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;

pub(super) fn register() -> Result<()> {
    register_file("alea/objects", 0o600, try_arc(Objects)?)
}

struct Objects;

impl ProcFile for Objects {
    fn read(&self) -> Result<Vec<u8>> {
        let mut kinds = [0; KINDS.len()];
        for (number, (kind, _)) in kinds.iter_mut().zip(KINDS) {
            *number = counted::live(*kind);
        }
        let (heap, frames, timers) = (heap::live(), frames::stats(), time::armed());
        let mut text = String::new();
        text.try_reserve(2048).map_err(|_| Errno::ENOMEM)?;
        let mut line =
            |name: core::fmt::Arguments<'_>, number: i64| try_writeln!(text, "{name} {number}");
        for ((_, name), number) in KINDS.iter().zip(kinds) {
            line(format_args!("{name}"), number)?;
        }
        line(format_args!("timers"), timers as i64)?;
        let big = frames.slab.saturating_sub(heap.slab_pages);
        // What never gets less: places of the queues and tables that every task is promised one of, and tables of the
        // area of kernel stacks.
        let mut rooms = sched::kept_pages()
            + table::kept_pages()
            + perf::kept_pages()
            + unix::kept_pages()
            + mm::kept_pages();
        time::for_each_room(|bytes| rooms += heap::pages_of_room::<u8>(bytes));
        let tables = mm::table_pages();
        for (name, pages) in [
            ("pages_anonymous", frames.anon),
            ("pages_cache", frames.page_cache),
            ("pages_tables", frames.page_tables),
            // Where secret pages come to lie is chance: at most a page for each 2 MiB of memory is taken by that, once.
            ("pages_kernel", frames.kernel.saturating_sub(tables + mm::split_pages())),
            ("pages_heap_large", big.saturating_sub(rooms)),
            ("pages_kept", rooms + tables),
        ] {
            line(format_args!("{name}"), pages as i64)?;
        }
        line(format_args!("pages_stacks_lost"), mm::lost_frames())?;
        for (size, number) in heap.classes {
            line(format_args!("heap_{size}"), i64::from(number))?;
        }
        Ok(text.into_bytes())
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.trim_ascii() != b"1" {
            return Err(Errno::EINVAL);
        }
        unix::collect_all();
        crate::net::forget_waiting();
        Ok(data.len())
    }
}
