//! Seeds from outside: what the firmware, the boot loader and a TPM bring, and whom a confidential machine believes.

mod uefi;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alea_tests::{PATIENCE, Shell, alea, boot};
use xtask_guest::fake_tpm::{self, INTERFACES, random_answer};
use xtask_guest::guest::Guest;
use xtask_guest::qemu::Machine;
use xtask_host::paths;

/// Where it does not matter which interface a TPM has.
const CRB: &str = INTERFACES[0];

#[track_caller]
fn says(log: &str, text: &str) {
    assert!(log.contains(text), "{text:?} is not in the log:\n{log}");
}

/// Boots a machine without RDRAND, with `words` on its command line, and returns its log and `/proc/alea/random`.
fn facts(words: &str, args: &[String]) -> String {
    let machine = alea().cpu("qemu64").append(&format!("console=ttyS0 {words}")).args(args);
    let mut shell = Shell::start(&machine).unwrap();
    shell.run("dmesg; cat /proc/alea/random").unwrap()
}

/// An ACPI table `OEM0` of `maker`, with `seed`.
fn oem0(folder: &Path, maker: &str, seed: &[u8]) -> [String; 2] {
    let file = folder.join("oem0");
    std::fs::write(&file, seed).unwrap();
    let table = format!("sig=OEM0,oem_table_id={maker},data={}", file.display());
    ["-acpitable".to_owned(), table]
}

#[test]
fn a_seed_of_the_firmware_makes_the_service_ready() {
    let folder = tempfile::tempdir().unwrap();
    let seed = noise(0, 64);
    let log = facts("", &oem0(folder.path(), "MICROSFT", &seed));
    says(&log, "boot_seed 64 256 0");
    assert!(!log.contains("samples of TSC jitter"), "{log}");
    says(&log, "random: ready");
    let log = facts("random.trust_bootloader=off", &oem0(folder.path(), "MICROSFT", &seed));
    says(&log, "boot_seed 64 0 0");
    says(&log, "samples of TSC jitter");
}

#[test]
fn a_table_that_is_no_seed_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (maker, len) in [("MICROSFT", 7), ("MICROSFT", 4061), ("SOMEBODY", 64)] {
        let log = facts("", &oem0(folder.path(), maker, &vec![7; len]));
        says(&log, "boot_seed 0 0 0");
        says(&log, "samples of TSC jitter");
    }
}

/// A seed that another kernel could find would seed two kernels. (A table of somebody else stays as it is, which shows that the
/// search finds what is there.)
#[test]
fn a_seed_is_wiped_where_it_lay() {
    let folder = tempfile::tempdir().unwrap();
    let seed = noise(0, 64);
    for (maker, stays) in [("MICROSFT", false), ("SOMEBODY", true)] {
        let machine = alea().append("console=ttyS0").args(oem0(folder.path(), maker, &seed));
        let mut guest = Guest::start(&machine).unwrap();
        guest.wait_for("random: ready", PATIENCE).unwrap();
        let file = folder.path().join("memory");
        guest.monitor().unwrap().save_memory(0..512 << 20, &file).unwrap();
        guest.stop().unwrap();
        let memory = std::fs::read(file).unwrap();
        let contains = |what: &[u8]| memory.windows(what.len()).any(|window| window == what);
        assert!(contains(maker.as_bytes()), "the table is not in memory");
        assert_eq!(contains(&seed), stays, "{maker}");
    }
}

/// Bytes that pass for random ones: no two requests get the same.
fn noise(request: usize, len: usize) -> Vec<u8> {
    let word = |n: usize| (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..len).map(|at| word(request * 1000 + at / 8)[at % 8]).collect()
}

/// Starts of a machine, of which one must have had the jitter that it needs.
const STARTS: usize = 4;

/// What a machine without RDRAND logs that has a TPM with this interface at this socket. No initramfs: QEMU would load it over
/// the ACPI tables, for which a TPM's log leaves less room than QEMU reckons with.
fn with_tpm(interface: &str, words: &str, socket: &Path) -> String {
    let words = format!("console=ttyS0 alea.selftest=only {words}");
    let machine = Machine::new(paths::kernel())
        .cpu("qemu64")
        .append(&words)
        .args(fake_tpm::arguments(interface, socket));
    for _ in 1..STARTS {
        let outcome = boot(&machine).unwrap();
        // Jitter, of which a start needs some where the TPM gives none, is refused now and then while the host is busy
        // (docs/assessment.md).
        if !outcome.output.contains("the machine has no source of entropy") {
            return outcome.powered_off().unwrap().output;
        }
    }
    boot(&machine).unwrap().powered_off().unwrap().output
}

/// The same, with a TPM that gives these answers.
fn with_fake(
    interface: &str,
    words: &str,
    answer: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
) -> String {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("tpm");
    fake_tpm::start(&socket, answer).unwrap();
    with_tpm(interface, words, &socket)
}

#[test]
fn a_tpm_makes_the_service_ready() {
    for interface in INTERFACES {
        let log = with_fake(interface, "", |request| random_answer(&noise(request, 32)));
        says(&log, "random: the TPM delivers");
        assert!(!log.contains("samples of TSC jitter"), "{interface}:\n{log}");
    }
    let log = with_fake(CRB, "alea.trust_tpm=off", |request| random_answer(&noise(request, 32)));
    says(&log, "samples of TSC jitter");
}

