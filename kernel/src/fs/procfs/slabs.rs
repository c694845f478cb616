//! /proc/slabinfo: the size classes of the kernel's heap, in the form of Linux's version 2.1.
//!
//! There are no caches for single kinds of objects here, so all lines are Linux's `kmalloc-SIZE`. Objects in the CPUs' own
//! magazines count as free. Owns nothing. Never waits. Locks: none of its own.
#![forbid(unsafe_code)]

use super::file::Text;
use super::fixed::register_file;
use crate::base::PAGE_SIZE;
use crate::mm::fallible::{TryString, try_arc};
use crate::mm::heap;
use crate::try_writeln;
use abi::Result;
use alloc::string::String;

pub(super) fn register() -> Result<()> {
    register_file("slabinfo", 0o400, try_arc(Text(slabinfo))?)
}

const HEAD: &str = "slabinfo - version: 2.1\n\
    # name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> \
    <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n";

fn slabinfo() -> Result<String> {
    let live = heap::live();
    let mut out = String::new();
    out.try_push_str(HEAD)?;
    for (&(size, active), slabs) in live.classes.iter().zip(live.slabs) {
        let per_slab = PAGE_SIZE as u32 / u32::from(size);
        let objects = slabs.saturating_mul(per_slab);
        try_writeln!(
            out,
            "kmalloc-{size:<9} {active:6} {objects:6} {size:6} {per_slab:4} {pages:4} : tunables {none:4} {none:4} {none:4} \
             : slabdata {slabs:6} {slabs:6} {none:6}",
            pages = 1,
            none = 0,
        )?;
    }
    Ok(out)
}
