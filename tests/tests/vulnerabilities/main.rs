//! What is said of the flaws of the CPU, on one model after the other, beside Linux that does nothing against them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use alea_tests::boot;
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::Machine;
use xtask_host::paths;

/// A model of each kind: those that Linux's tables name, and those that they do not.
const MODELS: [&str; 8] =
    ["qemu64", "max", "Nehalem", "Haswell", "Skylake-Server", "Denverton", "EPYC", "EPYC-Genoa"];

/// What Alea says otherwise than such a Linux, and why it may.
const OTHERWISE: [(&str, &str, &str); 3] = [
    // Linux speaks for its KVM.
    ("itlb_multihit", "KVM: Mitigation: VMX unsupported", "Processor vulnerable"),
    // Linux's entries without a page hold inverted addresses whatever it was told; Alea's hold addresses.
    ("l1tf", "Mitigation: PTE Inversion", "Vulnerable"),
    // Linux has its barriers in any case, but for those after SWAPGS.
    (
        "spectre_v1",
        "Vulnerable: __user pointer sanitization and usercopy barriers only; no swapgs barriers",
        "Vulnerable",
    ),
];

fn image() -> tempfile::TempPath {
    let mut tree = Tree::new();
    for dir in ["bin", "sys"] {
        tree.dir(dir, 0o755);
    }
    tree.host_file("bin/busybox", 0o755, &paths::busybox()).expect("BusyBox is there");
    tree.symlink("bin/sh", "busybox");
    let init = "#!/bin/sh\nBB=/bin/busybox\n$BB mount -t sysfs sys /sys\necho '<<<'\n\
                cd /sys/devices/system/cpu/vulnerabilities && $BB grep . *\necho '>>>'\n$BB poweroff -f\n";
    tree.file("init", 0o755, init);
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(&tree.archive()).expect("room for it");
    file.into_temp_path()
}

/// The files by name.
fn files(kernel: &Path, model: &str, image: &Path) -> BTreeMap<String, String> {
    let line = "console=ttyS0 quiet mitigations=off";
    let machine = Machine::new(kernel).initrd(image).append(line).cpu(model);
    let outcome = boot(&machine).unwrap();
    let told = outcome.output.split_once("<<<").and_then(|(_, rest)| rest.split_once(">>>"));
    let (told, _) = told.unwrap_or_else(|| panic!("nothing was told\n{}", outcome.describe()));
    let pairs = told.lines().filter_map(|line| line.trim().split_once(':'));
    pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

#[test]
fn a_model_has_the_flaws_that_it_has_on_linux() {
    let image = image();
    for model in MODELS {
        let mut wanted = files(&paths::vmlinuz(), model, &image);
        assert!(wanted.len() >= 17, "{model}: {wanted:?}");
        for (name, linux, alea) in OTHERWISE {
            let text = wanted.get_mut(name).expect("Linux has the file");
            if text == linux {
                alea.clone_into(text);
            }
        }
        assert_eq!(files(&paths::kernel(), model, &image), wanted, "{model}");
    }
}
