//! What /proc shows of a process's memory: maps, smaps, statm, mem.

use crate::base::PAGE_SIZE;
use crate::fs::procfs::{Row, TextBuf};
use crate::mm::fallible::TryString;
use crate::mm::space;
use crate::mm::space::request::{VmFlags, VmaInfo};
use crate::mm::{Sink, Source};
use crate::process::task::task::Task;
use crate::sync::killable;
use crate::try_format;
use crate::vfs::DevId;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;

/// The pages of the program's own code; all other executable ones are of libraries.
pub(super) fn code_pages(task: &Task) -> u64 {
    let [start, end, ..] = task.process().program().map_or([0; 4], |program| program.bounds);
    end.div_ceil(PAGE_SIZE as u64).saturating_sub(start / PAGE_SIZE as u64)
}

/// Size, resident, shared, text, 0, data, 0: in pages.
pub(super) fn statm(task: &Task) -> Result<Vec<u8>> {
    let usage = task.mm_arc().map(|mm| mm.usage()).unwrap_or_default();
    let shared = usage.rss_file + usage.rss_shmem;
    let rss = usage.rss_anon + shared;
    let data = usage.data + usage.stack;
    try_format!("{} {rss} {shared} {} 0 {data} 0\n", usage.size, code_pages(task))
        .map(String::into_bytes)
}

/// Bytes of text after which a piece of `maps` or `smaps` ends.
const PIECE: usize = 32 * 1024;

/// One line for each mapping from `from` on, as many as make a piece: where the next piece begins.
pub(super) fn maps(task: &Task, from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
    piece(task, from, text, line)
}

/// The lines of `maps`, each with its figures.
pub(super) fn smaps(task: &Task, from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
    piece(task, from, text, |text, vma| {
        line(text, vma)?;
        figures(text, &Figures::of(vma), Some(vma.range.end - vma.range.start))?;
        flags(text, vma.flags, vma.can_be_large)
    })
}

fn piece(
    task: &Task,
    from: u64,
    text: &mut TextBuf,
    show: fn(&mut TextBuf, &VmaInfo) -> Result<()>,
) -> Result<Option<u64>> {
    let Some(mm) = task.mm_arc() else { return Ok(None) };
    mm.maps_from(from, &mut |vma| {
        show(text, vma)?;
        Ok(text.len() < PIECE)
    })
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
        sum.large += one.large;
        let first = bounds.map_or(vma.range.start, |b| b.0);
        bounds = Some((first, vma.range.end));
        Ok(())
    })?;
    let Some((start, end)) = bounds else { return Ok(Vec::new()) };
    let mut text = TextBuf::default();
    let mut row = Row::new();
    row.hex(start, 8);
    row.put([b'-']);
    row.hex(end, 8);
    row.put(*b" ---p 00000000 00:00 0");
    named(&mut text, &row, "[rollup]")?;
    figures(&mut text, &sum, None)?;
    text.finish()
}

/// Bytes at `pos` of the memory with the number `id`. It is there while anybody has it, whoever has ended; a program that a process has
/// executed since is nobody's to see who was let into the one before.
pub(super) fn read_mem(id: u64, dst: &mut Sink<'_>, pos: u64) -> Result<usize> {
    let Some(mm) = space::find(id) else { return Ok(0) };
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
    if done == 0 && dst.remaining() > 0 { Err(Errno::EIO) } else { Ok(done) }
}

/// Changes the memory with the number `id` at `pos`, whatever the protection of private mappings is, as a debugger does: the count before the
/// first page that cannot be written.
pub(super) fn write_mem(id: u64, src: &mut Source<'_>, pos: u64) -> Result<usize> {
    let Some(mm) = space::find(id) else { return Ok(0) };
    let (mut done, asked) = (0, src.remaining());
    let mut piece = [0; 512];
    while src.remaining() > 0 && killable().is_ok() {
        let at = pos.wrapping_add(done as u64);
        // Never across the end of a page: a piece is written whole or not at all.
        let room = piece.len() - (at % piece.len() as u64) as usize;
        let wanted = src.remaining().min(room);
        let got = src.take(&mut piece[..wanted])?;
        if got == 0 || mm.write_bytes(at, &piece[..got]).is_err() {
            break;
        }
        done += got;
    }
    if done == 0 && asked > 0 { Err(Errno::EIO) } else { Ok(done) }
}

fn visit(task: &Task, each: &mut dyn FnMut(&VmaInfo) -> Result<()>) -> Result<()> {
    match task.mm_arc() {
        Some(mm) => mm.maps(each),
        None => Ok(()),
    }
}

