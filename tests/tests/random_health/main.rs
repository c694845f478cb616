//! Sources that turn bad, ciphers that answer wrongly, pools that fill, and the report that tells of all of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use alea_random::splitmix64::SplitMix64;
use alea_tests::{Shell, alea};
use xtask_host::paths;

/// Ctrl-U: what was typed of a line is forgotten.
const LINE_KILL: char = '\x15';

const REPORT: &str = "cat /proc/alea/random";

#[track_caller]
fn says(log: &str, text: &str) {
    assert!(log.contains(text), "{text:?} is not in the log:\n{log}");
}

/// The lines of a report, by their first word; those of its tables, too.
fn lines(report: &str) -> BTreeMap<String, Vec<String>> {
    let lines = report.lines().map(|line| line.split_whitespace().map(str::to_owned));
    lines.filter_map(|mut words| Some((words.next()?, words.collect()))).collect()
}

fn number(lines: &BTreeMap<String, Vec<String>>, line: &str, field: usize) -> u64 {
    let words = lines.get(line).unwrap_or_else(|| panic!("no line {line} in {lines:?}"));
    words[field].parse().unwrap_or_else(|_| panic!("{line}: {words:?}"))
}

/// Asks for the report every second until it says `text`.
#[track_caller]
fn report_until(shell: &mut Shell, text: &str) -> String {
    for _ in 0..90 {
        let report = shell.run(REPORT).unwrap();
        if report.contains(text) {
            return report;
        }
        shell.run("sleep 1").unwrap();
    }
    panic!("{text:?} is not in {}", shell.run(REPORT).unwrap());
}

/// The report once more than `before` bytes of `source` are mixed in: after a reseed or two.
#[track_caller]
fn grown(shell: &mut Shell, source: &str, before: u64) -> BTreeMap<String, Vec<String>> {
    for _ in 0..90 {
        let report = lines(&shell.run(REPORT).unwrap());
        if number(&report, source, 0) > before {
            return report;
        }
        shell.run("sleep 1").unwrap();
    }
    panic!("{source} is not mixed in any more");
}

fn shell(cpu: &str, append: &str, args: &[String]) -> Shell {
    let machine = alea().cpu(cpu).append(&format!("console=ttyS0 quiet {append}"));
    Shell::start(&machine.args(args)).unwrap()
}

/// A wrong answer of any cipher, and of the copy that programs draw with: the service is Empty for ever, says so in one
/// line, and not even an administrator's seed makes it ready.
#[test]
fn a_wrong_answer_leaves_the_service_empty() {
    for part in ["chacha20", "vector", "vdso", "blake2s"] {
        let mut shell = shell("max", &format!("alea.known_answers={part}"), &[]);
        let report = shell.run(REPORT).unwrap();
        says(&report, "state Empty");
        says(&report, &format!("known_answers wrong {part}"));
        says(&shell.run("cat /proc/sys/kernel/random/entropy_avail").unwrap(), "\n0\n");
        says(&shell.run("timeout 1 head -c 8 /dev/random | wc -c").unwrap(), "\n0\n");
        says(&shell.run("dmesg | grep -c 'gives a wrong answer'").unwrap(), "\n1\n");
        shell.power_off().unwrap();
    }
}

/// A part of whose words one half is zero passes every test that looks at whole words; the start-up finds it.
#[test]
fn half_a_word_is_found_at_start() {
    let mut shell = shell("max", "alea.rdseed=half", &[]);
    let report = shell.run(REPORT).unwrap();
    assert_eq!(lines(&report)["rdseed"][1..], ["0", "1", "failed"], "{report}");
    says(&report, "state Ready");
    let log = shell.run("dmesg | grep RDSEED").unwrap();
    says(&log, "RDSEED is not reliable, disabled: the hardware generator repeats itself");
}

