//! The block at the start of a new program's stack: the number of arguments, pointers to the strings, the auxiliary
//! vector, and what those point to that is no string of the caller's.

/// Entries of the auxiliary vector, the last one included.
pub(super) const AUX_ENTRIES: usize = 24;
/// Where in the block the first string pointer is: behind the number of arguments.
pub(super) const FIRST_POINTER: usize = 8;
/// Random bytes and the platform's name lie between the pointers and the strings.
pub(super) const RANDOM_LEN: usize = 16;

/// The auxiliary vector.
pub(super) type Auxv = [[u64; 2]; AUX_ENTRIES];

/// Bytes of the block for so many strings: a multiple of 16.
pub(super) const fn len(argc: usize, envc: usize) -> usize {
    extras_at(argc, envc) + RANDOM_LEN + 16
}

/// Where in the block the random bytes lie; the platform's name follows.
pub(super) const fn extras_at(argc: usize, envc: usize) -> usize {
    let words = 1 + argc + 1 + envc + 1 + 2 * AUX_ENTRIES;
    words.div_ceil(2) * 16
}
