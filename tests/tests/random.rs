//! Randomness on the running machine: sources present, absent, broken and silent.

use std::path::Path;

use alea_tests::{PATIENCE, Shell, alea, boot};
use xtask_guest::guest::{Guest, Limits};
use xtask_guest::qemu::Machine;

/// Boots to the end of the self tests and returns the log.
fn log(cpu: &str, append: &str, args: &[&str]) -> String {
    log_of(alea().cpu(cpu).args(args), append)
}

fn log_of(machine: Machine, append: &str) -> String {
    let machine = machine.append(&format!("console=ttyS0 alea.selftest=only {append}"));
    boot(&machine).unwrap().powered_off().unwrap().output
}

#[track_caller]
fn says(log: &str, text: &str) {
    assert!(log.contains(text), "{text:?} is not in the log:\n{log}");
}

#[test]
fn ready_by_jitter_alone() {
    let log = log("qemu64", "", &[]);
    says(&log, "samples of TSC jitter");
    assert!(!log.contains("SplitMix64"), "a generator that nobody asked for is seeded:\n{log}");
    says(&log, "random: ready, 256 bits credited, generator chacha20 (Sse2)");
}

/// Parts that shipped broken, in the CPU's place: each is found out, and the rest makes the service ready.
#[test]
fn a_broken_instruction_is_found_and_replaced() {
    for (kind, fault) in [
        ("zeros", "delivers zeros or all-ones"),
        ("ones", "delivers zeros or all-ones"),
        ("repeat", "repeats itself"),
        ("silent", "delivers nothing"),
        // Eight words of it pass alone.
        ("cycle", "repeats itself"),
    ] {
        let log = log("max", &format!("alea.rdrand={kind} alea.rdseed={kind}"), &[]);
        says(&log, &format!("RDRAND is not reliable, disabled: the hardware generator {fault}"));
        // RDSEED may run dry without being broken.
        assert_eq!(log.contains("RDSEED is not reliable"), kind != "silent", "{log}");
        says(&log, "samples of TSC jitter");
        says(&log, "random: ready, 256 bits credited");
    }
    // RDSEED alone fails: RDRAND goes on. Counted instructions, as below.
    let log = log_of(alea().cpu("max").icount(true), "alea.rdseed=ones");
    says(&log, "RDSEED is not reliable, disabled");
    assert!(!log.contains("RDRAND is not reliable"), "{log}");
    assert!(!log.contains("samples of TSC jitter"), "{log}");
    says(&log, "random: ready, 256 bits credited");
}

/// From the kernel's first instruction, in a machine whose time is counted instructions: a nanosecond for each, or a
/// gigahertz with one in a cycle.
#[test]
fn rdrand_makes_the_service_ready_within_five_milliseconds() {
    for cpu in ["max", "max,rdseed=off"] {
        let log = log_of(alea().cpu(cpu).icount(true), "");
        let line = log.lines().find(|line| line.contains("random: crng init done"));
        let at = line.and_then(|line| line.trim_start_matches(['[', ' ']).split(']').next());
        let at: f64 = at.unwrap().parse().unwrap();
        assert!(at > 0.0 && at < 0.005, "ready after {at} s:\n{log}");
        assert!(!log.contains("samples of TSC jitter"), "{log}");
    }
}

/// All words of RDRAND between two seeds of its own stem from 128 bits: it alone makes the service ready by words of two.
#[test]
fn rdrand_alone_is_asked_across_a_reseed_of_its_own() {
    // Counted instructions: on a busy host the 1,022 words may take longer than a boot waits for them.
    let mut shell = Shell::start(&alea().cpu("max,rdseed=off").icount(true)).unwrap();
    let log = shell.run("cat /proc/alea/random").unwrap();
    says(&log, &format!("rdrand {} 256 0", (8 + 1022 + 8) * 8));
    says(&log, "state Ready");
}