/// Instructions that break after they made the service ready: found at a reseed, mixed in all the same, and jitter comes
/// in by the clock instead.
#[test]
fn an_instruction_that_turns_bad_is_found() {
    for kind in ["zeros", "repeat", "half"] {
        let knobs = format!("alea.rdrand={kind}@170 alea.rdseed={kind}@190");
        let mut shell = shell("max", &knobs, &[]);
        let first = lines(&shell.run(REPORT).unwrap());
        assert_eq!(number(&first, "rdseed", 1), 512, "good words are credited: {first:?}");
        let both = lines(&{
            report_until(&mut shell, "1 failed\nrdrand");
            report_until(&mut shell, "1 failed\nvirtio_rng")
        });
        for source in ["rdseed", "rdrand"] {
            assert_eq!(both[source][2..], ["1", "failed"], "{kind}");
        }
        let said = shell.run("dmesg | grep -c 'not reliable, disabled'").unwrap();
        says(&said, "\n2\n");
        let later = grown(&mut shell, "rdrand", number(&both, "rdrand", 0));
        assert!(number(&later, "jitter", 0) > number(&both, "jitter", 0), "{kind}: {later:?}");
        assert_eq!(number(&later, "rdrand", 1), number(&first, "rdrand", 1), "no more credit");
        shell.power_off().unwrap();
    }
}

/// A device that delivers two good answers and zeros from then on.
#[test]
fn a_virtio_rng_that_turns_bad_is_found() {
    let source = tempfile::NamedTempFile::new().unwrap();
    let mut good = SplitMix64::new(1);
    let mut bytes: Vec<u8> = (0..256).flat_map(|_| good.next_u64().to_le_bytes()).collect();
    bytes.resize(1 << 20, 0);
    std::fs::write(source.path(), bytes).unwrap();
    let mut shell = shell("qemu64", "", &virtio_rng(source.path()));
    let first = lines(&shell.run(REPORT).unwrap());
    assert_eq!(number(&first, "virtio_rng", 1), 256, "{first:?}");
    let found = lines(&report_until(&mut shell, "256 1 failed"));
    let log = shell.run("dmesg | grep virtio-rng").unwrap();
    says(&log, "virtio-rng is not reliable, disabled: the hardware generator delivers zeros");
    let later = grown(&mut shell, "virtio_rng", number(&found, "virtio_rng", 0));
    assert_eq!(number(&later, "virtio_rng", 1), 256, "no more credit");
}

fn virtio_rng(file: &Path) -> [String; 4] {
    let object = format!("rng-random,id=source,filename={}", file.display());
    ["-object".into(), object, "-device".into(), "virtio-rng-pci,rng=source".into()]
}

/// Root has everything tested again; a machine with a broken part says so, and nobody else may ask.
#[test]
fn tests_on_demand() {
    let ask = "echo test > /proc/alea/random; echo status $?";
    let mut well = shell("max", "", &[]);
    says(&well.run(ask).unwrap(), "status 0");
    says(&well.run(REPORT).unwrap(), "tests_on_demand 1");
    says(&well.run("echo nonsense > /proc/alea/random; echo status $?").unwrap(), "status 1");
    let mode = well.run("ls -l /proc/alea/random").unwrap();
    says(&mode, "-rw-r--r--");
    let mut ill = shell("max", "alea.rdrand=zeros@140", &[]);
    says(&ill.run(ask).unwrap(), "status 1");
    says(&ill.run(REPORT).unwrap(), "1 failed\nvirtio_rng");
}

/// A device that is good for its first twelve answers, of which boot and reseeds have some, is asked again by each test; the one that
/// sees its zeros fails.
#[test]
fn a_virtio_rng_is_asked_anew_on_demand() {
    let source = tempfile::NamedTempFile::new().unwrap();
    let mut good = SplitMix64::new(2);
    let mut bytes: Vec<u8> = (0..12 * 128).flat_map(|_| good.next_u64().to_le_bytes()).collect();
    bytes.resize(1 << 20, 0);
    std::fs::write(source.path(), bytes).unwrap();
    let mut shell = shell("max", "", &virtio_rng(source.path()));
    let ask = "echo test > /proc/alea/random; echo status $?";
    let answers: Vec<String> = (0..12).map(|_| shell.run(ask).unwrap()).collect();
    assert!(answers[0].contains("status 0"), "{answers:?}");
    assert!(answers[11].contains("status 1"), "{answers:?}");
    says(&shell.run(REPORT).unwrap(), "256 1 failed");
}

