//! `cargo xtask twins`: two boots of one machine, attacked by a program without privileges, and what both of them gave.
//!
//! The program is `userland/random/attack.c`, the same on Alea and on Linux. The machine is made so that nothing differs
//! between its boots: time is counted instructions, the clock starts at a fixed date, and there is no source of entropy
//! unless one is asked for. What a kernel gives as random must then differ, or not be given at all.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::qemu::{self, Machine};
use xtask_guest::symbolize;
use xtask_host::paths;
use xtask_host::table::Table;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

/// The attacker prints in each of the guest's seconds, which take a busy host minutes at most.
const SILENCE: Duration = Duration::from_secs(900);

/// Interfaces that promise nothing before the kernel is ready: what they give then is documented as not to be trusted, on
/// Linux too. All others promise that their bytes are random.
const EARLY: [&str; 6] =
    ["getrandom(INSECURE)", "/dev/urandom", "uuid", "boot_id", "AT_RANDOM", "layout"];

/// Bytes that must not be found in both boots, at any offset.
const WINDOW: usize = 8;

/// What a machine has to draw from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Source {
    /// Nothing: no RDRAND, no noise in its counter
    Nothing,
    /// RDRAND alone
    Rdrand,
    /// RDRAND that gives both machines the same words: the comparison has to find equal bytes
    Known,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kernels {
    Alea,
    Linux,
    Both,
}

/// Boots a machine twice, attacks it, and compares every byte that it gave. Fails if Alea gave equal bytes as random.
#[derive(Args)]
pub struct Twins {
    /// Which kernels are attacked
    #[arg(long, value_enum, default_value = "both")]
    kernel: Kernels,
    /// How long each attack lasts, in the guest's minutes
    #[arg(long, value_name = "M", default_value_t = 1.0)]
    minutes: f64,
    /// What the machine has to draw from
    #[arg(long, value_enum, default_value = "nothing")]
    source: Source,
    /// Number of CPUs
    #[arg(long, value_name = "N", default_value_t = 2)]
    smp: u32,
    /// More for the kernels' command line, such as `alea.rdrand=silent`
    #[arg(long, value_name = "LINE", default_value = "", allow_hyphen_values = true)]
    append: String,
}

impl Twins {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox])?;
        let attack = Attack {
            source: self.source,
            cpus: self.smp,
            seconds: (self.minutes * 60.0).ceil() as u32,
            append: self.append.clone(),
        };
        let mut compared = Vec::new();
        if self.kernel != Kernels::Linux {
            build::build(build::Options::default())?;
            compared.push(("Alea", self.twins(&attack, "Alea", &paths::kernel())?));
        }
        if self.kernel != Kernels::Alea {
            setup::ensure(&[Need::Linux])?;
            build::initramfs()?;
            compared.push(("Linux", self.twins(&attack, "Linux", &paths::vmlinuz())?));
        }
        println!("QEMU {}, source of entropy: {:?}", qemu::version()?, self.source);
        print!("{}", render(&compared));
        let broken =
            compared.iter().any(|(name, twins)| *name == "Alea" && twins.break_a_promise());
        Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn twins(&self, attack: &Attack, name: &str, kernel: &Path) -> Result<Compared> {
        let mut boots = Vec::new();
        for number in 1..=2 {
            let boot = attack.boot(kernel)?;
            eprintln!("{name}, boot {number}: {}", boot.summary);
            boots.push(boot);
        }
        Ok(compare(&boots[0], &boots[1]))
    }
}

/// One machine and the attack on it.
pub struct Attack {
    pub source: Source,
    pub cpus: u32,
    /// Of the guest's time.
    pub seconds: u32,
    /// More for the kernel's command line.
    pub append: String,
}

impl Attack {
    /// Boots `kernel` and waits for the attack's end.
    pub fn boot(&self, kernel: &Path) -> Result<Boot> {
        let outcome = Guest::start(&self.machine(kernel))?.finish(Limits::idle(SILENCE))?;
        if outcome.end != End::Exited(0) {
            let report = symbolize::panic_report(kernel, &outcome.output);
            bail!("{}\n{}", outcome.describe(), report.unwrap_or_else(|| outcome.stuck_at(kernel)));
        }
        Boot::read(&outcome.output).with_context(|| outcome.describe())
    }

