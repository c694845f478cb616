//! One reading of a machine: at every stop all memory and all registers are searched for what was drawn and for keys.
//!
//! What is drawn rightly lies in the program's buffer and nowhere else; what is written to be mixed in, in the buffer
//! and in the pool. A key that can make what was drawn lies nowhere at all. A key that makes what is drawn next lies at
//! its home (the base's, the CPU's, the thread's state of the vDSO): a copy elsewhere would outlive it, but for
//! one in a function's own frame on another CPU, which the stop finds in the middle of making it. What devices gave to be
//! mixed in lies in the pool, and until the device writes the next answer there, in the buffer that it has for answers.
//!
//! Pages that are as they were before the program's first instruction hold nothing that was drawn since; so at
//! each stop only the others are searched, and all of them at the end, for all that was drawn.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use anyhow::{Result, ensure};

use super::keys::{Candidates, Words};
use super::machine::{Kind, PAGE, Residue, Standing};
use super::search::{Strings, WINDOW};

/// Something that should not be there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub interface: String,
    /// Bytes asked for.
    pub asked: usize,
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes: {}", self.interface, self.asked, self.what)
    }
}

/// What a reading gave.
#[derive(Default)]
pub struct Reading {
    pub stops: usize,
    /// Bytes drawn in all.
    pub drawn: usize,
    /// The most that was looked at as a key at one stop.
    pub candidates: usize,
    /// Words of RDSEED that went into keys.
    pub fresh: usize,
    /// Bytes that devices gave to be mixed in.
    pub given: usize,
    pub findings: BTreeSet<Finding>,
}

/// What goes from one stop to the next.
struct Searcher {
    baseline: Vec<u8>,
    touched: Vec<bool>,
    before: Candidates,
    /// Everything drawn so far.
    words: Words,
    all: Strings,
    reading: Reading,
}

/// What one boot of a reading is to be.
pub struct Boot<'a> {
    pub kernel: &'a Path,
    pub cpus: u32,
    /// All, if empty.
    pub interfaces: &'a [String],
    /// Its CPU, as QEMU names it, if it matters.
    pub cpu: Option<&'a str>,
    /// The number of the wipe that a kernel with switches leaves out.
    pub switch: Option<u32>,
}

/// The seed that the machine's maker hands over: known here, and so to be found if it stays.
const SEED: [u8; 32] = [
    0x6d, 0x1f, 0xe2, 0x93, 0x58, 0xc4, 0x07, 0xbb, 0x2a, 0xf6, 0x81, 0x3d, 0xd9, 0x60, 0x14, 0xae,
    0x75, 0xc8, 0x39, 0xf1, 0x0b, 0x96, 0x4e, 0xd3, 0xa7, 0x22, 0x5c, 0xeb, 0x38, 0x84, 0x1d, 0xf0,
];

/// Boots once and stops after each draw. `enough` findings end it.
pub fn read(boot: &Boot<'_>, enough: usize) -> Result<Reading> {
    let mut machine = Residue::boot(boot, &SEED)?;
    let baseline = machine.start()?;
    let mut seed = Strings::new();
    seed.add(&SEED);
    let touched = vec![false; baseline.len() / PAGE];
    let found = seed.find(&baseline);
    let (before, words, all) = (Candidates::default(), Words::default(), Strings::new());
    let mut searcher =
        Searcher { baseline, touched, before, words, all, reading: Reading::default() };
    if let Some(at) = found.first() {
        searcher.found(
            "boot_seed",
            SEED.len(),
            format!("the machine's seed is in memory, at {at:#x}"),
        );
    }
    loop {
        let standing = machine.next_stop()?;
        searcher.look(&standing);
        let ends = searcher.reading.findings.len() >= enough;
        if standing.kind == Kind::End || ends {
            ensure!(ends || searcher.reading.drawn > 0, "the program drew nothing");
            return Ok(searcher.reading);
        }
    }
}

impl Searcher {
    fn look(&mut self, standing: &Standing) {
        self.reading.stops += 1;
        for (page, touched) in self.touched.iter_mut().enumerate() {
            let range = page * PAGE..(page + 1) * PAGE;
            *touched |= standing.memory[range.clone()] != self.baseline[range];
        }
        if standing.kind == Kind::End {
            self.touched.fill(true);
        }
        self.strings(standing);
        self.fresh_words(standing);
        self.of_devices(standing);
        self.keys(standing);
    }

    /// Pages that may hold something new, and those behind them as far as a string may reach.
    fn pages(&self) -> impl Iterator<Item = usize> {
        self.touched.iter().enumerate().filter(|(_, touched)| **touched).map(|(page, _)| page)
    }

