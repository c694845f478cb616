//! A machine that has no entropy, and what programs do to make it hand out bytes all the same.

use std::io::Write;
use std::time::Duration;

use alea_random::splitmix64::SplitMix64;
use alea_tests::{PATIENCE, alea, boot, in_turn};
use xtask_check::twins::{self, Attack, Boot, Compared, Source, Verdict};
use xtask_guest::fake_rng;
use xtask_guest::guest::{Guest, Limits};
use xtask_guest::symbolize::address_of;
use xtask_host::paths;

/// Interfaces that promise random bytes at any time, and those that promise them once the kernel is ready.
const PROMISED: usize = 8;
const PROMISED_WHEN_READY: usize = PROMISED + 6;

#[track_caller]
fn says(log: &str, text: &str) {
    assert!(log.contains(text), "{text:?} is not in the log:\n{log}");
}

/// Without RDRAND and with a clock that counts instructions there is nothing to be had: everything waits,
/// says so, or hands out what it may; then an administrator brings a seed.
#[test]
fn without_a_source_everything_waits_for_one() {
    waits_for_a_source("");
}

/// A weak generator that nothing can seed does not serve: what a program gets is the default one's, or it waits for that.
#[test]
fn without_a_source_no_weak_generator_serves() {
    let log = waits_for_a_source("random.generator=splitmix64");
    says(&log, "SplitMix64 cannot be seeded, using chacha20");
}

fn waits_for_a_source(words: &str) -> String {
    let machine = alea().cpu("qemu64").icount(true);
    let line = format!("console=ttyS0 rdinit=/usr/lib/alea/nosource {words}");
    let log = boot(&machine.append(line.trim_end())).unwrap().powered_off().unwrap().output;
    says(&log, "random: no source of entropy; waiting for user space to bring some");
    says(&log, "random: NOT ready");
    says(&log, "uninitialized urandom read (16 bytes read)");
    says(&log, "nosource: done");
    let facts: Vec<_> = log.lines().filter(|line| line.trim_end().ends_with(": yes")).collect();
    let denied: Vec<_> = log.lines().filter(|line| line.trim_end().ends_with(": no")).collect();
    assert!(denied.is_empty(), "{denied:#?}");
    assert_eq!(facts.len(), 22, "{log}");
    log
}

/// A device that says nothing at boot makes the machine ready when it answers, and who waited for bytes gets them.
#[test]
fn a_late_virtio_rng_makes_the_machine_ready() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("rng");
    let mut good = SplitMix64::new(1);
    let words: Vec<u8> = (0..4096).flat_map(|_| good.next_u64().to_le_bytes()).collect();
    fake_rng::start(&socket, move |given, wanted| {
        if given == 0 {
            std::thread::sleep(Duration::from_secs(3));
        }
        words.iter().cycle().skip(given % words.len()).take(wanted).copied().collect()
    })
    .unwrap();
    let script = "head -c 16 /dev/random | wc -c; dmesg | grep random:; poweroff -f";
    let line = format!(
        "console=ttyS0 quiet rdinit=/bin/sh -- -c \"mount -t devtmpfs dev /dev; {script}\""
    );
    let machine = alea().cpu("qemu64").icount(true).args(fake_rng::arguments(&socket));
    let log = boot(&machine.append(&line)).unwrap().powered_off().unwrap().output;
    says(&log, "random: NOT ready");
    says(&log, "random: virtio-rng delivers");
    assert!(log.lines().any(|line| line.trim_end() == "16"), "{log}");
}

/// Two attacked boots of a machine that differ in nothing but what RDRAND gives, if they have it.
fn attacked(source: Source, cpus: u32, seconds: u32) -> (Boot, Compared) {
    let attack = Attack { source, cpus, seconds, append: String::new() };
    let [one, two] = [(); 2].map(|()| in_turn(|| attack.boot(&paths::kernel())).unwrap());
    let compared = twins::compare(&one, &two);
    (one, compared)
}

/// Nothing that a program without privileges can cause or time makes a machine without a source ready, and so no twin
/// boot of it hands out the same bytes as random: alarms, TLB flushes, barriers, faults, output, early reads, writes to
/// the pool. `cargo xtask twins` is the long form, with Linux beside it.
#[test]
fn no_program_makes_a_machine_without_a_source_ready() {
    let (boot, compared) = attacked(Source::Nothing, 2, 6);
    assert!(boot.alarms > 100_000, "the attack was weak: {}", boot.summary);
    says(&boot.output, "state Empty");
    says(&boot.output, "credited_bits 0");
    for (name, verdict) in compared.promised() {
        assert_eq!(verdict, Verdict::Waits, "{name}");
    }
    assert_eq!(compared.promised().count(), PROMISED, "{compared:?}");
    // What is read early is not to be trusted, as on Linux: this is why.
    assert!(compared.gives_equal("/dev/urandom"), "{compared:?}");
}

/// The lines of `/proc/alea/random` that tell of interrupts: bytes that were passed on, bits credited, failures, health.
fn interrupts(log: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = log.lines().filter_map(|line| line.strip_prefix("interrupt "));
    rows.map(|row| row.split_whitespace().collect())
}

