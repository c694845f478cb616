//! Randomness on the running machine: sources present and absent, and memory searched for secrets and for
//! the keys that made them.

use std::arch::global_asm;
use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use alea_tests::{PATIENCE, Shell, alea, boot};
use xtask_guest::guest::{Guest, Limits};
use xtask_host::paths;

/// What `userland/random/erasure.c` masks its secrets with.
const MASK: u8 = 0xa5;
const ERASURE: &str = "console=ttyS0 rdinit=/usr/lib/alea/erasure quiet";

/// Boots to the end of the self tests and returns the log.
fn log(cpu: &str, append: &str, args: &[&str]) -> String {
    let machine = alea().cpu(cpu).append(&format!("console=ttyS0 alea.selftest=only {append}"));
    let outcome = boot(&machine.args(args)).unwrap().powered_off().unwrap();
    outcome.output
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
    // RDSEED alone fails: RDRAND goes on.
    let log = log("max", "alea.rdseed=ones", &[]);
    says(&log, "RDSEED is not reliable, disabled");
    assert!(!log.contains("RDRAND is not reliable"), "{log}");
    assert!(!log.contains("samples of TSC jitter"), "{log}");
    says(&log, "random: ready, 256 bits credited");
}

/// All words of RDRAND between two seeds of its own stem from 128 bits: it alone makes the service ready by words of two.
#[test]
fn rdrand_alone_is_asked_across_a_reseed_of_its_own() {
    // Counted instructions: on a busy host the 1,022 words may take longer than a boot waits for them.
    let mut shell = Shell::start(&alea().cpu("max,rdseed=off").icount(true)).unwrap();
    let log = shell.run("cat /proc/alea/random").unwrap();
    says(&log, &format!("rdrand {} 256 0", (8 + 1022 + 8) * 8));
    says(&log, "jitter 512 0 0");
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
    let mut shell = Shell::start(&alea().args(args)).unwrap();
    let log = shell.run("cat /proc/alea/random").unwrap();
    says(&log, "mac 18 0 0");
    let mixed = |source: &str| {
        let mut lines = log.lines().map(|line| line.trim().split(' ').collect::<Vec<_>>());
        let line = lines.find(|words| words.first() == Some(&source) && words.len() == 4);
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
    let machine = alea().args(["-device", "virtio-rng-pci", "-device", id]);
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
}

/// SplitMix64 is undone by any eight bytes of its output; the default generator is not.
#[test]
fn eight_bytes_do_not_give_the_next_eight() {
    for (generator, broken) in [("splitmix64", true), ("chacha20", false)] {
        let line = "console=ttyS0 quiet rdinit=/usr/lib/alea/clone random.generator=";
        let machine = alea().memory("256").append(&format!("{line}{generator}"));
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

/// Whoever reads all memory after the secrets were drawn and wiped finds none of them: not in the
/// batch, not on a kernel stack, not in a buffer.
#[test]
fn drawn_secrets_are_nowhere_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, dump) = (folder.path().join("monitor"), folder.path().join("memory"));
    let monitor = format!("unix:{},server=on,wait=off", socket.display());
    // The archive without the ABI programs: less memory to search.
    let machine = alea().initrd(paths::programs_initramfs()).memory("256").append(ERASURE);
    let machine = machine.args(["-monitor", &monitor]);
    let mut guest = Guest::start(&machine).unwrap();
    guest.wait_for("erasure: waiting", PATIENCE).unwrap();
    let secrets = secrets(&guest.output());
    assert!(secrets.len() > 100, "{}", guest.output());
    dump_memory(&socket, &dump, 256 << 20);
    guest.stop().unwrap();

    let memory = std::fs::read(&dump).unwrap();
    let mut search = Search::new();
    for (n, secret) in secrets.iter().enumerate() {
        // Half a secret is enough, and so is the text of a masked one: the terminal still has some,
        // which shows that the dump is really this machine's memory.
        let text: String = secret[..4].iter().map(|byte| format!("{:02x}", byte ^ MASK)).collect();
        search.add(text.as_bytes(), Found::Masked);
        search.add(&secret[..8], Found::Secret(n));
        search.add(&secret[8..], Found::Secret(n));
    }
    let found = search.run(&memory);
    assert!(found.contains(&Found::Masked), "the dump is no memory of this machine");
    let left: Vec<_> = found.iter().filter(|found| **found != Found::Masked).collect();
    assert!(left.is_empty(), "still in memory: {left:?}");
    let keys = Keys::of(&secrets);
    let left = keys.search(&memory);
    assert!(left.is_empty(), "keys that made secrets are still in memory, at {left:#x?}");
    keys.would_find_one(&memory[1 << 20..2 << 20]);
}

global_asm!(
    include_str!("../../kernel/vdso/src/keystream.s"),
    include_str!("../../kernel/src/arch/x86_64/copy/chacha20.s"),
);

unsafe extern "sysv64" {
    fn alea_chacha20_sse2(key: *const u8, counter: u32, out: *mut u8, groups: usize) -> u32;
}

/// A search for ChaCha20 keys: any 32 bytes whose keystream has one of the secrets in it, as a key of a batch
/// or of a request, or as a base key. The words are those of the guest's keystream, in rows of four blocks
/// each where the guest's have eight; a half of a row is in both.
struct Keys {
    words: HashSet<u64>,
    /// Which first two bytes any of the words has.
    starts: Vec<bool>,
}

impl Keys {
    fn of(secrets: &[[u8; 16]]) -> Self {
        let halves = secrets.iter().flat_map(|secret| secret.as_chunks::<8>().0);
        Self::of_words(halves.map(|half| u64::from_le_bytes(*half)).collect())
    }

    fn of_words(words: HashSet<u64>) -> Self {
        let mut starts = vec![false; 1 << 16];
        words.iter().for_each(|word| starts[usize::from(*word as u16)] = true);
        Self { words, starts }
    }

    /// The first of the eight blocks that one key is used for at a time.
    fn group(key: &[u8]) -> [u8; 512] {
        let mut group = [0; 512];
        assert_eq!(key.len(), 32);
        // SAFETY: a whole key and a whole group; every x86_64 has SSE2.
        unsafe { alea_chacha20_sse2(key.as_ptr(), 0, group.as_mut_ptr(), 1) };
        group
    }

    /// Where the keys lie, at multiples of eight bytes, as all keys of the kernel and of the vDSO do.
    fn search(&self, memory: &[u8]) -> Vec<usize> {
        let mut found = Vec::new();
        for (page, bytes) in memory.chunks(4096).enumerate() {
            let (words, _) = bytes.as_chunks::<8>();
            let mut run = 0;
            for at in 0..words.len() {
                run = if may_be_random(u64::from_le_bytes(words[at])) { run + 1 } else { 0 };
                if run < 4 || !is_varied(&bytes[at * 8 - 24..at * 8 + 8]) {
                    continue;
                }
                let key = &bytes[at * 8 - 24..at * 8 + 8];
                if self.made_by(Self::group(key)) || self.made_by(Self::group(&below(key))) {
                    found.push(page * 4096 + at * 8 - 24);
                }
            }
        }
        found
    }

    /// Whether this group, or one of the next that follow from it by key erasure, holds a secret.
    fn made_by(&self, mut group: [u8; 512]) -> bool {
        for _ in 0..CHAIN {
            let (made, _) = group.as_chunks::<8>();
            if made.iter().any(|word| self.has(word)) {
                return true;
            }
            group = Self::group(&next_key(&group));
        }
        false
    }

    fn has(&self, word: &[u8; 8]) -> bool {
        let start = usize::from(u16::from_le_bytes([word[0], word[1]]));
        self.starts[start] && self.words.contains(&u64::from_le_bytes(*word))
    }

    /// Puts a key into some memory and expects that the search finds it, and only there.
    fn would_find_one(mut self, memory: &[u8]) {
        let mut memory = memory.to_vec();
        let key: Vec<u8> = (0..32u8).map(|n| n.wrapping_mul(73) ^ 0x5c).collect();
        memory[0x4568..0x4568 + 32].copy_from_slice(&key);
        // Of its own group, of the next, and of the one that a CPU's key under it makes.
        let (own, cpu) = (Self::group(&key), Self::group(&below(&key)));
        for group in [own, Self::group(&next_key(&own)), cpu, Self::group(&next_key(&cpu))] {
            let word = group[40..48].try_into().unwrap();
            self = Self::of_words([u64::from_le_bytes(word)].into());
            assert_eq!(self.search(&memory), [0x4568], "the search does not find what is there");
        }
    }
}

/// How many groups of a key's successors are looked at: a key that a reseed made serves many.
const CHAIN: usize = 2;

/// The key that replaces the one that made this group: its first 32 bytes, in the order of the guest's
/// routine, whose rows have eight blocks where those here have four.
fn next_key(group: &[u8; 512]) -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(&group[..16]);
    key[16..].copy_from_slice(&group[256..272]);
    key
}

