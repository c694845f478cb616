//! The firmware's description of the machine: maker, model, serial numbers and a UUID (SMBIOS, "DMI").
//!
//! **Trust**: none, it is printed on the case. **Credit**: none. It tells apart machines that start from one
//! image. **Cost**: a kilobyte or so to hash, once.
//!
//! Linux mixes in the same table (drivers/firmware/dmi_scan.c). Reference: [`smbios`].

use crate::machine::smbios;
use crate::random::live::RANDOM;
use crate::random::stats;

pub fn collect() {
    let Some(table) = smbios::table() else { return };
    stats::mixed(stats::Source::Firmware, table.len());
    RANDOM.mix(table);
}