    fn strings(&mut self, standing: &Standing) {
        let mut own = Strings::new();
        let drawn = match standing.interface.as_str() {
            // Its text is a file's, and a name rather than a secret; what it was made of is searched for.
            "uuid" => uuid_bytes(&standing.bytes),
            _ => vec![standing.bytes.clone()],
        };
        drawn.iter().for_each(|bytes| own.add(bytes));
        self.reading.drawn += standing.bytes.len();
        // A program that has ended leaves its stack as it was; frames are cleared before they are given out again.
        if standing.kind == Kind::Drawn && standing.interface != "at_random" {
            drawn.iter().for_each(|bytes| self.all.add(bytes));
        }
        let strings = if standing.kind == Kind::End { &self.all } else { &own };
        let mut right = standing.place.clone();
        if standing.kind == Kind::Written {
            right.extend(standing.pool.clone());
        }
        let mut found = self.everywhere(standing, strings);
        found.retain(|at| !touches(&right, *at));
        if let Some(at) = found.first() {
            let what = format!("its bytes are in memory {} times, first at {at:#x}", found.len());
            self.found(&standing.interface, standing.asked, what);
        }
        let strings = if standing.kind == Kind::End { &self.all } else { &own };
        let mut registers = registers_with(standing, strings);
        registers.retain(|name| !is_programs(standing, name));
        if !registers.is_empty() {
            let what = format!("its bytes are in {}", registers.join(", "));
            self.found(&standing.interface, standing.asked, what);
        }
    }

    /// Where any of the strings lies.
    fn everywhere(&self, standing: &Standing, strings: &Strings) -> Vec<usize> {
        self.in_pages(self.pages(), standing, strings)
    }

    fn in_pages(
        &self,
        pages: impl Iterator<Item = usize>,
        standing: &Standing,
        strings: &Strings,
    ) -> Vec<usize> {
        let mut found = Vec::new();
        for page in pages {
            let memory =
                &standing.memory[page * PAGE..standing.memory.len().min((page + 1) * PAGE + 7)];
            if memory.iter().any(|byte| *byte != 0) {
                found.extend(strings.find(memory).into_iter().map(|at| page * PAGE + at));
            }
        }
        found
    }

    /// With them, who had known the pool before a reseed knows the key after it.
    fn fresh_words(&mut self, standing: &Standing) {
        let mut strings = Strings::new();
        strings.add(&standing.fresh);
        self.reading.fresh += standing.fresh.len() / 8;
        let found = self.everywhere(standing, &strings);
        let registers = registers_with(standing, &strings);
        if !found.is_empty() || !registers.is_empty() {
            let what = format!("words of RDSEED are in memory, {found:x?}, and in {registers:?}");
            self.found(&standing.interface, standing.asked, what);
        }
    }

    /// What was taken before the program's first instruction is looked for everywhere.
    fn of_devices(&mut self, standing: &Standing) {
        for (device, bytes) in &standing.given {
            self.reading.given += bytes.len();
            let mut strings = Strings::new();
            strings.add(bytes);
            let mut found = match self.reading.stops {
                1 => self.in_pages(0..self.touched.len(), standing, &strings),
                _ => self.everywhere(standing, &strings),
            };
            found.retain(|at| !touches(&standing.pool, *at));
            let buffers = answers(&found);
            found.retain(|at| !touches(&buffers, *at) && !touches(&standing.busy, *at));
            // Another CPU may be in the middle of a reseed.
            let own = format!(" of CPU {}", standing.cpu);
            let mut registers = registers_with(standing, &strings);
            registers.retain(|name| name.ends_with(&own));
            if !found.is_empty() || !registers.is_empty() {
                let (first, last) = (found.first(), found.last());
                let what = format!(
                    "bytes of {device} are in memory {} times, from {first:x?} to {last:x?}, and in {registers:?}",
                    found.len()
                );
                self.found(&standing.interface, standing.asked, what);
            }
        }
    }

