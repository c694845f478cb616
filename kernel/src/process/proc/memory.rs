//! What /proc shows of a process's memory: maps, smaps, statm, mem.

use crate::base::PAGE_SIZE;
use crate::fs::procfs::TextBuf;
use crate::mm::Sink;
use crate::mm::fallible::TryString;
use crate::mm::space::request::{VmFlags, VmaInfo};
use crate::process::task::task::Task;
use crate::sync::killable;
use crate::vfs::DevId;
use crate::{try_format, try_write, try_writeln};
use abi::Result;
use alloc::string::String;
use alloc::vec::Vec;

/// The pages of the program's own code; all other executable ones are of libraries.
pub(super) fn code_pages(task: &Task) -> u64 {
    let [start, end, ..] = task.process().program().map_or([0; 4], |program| program.bounds);
    end.div_ceil(PAGE_SIZE as u64).saturating_sub(start / PAGE_SIZE as u64)
}

/// Size, resident, shared, text, 0, data, 0: in pages.
pub(super) fn statm(task: &Task) -> Result<Vec<u8>> {
    let usage = task.process().mm().map(|mm| mm.usage()).unwrap_or_default();
    let shared = usage.rss_file + usage.rss_shmem;
    let rss = usage.rss_anon + shared;
    let data = usage.data + usage.stack;
    try_format!("{} {rss} {shared} {} 0 {data} 0\n", usage.size, code_pages(task))
        .map(String::into_bytes)
}

/// One line a mapping.
pub(super) fn maps(task: &Task) -> Result<Vec<u8>> {
    let mut text = TextBuf::default();
    visit(task, &mut |vma| line(&mut text, vma))?;
    text.finish()
}

/// The lines of `maps`, each with its figures.
pub(super) fn smaps(task: &Task) -> Result<Vec<u8>> {
    let mut text = TextBuf::default();
    visit(task, &mut |vma| {
        line(&mut text, vma)?;
        figures(&mut text, &Figures::of(vma), Some(vma.range.end - vma.range.start))?;
        flags(&mut text, vma.flags)
    })?;
    text.finish()
}

/// The figures of all mappings together.
pub(super) fn smaps_rollup(task: &Task) -> Result<Vec<u8>> {
    let mut sum = Figures::default();
    let mut bounds: Option<(u64, u64)> = None;
    visit(task, &mut |vma| {
        let one = Figures::of(vma);
        sum.shared += one.shared;
        sum.private += one.private;
        sum.locked += one.locked;
        let first = bounds.map_or(vma.range.start, |b| b.0);
        bounds = Some((first, vma.range.end));
        Ok(())
    })?;
    let Some((start, end)) = bounds else { return Ok(Vec::new()) };
    let mut text = TextBuf::default();
    try_write!(text, "{start:08x}-{end:08x} ---p 00000000 00:00 0")?;
    pad_name(&mut text, 0, "[rollup]")?;
    figures(&mut text, &sum, None)?;
    text.finish()
}

/// Bytes of the process's memory at `pos`.
pub(super) fn read_mem(task: &Task, dst: &mut Sink<'_>, pos: u64) -> Result<usize> {
    let Some(mm) = task.process().mm() else { return Ok(0) };
    let mut done = 0;
    let mut page = [0; 512];
    while dst.remaining() > 0 && killable().is_ok() {
        let wanted = dst.remaining().min(page.len());
        let got = mm.read_bytes(pos.wrapping_add(done as u64), &mut page[..wanted]);
        if got == 0 {
            break;
        }
        let put = dst.put(&page[..got])?;
        done += put;
        if put < wanted {
            break;
        }
    }
    if done == 0 && dst.remaining() > 0 { Err(abi::Errno::EIO) } else { Ok(done) }
}

fn visit(task: &Task, each: &mut dyn FnMut(&VmaInfo) -> Result<()>) -> Result<()> {
    match task.process().mm() {
        Some(mm) => mm.maps(each),
        None => Ok(()),
    }
}

