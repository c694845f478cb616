//! [`Plan`]: what to map, where the interpreter's name is, and what the program is told.

use crate::Error;
use crate::header::{Header, Kind, PHDR_LEN};
use crate::segment::{PAGE_SIZE, Segment, SegmentFlags};
use arrayvec::ArrayVec;
use elf::abi;
use elf::endian::LittleEndian;
use elf::file::Class;
use elf::parse::ParseAt;
use elf::segment::ProgramHeader;

/// Most loadable segments of a plan; toolchains make four to eight.
pub const MAX_LOADS: usize = 16;
/// Longest interpreter path, NUL included.
const MAX_INTERP: u64 = 4096;

/// What to do to load a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub kind: Kind,
    /// Relative to where the image is placed.
    pub entry: u64,
    pub loads: ArrayVec<Segment, MAX_LOADS>,
    /// Offset and length in the file of the interpreter's path, its NUL included.
    pub interp: Option<(u64, u64)>,
    /// Address of the program headers in memory, 0 if no segment holds them.
    pub phdrs: u64,
    pub phdr_count: u16,
    /// The program asks for an executable stack.
    pub exec_stack: bool,
    /// Greatest alignment that a segment asks for, at least a page.
    pub align: u64,
}

impl Plan {
    /// Makes a plan from the header and the program headers' bytes. `limit` is the end of user space.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn new(header: &Header, phdrs: &[u8], limit: u64) -> Result<Self, Error> {
        if phdrs.len() < header.phdrs_len() {
            return Err(Error::NotExecutable);
        }
        let mut plan = Self {
            kind: header.kind,
            entry: header.entry,
            loads: ArrayVec::new(),
            interp: None,
            phdrs: 0,
            phdr_count: header.phdr_count,
            exec_stack: false,
            align: PAGE_SIZE,
        };
        let mut bad = None;
        for at in 0..usize::from(header.phdr_count) {
            let mut offset = at * PHDR_LEN;
            let parsed = ProgramHeader::parse_at(LittleEndian, Class::ELF64, &mut offset, phdrs);
            let phdr = parsed.map_err(|_| Error::NotExecutable)?;
            // A bad segment is found only after the interpreter, which has errors of its own.
            match plan.add(&phdr, limit) {
                Err(Error::BadLayout) => bad = Some(Error::BadLayout),
                other => other?,
            }
            plan.note_phdrs(header, &phdr);
        }
        match bad {
            Some(error) => Err(error),
            None => plan.check(limit),
        }
    }

    fn add(&mut self, phdr: &ProgramHeader, limit: u64) -> Result<(), Error> {
        match phdr.p_type {
            abi::PT_LOAD => {
                let segment = checked_segment(phdr, limit)?;
                if phdr.p_align.is_power_of_two() {
                    self.align = self.align.max(phdr.p_align);
                }
                self.loads.try_push(segment).map_err(|_| Error::BadLayout)
            }
            abi::PT_INTERP if self.interp.is_none() => {
                if phdr.p_filesz < 2 || phdr.p_filesz > MAX_INTERP {
                    return Err(Error::NotExecutable);
                }
                self.interp = Some((phdr.p_offset, phdr.p_filesz));
                Ok(())
            }
            abi::PT_GNU_STACK => {
                self.exec_stack = phdr.p_flags & abi::PF_X != 0;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The headers' address is that of the segment that holds them.
    fn note_phdrs(&mut self, header: &Header, phdr: &ProgramHeader) {
        if phdr.p_type != abi::PT_LOAD || self.phdrs != 0 {
            return;
        }
        let into = header.phdrs_offset.checked_sub(phdr.p_offset);
        if let Some(into) = into.filter(|into| *into < phdr.p_filesz) {
            self.phdrs = phdr.p_vaddr.wrapping_add(into);
        }
    }

    fn check(self, limit: u64) -> Result<Self, Error> {
        if self.loads.is_empty() || self.extent() > limit {
            return Err(Error::BadLayout);
        }
        if self.kind == Kind::Fixed && self.entry >= limit {
            return Err(Error::BadLayout);
        }
        Ok(self)
    }

    /// The first page's address.
    #[inline]
    pub fn start(&self) -> u64 {
        self.loads.iter().map(Segment::start).min().unwrap_or(0)
    }

    /// Just beyond the last page.
    #[inline]
    pub fn end(&self) -> u64 {
        self.loads.iter().map(Segment::end).max().unwrap_or(0)
    }

    /// Bytes from the first page to the end of the last.
    #[inline]
    pub fn extent(&self) -> u64 {
        self.end().saturating_sub(self.start())
    }

    /// Just beyond the last byte, where the heap starts (before it is randomised).
    #[inline]
    pub fn break_start(&self) -> u64 {
        self.loads.iter().map(|s| s.vaddr + s.mem_size).max().unwrap_or(0)
    }

    /// Bounds of code and data as /proc/PID/stat shows them: start and end of code, start and end of data.
    #[inline]
    pub fn bounds(&self) -> [u64; 4] {
        let code = self.loads.iter().filter(|s| s.flags.exec());
        let start_code = code.clone().map(|s| s.vaddr).min().unwrap_or(0);
        let end_code = code.map(|s| s.vaddr + s.file_size).max().unwrap_or(0);
        let start_data = self.loads.iter().map(|s| s.vaddr).max().unwrap_or(0);
        let end_data = self.loads.iter().map(|s| s.vaddr + s.file_size).max().unwrap_or(0);
        [start_code, end_code, start_data, end_data]
    }
}

fn checked_segment(phdr: &ProgramHeader, limit: u64) -> Result<Segment, Error> {
    let fits = |start: u64, len: u64| {
        start.checked_add(len).and_then(|end| end.checked_add(PAGE_SIZE)).is_some()
    };
    let sane = phdr.p_filesz <= phdr.p_memsz
        && phdr.p_memsz <= limit
        && phdr.p_vaddr <= limit - phdr.p_memsz
        && phdr.p_vaddr < limit
        && phdr.p_vaddr % PAGE_SIZE == phdr.p_offset % PAGE_SIZE
        && fits(phdr.p_vaddr, phdr.p_memsz)
        && fits(phdr.p_offset, phdr.p_filesz);
    if !sane {
        return Err(Error::BadLayout);
    }
    Ok(Segment {
        vaddr: phdr.p_vaddr,
        offset: phdr.p_offset,
        file_size: phdr.p_filesz,
        mem_size: phdr.p_memsz,
        flags: SegmentFlags(phdr.p_flags),
    })
}
