//! The core itself: headers, notes, then the memory of each segment.
//!
//! Owns nothing. Never holds the space's lock while it writes. Memory that nobody has touched is a hole, found without looking
//! at each page of it. Locks: those of what it reads and writes.

use super::notes::Notes;
use super::output::Output;
use super::segments::Segment;
use crate::base::PAGE_SIZE;
use crate::mm::AddressSpace;
use crate::mm::space::request::VmFlags;
use crate::sync::{Pace, killable};
use abi::{Errno, Result};
use zerocopy::{Immutable, IntoBytes};

const PAGE: u64 = PAGE_SIZE as u64;
const ET_CORE: u16 = 4;
const EM_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// The number of program headers stands in a section header.
const PN_XNUM: u16 = 0xffff;

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Header {
    ident: [u8; 16],
    kind: u16,
    machine: u16,
    version: u32,
    entry: u64,
    phoff: u64,
    shoff: u64,
    flags: u32,
    ehsize: u16,
    phentsize: u16,
    phnum: u16,
    shentsize: u16,
    shnum: u16,
    shstrndx: u16,
}

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    vaddr: u64,
    paddr: u64,
    filesz: u64,
    memsz: u64,
    align: u64,
}

#[derive(Default, IntoBytes, Immutable)]
#[repr(C)]
struct SectionHeader {
    name: u32,
    kind: u32,
    flags: u64,
    addr: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    align: u64,
    entsize: u64,
}

/// Writes the core of `mm`.
pub(super) fn write(
    mut out: Output,
    mm: &AddressSpace,
    segments: &[Segment],
    notes: &Notes<'_>,
) -> Result<()> {
    let mut notes_len = 0;
    notes.write(&mut |bytes| {
        notes_len += bytes.len() as u64;
        Ok(())
    })?;
    let count = segments.len().checked_add(1).ok_or(Errno::EFBIG)?;
    let notes_at = (size_of::<Header>() + count * size_of::<ProgramHeader>()) as u64;
    let data_at = notes_at.saturating_add(notes_len).next_multiple_of(PAGE);
    let data_len = segments.iter().try_fold(0u64, |sum, segment| sum.checked_add(segment.size));
    let data_end = data_len.and_then(|len| len.checked_add(data_at)).ok_or(Errno::EFBIG)?;
    let is_many = count >= usize::from(PN_XNUM);
    out.put(header(count, is_many.then_some(data_end)).as_bytes())?;
    out.put(
        ProgramHeader {
            kind: PT_NOTE,
            flags: 0,
            offset: notes_at,
            vaddr: 0,
            paddr: 0,
            filesz: notes_len,
            memsz: 0,
            align: 4,
        }
        .as_bytes(),
    )?;
    let mut offset = data_at;
    for segment in segments.iter().paced() {
        out.put(program_header(segment, offset).as_bytes())?;
        offset += segment.size;
    }
    notes.write(&mut |bytes| out.put(bytes))?;
    out.skip(data_at - out.pos());
    for segment in segments.iter().paced() {
        memory(&mut out, mm, segment)?;
    }
    if is_many {
        let counts = SectionHeader {
            size: 1,
            link: 0,
            info: u32::try_from(count).map_err(|_| Errno::EFBIG)?,
            ..SectionHeader::default()
        };
        out.put(counts.as_bytes())?;
    }
    out.finish()
}

/// The header for so many program headers; the section header that says how many stands at `sections`, if there is one.
fn header(count: usize, sections: Option<u64>) -> Header {
    let mut ident = [0; 16];
    // 64 bits, little-endian, version 1, System V.
    ident[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    Header {
        ident,
        kind: ET_CORE,
        machine: EM_X86_64,
        version: 1,
        entry: 0,
        phoff: size_of::<Header>() as u64,
        shoff: sections.unwrap_or(0),
        flags: 0,
        ehsize: size_of::<Header>() as u16,
        phentsize: size_of::<ProgramHeader>() as u16,
        phnum: if sections.is_some() { PN_XNUM } else { count as u16 },
        shentsize: if sections.is_some() { size_of::<SectionHeader>() as u16 } else { 0 },
        shnum: u16::from(sections.is_some()),
        shstrndx: 0,
    }
}

fn program_header(segment: &Segment, offset: u64) -> ProgramHeader {
    let mapping = &segment.mapping;
    let mut flags = 0;
    for (right, bit) in [(VmFlags::READ, 4), (VmFlags::WRITE, 2), (VmFlags::EXEC, 1)] {
        if mapping.flags.contains(right) {
            flags |= bit;
        }
    }
    ProgramHeader {
        kind: PT_LOAD,
        flags,
        offset,
        vaddr: mapping.range.start,
        paddr: 0,
        filesz: segment.size,
        memsz: mapping.range.end - mapping.range.start,
        align: PAGE,
    }
}

/// What the core has of one mapping.
fn memory(out: &mut Output, mm: &AddressSpace, segment: &Segment) -> Result<()> {
    let mut at = segment.mapping.range.start;
    let end = at + segment.size;
    let mut page = [0; PAGE_SIZE];
    while at < end {
        killable()?;
        let Some(next) = mm.next_core_page(at, end) else { break };
        out.skip(next - at);
        // One that cannot be read, or is gone by now, is a hole.
        if mm.read_bytes(next, &mut page) == PAGE_SIZE {
            out.put(&page)?;
        } else {
            out.skip(PAGE);
        }
        at = next + PAGE;
    }
    out.skip(end - at);
    Ok(())
}