fn line(text: &mut TextBuf, vma: &VmaInfo) -> Result<()> {
    let has = |flag, letter| if vma.flags.contains(flag) { letter } else { b'-' };
    let device = DevId(vma.dev_ino.0);
    let mut row = Row::<NAME_COLUMN_MOST>::new();
    row.hex(vma.range.start, 8);
    row.put([b'-']);
    row.hex(vma.range.end, 8);
    row.put([
        b' ',
        has(VmFlags::READ, b'r'),
        has(VmFlags::WRITE, b'w'),
        has(VmFlags::EXEC, b'x'),
        if vma.flags.contains(VmFlags::SHARED) { b's' } else { b'p' },
        b' ',
    ]);
    row.hex(vma.offset, 8);
    row.put([b' ']);
    row.hex(u64::from(device.major()), 2);
    row.put([b':']);
    row.hex(u64::from(device.minor()), 2);
    row.put([b' ']);
    row.decimal(vma.dev_ino.1, 0);
    named(text, &row, &vma.name)
}

/// Where names begin, and behind which byte they begin at the latest, where numbers are as long as they can be.
const NAME_COLUMN: usize = 73;
const NAME_COLUMN_MOST: usize = 112;

/// Adds a line that ends with a name, in a column of its own.
fn named(text: &mut TextBuf, row: &Row<NAME_COLUMN_MOST>, name: &str) -> Result<()> {
    const BLANKS: &str = match core::str::from_utf8(&[b' '; NAME_COLUMN]) {
        Ok(blanks) => blanks,
        Err(_) => "",
    };
    text.put(row)?;
    if name.is_empty() {
        return text.try_push_str(" \n");
    }
    let pad = NAME_COLUMN.saturating_sub(row.bytes().len()).max(1);
    text.try_push_str(&BLANKS[..pad])?;
    // A newline in a name must not look like another line.
    for (at, part) in name.split('\n').enumerate() {
        text.try_push_str(if at == 0 { "" } else { "\\012" })?;
        text.try_push_str(part)?;
    }
    text.try_push_str("\n")
}

/// Resident kilobytes of a mapping.
#[derive(Default)]
struct Figures {
    shared: u64,
    private: u64,
    locked: u64,
    large: u64,
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
            large: kib(vma.large),
        }
    }
}

/// Linux's lines of figures that are always zero here, before and behind that of large pages.
const NONE_OF_THESE: &str = "KSM:                   0 kB
LazyFree:              0 kB
";
const NOR_OF_THESE: &str = "ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
";

fn figures(text: &mut TextBuf, f: &Figures, size: Option<u64>) -> Result<()> {
    let mut put = |name: &str, kib: u64| figure(text, name, kib);
    if let Some(size) = size {
        put("Size:", size / 1024)?;
        put("KernelPageSize:", 4)?;
        put("MMUPageSize:", 4)?;
    }
    put("Rss:", f.shared + f.private)?;
    put("Pss:", f.shared + f.private)?;
    put("Pss_Dirty:", f.private)?;
    if size.is_none() {
        put("Pss_Anon:", f.private)?;
        put("Pss_File:", f.shared)?;
        put("Pss_Shmem:", 0)?;
    }
    put("Shared_Clean:", f.shared)?;
    put("Shared_Dirty:", 0)?;
    put("Private_Clean:", 0)?;
    put("Private_Dirty:", f.private)?;
    put("Referenced:", f.shared + f.private)?;
    put("Anonymous:", f.private)?;
    text.try_push_str(NONE_OF_THESE)?;
    figure(text, "AnonHugePages:", f.large)?;
    text.try_push_str(NOR_OF_THESE)?;
    figure(text, "Locked:", f.locked)
}

/// One line; the name with its colon and the number take 24 columns.
fn figure(text: &mut TextBuf, name: &str, kib: u64) -> Result<()> {
    let mut row = Row::<32>::new();
    row.decimal(kib, 24usize.saturating_sub(name.len()));
    row.put(*b" kB\n");
    text.try_push_str(name)?;
    text.put(&row)
}

fn flags(text: &mut TextBuf, flags: VmFlags, can_be_large: bool) -> Result<()> {
    text.try_push_str("THPeligible:           ")?;
    text.try_push_str(if can_be_large { "1" } else { "0" })?;
    text.try_push_str("\nVmFlags:")?;
    let mut row = Row::<72>::new();
    for (flag, name) in [
        (VmFlags::READ, b" rd"),
        (VmFlags::WRITE, b" wr"),
        (VmFlags::EXEC, b" ex"),
        (VmFlags::SHARED, b" sh"),
        (VmFlags::MAY_READ, b" mr"),
        (VmFlags::MAY_WRITE, b" mw"),
        (VmFlags::MAY_EXEC, b" me"),
        (VmFlags::GROWSDOWN, b" gd"),
        (VmFlags::LOCKED, b" lo"),
        (VmFlags::NORESERVE, b" nr"),
        (VmFlags::DONTFORK, b" dc"),
        (VmFlags::WIPEONFORK, b" wf"),
        (VmFlags::DONTDUMP, b" dd"),
        (VmFlags::HUGE, b" hg"),
        (VmFlags::NOHUGE, b" nh"),
        (VmFlags::DROPPABLE, b" dp"),
    ] {
        if flags.contains(flag) {
            row.put(*name);
        }
    }
    row.put(*b" \n");
    text.put(&row)
}