#[test]
fn an_untrusted_cpu_is_mixed_in_but_not_credited() {
    let log = log("max", "random.trust_cpu=off", &[]);
    says(&log, "samples of TSC jitter");
    says(&log, "random: ready");
}

#[test]
fn a_seed_from_the_host_makes_the_service_ready() {
    let seed = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(seed.path(), [0x42; 32]).unwrap();
    let file = format!("name=opt/org.alea/seed,file={}", seed.path().display());
    let log = log("qemu64", "", &["-fw_cfg", &file]);
    assert!(!log.contains("samples of TSC jitter"), "{log}");
    says(&log, "random: ready");
    let log = self::log("qemu64", "random.trust_bootloader=off", &["-fw_cfg", &file]);
    says(&log, "samples of TSC jitter");
}

/// What tells one machine from another is mixed in and not credited: the firmware's description of it, the
/// clock, and the addresses of network cards, one of them behind a bridge; and a source behind a bridge is found.
#[test]
fn the_machine_and_its_network_cards_are_mixed_in() {
    let behind = "disable-legacy=on,bus=behind,addr=";
    let cards = ["e1000".to_owned(), "rtl8139".to_owned(), format!("virtio-net-pci,{behind}3")];
    let mut args = vec!["-device".to_owned(), "pci-bridge,id=behind,chassis_nr=1".to_owned()];
    for device in cards.into_iter().chain([format!("virtio-rng-pci,{behind}4")]) {
        args.extend(["-device".to_owned(), device]);
    }
    // Counted instructions: on a busy host the device may answer after the ten milliseconds that a boot waits for it.
    let mut shell = Shell::start(&alea().args(args).icount(true)).unwrap();
    let log = shell.run("cat /proc/alea/random").unwrap();
    says(&log, "mac 18 0 0");
    let mixed = |source: &str| {
        let mut lines = log.lines().map(|line| line.trim().split(' ').collect::<Vec<_>>());
        let line = lines.find(|words| words.first() == Some(&source) && words.len() == 5);
        let words = line.unwrap_or_else(|| panic!("no {source} in {log}"));
        [1, 2].map(|at| words[at].parse::<u64>().unwrap())
    };
    assert_eq!(mixed("clock")[1], 0);
    assert!(mixed("firmware")[0] > 100 && mixed("firmware")[1] == 0, "{log}");
    assert_eq!(mixed("virtio_rng")[1], 256, "{log}");
}

/// No source makes the first key alone: all that boot can collect is in it.
#[test]
fn the_first_key_is_made_of_every_source() {
    let id = "vmgenid,guid=01234567-89ab-cdef-0123-456789abcdef";
    // Counted instructions, as above: what a boot does not wait for is not in the key.
    let machine = alea().args(["-device", "virtio-rng-pci", "-device", id]).icount(true);
    let mut shell = Shell::start(&machine).unwrap();
    let log = shell.run("cat /proc/alea/random").unwrap();
    says(&log, "first_key clock machine firmware vm_id rdseed rdrand virtio_rng jitter");
    says(&log, "ready 1");
}

/// Where a device of QEMU takes its bytes from.
fn virtio_rng(file: &Path) -> [String; 4] {
    let object = format!("rng-random,id=source,filename={}", file.display());
    ["-object".into(), object, "-device".into(), "virtio-rng-pci,rng=source".into()]
}

#[test]
fn virtio_rng_makes_the_service_ready() {
    let log = log("qemu64", "", &["-device", "virtio-rng-pci"]);
    says(&log, "virtio-rng delivers");
    says(&log, "random: ready");
    let log = self::log("qemu64", "alea.trust_virtio_rng=off", &["-device", "virtio-rng-pci"]);
    assert!(!log.contains("virtio-rng delivers"), "{log}");
    says(&log, "samples of TSC jitter");
}

