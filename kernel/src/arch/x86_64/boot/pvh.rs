//! The PVH entry: QEMU's `-kernel` and other loaders that know `XEN_ELFNOTE_PHYS32_ENTRY`.
//!
//! Owns the 32-bit entry code and its temporary page tables (the low 4 GiB at three places, in
//! 2 MiB pages), which nothing uses after `tables::build`.
//!
//! Never returns. Locks: none: nothing else runs.

use crate::base::{areas, image};
use core::arch::global_asm;

use x86_64::PhysAddr;

use super::handover::Handover;
use super::{kaslr, tables};
use crate::base::boot_info::{BootInfo, MemoryKind, MemoryMap, MemoryRegion};

const MAGIC: u32 = 0x336e_c578;

/// Where the temporary tables have the low 4 GiB of memory.
const MEMORY: u64 = areas::DIRECT_MAP_BASE;

/// `hvm_start_info`, version 1.
#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    module_count: u32,
    modules: u64,
    cmdline: u64,
    rsdp: u64,
    memory_map: u64,
    memory_map_entries: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Module {
    start: u64,
    len: u64,
    cmdline: u64,
    reserved: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct MapEntry {
    start: u64,
    len: u64,
    kind: u32,
    reserved: u32,
}

/// Called by the assembly before `pvh_main`, at the linked address, with the physical address of the start info.
extern "C" fn pvh_move(start_info: u64) {
    // SAFETY: as in `pvh_main`; nothing has run yet.
    unsafe {
        let info = &*(at(start_info) as *const StartInfo);
        let cmdline = match info.cmdline {
            start if info.magic == MAGIC && start != 0 => kaslr::bytes_of(at(start) as *const u8),
            _ => &[],
        };
        kaslr::move_image(image::image_start() - tables::KERNEL_OFFSET, MEMORY, cmdline);
    }
}

/// Called by the assembly with the physical address of the start info, in long mode, at the high
/// addresses, on a temporary stack.
extern "C" fn pvh_main(start_info: u64, entry_tsc: u64) -> ! {
    super::enter::early_init();
    // SAFETY: the loader passes the address of a start info below 4 GiB, which the temporary tables
    // map at `MEMORY`, together with all that it points to.
    let info = unsafe { &*(at(start_info) as *const StartInfo) };
    assert!(info.magic == MAGIC, "PVH start info has the wrong magic {:#x}", info.magic);
    assert!(info.version >= 1, "PVH start info has no memory map");
    let mut memory_map = MemoryMap::new();
    for index in 0..u64::from(info.memory_map_entries) {
        // SAFETY: as above; entry `index` is within the map.
        let entry = unsafe { *(at(info.memory_map) as *const MapEntry).add(index as usize) };
        let kind = match entry.kind {
            1 => MemoryKind::Usable,
            3 => MemoryKind::AcpiReclaimable,
            4 => MemoryKind::AcpiNvs,
            5 => MemoryKind::Bad,
            _ => MemoryKind::Reserved,
        };
        let start = PhysAddr::new_truncate(entry.start);
        if memory_map.try_push(MemoryRegion { start, len: entry.len, kind }).is_err() {
            break;
        }
    }
    let initramfs = (info.module_count > 0).then(|| {
        // SAFETY: as above.
        let module = unsafe { &*(at(info.modules) as *const Module) };
        (PhysAddr::new_truncate(module.start), module.len)
    });
    let cmdline = match info.cmdline {
        0 => "",
        start => {
            // SAFETY: as above; the loader ends the string with a zero.
            let bytes = unsafe { kaslr::bytes_of(at(start) as *const u8) };
            super::enter::keep_cmdline(bytes.iter().copied())
        }
    };
    super::enter::enter_kernel(Handover {
        info: BootInfo {
            memory_map,
            cmdline,
            initramfs: initramfs.filter(|(_, len)| *len > 0),
            rsdp: (info.rsdp != 0).then(|| PhysAddr::new_truncate(info.rsdp)),
            efi_seed: None,
            startup: None,
            protocol: "PVH",
            entry_tsc,
        },
        phys_offset: MEMORY,
        kernel_phys: image::linked(image::image_start()) - tables::KERNEL_OFFSET,
    })
}

fn at(phys: u64) -> u64 {
    phys + MEMORY
}

global_asm!(
    r#"
    .set OFFSET, 0xffffffff80000000

    .section .note.Xen, "a", @note
    .balign 4
    .long 4
    .long 8
    .long 18                        // XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .quad alea_pvh_entry - OFFSET

    .section .bss.boot, "aw", @nobits
    .balign 4096
pvh_pml4:       .skip 4096
pvh_pdpt_low:   .skip 4096
pvh_pdpt_high:  .skip 4096
pvh_pd:         .skip 4 * 4096
pvh_stack:      .skip 32768
pvh_stack_top:

    .section .boot.text, "ax"
    .code32
    .global alea_pvh_entry
alea_pvh_entry:
    cli
    cld
    movl %ebx, %ebp                 // start info
    rdtsc
    movl %eax, %esi
    movl %edx, %ebx
    movl $(pvh_stack_top - OFFSET), %esp
    // 2048 large pages: the low 4 GiB.
    movl $(pvh_pd - OFFSET), %edi
    movl $0x83, %eax
    movl $2048, %ecx
1:  movl %eax, (%edi)
    movl $0, 4(%edi)
    addl $0x200000, %eax
    addl $8, %edi
    decl %ecx
    jnz 1b
    movl $(pvh_pd - OFFSET + 3), %eax
    movl %eax, (pvh_pdpt_low - OFFSET)
    movl %eax, (pvh_pdpt_high - OFFSET + 510 * 8)
    addl $4096, %eax
    movl %eax, (pvh_pdpt_low - OFFSET + 8)
    movl %eax, (pvh_pdpt_high - OFFSET + 511 * 8)
    addl $4096, %eax
    movl %eax, (pvh_pdpt_low - OFFSET + 16)
    addl $4096, %eax
    movl %eax, (pvh_pdpt_low - OFFSET + 24)
    movl $(pvh_pdpt_low - OFFSET + 3), %eax
    movl %eax, (pvh_pml4 - OFFSET)
    movl %eax, (pvh_pml4 - OFFSET + 273 * 8)
    movl $(pvh_pdpt_high - OFFSET + 3), %eax
    movl %eax, (pvh_pml4 - OFFSET + 511 * 8)
    // PAE, long mode, paging.
    movl $0x20, %eax
    movl %eax, %cr4
    movl $(pvh_pml4 - OFFSET), %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80000001, %eax
    movl %eax, %cr0
    lgdtl (pvh_gdt_pointer - OFFSET)
    ljmpl $8, $(pvh_long - OFFSET)
    .code64
pvh_long:
    movabsq $pvh_high, %rax
    jmpq *%rax
pvh_high:
    xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl %eax, %fs
    movl %eax, %gs
    movq $pvh_stack_top, %rsp
    movl %ebp, %edi
    movl %esi, %esi
    shlq $32, %rbx
    orq %rbx, %rsi
    xorl %ebp, %ebp
    pushq %rdi
    pushq %rsi
    callq {move}
    popq %rsi
    popq %rdi
    // The image may have moved, with these addresses in it.
    movabsq $pvh_moved, %rax
    jmpq *%rax
pvh_moved:
    movq $pvh_stack_top, %rsp
    callq {main}
    ud2

    .balign 8
pvh_gdt:
    .quad 0
    .quad 0x00af9b000000ffff
pvh_gdt_pointer:
    .word 15
    .long pvh_gdt - OFFSET
    "#,
    move = sym pvh_move,
    main = sym pvh_main,
    options(att_syntax),
);