    /// The machine, of which two boots differ in nothing but what QEMU's RDRAND gives.
    pub fn machine(&self, kernel: &Path) -> Machine {
        let cpu = if self.source == Source::Nothing { "qemu64" } else { "qemu64,+rdrand" };
        let line = format!(
            "console=ttyS0 quiet panic=-1 {} rdinit=/usr/lib/alea/attack -- {}",
            self.append, self.seconds
        );
        let machine = Machine::new(kernel)
            .direct(kernel, Some(paths::programs_initramfs()), &line)
            .cpu(cpu)
            .icount(true)
            .in_place()
            .memory("256M")
            .smp(self.cpus)
            .args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
        match self.source {
            Source::Known => machine.args(["-seed", "7"]),
            Source::Nothing | Source::Rdrand => machine,
        }
    }
}

/// Bytes that an interface gave.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Gift {
    name: String,
    /// The kernel called itself ready before.
    ready: bool,
    /// The guest's milliseconds since its boot.
    ms: u64,
    bytes: Vec<u8>,
}

/// What one boot gave.
#[derive(Debug)]
pub struct Boot {
    gifts: Vec<Gift>,
    /// Interfaces that had nothing to give at least once.
    waited: Vec<String>,
    /// What the attacker counted.
    pub summary: String,
    pub alarms: u64,
    pub output: String,
}

impl Boot {
    /// Reads the attacker's lines; an error if it did not come to its end.
    pub fn read(output: &str) -> Result<Self> {
        let (mut gifts, mut waited, mut summary) = (Vec::new(), Vec::new(), None);
        for line in output.lines().map(str::trim) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["give", name, ready, ms, hex] => {
                    gifts.push(gift(name, ready, ms, hex).with_context(|| line.to_owned())?);
                }
                ["wait", name] => waited.push(name.to_owned()),
                ["give" | "wait", ..] => bail!("a line was spoilt: {line}"),
                ["attack:", _, "rounds,", ..] => {
                    summary = Some(line["attack: ".len()..].to_owned())
                }
                _ => {}
            }
        }
        if !output.contains("attack: done 0") {
            bail!("the attack did not come to its end");
        }
        let summary = summary.context("the attacker counted nothing")?;
        let alarms = summary.split(' ').nth(2).and_then(|count| count.parse().ok());
        let alarms = alarms.with_context(|| summary.clone())?;
        Ok(Self { gifts, waited, summary, alarms, output: output.to_owned() })
    }
}

fn gift(name: &str, ready: &str, ms: &str, hex: &str) -> Option<Gift> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    Some(Gift {
        name: name.to_owned(),
        ready: ready == "1",
        ms: ms.parse().ok()?,
        bytes: hex.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?,
    })
}

/// An interface, and whether it promises that its bytes are random.
type Interface = (String, bool);

fn interface(name: &str, ready: bool) -> Interface {
    (name.to_owned(), ready || !EARLY.contains(&name))
}

/// What the twins gave through one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Waits,
    /// So many bytes, of which so many were the same in both boots; the first after so many milliseconds.
    Gives { bytes: usize, equal: usize, from_ms: u64 },
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Gives { equal: 0, .. } => "differs",
            Self::Gives { .. } => "EQUAL",
        }
    }
}

/// The verdicts on two boots, by interface.
#[derive(Debug)]
pub struct Compared(BTreeMap<Interface, Verdict>);

impl Compared {
    /// Whether bytes that were given as random were the same in both boots.
    pub fn break_a_promise(&self) -> bool {
        self.promised().any(|(_, verdict)| verdict.word() == "EQUAL")
    }

    /// Whether bytes of this interface were the same in both boots.
    pub fn gives_equal(&self, name: &str) -> bool {
        self.0.iter().any(|((of, _), verdict)| of == name && verdict.word() == "EQUAL")
    }

    /// The interfaces that promise random bytes.
    pub fn promised(&self) -> impl Iterator<Item = (&str, Verdict)> {
        self.0
            .iter()
            .filter(|((_, promised), _)| *promised)
            .map(|((name, _), v)| (name.as_str(), *v))
    }
}

/// Compares what two boots gave: each eight bytes in a row with all bytes of the other boot.
pub fn compare(one: &Boot, two: &Boot) -> Compared {
    let mut verdicts = BTreeMap::new();
    for boot in [one, two] {
        for name in &boot.waited {
            verdicts.entry(interface(name, false)).or_insert(Verdict::Waits);
        }
    }
    for (boot, other) in [(one, two), (two, one)] {
        let others: HashSet<&[u8]> = other.gifts.iter().flat_map(parts).collect();
        for gift in &boot.gifts {
            let verdict =
                verdicts.entry(interface(&gift.name, gift.ready)).or_insert(Verdict::Waits);
            let (bytes, equal, from_ms) = match *verdict {
                Verdict::Waits => (0, 0, gift.ms),
                Verdict::Gives { bytes, equal, from_ms } => (bytes, equal, from_ms.min(gift.ms)),
            };
            let equal = equal + equal_bytes(gift, &others);
            *verdict = Verdict::Gives { bytes: bytes + gift.bytes.len(), equal, from_ms };
        }
    }
    Compared(verdicts)
}

