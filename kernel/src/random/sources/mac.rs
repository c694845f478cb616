//! The addresses of the network cards.
//!
//! **Trust**: none, whoever is on the same network reads them. **Credit**: none. They tell apart machines
//! that start from one image with the same poor sources and the same time. **Cost**: some 20 accesses to
//! configuration space for each card, once, and six bytes to hash.
//!
//! Linux mixes them in as well, when a driver registers its card; there are no drivers here, so only the
//! makes that [`nic`] knows are read. References: there.

use crate::base::boot_info::BootInfo;
use crate::machine::nic;
use crate::random::live::RANDOM;
use crate::random::stats;

pub fn collect(info: &BootInfo) {
    for address in nic::addresses(info) {
        stats::mixed(stats::Source::Mac, address.len());
        RANDOM.mix(&address);
    }
}