/// The same attack where the counter has jitter, so that it is not a refused clock that denies the credit: interrupts of timers and
/// of other CPUs are stirred in, passed on, and count for nothing, not even for the tests.
#[test]
fn interrupts_that_programs_cause_are_credited_for_nothing() {
    let line = "console=ttyS0 quiet panic=-1 rdinit=/usr/lib/alea/attack -- 4";
    let log = boot(&alea().smp(2).append(line)).unwrap().powered_off().unwrap().output;
    says(&log, "state Ready");
    let row = interrupts(&log).next().unwrap();
    assert!(row[0].parse::<u64>().unwrap() >= 16, "nothing was passed on: {row:?}");
    assert_eq!(row[1..], ["0", "0", "absent"]);
}

/// Who reads so slowly that the serial port has no room for what is printed, and interrupts when it has some again.
struct Slow;

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::thread::sleep(Duration::from_millis(60));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The serial port's interrupts count as a device's when bytes come in, and not when it has sent what a program printed.
#[test]
fn what_is_typed_counts_and_what_is_printed_does_not() {
    let show = "echo; cat /proc/interrupts; grep ^interrupt /proc/alea/random";
    let script =
        format!("mount -t proc p /proc; seq 1 60000; {show}; read line; {show}; poweroff -f");
    let line = format!("console=ttyS0 quiet rdinit=/bin/sh -- -c \"{script}\"");
    let log = in_turn(|| {
        let mut guest = Guest::start_echoing(&alea().append(&line), Slow).unwrap();
        guest.wait_for("\ninterrupt ", PATIENCE).unwrap();
        guest.send("typed\n").unwrap();
        guest.finish(Limits::idle(PATIENCE)).unwrap().powered_off().unwrap().output
    });
    let of_line = log.lines().filter(|line| line.trim_end().ends_with("ttyS0"));
    let counts: Vec<u32> =
        of_line.filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect();
    assert!(counts.len() == 2 && counts[0] >= 8 && counts[1] > counts[0], "{counts:?}");
    let health: Vec<&str> = interrupts(&log).map(|row| row[3]).collect();
    assert_eq!(health, ["absent", "starting"]);
}

#[test]
fn twins_differ_where_rdrand_is_all_that_they_have() {
    let (boot, compared) = attacked(Source::Rdrand, 1, 2);
    says(&boot.output, "state Ready");
    for (name, verdict) in compared.promised() {
        assert!(matches!(verdict, Verdict::Gives { equal: 0, .. }), "{name}: {verdict:?}");
    }
    assert_eq!(compared.promised().count(), PROMISED_WHEN_READY, "{compared:?}");
}

/// The machines are twins indeed: when RDRAND tells both of them the same words, they give the same bytes.
#[test]
fn twins_that_draw_the_same_words_give_the_same_bytes() {
    let (_, compared) = attacked(Source::Known, 1, 2);
    assert!(compared.gives_equal("getrandom(NONBLOCK)"), "{compared:?}");
    assert!(compared.break_a_promise());
}

/// RDRAND that works at boot and answers with one word for ever from some moment on: the next reseed finds it out, the
/// service stays ready by what it has, and twins still differ.
#[test]
fn twins_differ_when_rdrand_turns_bad_after_boot() {
    let attack = Attack { source: Source::Rdrand, cpus: 1, seconds: 3, append: String::new() };
    let [one, two] = [(); 2].map(|()| in_turn(|| turns_bad(&attack)));
    for boot in [&one, &two] {
        says(&boot.output, "state Ready");
        let rdrand = boot.output.lines().find(|line| line.starts_with("rdrand ")).unwrap();
        assert!(rdrand.trim_end().ends_with(" 1 failed"), "it was not found out: {rdrand}");
    }
    for (name, verdict) in twins::compare(&one, &two).promised() {
        assert!(matches!(verdict, Verdict::Gives { equal: 0, .. }), "{name}: {verdict:?}");
    }
}

/// Boots, and lets RDRAND answer 42 once the attacker runs.
fn turns_bad(attack: &Attack) -> Boot {
    // mov eax, 1 (there is a word); mov edx, 42; ret
    const ALWAYS_42: [u8; 11] = [0xb8, 1, 0, 0, 0, 0xba, 42, 0, 0, 0, 0xc3];
    let kernel = paths::kernel();
    let mut guest = Guest::start(&attack.machine(&kernel)).unwrap();
    guest.wait_for("give ", PATIENCE).unwrap();
    let mut gdb = guest.gdb().unwrap();
    let rdrand = address_of(&kernel, "alea_kernel::base::cpu::rdrand64").unwrap();
    gdb.write(0, rdrand, &ALWAYS_42).unwrap();
    gdb.detach().unwrap();
    let outcome = guest.finish(Limits::idle(PATIENCE)).unwrap().powered_off().unwrap();
    Boot::read(&outcome.output).unwrap()
}
