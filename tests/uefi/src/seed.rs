//! The seed that is left for the kernel in UEFI's configuration table, true or a lie.
//!
//! Owns a page of memory that no kernel gives to others. Never says that there is a seed where the firmware gave none.
//! Locks: none.

use core::ptr;
use core::slice;

use uefi::boot::{self, AllocateType, MemoryType};
use uefi::proto::rng::Rng;
use uefi::{Guid, guid};

use crate::serial::say;

/// `LINUX_EFI_RANDOM_SEED_TABLE_GUID`.
static TABLE: Guid = guid!("1ce1e5bc-7ceb-42f2-81e5-8aadf180f57b");

const PAGE: usize = 4096;
const HEADER: usize = size_of::<u32>();
/// In the middle of memory that is free, so that a page there has no neighbours of its kind.
const LONELY: u64 = 256 << 20;
/// What is asked of the firmware; Linux's stub asks for as much.
const LEN: usize = 32;

/// What is left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No table.
    None,
    /// What the firmware's generator gives, if there is one.
    Firmware,
    /// The same, too short for a seed.
    Short,
    /// The same, at the end of its memory, by a table that says that there is more.
    Overlong,
    /// A table that names memory which is not there.
    Elsewhere,
    /// A table that names memory which the kernel may use for anything.
    Used,
}

impl Kind {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.trim() {
            "none" => Self::None,
            "firmware" => Self::Firmware,
            "short" => Self::Short,
            "overlong" => Self::Overlong,
            "elsewhere" => Self::Elsewhere,
            "used" => Self::Used,
            _ => return None,
        })
    }
}

/// Leaves it.
pub fn leave(kind: Kind) {
    if kind == Kind::None {
        return;
    }
    let Some(seed) = firmware() else { return say!("the firmware has no generator") };
    let memory = match kind {
        Kind::Used => MemoryType::LOADER_DATA,
        _ => MemoryType::ACPI_RECLAIM,
    };
    let place = match kind {
        Kind::Overlong => AllocateType::Address(LONELY),
        _ => AllocateType::AnyPages,
    };
    let page = boot::allocate_pages(place, memory, 1).expect("a page").as_ptr();
    let (at, said) = match kind {
        Kind::Short => (0, 7),
        Kind::Overlong => (PAGE - HEADER - LEN, 1024),
        _ => (0, LEN as u32),
    };
    // SAFETY: the page is ours, and the header and the seed end in it.
    let bytes = unsafe { slice::from_raw_parts_mut(page, PAGE) };
    bytes.fill(0);
    bytes[at..][..HEADER].copy_from_slice(&said.to_le_bytes());
    bytes[at + HEADER..][..LEN].copy_from_slice(&seed);
    say!("seed at {:#x}: {:02x?}", page as usize + at + HEADER, seed);
    let table = match kind {
        Kind::Elsewhere => ptr::without_provenance(0x7fff_ffff_f000),
        _ => page.wrapping_add(at),
    };
    // SAFETY: what the table names is never given back.
    unsafe { boot::install_configuration_table(&TABLE, table.cast()) }.expect("a table");
}

fn firmware() -> Option<[u8; LEN]> {
    let handle = boot::get_handle_for_protocol::<Rng>().ok()?;
    let mut generator = boot::open_protocol_exclusive::<Rng>(handle).ok()?;
    let mut seed = [0; LEN];
    generator.get_rng(None, &mut seed).ok()?;
    Some(seed)
}
