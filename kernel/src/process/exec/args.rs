//! The strings of a new program, copied once: from user memory straight into the pages of its stack.
//!
//! The pages hold, in ascending order, an unused part whose length is drawn, room for the block of pointers and numbers, then
//! argument strings, environment strings and the file's name: the order that Linux leaves them in.

use super::block;
use crate::base::PAGE_SIZE;
use crate::mm::fallible::TryGrow;
use crate::mm::{PageBuf, user};
use crate::process::task::current::Current;
use crate::process::task::limits::Resource;
use crate::sync::{Pace, cond_resched, killable};
use abi::{Errno, Result};
use alloc::vec::Vec;
use smallvec::SmallVec;

/// Linux's limits: of one string with its NUL, and of all strings and pointers at least and at most.
const MAX_STRING: usize = 128 * 1024;
const MIN_TOTAL: u64 = 128 * 1024;
const MAX_TOTAL: u64 = 6 << 20;

/// A list of strings: the caller's memory, or the kernel's for the first program.
pub trait Strings {
    /// How many there are; `EFAULT`, or `E2BIG` beyond `max`.
    fn count(&self, max: usize) -> Result<usize>;
    /// Appends string number `at`, with its NUL, to the area.
    fn append(&self, at: usize, area: &mut StringWriter<'_>) -> Result<()>;
}

/// A NULL-terminated array of string pointers in user memory; NULL for the array means none.
pub struct UserStrings(pub u64);

impl Strings for UserStrings {
    fn count(&self, max: usize) -> Result<usize> {
        if self.0 == 0 {
            return Ok(0);
        }
        let mut batch = [0u8; 256];
        let mut count = 0usize;
        loop {
            let at = self.0.wrapping_add(count as u64 * 8);
            let got = user::read_partial(at, &mut batch) / 8;
            let null = batch.chunks_exact(8).take(got).position(|p| p.iter().all(|&b| b == 0));
            count += null.unwrap_or(got);
            if count > max {
                return Err(Errno::E2BIG);
            }
            match null {
                Some(_) => return Ok(count),
                None if got < batch.len() / 8 => return Err(Errno::EFAULT),
                None if killed() => return Err(Errno::ERESTARTNOINTR),
                None => {}
            }
        }
    }

    fn append(&self, at: usize, area: &mut StringWriter<'_>) -> Result<()> {
        let mut pointer = [0; 8];
        user::read_bytes(self.0.wrapping_add(at as u64 * 8), &mut pointer)?;
        area.user_string(u64::from_le_bytes(pointer))
    }
}

impl Strings for [&[u8]] {
    fn count(&self, _max: usize) -> Result<usize> {
        Ok(self.len())
    }

    fn append(&self, at: usize, area: &mut StringWriter<'_>) -> Result<()> {
        area.string(self[at])
    }
}

impl Strings for &[&[u8]] {
    fn count(&self, max: usize) -> Result<usize> {
        (**self).count(max)
    }

    fn append(&self, at: usize, area: &mut StringWriter<'_>) -> Result<()> {
        (**self).append(at, area)
    }
}

/// The pages of a new stack's top.
pub(super) struct ArgArea {
    pages: SmallVec<[PageBuf; 2]>,
    /// Bytes written, what comes before the strings included.
    len: usize,
    /// Where the block begins: a multiple of 16, in the first page.
    pub(super) block: usize,
    pub(super) argc: usize,
    pub(super) envc: usize,
    /// Where each kind of string starts: arguments, environment, file name.
    pub(super) starts: [usize; 3],
    /// Where the block's next pointer goes.
    pointer: usize,
    caller_argc: usize,
    /// Bytes that strings may still take.
    left: usize,
}

impl ArgArea {
    /// Counts the strings and reserves their pointers; `EFAULT`, `E2BIG`.
    pub(super) fn new(task: Current, argv: &dyn Strings, envp: &dyn Strings) -> Result<Self> {
        let stack_limit = task.process().limits().soft(Resource::Stack);
        let limit = (stack_limit / 4).clamp(MIN_TOTAL, MAX_TOTAL) as usize;
        let argc = argv.count(limit / 8)?;
        let envc = envp.count(limit / 8)?;
        let pointers = (argc.max(1) + envc) * 8;
        if limit <= pointers {
            return Err(Errno::E2BIG);
        }
        Ok(Self {
            pages: SmallVec::new(),
            len: 0,
            block: 0,
            argc,
            envc,
            starts: [0; 3],
            pointer: 0,
            caller_argc: argc,
            left: limit - pointers,
        })
    }

    /// Copies the strings behind a block that begins at `block`. A script's words replace the first argument.
    pub(super) fn fill(
        &mut self,
        block: usize,
        argv: &dyn Strings,
        envp: &dyn Strings,
        script: Option<&Vec<Vec<u8>>>,
        name: &[u8],
    ) -> Result<()> {
        let skip = usize::from(script.is_some()).min(self.caller_argc);
        let words = script.map_or(0, Vec::len);
        // A program always finds at least one argument.
        let empty = usize::from(words == 0 && self.caller_argc == 0);
        self.argc = words + empty + (self.caller_argc - skip);
        self.block = block;
        self.len = block + block::len(self.argc, self.envc);
        for _ in (0..self.len.div_ceil(PAGE_SIZE)).paced() {
            self.pages.try_push(PageBuf::alloc()?)?;
        }
        self.starts[0] = self.len;
        self.pointer = block + block::FIRST_POINTER;
        let mut writer = StringWriter { area: self };
        for word in script.into_iter().flatten() {
            writer.string(word)?;
        }
        if empty != 0 {
            writer.string(b"")?;
        }
        for at in (skip..writer.area.caller_argc).paced() {
            argv.append(at, &mut writer)?;
        }
        writer.area.starts[1] = writer.area.len;
        // A null pointer ends each list.
        writer.area.pointer += 8;
        for at in (0..writer.area.envc).paced() {
            envp.append(at, &mut writer)?;
        }
        writer.area.starts[2] = writer.area.len;
        writer.raw_string(name)
    }

