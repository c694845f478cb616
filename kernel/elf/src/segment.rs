//! One loadable segment, in pages and bytes.

/// Bytes in a page.
pub const PAGE_SIZE: u64 = 4096;
const PAGE_MASK: u64 = PAGE_SIZE - 1;

/// What a segment allows; equal to the ELF bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFlags(pub u32);

impl SegmentFlags {
    pub const EXEC: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const READ: u32 = 4;

    #[inline]
    pub const fn exec(self) -> bool {
        self.0 & Self::EXEC != 0
    }
    #[inline]
    pub const fn write(self) -> bool {
        self.0 & Self::WRITE != 0
    }
    #[inline]
    pub const fn read(self) -> bool {
        self.0 & Self::READ != 0
    }
}

/// A loadable segment. Its fields have been checked: no sum below overflows, and the file offset and the
/// address agree within a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub vaddr: u64,
    pub offset: u64,
    pub file_size: u64,
    pub mem_size: u64,
    pub flags: SegmentFlags,
}

impl Segment {
    /// The first page's address.
    #[inline]
    pub const fn start(&self) -> u64 {
        self.vaddr & !PAGE_MASK
    }

    /// The file offset of the first page.
    #[inline]
    pub const fn file_start(&self) -> u64 {
        self.offset & !PAGE_MASK
    }

    /// Just beyond the last page that the file fills, wholly or in part.
    #[inline]
    pub const fn file_end(&self) -> u64 {
        if self.file_size == 0 { self.start() } else { page_up(self.vaddr + self.file_size) }
    }

    /// Just beyond the last page.
    #[inline]
    pub const fn end(&self) -> u64 {
        page_up(self.vaddr + self.mem_size)
    }

    /// The bytes after the file's in its last page, which must read as zeros: address and length.
    #[inline]
    pub const fn tail(&self) -> (u64, u64) {
        let at = self.vaddr + self.file_size;
        if self.mem_size > self.file_size && self.file_size != 0 && at & PAGE_MASK != 0 {
            (at, PAGE_SIZE - (at & PAGE_MASK))
        } else {
            (at, 0)
        }
    }
}

/// Checked by the maker of every segment: the sum stays below the end of user space.
#[inline]
const fn page_up(addr: u64) -> u64 {
    (addr + PAGE_MASK) & !PAGE_MASK
}
