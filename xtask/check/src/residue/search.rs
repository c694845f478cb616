//! A search for many short strings in memory at once.

use std::collections::HashSet;

/// Bytes in a row that count as a find: chance makes 64 MiB contain one of a thousand such strings once in 2^28 times.
pub const WINDOW: usize = 8;

/// Every window of what was drawn; of a last word of seven bytes those, too, because it lies in memory beside a byte
/// that nobody was given. Shorter ends are not looked for: chance would find them everywhere.
#[derive(Default)]
pub struct Strings {
    starts: Vec<bool>,
    windows: HashSet<[u8; WINDOW]>,
    ends: HashSet<[u8; WINDOW - 1]>,
}

impl Strings {
    /// No strings yet.
    pub fn new() -> Self {
        Self { starts: vec![false; 1 << 16], ..Self::default() }
    }

    /// Adds the windows of `drawn`.
    pub fn add(&mut self, drawn: &[u8]) {
        for window in drawn.windows(WINDOW).filter_map(<[u8]>::first_chunk) {
            self.starts[start(window)] = true;
            self.windows.insert(*window);
        }
        let (_, rest) = drawn.as_chunks::<WINDOW>();
        if let Ok(end) = <[u8; WINDOW - 1]>::try_from(rest) {
            self.starts[start(&end)] = true;
            self.ends.insert(end);
        }
    }

    /// Where any of the strings begins.
    pub fn find(&self, memory: &[u8]) -> Vec<usize> {
        let mut found = Vec::new();
        for at in 0..memory.len().saturating_sub(WINDOW - 2) {
            let rest = &memory[at..];
            if !self.starts[start(rest)] {
                continue;
            }
            let whole = rest.first_chunk().is_some_and(|window| self.windows.contains(window));
            if whole || rest.first_chunk().is_some_and(|end| self.ends.contains(end)) {
                found.push(at);
            }
        }
        found
    }
}

fn start(bytes: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_and_ends_of_seven_bytes_are_found() {
        let drawn: Vec<u8> = (1..=23).collect();
        let mut strings = Strings::new();
        strings.add(&drawn);
        let mut memory = vec![0; 100];
        memory[40..48].copy_from_slice(&drawn[3..11]);
        memory[60..67].copy_from_slice(&drawn[16..]);
        memory[80..87].copy_from_slice(&drawn[..7]);
        assert_eq!(strings.find(&memory), [40, 60]);
        assert!(strings.find(&[]).is_empty() && strings.find(&memory[..46]).is_empty());
    }
}
