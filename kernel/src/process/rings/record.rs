//! The form of the records: 64-bit words, the first of which tells kind, CPU, length and task. docs/using.md describes them.

/// What a record says; the number in the lowest byte of its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// The time of the read, the counter's frequency: first of what each read gives.
    Now = 1,
    /// How many records there was no room for, on the CPU, since the one before.
    Lost = 2,
    /// number, six arguments, what they point to.
    Enter = 3,
    /// number, result, what the arguments point to.
    Leave = 4,
    /// next task, whether the one before waits.
    Switch = 5,
    /// task, CPU.
    Wakeup = 6,
    /// address, instruction, code, start.
    Fault = 7,
    /// start, ticks, name.
    Phase = 8,
    /// bytes, name.
    Draw = 9,
    /// name.
    Reseed = 10,
    /// start, name.
    Lock = 11,
    /// task, process.
    Fork = 12,
    /// the number it had before, name.
    Exec = 13,
    /// status.
    Exit = 14,
    /// The task is traced no more: it runs a program that the session's owner may not look into.
    Left = 15,
    /// start, number, result, six arguments: a call that never waits, and is told of when it has ended.
    Call = 16,
}

/// Words of the longest record.
pub(super) const MAX_WORDS: usize = 128;

/// Words of the head: what it is, when it was.
pub(super) const HEAD: usize = 2;

/// The first word.
#[inline(always)]
pub(super) fn first(kind: Kind, cpu: usize, words: usize, tid: i32) -> u64 {
    kind as u64
        | (cpu as u64 & 0xff) << 8
        | (words as u64) << 16
        | u64::from(tid.cast_unsigned()) << 32
}

/// How many words a record has whose first word this is.
#[inline]
pub(super) const fn len(first: u64) -> usize {
    (first >> 16 & 0xffff) as usize
}

/// A short text in words, its end filled with NULs: at most 23 bytes.
pub(super) fn name(text: &[u8]) -> [u64; 3] {
    let mut bytes = [0; 24];
    bytes.iter_mut().zip(text.iter().take(23)).for_each(|(to, from)| *to = *from);
    let (words, _) = bytes.as_chunks::<8>();
    [0, 1, 2].map(|at: usize| u64::from_le_bytes(words[at]))
}
