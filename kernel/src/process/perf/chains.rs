//! How long call chains may be: the limits that root sets, which stay as they are while an event wants chains.
//!
//! Owns the limits and the count of such events. Never says what stands in a chain: `long` does. Locks: none.

use crate::base::setting::Setting;
use crate::fs::procfs::{ProcFile, number, register_numbers};
use crate::mm::fallible::try_arc;
use crate::try_format;
use abi::perf::{Attr, sample};
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

const MOST_STACK: i32 = 640 * 1024;
const MOST_CONTEXTS: i32 = 1000;

crate::setting! {
    /// `kernel.perf_event_max_stack`: the most addresses that a call chain may have.
    pub static MAX_STACK = 127, 0..=MOST_STACK;
    /// `kernel.perf_event_max_contexts_per_stack`: the most marks that a call chain may have.
    pub static MAX_CONTEXTS = 8, 0..=MOST_CONTEXTS;
}

/// Events that want call chains and are nobody's heirs. Relaxed: it decides whether a limit may be changed.
static CHAINS: AtomicUsize = AtomicUsize::new(0);

/// Whether there is an event that wants call chains.
fn has_chains() -> bool {
    CHAINS.load(Ordering::Relaxed) != 0
}

/// Counts an event that wants call chains, for as long as it is.
pub(super) struct Chains;

impl Chains {
    pub fn of(attr: &Attr, is_heir: bool) -> Option<Self> {
        let wanted = attr.samples(sample::CALLCHAIN) && !is_heir;
        wanted.then(|| {
            CHAINS.fetch_add(1, Ordering::Relaxed);
            Self
        })
    }
}

impl Drop for Chains {
    fn drop(&mut self) {
        CHAINS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A limit of call chains, which stays as it is while an event wants any.
struct ChainLimit {
    setting: &'static dyn Setting,
    most: i32,
}

impl ProcFile for ChainLimit {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", self.setting.shown()).map(String::into_bytes)
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let number = number(data).ok_or(Errno::EINVAL)?;
        if !(0..=self.most).contains(&number) {
            return Err(Errno::EINVAL);
        }
        if has_chains() {
            return Err(Errno::EBUSY);
        }
        if self.setting.set(number) { Ok(data.len()) } else { Err(Errno::EINVAL) }
    }
}

/// Makes the files; once, at boot.
pub(super) fn register() -> Result<()> {
    let limits: [(&str, ChainLimit); 2] = [
        ("kernel/perf_event_max_stack", ChainLimit { setting: &MAX_STACK, most: MOST_STACK }),
        (
            "kernel/perf_event_max_contexts_per_stack",
            ChainLimit { setting: &MAX_CONTEXTS, most: MOST_CONTEXTS },
        ),
    ];
    for (path, limit) in limits {
        register_numbers(path, 0o644, try_arc(limit)?)?;
    }
    Ok(())
}