/// What counted as healthy has to pass its start-up tests again.
#[test]
fn interrupts_are_tested_again_on_demand() {
    let mut shell = shell("max", "", &[]);
    let health =
        |shell: &mut Shell| lines(&shell.run(REPORT).unwrap())["interrupt"].last().unwrap().clone();
    let typed = |shell: &mut Shell| {
        for _ in 0..200 {
            shell.keys("x").unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        shell.run(&format!("{LINE_KILL}true")).unwrap();
        health(shell) == "healthy"
    };
    assert!((0..100).any(|_| typed(&mut shell)), "1,024 interrupts of a key do not come");
    says(&shell.run("echo test > /proc/alea/random; echo status $?").unwrap(), "status 0");
    assert_eq!(health(&mut shell), "starting");
    assert!((0..100).any(|_| typed(&mut shell)), "they never pass again");
}

/// An idle machine without RDRAND: samples come in by the clock, no more of them than are ordered, and every pool gets
/// its share.
#[test]
fn pools_fill_on_an_idle_machine() {
    let mut shell = shell("qemu64", "", &[]);
    shell.run("sleep 4").unwrap();
    let now = |shell: &mut Shell| {
        let text = shell.run(&format!("{REPORT}; echo uptime $(cat /proc/uptime)")).unwrap();
        let seconds = lines(&text)["uptime"][0].parse::<f64>().unwrap();
        (lines(&text), seconds)
    };
    let (before, from) = now(&mut shell);
    shell.run("sleep 6").unwrap();
    let (after, to) = now(&mut shell);
    let grown = number(&after, "jitter", 0) - number(&before, "jitter", 0);
    // 128 samples of eight bytes, ordered every second and at each reseed.
    let most = (to - from + 2.0) * 2.0 * 1024.0;
    assert!(grown >= 4 * 1024 && (grown as f64) <= most, "{grown} bytes in {} s", to - from);
    // Those that join after 81 turns or more have kept what they got.
    for pool in 4..8 {
        let [old, new] = [&before, &after].map(|report| number(report, "waiting_bytes", pool));
        assert!(new >= old + 512, "pool {pool}: {old}, then {new}");
    }
    assert_eq!(after["jitter"][2..], ["0", "healthy"], "{after:?}");
}

/// The table of docs/random.md and the report say the same: no line is missing, none is undocumented, and each has the
/// fields that it is said to have.
#[test]
fn the_report_is_as_documented() {
    let page = std::fs::read_to_string(paths::root().join("docs/random.md")).unwrap();
    let (_, table) = page.split_once("<!-- report").expect("docs/random.md has the table");
    let (table, _) = table.split_once("<!-- end of report -->").expect("the table ends");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    assert!(rows.iter().all(|row| !row[3].is_empty() && row.len() == 5), "{rows:?}");
    let documented: BTreeMap<String, String> =
        rows.iter().map(|row| (row[1].to_owned(), row[2].to_owned())).collect();
    let mut shell = shell("max", "", &[]);
    let report = shell.run(REPORT).unwrap();
    // Without what was typed and the prompt.
    let mut shown = lines(&report);
    shown.retain(|line, _| line != "cat" && !line.starts_with("root@"));
    let names = |keys: Vec<&String>| keys.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(shown.keys().collect()), names(documented.keys().collect()));
    for (line, fields) in &shown {
        let form: Vec<&str> = documented[line].split_whitespace().collect();
        let fits = match form[..] {
            ["words"] => fields.iter().all(|field| is(field, "word")),
            _ => form.len() == fields.len() && form.iter().zip(fields).all(|(k, f)| is(f, k)),
        };
        assert!(fits, "{line}: {fields:?} is not {form:?}");
    }
}

/// Whether a field has the form that the table names.
fn is(field: &str, form: &str) -> bool {
    match form {
        "number" | "bytes" | "bits" | "ns" => field.parse::<u64>().is_ok(),
        "word" => field.parse::<u64>().is_err(),
        // A heading of a table.
        name => field == name.trim_matches('\''),
    }
}
