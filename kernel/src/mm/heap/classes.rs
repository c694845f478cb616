//! Which object sizes there are.

use core::alloc::Layout;

/// Object sizes, all multiples of 16.
pub const SIZES: [u16; 21] = [
    16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 672, 816, 1024, 1360,
    2048,
];
/// The largest size that is not a block of frames.
pub const MAX: usize = 2048;

/// An index into [`SIZES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(u8);

impl Class {
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The class at an index of [`SIZES`].
    pub fn nth(index: usize) -> Option<Self> {
        (index < SIZES.len()).then_some(Self(index as u8))
    }

    /// Bytes in an object.
    #[inline]
    pub fn size(self) -> usize {
        SIZES[self.index()] as usize
    }
}

/// The class for each multiple of 16 bytes, rounded up.
const TABLE: [u8; MAX / 16 + 1] = {
    let mut table = [0; MAX / 16 + 1];
    let mut n = 0;
    while n < table.len() {
        let mut class = 0;
        while (SIZES[class] as usize) < n * 16 {
            class += 1;
        }
        table[n] = class as u8;
        n += 1;
    }
    table
};

/// The class that serves `layout`; `None` for a block of frames.
#[inline]
pub fn class_of(layout: Layout) -> Option<Class> {
    // Objects lie at multiples of their size from the start of a page, so a power of two is aligned to
    // itself and every size to 16.
    let size = if layout.align() <= 16 {
        layout.size()
    } else {
        layout.size().max(layout.align()).checked_next_power_of_two()?
    };
    TABLE.get(size.checked_add(15)? / 16).map(|&class| Class(class))
}