    fn keys(&mut self, standing: &Standing) {
        let mut now = Words::default();
        if standing.kind == Kind::Drawn && standing.interface != "uuid" {
            now.add(&standing.bytes);
            self.words.add(&standing.bytes);
        }
        let mut own = Strings::new();
        if standing.key.iter().any(|byte| *byte != 0) {
            own.add(&standing.key);
        }
        let registers = registers_with(standing, &own);
        if !registers.is_empty() {
            let what = format!("the key of the vDSO's state is in {}", registers.join(", "));
            self.found(&standing.interface, standing.asked, what);
        }
        let copies = self.before.that_make(&now);
        if let Some(at) = copies.first() {
            let what = format!("before it, a copy of the key lay at {at:#x}");
            self.found(&standing.interface, standing.asked, what);
        }
        let mut before = std::mem::take(&mut self.before);
        let page = |page: usize| (page * PAGE, &standing.memory[page * PAGE..(page + 1) * PAGE]);
        let right = [standing.place.as_slice(), &standing.busy].concat();
        let everywhere = Candidates::of(self.pages().map(page), &right, &mut before);
        let left = everywhere.that_make(&self.words);
        self.reading.candidates = self.reading.candidates.max(everywhere.count());
        if let Some(at) = left.first() {
            let what = format!("a key of what was drawn is in memory, at {at:#x}");
            self.found(&standing.interface, standing.asked, what);
        }
        self.before = everywhere.without(&standing.homes);
    }

    fn found(&mut self, interface: &str, asked: usize, what: String) {
        self.reading.findings.insert(Finding { interface: interface.into(), asked, what });
    }
}

/// Where a whole answer lies at the beginning of a page, which is how the buffer of a device is made and nothing else.
fn answers(found: &[usize]) -> Vec<Range<usize>> {
    const ANSWER: usize = 1024;
    let windows = ANSWER - WINDOW + 1;
    let is_whole =
        |run: &&[usize]| run[0].is_multiple_of(PAGE) && run[windows - 1] == run[0] + windows - 1;
    found.windows(windows).filter(is_whole).map(|run| run[0]..run[0] + ANSWER).collect()
}

/// The names of the registers that hold one of the strings.
fn registers_with<'a>(standing: &'a Standing, strings: &Strings) -> Vec<&'a str> {
    let registers = standing.registers.iter();
    let found = registers.filter(|(_, bytes)| !strings.find(bytes).is_empty());
    found.map(|(name, _)| name.as_str()).collect()
}

/// Registers that any function of the program itself, as the vDSO's is, may leave anything in: they are
/// the program's, as its buffer is. The vector registers are not among them, but where
/// the program has put the bytes there.
fn is_programs(standing: &Standing, name: &str) -> bool {
    if standing.kind == Kind::Held {
        const HELD: [&str; 7] = ["xmm", "ymm", "rbx", "r12", "r13", "r14", "r15"];
        return HELD.iter().any(|register| name.starts_with(register));
    }
    const SCRATCH: [&str; 9] = ["rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"];
    let its = |register: &&str| name == format!("{register} of CPU {}", standing.cpu);
    standing.interface.ends_with("vdso") && SCRATCH.iter().any(its)
}

/// Whether a find at `at` has bytes in one of the ranges. One that begins before its range is a neighbour's byte that chance
/// has made the one drawn before: once in 256 page borders.
fn touches(ranges: &[Range<usize>], at: usize) -> bool {
    ranges.iter().any(|range| range.start < at + WINDOW && at < range.end)
}

/// The bytes that a UUID was made of: six bits of them are not in its text.
fn uuid_bytes(text: &[u8]) -> Vec<Vec<u8>> {
    let digits: Vec<u32> = text.iter().filter_map(|byte| char::from(*byte).to_digit(16)).collect();
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| (pair[0] << 4 | pair[pair.len() - 1]) as u8).collect();
    if bytes.len() != 16 {
        return Vec::new();
    }
    let variant = |bits: u8| {
        let mut bytes = bytes.clone();
        bytes[6] = bytes[6] & 0x0f | bits << 4;
        bytes[8] = bytes[8] & 0x3f | bits << 6;
        bytes
    };
    (0..16).map(variant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_answer_at_the_beginning_of_a_page_is_a_devices() {
        let whole: Vec<usize> = (8192..8192 + 1017).collect();
        assert_eq!(answers(&whole).first(), Some(&(8192..8192 + 1024)));
        assert!(answers(&whole[..1016]).is_empty(), "it is not whole");
        let elsewhere: Vec<usize> = whole.iter().map(|at| at + 16).collect();
        assert!(answers(&elsewhere).is_empty());
    }

    #[test]
    fn a_find_that_reaches_into_the_programs_buffer_is_none() {
        let ranges = [4096..8192, 12_288..16_384];
        for (at, is_none) in
            [(4088, false), (4089, true), (4096, true), (8191, true), (8192, false)]
        {
            assert_eq!(touches(&ranges, at), is_none, "{at}");
        }
    }
}
