//! Boots: CPU models with and without RDRAND, little memory, compressed and broken initramfs images,
//! and every way in which there is no init. A boot that cannot go on ends in one clear panic line.

use std::io::Write;
use std::path::PathBuf;

use alea_tests::{alea, boot};
use flate2::Compression;
use flate2::write::GzEncoder;
use xtask_guest::guest::{End, Outcome, PANIC};
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::Machine;
use xtask_host::paths;

const HELLO: &str = "#!/bin/sh\necho hello from $(uname -s) as $$\npoweroff -f\n";

/// BusyBox and one script, which the kernel is told to run.
fn tree(path: &str, mode: u32, script: &str) -> Tree {
    let mut tree = Tree::with_busybox().expect("BusyBox is there");
    tree.file(path, mode, script);
    tree
}

/// An initramfs in a file that lives as long as the test.
struct Image(tempfile::TempPath);

impl Image {
    fn new(bytes: &[u8]) -> Self {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(bytes).expect("room for it");
        Self(file.into_temp_path())
    }

    fn path(&self) -> PathBuf {
        self.0.to_path_buf()
    }
}

fn machine(image: &Image, append: &str) -> Machine {
    alea().initrd(image.path()).append(&format!("console=ttyS0 {append}"))
}

fn says_hello(machine: &Machine) {
    let outcome = boot(machine).unwrap();
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
    assert!(outcome.output.contains("hello from Linux as 1"), "{}", outcome.describe());
}

/// The panic's own line, in which `needle` must stand.
fn panics_with(outcome: &Outcome, needle: &str) {
    assert_eq!(outcome.end, End::Panicked, "{}", outcome.describe());
    let line = outcome.output.lines().find(|line| line.contains(PANIC)).unwrap_or_default();
    assert!(line.contains(needle), "{needle:?} is not in {line:?}\n{}", outcome.describe());
}

fn hello_image() -> Image {
    Image::new(&tree("init", 0o755, HELLO).archive())
}

#[test]
fn boots_with_rdrand() {
    says_hello(&machine(&hello_image(), "").cpu("max"));
}

#[test]
fn boots_without_rdrand_and_says_so() {
    let outcome = boot(&machine(&hello_image(), "").cpu("qemu64")).unwrap();
    assert!(outcome.output.contains("hello from Linux as 1"), "{}", outcome.describe());
    let log = outcome.output.to_ascii_lowercase();
    assert!(log.contains("no rdrand"), "{}", outcome.describe());
}

#[test]
fn boots_in_32_mib() {
    says_hello(&machine(&hello_image(), "quiet").memory("32M"));
}

#[test]
fn boots_in_8_gib() {
    says_hello(&machine(&hello_image(), "quiet").memory("8G"));
}

#[test]
fn boots_with_more_cpus_than_it_may_use() {
    says_hello(&machine(&hello_image(), "quiet").smp(4));
}

#[test]
fn a_gzip_compressed_initramfs_is_unpacked() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&tree("init", 0o755, HELLO).archive()).unwrap();
    says_hello(&machine(&Image::new(&gzip.finish().unwrap()), "quiet"));
}

#[test]
fn archives_may_follow_one_another() {
    let mut bytes = tree("init", 0o755, "#!/bin/sh\necho wrong\npoweroff -f\n").archive();
    let mut second = Tree::new();
    second.file("init", 0o755, HELLO);
    bytes.extend(second.archive());
    says_hello(&machine(&Image::new(&bytes), "quiet"));
}

#[test]
fn rdinit_names_another_init() {
    let image = Image::new(&tree("bin/other", 0o755, HELLO).archive());
    says_hello(&machine(&image, "quiet rdinit=/bin/other"));
}

#[test]
fn a_corrupt_initramfs_is_named() {
    let mut bytes = tree("init", 0o755, HELLO).archive();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    bytes[200..].fill(0x55);
    panics_with(&boot(&machine(&Image::new(&bytes), "quiet")).unwrap(), "initramfs");
}

#[test]
fn a_truncated_gzip_initramfs_is_named() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&tree("init", 0o755, HELLO).archive()).unwrap();
    let mut bytes = gzip.finish().unwrap();
    bytes.truncate(bytes.len() / 3);
    panics_with(&boot(&machine(&Image::new(&bytes), "quiet")).unwrap(), "initramfs");
}

#[test]
fn garbage_is_no_initramfs() {
    let image = Image::new(&[0xa5; 100_000]);
    panics_with(&boot(&machine(&image, "quiet")).unwrap(), "initramfs");
}

#[test]
fn without_an_initramfs_there_is_no_init() {
    let bare = Machine::new(paths::kernel()).append("console=ttyS0 quiet");
    panics_with(&boot(&bare).unwrap(), "init");
}

/// As on Linux, for loaders that cannot say where they have put it.
#[test]
fn initrdmem_names_where_the_initramfs_lies() {
    let image = hello_image();
    let size = std::fs::metadata(image.path()).unwrap().len();
    let loader = format!("loader,file={},addr=0x2000000,force-raw=on", image.path().display());
    let with = |words: &str| {
        let line = format!("console=ttyS0 {words}");
        Machine::new(paths::kernel()).append(&line).args(["-device", &loader])
    };
    says_hello(&with(&format!("initrdmem=32M,{size}")));
    says_hello(&with(&format!("initrdmem=0x2000000,{size:#x}")));
    for wrong in ["32M", "32M,0", "0,4k", "0xffffffffffffffff,2"] {
        let outcome = boot(&with(&format!("initrdmem={wrong}"))).unwrap();
        let said = format!("initrdmem={wrong}: START,SIZE in usable memory is wanted");
        assert!(outcome.output.contains(&said), "{}", outcome.describe());
        panics_with(&outcome, "init");
    }
}

#[test]
fn a_missing_init_is_named() {
    let image = Image::new(&tree("bin/other", 0o755, HELLO).archive());
    panics_with(&boot(&machine(&image, "quiet rdinit=/no/such/init")).unwrap(), "/no/such/init");
}

#[test]
fn an_init_that_may_not_run_is_named() {
    let image = Image::new(&tree("notexec", 0o644, HELLO).archive());
    panics_with(&boot(&machine(&image, "quiet rdinit=/notexec")).unwrap(), "/notexec");
}

#[test]
fn an_init_that_is_no_program_is_named() {
    let image = Image::new(&tree("text", 0o755, "no program\n").archive());
    panics_with(&boot(&machine(&image, "quiet rdinit=/text")).unwrap(), "/text");
}

#[test]
fn an_init_that_exits_ends_in_a_panic() {
    let image = Image::new(&tree("init", 0o755, "#!/bin/sh\nexit 3\n").archive());
    let outcome = boot(&machine(&image, "quiet")).unwrap();
    panics_with(&outcome, "Attempted to kill init");
    assert!(outcome.output.contains("0x00000300"), "{}", outcome.describe());
}

#[test]
fn the_demonstration_completes() {
    let line = "console=ttyS0 quiet rdinit=/usr/lib/alea/demo";
    let outcome = boot(&alea().append(line)).unwrap();
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
    assert!(outcome.output.contains("demonstration: complete"), "{}", outcome.describe());
}