fn line(text: &mut TextBuf, vma: &VmaInfo) -> Result<()> {
    let has = |flag, letter| if vma.flags.contains(flag) { letter } else { '-' };
    let start = text.len();
    let device = DevId(vma.dev_ino.0);
    try_write!(
        text,
        "{:08x}-{:08x} {}{}{}{} {:08x} {:02x}:{:02x} {}",
        vma.range.start,
        vma.range.end,
        has(VmFlags::READ, 'r'),
        has(VmFlags::WRITE, 'w'),
        has(VmFlags::EXEC, 'x'),
        if vma.flags.contains(VmFlags::SHARED) { 's' } else { 'p' },
        vma.offset,
        device.major(),
        device.minor(),
        vma.dev_ino.1,
    )?;
    pad_name(text, start, &vma.name)
}

/// Names stand in a column of their own.
fn pad_name(text: &mut TextBuf, start: usize, name: &str) -> Result<()> {
    const COLUMN: usize = 73;
    let pad = if name.is_empty() { 0 } else { (start + COLUMN).saturating_sub(text.len() + 1) };
    // A newline in a name must not look like another line.
    try_write!(text, " {:pad$}", "")?;
    for (at, part) in name.split('\n').enumerate() {
        try_write!(text, "{}{part}", if at == 0 { "" } else { "\\012" })?;
    }
    text.try_push_char('\n')
}

/// Resident kilobytes of a mapping.
#[derive(Default)]
struct Figures {
    shared: u64,
    private: u64,
    locked: u64,
}

impl Figures {
    fn of(vma: &VmaInfo) -> Self {
        let (borrowed, owned) = vma.resident;
        let kib = |pages: u64| pages * (PAGE_SIZE as u64 / 1024);
        let locked = vma.flags.contains(VmFlags::LOCKED);
        Self {
            shared: kib(borrowed),
            private: kib(owned),
            locked: if locked { kib(borrowed + owned) } else { 0 },
        }
    }
}

fn figures(text: &mut TextBuf, f: &Figures, size: Option<u64>) -> Result<()> {
    let mut put = |name: &str, kib: u64| {
        let pad = 15usize.saturating_sub(name.len());
        try_writeln!(text, "{name}:{:pad$}{kib:8} kB", "")
    };
    if let Some(size) = size {
        put("Size", size / 1024)?;
        put("KernelPageSize", 4)?;
        put("MMUPageSize", 4)?;
    }
    put("Rss", f.shared + f.private)?;
    put("Pss", f.shared + f.private)?;
    put("Pss_Dirty", f.private)?;
    if size.is_none() {
        put("Pss_Anon", f.private)?;
        put("Pss_File", f.shared)?;
        put("Pss_Shmem", 0)?;
    }
    put("Shared_Clean", f.shared)?;
    put("Shared_Dirty", 0)?;
    put("Private_Clean", 0)?;
    put("Private_Dirty", f.private)?;
    put("Referenced", f.shared + f.private)?;
    put("Anonymous", f.private)?;
    for name in [
        "KSM",
        "LazyFree",
        "AnonHugePages",
        "ShmemPmdMapped",
        "FilePmdMapped",
        "Shared_Hugetlb",
        "Private_Hugetlb",
        "Swap",
        "SwapPss",
    ] {
        put(name, 0)?;
    }
    put("Locked", f.locked)
}

fn flags(text: &mut TextBuf, flags: VmFlags) -> Result<()> {
    text.try_push_str("THPeligible:           0\nVmFlags:")?;
    for (flag, name) in [
        (VmFlags::READ, "rd"),
        (VmFlags::WRITE, "wr"),
        (VmFlags::EXEC, "ex"),
        (VmFlags::SHARED, "sh"),
        (VmFlags::MAY_READ, "mr"),
        (VmFlags::MAY_WRITE, "mw"),
        (VmFlags::MAY_EXEC, "me"),
        (VmFlags::GROWSDOWN, "gd"),
        (VmFlags::LOCKED, "lo"),
        (VmFlags::NORESERVE, "nr"),
        (VmFlags::DONTFORK, "dc"),
        (VmFlags::WIPEONFORK, "wf"),
        (VmFlags::DONTDUMP, "dd"),
        (VmFlags::DROPPABLE, "dp"),
    ] {
        if flags.contains(flag) {
            try_write!(text, " {name}")?;
        }
    }
    text.try_push_str(" \n")
}
