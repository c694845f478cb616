//! The Limine entry: BIOS and UEFI machines booted from the ISO.
//!
//! Owns the requests in `.limine_requests` and their translation to `BootInfo`.
//!
//! Never used after `enter`: what the loader left is copied out of its answers. Locks: none.

use crate::base::image;
use alea_random::handed;
use core::arch::naked_asm;
use core::slice;
use limine::BaseRevision;
use limine::memory_map::EntryType;
use limine::request::{
    EfiSystemTableRequest, ExecutableAddressRequest, ExecutableFileRequest, HhdmRequest,
    MemoryMapRequest, ModuleRequest, RequestsEndMarker, RequestsStartMarker, RsdpRequest,
    StackSizeRequest,
};
use x86_64::PhysAddr;

use super::handover::Handover;
use super::kaslr;
use crate::base::boot_info::{BootInfo, MemoryKind, MemoryMap, MemoryRegion};

/// The newest base revision that Limine 8.2 knows, the oldest version that is supported.
const BASE: u64 = 2;

/// What Limine maps of physical memory, whatever lies there.
const LOW_MEMORY: u64 = 4 << 30;
/// More than a table that is looked at here has.
const LONGEST_TABLE: u64 = 8192;

#[used]
#[unsafe(link_section = ".limine_requests.start")]
static START: RequestsStartMarker = RequestsStartMarker::new();
#[used]
#[unsafe(link_section = ".limine_requests.end")]
static END: RequestsEndMarker = RequestsEndMarker::new();
#[used]
#[unsafe(link_section = ".limine_requests")]
static BASE_REVISION: BaseRevision = BaseRevision::with_revision(BASE);
#[used]
#[unsafe(link_section = ".limine_requests")]
static MEMORY_MAP: MemoryMapRequest = MemoryMapRequest::new();
#[used]
#[unsafe(link_section = ".limine_requests")]
static HHDM: HhdmRequest = HhdmRequest::new();
#[used]
#[unsafe(link_section = ".limine_requests")]
static ADDRESS: ExecutableAddressRequest = ExecutableAddressRequest::new();
#[used]
#[unsafe(link_section = ".limine_requests")]
static FILE: ExecutableFileRequest = ExecutableFileRequest::new();
#[used]
#[unsafe(link_section = ".limine_requests")]
static MODULES: ModuleRequest = ModuleRequest::new();
#[used]
#[unsafe(link_section = ".limine_requests")]
static RSDP: RsdpRequest = RsdpRequest::new();
#[used]
#[unsafe(link_section = ".limine_requests")]
static EFI: EfiSystemTableRequest = EfiSystemTableRequest::new();
#[used]
#[unsafe(link_section = ".limine_requests")]
static STACK: StackSizeRequest = StackSizeRequest::new().with_size(64 * 1024);

/// Limine jumps here in long mode, on its own stack and page tables.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn limine_entry() -> ! {
    naked_asm!(
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "push rax",
        "call {move}",
        // The image may have moved, with this address in it.
        "movabs rax, offset alea_limine_moved",
        "jmp rax",
        "alea_limine_moved:",
        "mov rdi, [rsp]",
        "xor ebp, ebp",
        "call {main}",
        "ud2",
        move = sym limine_move,
        main = sym limine_main,
    )
}

/// Before anything else, at the linked address.
extern "C" fn limine_move() {
    let (Some(hhdm), Some(address), Some(file)) =
        (HHDM.get_response(), ADDRESS.get_response(), FILE.get_response())
    else {
        return;
    };
    let cmdline = file.file().string().to_bytes();
    // SAFETY: nothing has run yet; Limine's answers are true.
    unsafe { kaslr::move_image(address.physical_base(), hhdm.offset(), cmdline) };
}

extern "C" fn limine_main(entry_tsc: u64) -> ! {
    super::enter::early_init();
    assert!(BASE_REVISION.is_supported(), "this Limine does not support base revision {BASE}");
    let Some(hhdm) = HHDM.get_response() else { panic!("Limine gave no direct map") };
    let Some(address) = ADDRESS.get_response() else { panic!("Limine gave no load address") };
    let phys_offset = hhdm.offset();
    let cmdline = FILE.get_response().map_or("", |response| {
        super::enter::keep_cmdline(response.file().string().to_bytes().iter().copied())
    });
    let initramfs = MODULES.get_response().and_then(|response| {
        let file = response.modules().first()?;
        let start = (file.addr() as u64).checked_sub(phys_offset)?;
        (file.size() > 0).then_some((PhysAddr::new_truncate(start), file.size()))
    });
    super::enter::enter_kernel(Handover {
        info: BootInfo {
            memory_map: memory_map(),
            cmdline,
            initramfs,
            // Virtual in this base revision, physical in later ones.
            rsdp: RSDP.get_response().map(|response| {
                let address = response.address() as u64;
                PhysAddr::new_truncate(address.checked_sub(phys_offset).unwrap_or(address))
            }),
            efi_seed: efi_seed(phys_offset),
            startup: None,
            protocol: "Limine",
            entry_tsc,
        },
        phys_offset,
        kernel_phys: address.physical_base()
            + (image::linked(image::image_start()) - address.virtual_base()),
    })
}

/// What UEFI's configuration table says of a seed. It is read here, as it lies in memory that is free from now on; the seed
/// itself does not.
fn efi_seed(phys_offset: u64) -> Option<PhysAddr> {
    // Virtual in this base revision, physical in later ones.
    let address = EFI.get_response()?.address() as u64;
    let system_table = low(address.checked_sub(phys_offset).unwrap_or(address), phys_offset)?;
    let (configuration, len) = handed::efi_configuration(system_table.first_chunk()?)?;
    let seed = handed::efi_seed(low(configuration, phys_offset)?.get(..len)?)?;
    PhysAddr::try_new(seed).ok()
}

/// The memory at `phys`, a while on, if it is of the 4 GiB that Limine maps whatever lies there.
fn low(phys: u64, phys_offset: u64) -> Option<&'static [u8]> {
    let len = LONGEST_TABLE.min(LOW_MEMORY.checked_sub(phys)?);
    // SAFETY: in base revisions up to 2 Limine maps all of it, at `phys_offset`; nothing else runs, so nothing writes.
    (phys != 0)
        .then(|| unsafe { slice::from_raw_parts((phys + phys_offset) as *const u8, len as usize) })
}

fn memory_map() -> MemoryMap {
    let mut map = MemoryMap::new();
    let Some(response) = MEMORY_MAP.get_response() else { panic!("Limine gave no memory map") };
    for entry in response.entries() {
        let kind = match entry.entry_type {
            // Limine's own leftovers are free once our tables and stack are in use; all that is
            // kept of them was copied. Kernel and modules are carved out again by `tables`.
            EntryType::BOOTLOADER_RECLAIMABLE | EntryType::EXECUTABLE_AND_MODULES => {
                MemoryKind::Loader
            }
            EntryType::USABLE => MemoryKind::Usable,
            EntryType::ACPI_RECLAIMABLE => MemoryKind::AcpiReclaimable,
            EntryType::ACPI_NVS => MemoryKind::AcpiNvs,
            EntryType::BAD_MEMORY => MemoryKind::Bad,
            _ => MemoryKind::Reserved,
        };
        let start = PhysAddr::new_truncate(entry.base);
        // Neighbours of one kind are joined: Limine's map is long.
        match map.last_mut() {
            Some(last) if last.kind == kind && last.end() == entry.base => last.len += entry.length,
            _ => {
                let _ = map.try_push(MemoryRegion { start, len: entry.length, kind });
            }
        }
    }
    map
}
