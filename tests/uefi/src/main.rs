//! A boot loader for tests of UEFI machines: asks the firmware for randomness, leaves it as `LINUX_EFI_RANDOM_SEED`, as
//! systemd-boot and Linux's stub do, and starts the kernel by Limine's protocol.
//!
//! The disk has `kernel.elf`, `initramfs.cpio`, and `loader.cfg`: a line that says what seed is left (`seed::Kind`), and
//! the kernel's command line. What it does it tells on the first serial port, in lines that begin with `loader:`.
//!
//! Of Limine's protocol it has what Alea asks for. Owns the machine until the kernel starts. Locks: none.
#![cfg_attr(target_os = "uefi", no_std, no_main)]

#[cfg(target_os = "uefi")]
extern crate alloc;

#[cfg(target_os = "uefi")]
mod answers;
#[cfg(target_os = "uefi")]
mod image;
#[cfg(target_os = "uefi")]
mod jump;
#[cfg(target_os = "uefi")]
mod seed;
#[cfg(target_os = "uefi")]
mod serial;

#[cfg(target_os = "uefi")]
#[uefi::entry]
fn main() -> uefi::Status {
    use uefi::boot;
    use uefi::fs::{FileSystem, Path};

    let volume = boot::get_image_file_system(boot::image_handle()).expect("the loader's disk");
    let mut files = FileSystem::new(volume);
    let config = files.read_to_string(Path::new(uefi::cstr16!("loader.cfg"))).expect("loader.cfg");
    let (kind, cmdline) = config.split_once('\n').expect("loader.cfg has two lines");
    let kernel = files.read(Path::new(uefi::cstr16!("kernel.elf"))).expect("kernel.elf");
    let initramfs = files.read(Path::new(uefi::cstr16!("initramfs.cpio"))).expect("initramfs.cpio");
    drop(files);
    seed::leave(seed::Kind::named(kind).expect("a kind of seed"));
    let image = image::load(&kernel);
    let tables = jump::tables(&image);
    let stack = jump::stack();
    let mut answers = answers::Answers::prepare(&image, &kernel, &initramfs, cmdline.trim());
    // SAFETY: no service of the firmware is used from here on, and nothing that it gave is dropped.
    let map = unsafe { boot::exit_boot_services(None) };
    answers.tell_memory(map);
    answers.give(&image);
    jump::enter(tables, stack, image.entry)
}

/// The host only checks that the workspace is whole.
#[cfg(not(target_os = "uefi"))]
fn main() {
    panic!("this is a program for UEFI: `cargo xtask test` builds it for that");
}