/// A TPM may give fewer bytes than it is asked for, and is asked again.
#[test]
fn a_tpm_that_gives_little_at_once_is_asked_more_often() {
    for interface in INTERFACES {
        let log = with_fake(interface, "", |request| random_answer(&noise(request, 20)));
        says(&log, "random: the TPM delivers");
    }
}

/// What lies is neither credited nor asked again, and costs nothing but a line of the log.
#[test]
fn a_tpm_that_lies_is_disabled() {
    let long = |size: u32, count: u16| {
        let mut answer = random_answer(&noise(0, 32));
        answer[2..6].copy_from_slice(&size.to_be_bytes());
        answer[10..12].copy_from_slice(&count.to_be_bytes());
        answer
    };
    let refusal = vec![0x80, 0x01, 0, 0, 0, 10, 0, 0, 0x09, 0x22];
    for (answer, why) in [
        (random_answer(&[0; 32]), "the hardware generator delivers zeros"),
        (long(44, 4000), "its answer's lengths cannot be true"),
        (long(44, 33), "its answer's lengths cannot be true"),
        (random_answer(&noise(0, 33)), "its answer is cut off"),
        (refusal, "it refuses with code 0x922"),
        (vec![0x80, 0xc4, 0, 0, 0, 10, 0, 0, 0, 0], "its answer has the tag 0x80c4"),
    ] {
        for interface in INTERFACES {
            let answer = answer.clone();
            let log = with_fake(interface, "", move |_| answer.clone());
            says(&log, &format!("the TPM is not reliable, disabled: {why}"));
            says(&log, "samples of TSC jitter");
            says(&log, "random: ready");
        }
    }
}

/// Firmware starts a TPM; where it has not, that is tried once.
#[test]
fn a_tpm_that_was_not_started_is_started() {
    let log = with_fake(CRB, "", |request| match request {
        0 => vec![0x80, 0x01, 0, 0, 0, 10, 0, 0, 0x01, 0x00],
        _ => random_answer(&noise(request, 32)),
    });
    says(&log, "random: the TPM delivers");
    let log = with_fake(CRB, "", |_| vec![0x80, 0x01, 0, 0, 0, 10, 0, 0, 0x01, 0x00]);
    says(&log, "the TPM is not reliable, disabled: it was not started");
}

/// A TPM that takes its time holds no boot up, and counts at a later reseed.
#[test]
fn a_slow_tpm_is_not_waited_for() {
    let slow = |request| {
        std::thread::sleep(Duration::from_secs(5));
        random_answer(&noise(request, 32))
    };
    for interface in INTERFACES {
        let log = with_fake(interface, "", slow);
        assert!(!log.contains("the TPM"), "{log}");
        says(&log, "samples of TSC jitter");
        says(&log, "random: ready");
    }
}

/// The emulator that others use.
struct Swtpm(Child);

impl Swtpm {
    /// Starts it, with its state and its socket in `folder`.
    fn start(folder: &Path) -> Self {
        let socket = folder.join("tpm");
        let state = format!("dir={}", folder.display());
        let control = format!("type=unixio,path={}", socket.display());
        let mut command = Command::new("swtpm");
        command.args(["socket", "--tpm2", "--tpmstate", &state, "--ctrl", &control]);
        let child = command.stdin(Stdio::null()).spawn();
        let swtpm = Self(child.expect("`cargo xtask setup` installs swtpm"));
        let deadline = Instant::now() + PATIENCE;
        while !socket.exists() {
            assert!(Instant::now() < deadline, "swtpm does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        swtpm
    }
}

impl Drop for Swtpm {
    fn drop(&mut self) {
        let _ended_with_qemu = self.0.kill();
        let _status = self.0.wait();
    }
}

#[test]
fn swtpm_is_understood() {
    for interface in INTERFACES {
        let folder = tempfile::tempdir().unwrap();
        let _swtpm = Swtpm::start(folder.path());
        let log = with_tpm(interface, "", &folder.path().join("tpm"));
        says(&log, "random: the TPM delivers");
    }
}

/// A confidential machine believes nothing that comes through its host, and does not start without instructions of its CPU.
#[test]
fn a_confidential_machine_credits_its_cpu_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut args = oem0(folder.path(), "MICROSFT", &noise(0, 64)).to_vec();
    args.extend(["-device".to_owned(), "virtio-rng-pci".to_owned()]);
    let machine = alea().append("console=ttyS0 alea.confidential=on").args(args);
    let mut shell = Shell::start(&machine).unwrap();
    let log = shell.run("cat /proc/alea/random").unwrap();
    says(&log, "boot_seed 64 0 0");
    let of = |source: &str| log.lines().find_map(|line| line.trim().strip_prefix(source));
    let virtio_rng: Vec<_> = of("virtio_rng ").unwrap().split(' ').collect();
    assert!(virtio_rng[0] != "0" && virtio_rng[1] == "0", "{log}");
    says(&log, "state Ready");
    let without = alea().cpu("qemu64").append("console=ttyS0 alea.confidential=on");
    let ended = boot(&without).unwrap();
    says(&ended.output, "a confidential virtual machine needs RDRAND or RDSEED that works");
}