    /// Appends bytes beside the strings.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<usize> {
        let at = self.len;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (page, off) = self.room()?;
            let n = rest.len().min(PAGE_SIZE - off);
            page[off..off + n].copy_from_slice(&rest[..n]);
            self.len += n;
            rest = &rest[n..];
        }
        Ok(at)
    }

    /// The page that the next byte goes to, and where in it.
    fn room(&mut self) -> Result<(&mut PageBuf, usize)> {
        let (page, off) = (self.len / PAGE_SIZE, self.len % PAGE_SIZE);
        if page == self.pages.len() {
            self.pages.try_push(PageBuf::alloc()?)?;
        }
        Ok((&mut self.pages[page], off))
    }

    /// How many pages there are.
    pub(super) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Stores a word of the block.
    pub(super) fn put_word(&mut self, at: usize, word: u64) {
        self.put_bytes(at, &word.to_le_bytes());
    }

    /// Stores eight bytes of the block, at a multiple of eight.
    pub(super) fn put_bytes(&mut self, at: usize, bytes: &[u8]) {
        // The block starts at a multiple of 16, so no word crosses into the next page.
        let (page, off) = (at / PAGE_SIZE, at % PAGE_SIZE);
        self.pages[page][off..off + 8].copy_from_slice(bytes);
    }

    /// Stores words of the block, from a multiple of eight on.
    pub(super) fn put_words(&mut self, at: usize, words: &[u64]) {
        let (mut at, mut left) = (at, words);
        while !left.is_empty() {
            let (page, off) = (at / PAGE_SIZE, at % PAGE_SIZE);
            let (here, later) = left.split_at(left.len().min((PAGE_SIZE - off) / 8));
            let places = &mut self.pages[page][off..off + here.len() * 8];
            for (place, word) in places.as_chunks_mut::<8>().0.iter_mut().zip(here) {
                *place = word.to_le_bytes();
            }
            at += here.len() * 8;
            left = later;
        }
    }

    /// Adds `base` to the pointers from `at` on, which hold places in the area until it is known.
    pub(super) fn move_pointers(&mut self, at: usize, count: usize, base: u64) {
        let mut at = at;
        let mut left = count;
        while left > 0 {
            cond_resched();
            let (page, off) = (at / PAGE_SIZE, at % PAGE_SIZE);
            let here = left.min((PAGE_SIZE - off) / 8);
            let words = &mut self.pages[page][off..off + here * 8];
            for word in words.as_chunks_mut::<8>().0 {
                *word = u64::from_le_bytes(*word).wrapping_add(base).to_le_bytes();
            }
            at += here * 8;
            left -= here;
        }
    }

    /// The next string begins here: notes it in the block.
    fn note_string(&mut self) {
        self.put_word(self.pointer, self.len as u64);
        self.pointer += 8;
    }

    /// The pages, lowest first.
    pub(super) fn into_pages(self) -> SmallVec<[PageBuf; 2]> {
        self.pages
    }
}

/// Appends strings to an [`ArgArea`].
pub struct StringWriter<'a> {
    area: &'a mut ArgArea,
}

impl StringWriter<'_> {
    fn charge(&mut self, bytes: usize) -> Result<()> {
        self.area.left = self.area.left.checked_sub(bytes).ok_or(Errno::E2BIG)?;
        Ok(())
    }

    /// A string of the kernel's, without its NUL.
    fn string(&mut self, text: &[u8]) -> Result<()> {
        self.area.note_string();
        self.raw_string(text)
    }

    /// The same, in no list.
    fn raw_string(&mut self, text: &[u8]) -> Result<()> {
        self.charge(text.len() + 1)?;
        self.area.push(text)?;
        self.area.push(&[0])?;
        Ok(())
    }

    /// A string in user memory.
    fn user_string(&mut self, addr: u64) -> Result<()> {
        self.area.note_string();
        let mut done = 0usize;
        loop {
            let (page, off) = self.area.room()?;
            let found = user::read_cstr_into(addr.wrapping_add(done as u64), &mut page[off..])?;
            let n = found.map_or(PAGE_SIZE - off, |len| len + 1);
            self.area.len += n;
            done += n;
            if done > MAX_STRING {
                return Err(Errno::E2BIG);
            }
            self.charge(n)?;
            if found.is_some() {
                return Ok(());
            }
            if killed() {
                return Err(Errno::ERESTARTNOINTR);
            }
        }
    }
}

/// Between two rounds of a loop over user memory; whether it gives up, because the task has been told to die.
fn killed() -> bool {
    killable().is_err()
}
