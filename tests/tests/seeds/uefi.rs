//! UEFI machines: what the firmware's generator gives reaches the first key as `LINUX_EFI_RANDOM_SEED`.
//!
//! OVMF starts a boot loader of our own (`tests/uefi`), which asks EFI_RNG_PROTOCOL, as systemd-boot and Linux's stub do, leaves
//! what it gave (or a lie) in the configuration table, and starts the kernel by Limine's protocol. OVMF has a generator where
//! the machine has a virtio-rng or its CPU has RDRAND; the kernel takes neither for the seed's.

use std::fs;
use std::path::Path;

use alea_tests::{PATIENCE, PROMPT, in_turn};
use xtask_guest::guest::Guest;
use xtask_guest::qemu::{Boot, Machine};
use xtask_host::paths;
use xtask_setup::setup;

use super::says;

const GENERATOR: &[&str] = &["-device", "virtio-rng-pci"];
/// The loader's own count.
const LEN: usize = 32;

/// What a machine without RDRAND said, and what stood where its loader had left the seed.
struct Booted {
    log: String,
    place: Option<Vec<u8>>,
    /// What the firmware had given.
    seed: Option<Vec<u8>>,
}

/// Boots with a seed of this kind (`tests/uefi/src/seed.rs`).
fn booted(kind: &str, words: &str, devices: &[&str]) -> Booted {
    let folder = tempfile::tempdir().unwrap();
    disk(&folder.path().join("disk"), kind, words);
    let mut machine = Machine::new(paths::kernel()).cpu("qemu64").args(devices.iter().copied());
    let firmware = setup::ovmf().expect("`cargo xtask setup --all` installs OVMF");
    machine.boot = Boot::Uefi { folder: folder.path().join("disk"), firmware };
    in_turn(|| {
        let mut guest = Guest::start(&machine).unwrap();
        guest.wait_for(PROMPT, PATIENCE).unwrap();
        guest.send("cat /proc/alea/random; dmesg; echo all is ''told\n").unwrap();
        guest.wait_for("all is told", PATIENCE).unwrap();
        let log = guest.output();
        let left = log.lines().find_map(|line| line.strip_prefix("loader: seed at 0x"));
        let left = left.and_then(|text| text.trim().split_once(": "));
        let place = left.map(|(at, _)| {
            let at = u64::from_str_radix(at, 16).unwrap();
            let file = folder.path().join("place");
            guest.monitor().unwrap().save_memory(at..at + LEN as u64, &file).unwrap();
            fs::read(file).unwrap()
        });
        let seed = left.map(|(_, bytes)| {
            let bytes = bytes.trim_matches(['[', ']']).split(", ");
            bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
        });
        guest.stop().unwrap();
        says(&log, " (Limine): console=ttyS0");
        Booted { log, place, seed }
    })
}

/// The files that the firmware and the loader want.
fn disk(folder: &Path, kind: &str, words: &str) {
    let loader = paths::uefi_loader();
    paths::require(&[loader.clone(), paths::kernel(), paths::initramfs()]).unwrap();
    let boot = folder.join("EFI/BOOT");
    fs::create_dir_all(&boot).unwrap();
    fs::copy(loader, boot.join("BOOTX64.EFI")).unwrap();
    fs::copy(paths::kernel(), folder.join("kernel.elf")).unwrap();
    fs::copy(paths::initramfs(), folder.join("initramfs.cpio")).unwrap();
    fs::write(folder.join("loader.cfg"), format!("{kind}\nconsole=ttyS0 {words}\n")).unwrap();
}

/// Untrusted, virtio-rng leaves the credit to the seed alone; what it gave itself is then of no account.
const ALONE: &str = "alea.trust_virtio_rng=off";

#[test]
fn what_the_firmware_gives_is_credited_and_wiped() {
    let credited = booted("firmware", ALONE, GENERATOR);
    says(&credited.log, "boot_seed 32 256 0");
    says(&credited.log, "random: ready");
    assert!(!credited.log.contains("samples of TSC jitter"), "{}", credited.log);
    let first_key = credited.log.lines().find(|line| line.starts_with("first_key")).unwrap();
    assert!(first_key.contains(" boot_seed "), "{first_key}");
    assert!(credited.seed.is_some_and(|seed| seed.iter().any(|byte| *byte != 0)));
    assert_eq!(credited.place.unwrap(), [0; LEN], "the seed stays where it lay");
}

#[test]
fn a_firmware_that_is_not_trusted_is_only_mixed_in() {
    let booted = booted("firmware", &format!("{ALONE} random.trust_bootloader=off"), GENERATOR);
    says(&booted.log, "boot_seed 32 0 0");
    says(&booted.log, "samples of TSC jitter");
    assert_eq!(booted.place.unwrap(), [0; LEN], "the seed stays where it lay");
}

#[test]
fn without_a_seed_there_is_none() {
    let log = booted("none", ALONE, GENERATOR).log;
    says(&log, "boot_seed 0 0 0");
    let log = booted("firmware", "", &[]).log;
    says(&log, "loader: the firmware has no generator");
    says(&log, "boot_seed 0 0 0");
    says(&log, "samples of TSC jitter");
}

/// A table that lies about its length or its place is not read, nor what it names changed; the same seed, told truly, is.
#[test]
fn a_table_that_lies_is_left_alone() {
    for kind in ["short", "overlong", "elsewhere", "used"] {
        let booted = booted(kind, ALONE, GENERATOR);
        let log = &booted.log;
        assert!(log.contains("boot_seed 0 0 0"), "{kind} was taken for a seed:\n{log}");
        says(log, "samples of TSC jitter");
        if kind != "used" {
            assert_eq!(booted.place, booted.seed, "{kind}: what is no seed was written to");
        }
    }
}
