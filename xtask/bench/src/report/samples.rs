//! Where the kernel is, asked many times: folded stacks for a flame graph.
//!
//! QEMU's monitor stops the guest, its frame pointers are walked, and it goes on. That takes host time
//! only, so it shows the guest's work under TCG as well as under KVM.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};

use xtask_guest::guest::Guest;
use xtask_guest::monitor::KERNEL_HALF;

/// Between two samples; no multiple of anything that ticks.
const PAUSE: Duration = Duration::from_micros(2_300);

/// Takes `count` samples of CPU 0 of a guest that is busy.
pub fn take(guest: &Guest, count: usize) -> Result<Vec<Vec<u64>>> {
    let mut monitor = guest.monitor()?;
    (0..count)
        .map(|_| {
            std::thread::sleep(PAUSE);
            monitor.sample(0)
        })
        .collect()
}

/// `outermost;...;innermost count` for each distinct stack, inlined functions included.
pub fn fold(kernel: &Path, samples: &[Vec<u64>]) -> Result<Vec<String>> {
    let fail = |error: Box<dyn std::error::Error>| anyhow!("{}: {error}", kernel.display());
    let loader = addr2line::Loader::new(kernel).map_err(fail)?;
    let mut names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut folded: BTreeMap<String, usize> = BTreeMap::new();
    for sample in samples {
        let mut stack = Vec::new();
        for (depth, &address) in sample.iter().enumerate() {
            if address < KERNEL_HALF {
                stack.push("program".to_owned());
                continue;
            }
            // A return address belongs to the call before it.
            let at = if depth == 0 { address } else { address - 1 };
            let functions = match names.entry(at) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(functions(&loader, at)?),
            };
            stack.extend(functions.iter().cloned());
        }
        stack.reverse();
        *folded.entry(stack.join(";")).or_default() += 1;
    }
    Ok(folded.into_iter().map(|(stack, count)| format!("{stack} {count}")).collect())
}

/// The functions at an address, innermost first.
fn functions(loader: &addr2line::Loader, address: u64) -> Result<Vec<String>> {
    let fail = |error: Box<dyn std::error::Error>| anyhow!("{error}");
    let mut frames = loader.find_frames(address).map_err(fail)?;
    let mut found = Vec::new();
    while let Some(frame) = frames.next()? {
        let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
        found.push(short(name.as_deref().unwrap_or("?")));
    }
    if found.is_empty() {
        let symbol = loader.find_symbol(address).unwrap_or("?");
        found.push(short(&format!("{:#}", rustc_demangle::demangle(symbol))));
    }
    Ok(found)
}

/// A name without its crate and hash, and without what separates stacks.
fn short(name: &str) -> String {
    let name = name.split("::h").next().unwrap_or(name).replace(';', ",");
    name.replace("alea_kernel::", "").replace(' ', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_nothing_that_separates() {
        assert_eq!(
            short("<alea_kernel::mm::Space as [u8; 4]>::fork"),
            "<mm::Space_as_[u8,_4]>::fork"
        );
    }
}
