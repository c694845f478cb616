//! Limine's answers to what a kernel asks, in base revision 2: addresses are those of the direct map.
//!
//! Owns them: memory that is never given back. Never allocates once the firmware's services have ended. Locks: none.
//!
//! Reference: Limine, PROTOCOL.md of version 8.

use alloc::ffi::CString;
use alloc::vec::Vec;
use core::slice;

use uefi::boot::MemoryType;
use uefi::mem::memory_map::{MemoryMap, MemoryMapMut, MemoryMapOwned};
use uefi::{system, table};

use crate::image::Image;

/// Where all of physical memory is seen.
pub const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;

const COMMON: [u64; 2] = [0xc7b1_dd30_df4c_8b88, 0x0a82_e883_a194_f07b];
const BASE_REVISION: [u64; 2] = [0xf956_2b2d_5c95_a6c8, 0x6a7b_3849_4453_6bdc];
/// The newest that is spoken here.
const NEWEST: u64 = 2;

const DIRECT: [u64; 2] = [0x48dc_f1cb_8ad2_b852, 0x6398_4e95_9a98_244b];
const MEMORY: [u64; 2] = [0x67cf_3d9d_378a_806f, 0xe304_acdf_c50c_3c62];
const FILE: [u64; 2] = [0xad97_e90e_83f1_ed67, 0x31eb_5d1c_5ff2_3b69];
const ADDRESS: [u64; 2] = [0x71ba_7686_3cc5_5f63, 0xb264_4a48_c516_a487];
const MODULES: [u64; 2] = [0x3e7e_2797_02be_32af, 0xca1c_4f3b_d128_0cee];
const RSDP: [u64; 2] = [0xc5e7_7b6b_397e_7b43, 0x2763_7845_accd_cf3c];
const EFI: [u64; 2] = [0x5ceb_a516_3eaa_f6d6, 0x0a69_8161_0cf6_5fcc];
const STACK: [u64; 2] = [0x224e_f046_0a8e_8926, 0xe1cb_0fc2_5f46_ea3d];

/// A request: its four words of a name, its revision, and where the answer is told.
const ANSWER_AT: usize = 5;
/// More pieces of memory than any firmware has.
const PIECES: usize = 1024;

/// Answers, each with what it is asked by.
pub struct Answers {
    all: Vec<([u64; 2], u64)>,
    pieces: Vec<[u64; 3]>,
    listed: Vec<u64>,
    map: Vec<u64>,
}

impl Answers {
    /// Those that do not depend on which memory is free.
    pub fn prepare(image: &Image, kernel: &[u8], initramfs: &[u8], cmdline: &str) -> Self {
        let kernel = file(kernel, "kernel.elf", cmdline);
        let modules = words([file(initramfs, "initramfs.cpio", "")]);
        let system_table = table::system_table_raw().expect("a system table").as_ptr() as u64;
        let rsdp = system::with_config_table(|entries| {
            let is_acpi = |guid| guid == table::cfg::ConfigTableEntry::ACPI2_GUID;
            entries.iter().find(|entry| is_acpi(entry.guid)).map(|entry| entry.address as u64)
        });
        let mut all = Vec::with_capacity(8);
        all.push((DIRECT, words([0, DIRECT_MAP])));
        all.push((ADDRESS, words([0, image.phys, image.virt])));
        all.push((FILE, words([0, kernel])));
        all.push((MODULES, words([0, 1, modules])));
        all.push((RSDP, words([0, DIRECT_MAP + rsdp.expect("ACPI's tables")])));
        all.push((EFI, words([0, DIRECT_MAP + system_table])));
        all.push((STACK, words([0])));
        let (pieces, listed) = (Vec::with_capacity(PIECES), Vec::with_capacity(PIECES));
        Self { all, pieces, listed, map: Vec::with_capacity(3) }
    }

    /// Adds the memory map. What the loader has used is the kernel's as soon as that needs its answers no more.
    pub fn tell_memory(&mut self, mut map: MemoryMapOwned) {
        const PAGE: u64 = 4096;
        map.sort();
        for piece in map.entries() {
            let kind = match piece.ty {
                MemoryType::CONVENTIONAL => 0,
                MemoryType::ACPI_RECLAIM => 2,
                MemoryType::ACPI_NON_VOLATILE => 3,
                MemoryType::UNUSABLE => 4,
                MemoryType::LOADER_CODE
                | MemoryType::LOADER_DATA
                | MemoryType::BOOT_SERVICES_CODE
                | MemoryType::BOOT_SERVICES_DATA => 5,
                _ => 1,
            };
            // The first page is nobody's.
            let start = piece.phys_start.max(PAGE);
            let end = piece.phys_start + piece.page_count * PAGE;
            if start < end && self.pieces.len() < PIECES {
                self.pieces.push([start, end - start, kind]);
            }
        }
        self.listed.extend(self.pieces.iter().map(|piece| seen(piece.as_ptr())));
        self.map.extend([0, self.listed.len() as u64, seen(self.listed.as_ptr())]);
        self.all.push((MEMORY, seen(self.map.as_ptr())));
    }

    /// Answers all requests in the image. Nothing is dropped: the kernel reads it.
    pub fn give(self, image: &Image) {
        // SAFETY: the image is ours until the kernel starts, and aligned.
        let image = unsafe {
            slice::from_raw_parts_mut(image.phys as *mut u64, image.len as usize / size_of::<u64>())
        };
        for at in 0..image.len() - ANSWER_AT {
            let asked = [image[at], image[at + 1]];
            if asked == BASE_REVISION && image[at + 2] <= NEWEST {
                image[at + 2] = 0;
            } else if asked == COMMON {
                let name = [image[at + 2], image[at + 3]];
                if let Some((_, answer)) = self.all.iter().find(|(answers, _)| *answers == name) {
                    image[at + ANSWER_AT] = *answer;
                }
            }
        }
        core::mem::forget(self);
    }
}

/// Where the kernel sees what is here.
fn seen<T>(at: *const T) -> u64 {
    DIRECT_MAP + at as u64
}

/// Words that stay.
fn words<const N: usize>(words: [u64; N]) -> u64 {
    let words: &'static [u64] = Vec::from(words).leak();
    seen(words.as_ptr())
}

/// Limine's description of a file; of its other words nobody asks.
fn file(bytes: &[u8], path: &str, line: &str) -> u64 {
    let text = |text: &str| seen(CString::new(text).expect("no zero in it").into_raw());
    let mut description = [0; 16];
    description[1..5].copy_from_slice(&[
        seen(bytes.as_ptr()),
        bytes.len() as u64,
        text(path),
        text(line),
    ]);
    words(description)
}
