//! [`Row`]: numbers in columns, for texts of thousands of lines. `core::fmt` takes about 150 instructions for a number.
//!
//! Owns the bytes of one line. Never longer than its type says. No locks.
#![forbid(unsafe_code)]

/// The numbers from 0 to 99, as two digits each.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

/// The beginning of a line, of at most `N` bytes: what does not fit is left out, and a debug build panics.
pub struct Row<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Row<N> {
    /// An empty one.
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    /// What is there.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    #[inline]
    fn room(&mut self, len: usize) -> &mut [u8] {
        let end = self.len.saturating_add(len);
        debug_assert!(end <= N, "a row that is too short");
        let room = self.bytes.get_mut(self.len..end).unwrap_or_default();
        self.len = self.len.saturating_add(room.len());
        room
    }

    /// Adds bytes as they are.
    #[inline]
    pub fn put<const LEN: usize>(&mut self, text: [u8; LEN]) {
        if let Ok(room) = self.room(LEN).try_into() {
            let room: &mut [u8; LEN] = room;
            *room = text;
        }
    }

    /// Adds bytes as they are, of a length that nobody knows before.
    pub fn text(&mut self, text: &[u8]) {
        let room = self.room(text.len());
        let len = room.len();
        room.copy_from_slice(text.get(..len).unwrap_or_default());
    }

    /// Adds a number as at least `width` hexadecimal digits, at most 16. There must be room for 16, whatever the width.
    #[inline]
    pub fn hex(&mut self, value: u64, width: usize) {
        let digits = (64 - value.leading_zeros() as usize).div_ceil(4).max(width).min(16);
        // The digits that are wanted come first, and what comes next overwrites the others.
        let start = self.len;
        self.put(hex_digits(value.checked_shl(64 - 4 * digits as u32).unwrap_or_default()));
        self.len = self.len.min(start.saturating_add(digits));
    }

    /// Adds a decimal number with its sign, if it is negative.
    pub fn signed(&mut self, value: i64) {
        if value < 0 {
            self.put(*b"-");
        }
        self.decimal(value.unsigned_abs(), 0);
    }

    /// Adds a decimal number at the right edge of a column of `width`, or as wide as it is.
    #[inline]
    pub fn decimal(&mut self, mut value: u64, width: usize) {
        let digits = value.checked_ilog10().map_or(1, |log| log as usize + 1);
        let room = self.room(digits.max(width));
        let (blanks, room) = room.split_at_mut(room.len().saturating_sub(digits));
        if !blanks.is_empty() {
            blanks.fill(b' ');
        }
        for places in room.rchunks_mut(2) {
            let two = PAIRS[(value % 100) as usize];
            value /= 100;
            match places {
                [tens, ones] => [*tens, *ones] = two,
                [ones] => *ones = two[1],
                _ => {}
            }
        }
    }
}

/// All sixteen digits of a number, eight of them at a time: each gets a byte of a word, in which ten and more are told by
/// the carry that six more give them.
#[inline]
fn hex_digits(value: u64) -> [u8; 16] {
    let half = |value: u64| {
        let bytes = (value | value << 16) & 0x0000_ffff_0000_ffff;
        let bytes = (bytes | bytes << 8) & 0x00ff_00ff_00ff_00ff;
        let bytes = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
        let letters = (bytes + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
        let digits = bytes + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10);
        digits.to_be_bytes()
    };
    let mut all = [0; 16];
    all[..8].copy_from_slice(&half(value >> 32));
    all[8..].copy_from_slice(&half(value & 0xffff_ffff));
    all
}
