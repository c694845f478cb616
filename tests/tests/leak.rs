//! Nothing is lost: free memory before and after thousands of forks, execs, threads, mappings, files,
//! descriptors, terminals and mounts.

use std::io::Write;

use alea_tests::{alea, boot};
use xtask_guest::guest::End;
use xtask_guest::initramfs::Tree;
use xtask_host::paths;

const SCRIPT: &str = "#!/bin/sh
mount -t proc proc /proc
mount -t devtmpfs dev /dev
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
/usr/lib/alea/leak
poweroff -f
";

/// What may be missing after all rounds of one kind of work: less than one page in ten rounds of the
/// shortest, and less than 130 bytes a round of the longest.
const ALLOWED_KIB: i64 = 192;

#[test]
fn free_memory_is_the_same_before_and_after() {
    let mut archives = std::fs::read(paths::programs_initramfs()).unwrap();
    let mut script = Tree::new();
    script.file("leak-init", 0o755, SCRIPT);
    archives.extend(script.archive());
    let mut image = tempfile::NamedTempFile::new().unwrap();
    image.write_all(&archives).unwrap();
    let machine = alea().initrd(image.path()).append("console=ttyS0 quiet rdinit=/leak-init");
    let outcome = boot(&machine).unwrap();
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
    assert!(outcome.output.contains("leak-end"), "{}", outcome.describe());
    let lines = outcome.output.lines().filter_map(|line| line.strip_prefix("leak "));
    let mut leaks = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok());
        let (Some(before), Some(after)) = (number(2), number(3)) else {
            panic!("not understood: {line}");
        };
        println!("{line}");
        if before - after > ALLOWED_KIB {
            leaks.push(line.to_owned());
        }
    }
    assert!(leaks.is_empty(), "memory was lost: {leaks:#?}");
}