/// What a base key makes for a CPU: the second half of its first block, in order.
fn below(base: &[u8]) -> [u8; 32] {
    let group = Keys::group(base);
    let mut key = [0; 32];
    for (n, word) in key.chunks_mut(4).enumerate() {
        word.copy_from_slice(&group[(8 + n) * 16..][..4]);
    }
    key
}

/// Whether eight bytes look like no address, small number or repetition. One perfectly random key in
/// 8,000 has a word that does not pass.
fn may_be_random(word: u64) -> bool {
    let (top, ones) = (word >> 48, word.count_ones());
    top != 0 && top != 0xffff && (12..=52).contains(&ones)
}

/// Whether 32 bytes differ as those of a key: at least 24 values, of 30 that are to be expected, and no text.
fn is_varied(bytes: &[u8]) -> bool {
    let mut seen = [0u64; 4];
    for &byte in bytes {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|part| part.count_ones()).sum::<u32>() >= 24 && !bytes.is_ascii()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Found {
    Masked,
    Secret(usize),
}

/// A search for many eight-byte strings at once, fast even without optimisation.
struct Search {
    starts: Vec<bool>,
    strings: HashMap<[u8; 8], Found>,
}

impl Search {
    fn new() -> Self {
        Self { starts: vec![false; 1 << 16], strings: HashMap::new() }
    }

    fn add(&mut self, string: &[u8], found: Found) {
        let string: [u8; 8] = string.try_into().unwrap();
        self.starts[usize::from(u16::from_le_bytes([string[0], string[1]]))] = true;
        self.strings.insert(string, found);
    }

    fn run(&self, memory: &[u8]) -> HashSet<Found> {
        let mut found = HashSet::new();
        for at in (0..memory.len()).step_by(4096) {
            let page = &memory[at..memory.len().min(at + 4096 + 7)];
            if page.iter().all(|&byte| byte == 0) {
                continue;
            }
            for window in page.windows(8) {
                let start = u16::from_le_bytes([window[0], window[1]]);
                if self.starts[usize::from(start)] {
                    found.extend(self.strings.get(window));
                }
            }
        }
        found
    }
}

/// The secrets that the guest showed, unmasked.
fn secrets(output: &str) -> Vec<[u8; 16]> {
    let hex = |text: &str, at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    output
        .lines()
        .filter_map(|line| line.trim().strip_prefix("secret "))
        .filter_map(|text| {
            let mut secret = [0; 16];
            for (n, byte) in secret.iter_mut().enumerate() {
                *byte = hex(text, 2 * n)? ^ MASK;
            }
            Some(secret)
        })
        .collect()
}

/// Stops the machine and has QEMU write its memory to a file.
fn dump_memory(socket: &Path, dump: &Path, size: u64) {
    let mut monitor = UnixStream::connect(socket).unwrap();
    monitor.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let command = format!("stop\npmemsave 0 {size} \"{}\"\n", dump.display());
    monitor.write_all(command.as_bytes()).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while std::fs::metadata(dump).map_or(0, |file| file.len()) < size {
        assert!(Instant::now() < deadline, "QEMU does not write the dump");
        // The monitor's echo has to be read, or it stops listening; a timeout is no error.
        let _echo = monitor.read(&mut [0; 4096]);
    }
}
