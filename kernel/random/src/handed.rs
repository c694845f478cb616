//! Seeds that a boot loader or a firmware leaves in memory: where they lie in it, and what they are worth.
//!
//! Owns the reading of two tables, neither of which is believed: ACPI's `OEM0` of Hyper-V, as Windows and Linux use it, and
//! `LINUX_EFI_RANDOM_SEED` of UEFI's configuration table, which systemd-boot and Linux's EFI stub leave for the
//! kernel. Whoever uses a seed wipes it where it lay: the next kernel must not find it. Lock rules: none.
//!
//! References: Microsoft, *The Windows 10 random number generation infrastructure*, section 3.5 (ACPI-OEM0); Linux,
//! drivers/hv/hv_common.c and drivers/firmware/efi/efi.c; systemd, *Boot loader interface*, random seed; UEFI specification,
//! section 4.3 (EFI system table) and 4.6 (configuration table).

use core::ops::Range;

use crate::credit::EntropyBits;

/// The longest seed that is read: Linux's limit for UEFI's.
pub const LONGEST: usize = 1024;

/// The fewest bytes that are a seed: Linux's limit for `OEM0`.
const SHORTEST: usize = 8;

/// What a seed of `len` bytes is worth, if whoever left it is trusted.
pub fn worth(len: usize) -> EntropyBits {
    EntropyBits(len.min(LONGEST) as u32 * u8::BITS).min(EntropyBits::READY)
}

const ACPI_HEADER: usize = 36;
const OEM_TABLE_ID: Range<usize> = 16..24;

/// Where the seed lies in an ACPI table `OEM0`, whose length and checksum are right. The name stands for any maker's
/// tables, so Microsoft's mark is looked for, too.
pub fn in_oem0(table: &[u8]) -> Option<Range<usize>> {
    let seed = ACPI_HEADER..table.len();
    let is_seed = table.get(OEM_TABLE_ID)? == b"MICROSFT"
        && (SHORTEST..=4096 - ACPI_HEADER).contains(&seed.len());
    is_seed.then(|| seed.start..seed.end.min(ACPI_HEADER + LONGEST))
}

/// How much of UEFI's system table is looked at.
pub const EFI_SYSTEM_TABLE: usize = 120;

/// The length of an entry of UEFI's configuration table: a GUID and an address.
pub const EFI_ENTRY: usize = 24;

/// The most entries of a configuration table that are looked at; firmware has some twenty.
const MOST_ENTRIES: u64 = 256;

/// 1ce1e5bc-7ceb-42f2-81e5-8aadf180f57b, `LINUX_EFI_RANDOM_SEED_TABLE_GUID`.
const SEED_GUID: [u8; 16] = *b"\xbc\xe5\xe1\x1c\xeb\x7c\xf2\x42\x81\xe5\x8a\xad\xf1\x80\xf5\x7b";

/// Address and length in bytes of the configuration table that a system table names.
pub fn efi_configuration(system_table: &[u8; EFI_SYSTEM_TABLE]) -> Option<(u64, usize)> {
    let word = |at: usize| {
        let bytes = system_table.get(at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    };
    let (count, address) = (word(104)?, word(112)?);
    let is_table = system_table.starts_with(b"IBI SYST") && count <= MOST_ENTRIES && address != 0;
    is_table.then(|| (address, count as usize * EFI_ENTRY))
}

/// The address of the seed, by a configuration table: there it has its length, four bytes, before its bytes.
pub fn efi_seed(configuration: &[u8]) -> Option<u64> {
    let (entries, _) = configuration.as_chunks::<EFI_ENTRY>();
    let (_, address) = entries
        .iter()
        .filter_map(|entry| entry.split_first_chunk())
        .find(|(guid, _)| **guid == SEED_GUID)?;
    Some(u64::from_le_bytes(*address.first_chunk()?)).filter(|&address| address != 0)
}

/// How many bytes follow a length of `header`; nothing for too few.
pub fn efi_seed_len(header: [u8; 4]) -> Option<usize> {
    // A length that does not fit is longer than what is read.
    let len = usize::try_from(u32::from_le_bytes(header)).unwrap_or(LONGEST).min(LONGEST);
    (len >= SHORTEST).then_some(len)
}
