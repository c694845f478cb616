//! /sys/kernel/mm/transparent_hugepage: for which mappings large pages are wanted, and how khugepaged works.
//!
//! Owns nothing. Never takes a word that it does not obey: what is fixed here cannot be written. Locks: none.
#![forbid(unsafe_code)]

use super::procfs::{Fixed, ProcFile, Text, number};
use super::sysfs::register_file;
use crate::base::page::LARGE_PAGE_SIZE;
use crate::base::setting::Setting;
use crate::mm::collapse;
use crate::mm::fallible::{TryString, try_arc};
use crate::mm::huge::{self, Wanted};
use crate::try_format;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Linux's words, in the order in which the file shows them.
const WORDS: [(Wanted, &str); 3] =
    [(Wanted::Always, "always"), (Wanted::Madvise, "madvise"), (Wanted::Never, "never")];

/// What a word of the file or of the command line wants.
pub fn parse(word: &str) -> Option<Wanted> {
    WORDS.iter().find(|(_, name)| *name == word).map(|(wanted, _)| *wanted)
}

struct Enabled;

impl ProcFile for Enabled {
    fn read(&self) -> Result<Vec<u8>> {
        let (now, mut text) = (huge::wanted(), String::new());
        for (n, (wanted, name)) in WORDS.iter().enumerate() {
            let (open, close) = if *wanted == now { ("[", "]") } else { ("", "") };
            let end = if n + 1 < WORDS.len() { " " } else { "\n" };
            for part in [open, name, close, end] {
                text.try_push_str(part)?;
            }
        }
        Ok(text.into_bytes())
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        let word = data.strip_suffix(b"\n").unwrap_or(data);
        let wanted = core::str::from_utf8(word).ok().and_then(parse).ok_or(Errno::EINVAL)?;
        huge::set_wanted(wanted);
        Ok(data.len())
    }
}

/// A setting of the thread that puts memory into large pages.
struct Number(&'static dyn Setting);

impl ProcFile for Number {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", self.0.shown()).map(String::into_bytes)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        let value = number(data);
        if !value.is_some_and(|value| self.0.set(value)) {
            return Err(Errno::EINVAL);
        }
        huge::CHANGED.wake_all();
        Ok(data.len())
    }
}

fn pages_collapsed() -> Result<String> {
    try_format!("{}\n", collapse::counts().0)
}

fn full_scans() -> Result<String> {
    try_format!("{}\n", collapse::counts().1)
}

fn size() -> Result<String> {
    try_format!("{LARGE_PAGE_SIZE}\n")
}

/// Makes the files.
pub fn init() -> Result<()> {
    let files: [(&str, u32, Arc<dyn ProcFile>); 11] = [
        ("enabled", 0o644, try_arc(Enabled)?),
        ("hpage_pmd_size", 0o444, try_arc(Text(size))?),
        // A fault that finds no block of frames free takes a single one.
        ("defrag", 0o444, try_arc(Fixed("always defer defer+madvise madvise [never]\n"))?),
        ("shmem_enabled", 0o444, try_arc(Fixed("always within_size advise [never] deny force\n"))?),
        ("use_zero_page", 0o444, try_arc(Fixed("0\n"))?),
        ("khugepaged/scan_sleep_millisecs", 0o644, try_arc(Number(&collapse::SCAN_SLEEP_MS))?),
        ("khugepaged/pages_to_scan", 0o644, try_arc(Number(&collapse::PAGES_TO_SCAN))?),
        ("khugepaged/max_ptes_none", 0o644, try_arc(Number(&collapse::MAX_PTES_NONE))?),
        ("khugepaged/max_ptes_shared", 0o644, try_arc(Number(&collapse::MAX_PTES_SHARED))?),
        ("khugepaged/pages_collapsed", 0o444, try_arc(Text(pages_collapsed))?),
        ("khugepaged/full_scans", 0o444, try_arc(Text(full_scans))?),
    ];
    for (name, mode, file) in files {
        register_file(&try_format!("kernel/mm/transparent_hugepage/{name}")?, mode, file)?;
    }
    Ok(())
}