#[test]
fn a_virtio_rng_of_zeros_is_disabled() {
    let args = virtio_rng(Path::new("/dev/zero"));
    let log = log("qemu64", "", &args.each_ref().map(String::as_str));
    says(&log, "virtio-rng is not reliable, disabled: the hardware generator delivers zeros");
    says(&log, "samples of TSC jitter");
    says(&log, "random: ready");
}

/// A device that never answers costs the boot a moment and nothing else.
#[test]
fn a_silent_virtio_rng_does_not_hold_up_the_boot() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Held open for both: QEMU reads nothing, and no end either.
    let _held = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let args = virtio_rng(&pipe);
    let log = log("qemu64", "", &args.each_ref().map(String::as_str));
    assert!(!log.contains("virtio-rng"), "{log}");
    says(&log, "samples of TSC jitter");
    says(&log, "random: ready");
}

#[test]
fn weak_generators_warn_and_impossible_ones_are_refused() {
    for name in ["splitmix64", "rdrand"] {
        let log = log("max", &format!("random.generator={name}"), &[]);
        says(&log, &format!("generator {name} is for comparison only"));
        says(&log, &format!("random: ready, 256 bits credited, generator {name}"));
    }
    let log = log("qemu64", "random.generator=splitmix64", &[]);
    says(&log, "SplitMix64 is seeded from the jitter of the TSC");
    let log = self::log("qemu64", "random.generator=rdrand", &[]);
    says(&log, "no usable RDRAND, using chacha20");
    says(&self::log("max", "random.generator=xorshift", &[]), "unknown generator");
    let log = self::log("max", "random.generator=rdrand alea.rdrand_cost=1000001", &[]);
    says(&log, "alea.rdrand_cost=1000001 is not from 0 to 1000000");
}

/// SplitMix64 is undone by any eight bytes of its output; the default generator is not.
#[test]
fn eight_bytes_do_not_give_the_next_eight() {
    for (generator, broken) in [("splitmix64", true), ("chacha20", false)] {
        let line = "console=ttyS0 quiet rdinit=/usr/lib/alea/clone random.generator=";
        let machine = alea().append(&format!("{line}{generator}"));
        let mut guest = Guest::start(&machine).unwrap();
        guest.wait_for("clone: waiting", PATIENCE).unwrap();
        let words = words(&guest.output());
        guest.stop().unwrap();
        assert!(words.len() > 1000, "{generator} drew only {} words", words.len());
        let told = words.windows(2).filter(|pair| predicts(pair[0], pair[1])).count();
        if broken {
            assert!(told > words.len() / 2, "the attack found {told} of {}", words.len());
        } else {
            assert_eq!(told, 0, "the next word is told by the one before");
        }
    }
}

fn predicts(word: u64, next: u64) -> bool {
    use alea_random::splitmix64::{recover_state, step};
    step(recover_state(word)).1 == next
}

/// What `userland/random/clone.c` drew from getrandom, as words.
fn words(output: &str) -> Vec<u64> {
    let draws = output.lines().filter_map(|line| line.trim().strip_prefix("draw getrandom "));
    let word = |hex: &[u8]| {
        let text = std::str::from_utf8(hex).ok()?;
        u64::from_str_radix(text, 16).ok().map(u64::swap_bytes)
    };
    draws.flat_map(|hex| hex.as_bytes().chunks_exact(16).filter_map(word)).collect()
}

#[test]
fn ten_million_draws_of_eight_threads_all_differ() {
    let machine = alea().smp(4).append("console=ttyS0 quiet rdinit=/usr/lib/alea/duplicates");
    // A long silence while it draws.
    let outcome = Guest::start(&machine).unwrap().finish(Limits::total(30 * PATIENCE)).unwrap();
    let log = outcome.powered_off().unwrap().output;
    says(&log, "duplicates: getrandom: 10000000 draws, 0 equal, 0 failed");
    says(&log, "duplicates: vdso: 10000000 draws, 0 equal, 0 failed");
}