/// What is compared of a gift. Three addresses are one value: parts of them are the same in every process.
fn parts(gift: &Gift) -> impl Iterator<Item = &[u8]> {
    gift.bytes.windows(if gift.name == "layout" { gift.bytes.len() } else { WINDOW })
}

fn equal_bytes(gift: &Gift, others: &HashSet<&[u8]>) -> usize {
    let mut equal = vec![false; gift.bytes.len()];
    for (at, part) in parts(gift).enumerate() {
        if others.contains(part) {
            equal[at..at + part.len()].fill(true);
        }
    }
    equal.into_iter().filter(|equal| *equal).count()
}

/// Two tables: the interfaces that promise random bytes, and those that do not.
fn render(compared: &[(&str, Compared)]) -> String {
    let mut text = String::new();
    for (promised, title) in [(true, "given as random"), (false, "not to be trusted yet")] {
        let mut header = vec![title];
        for (name, _) in compared {
            header.extend([*name, "bytes", "equal", "from"]);
        }
        let mut table = Table::new(&header);
        let mut names: Vec<&str> = compared
            .iter()
            .flat_map(|(_, compared)| compared.0.keys())
            .filter(|(_, of)| *of == promised)
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let mut row = vec![name.to_owned()];
            for (_, compared) in compared {
                row.extend(cells(compared.0.get(&(name.to_owned(), promised))));
            }
            table.row(row);
        }
        text.push_str(&table.render());
        text.push('\n');
    }
    text
}

fn cells(verdict: Option<&Verdict>) -> [String; 4] {
    let empty = || "-".to_owned();
    let Some(verdict) = verdict else { return [empty(), empty(), empty(), empty()] };
    let word = verdict.word().to_owned();
    match verdict {
        Verdict::Waits => [word, empty(), empty(), empty()],
        Verdict::Gives { bytes, equal, from_ms } => {
            [word, bytes.to_string(), equal.to_string(), format!("{from_ms} ms")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(lines: &str) -> Boot {
        Boot::read(&format!("{lines}\nattack: 1 rounds, 2 alarms\nattack: done 0\n")).unwrap()
    }

    fn of(compared: &Compared, name: &str, promised: bool) -> Verdict {
        compared.0[&(name.to_owned(), promised)]
    }

    const EIGHT: &str = "0102030405060708";

    #[test]
    fn equal_bytes_are_found_at_any_offset_and_in_any_interface() {
        let one = boot(&format!("give getrandom() 1 5 ff{EIGHT}\nwait /dev/random"));
        let two = boot(&format!("give /dev/random 1 7 {EIGHT}ee"));
        let compared = compare(&one, &two);
        let gives = |from_ms| Verdict::Gives { bytes: 9, equal: 8, from_ms };
        assert_eq!(of(&compared, "getrandom()", true), gives(5));
        assert_eq!(of(&compared, "/dev/random", true), gives(7));
        assert!(compared.break_a_promise());
    }

    #[test]
    fn seven_equal_bytes_are_chance() {
        let one = boot("give getrandom() 1 5 010203040506070a");
        let two = boot("give getrandom() 1 5 010203040506070b");
        assert!(!compare(&one, &two).break_a_promise());
    }

    #[test]
    fn early_bytes_promise_nothing_until_the_kernel_is_ready() {
        let early = format!("give /dev/urandom 0 5 {EIGHT}");
        let compared = compare(&boot(&early), &boot(&early));
        assert_eq!(of(&compared, "/dev/urandom", false).word(), "EQUAL");
        assert!(!compared.break_a_promise());
        let late = format!("give /dev/urandom 1 5 {EIGHT}");
        assert!(compare(&boot(&late), &boot(&late)).break_a_promise());
        // These promise it at any time.
        let blocking = format!("give /dev/random 0 5 {EIGHT}");
        assert!(compare(&boot(&blocking), &boot(&blocking)).break_a_promise());
    }

    #[test]
    fn parts_of_addresses_may_be_equal() {
        let layout = |last: u8| boot(&format!("give layout 1 5 {EIGHT}{EIGHT}{last:02x}"));
        assert!(!compare(&layout(1), &layout(2)).break_a_promise());
        assert!(compare(&layout(1), &layout(1)).break_a_promise());
    }

    #[test]
    fn an_attack_that_did_not_end_is_no_result() {
        assert!(Boot::read("wait getrandom()\n").is_err());
        assert!(Boot::read("give getrandom() 1\nattack: done 0\n").is_err());
    }
}
