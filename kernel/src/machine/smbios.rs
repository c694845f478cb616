//! The firmware's description of the machine (SMBIOS, "DMI"): who made it, its serial number, its UUID.
//!
//! Owns nothing and understands nothing of it but where it lies; read once. Found where a PC BIOS leaves the
//! entry point (physical 0xf0000 to 0xfffff), which is also where QEMU's puts it; on a machine that starts
//! with UEFI there is none. No locks.
//!
//! Reference: DMTF DSP0134, "System Management BIOS Reference Specification", sections 5.2.1 and 5.2.2.

use super::acpi::{bytes, checksum_ok};

const AREA: u64 = 0xf_0000;
const AREA_LEN: usize = 0x1_0000;
/// More than any machine has; bounds what a wrong length can do.
const MOST: usize = 64 << 10;

/// The table, whole.
pub fn table() -> Option<&'static [u8]> {
    let area = bytes(AREA, AREA_LEN)?;
    let (start, len) = area.chunks_exact(16).enumerate().find_map(|(n, _)| {
        let entry = area.get(n * 16..)?;
        long_entry(entry).or_else(|| short_entry(entry))
    })?;
    let len = len.min(MOST);
    // The table is the firmware's; one that claims the first page or the end of the address space is none.
    (start >= 0x1000 && len > 0).then(|| bytes(start, len))?
}

/// `_SM3_`: a table with a 64-bit address.
fn long_entry(entry: &[u8]) -> Option<(u64, usize)> {
    let entry =
        entry.get(..24).filter(|entry| entry.starts_with(b"_SM3_") && checksum_ok(entry))?;
    let len = u32::from_le_bytes(entry[12..16].try_into().ok()?);
    Some((u64::from_le_bytes(entry[16..24].try_into().ok()?), len as usize))
}

/// `_SM_`: a table below 4 GiB.
fn short_entry(entry: &[u8]) -> Option<(u64, usize)> {
    let entry = entry.get(..31).filter(|entry| entry.starts_with(b"_SM_") && checksum_ok(entry))?;
    let len = u16::from_le_bytes(entry[22..24].try_into().ok()?);
    let start = u32::from_le_bytes(entry[24..28].try_into().ok()?);
    Some((u64::from(start), usize::from(len)))
}
