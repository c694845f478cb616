//! `cargo xtask assess`: the entropy of raw jitter, or of the times of interrupts, assessed in the form of NIST SP 800-90B.
//!
//! A million consecutive samples of one start and a thousand starts of a thousand samples each, taken where those are taken
//! that get credit, go through the estimators of both tracks, the restart tests and the formula for the conditioner. The data
//! stay below `target/alea/assess/`, with a report; `docs/assessment.md` says what was found where.

mod collect;
mod conditioning;
mod estimates;
mod keep;
mod page;
mod permutation;
mod report;
mod restart;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use anyhow::{Result, anyhow, bail, ensure};
use blake2::{Blake2s256, Digest};
use clap::Args;

use crate::random_stats::estimators;
use collect::{End, Origin};
use estimates::{Estimates, What};
use keep::{Circumstances, Kept, Notes};
use report::Found;
use restart::Sanity;
use xtask_guest::qemu::{self, Machine, MachineArgs};
use xtask_host::{paths, term};
use xtask_setup::setup::{self, Need};

/// How many samples the standard asks for, in a row and of each start, and how many starts.
const SAMPLES: u32 = 1_000_000;
const OF_A_START: u32 = 1000;
const STARTS: u32 = 1000;

/// Samples that are hashed to 256 bits to see what BLAKE2s's output looks like: a million bits of a million samples. The kernel
/// hashes more than sixty times as many.
const HASHED: usize = 255;

/// Consecutive samples and permutations of what every change has to pass.
const IN_SAMPLE: u32 = 8192;
const FEW: u32 = 20;

/// For the permutations: any number would do, this one repeats.
const SEED: u64 = 90;

/// Assesses raw samples by SP 800-90B: data and report to target/alea/assess/NAME/
#[derive(Args)]
pub struct Assess {
    /// Assess this machine, by a program under its operating system, instead of a machine of QEMU's
    #[arg(long)]
    host: bool,
    /// Assess the times of a device's interrupts instead of jitter: those of the serial port, typed at as fast as it takes it
    #[arg(long, conflicts_with = "host")]
    interrupts: bool,
    /// How many samples of one start; with fewer than a million it is not the standard's assessment
    #[arg(long, value_name = "N", default_value_t = SAMPLES)]
    samples: u32,
    /// How many starts of a thousand samples; with fewer than a thousand it is not the standard's restart test
    #[arg(long, value_name = "N", default_value_t = STARTS)]
    restarts: u32,
    /// Take no samples: judge those that the last run has kept
    #[arg(long)]
    judge_only: bool,
    /// Put the report into docs/assessment.md, too, between the marks for this machine
    #[arg(long)]
    write: bool,
    /// Among how many permutations each statistic is ranked; the standard wants 10,000
    #[arg(long, value_name = "N", default_value_t = permutation::PERMUTATIONS)]
    permutations: u32,
    /// Only what CI does: a few short starts; keeps nothing
    #[arg(long)]
    sample: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

impl Assess {
    pub fn run(self) -> Result<ExitCode> {
        if self.sample {
            setup::ensure(&[Need::RustTarget, Need::Qemu])?;
            xtask_setup::build::kernel_alone()?;
            return sample().map(|()| ExitCode::SUCCESS);
        }
        let folder = paths::alea().join("assess").join(self.name());
        let kept = Kept::new(&folder)?;
        if !self.judge_only {
            setup::ensure(&[Need::RustTarget, Need::Qemu])?;
            let origin = self.origin()?;
            origin.prepare()?;
            let circumstances = Circumstances::now(self.described()?)?;
            collect_all(&origin, (self.samples, self.restarts), circumstances, &kept)?;
        }
        let python = estimators::provide()?;
        let notes = kept.notes()?;
        // Samples that a refusal cut short are too few to estimate anything of.
        let whole = fs::metadata(kept.consecutive())?.len() >= u64::from(SAMPLES);
        let found = match notes.end {
            End::Refused(_) if !whole => None,
            _ => Some(judge(&kept, &python, self.permutations)?),
        };
        let text = report::text(&notes, &kept.hashes()?, found.as_ref());
        fs::write(kept.beside("report.md"), &text)?;
        print!("{text}");
        println!("kept in {}", paths::shown(&folder));
        if self.write {
            page::put(&self.name(), &text)?;
        }
        let good = report::is_enough(&notes, found.as_ref());
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// What the samples come from, in words.
    fn described(&self) -> Result<String> {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name"));
        let model =
            model.and_then(|rest| rest.split_once(": ")).map_or("unknown", |(_, name)| name);
        Ok(if self.host {
            format!("{model}, a program under Linux")
        } else {
            let counting = if self.machine.icount { ", instructions counted" } else { "" };
            let (cpu, version) = (&self.machine.cpu, qemu::version()?);
            let what = if self.interrupts { ", interrupts of the serial port" } else { "" };
            format!("QEMU {version}, CPU {cpu}{counting}{what}; host {model}")
        })
    }

    fn origin(&self) -> Result<Origin> {
        if self.host {
            return Ok(Origin::Host);
        }
        let machine = self.machine.machine()?;
        Ok(if self.interrupts { Origin::Interrupts(machine) } else { Origin::Guest(machine) })
    }

    /// What the machine is called among the data.
    fn name(&self) -> String {
        if self.host {
            return "host".to_owned();
        }
        let cpu = self.machine.cpu.split(',').next().unwrap_or("cpu");
        let counted = if self.machine.icount { "-icount" } else { "" };
        format!("{cpu}{counted}{}", if self.interrupts { "-interrupts" } else { "" })
    }
}

/// Takes the consecutive samples, then those of the starts, and keeps them.
fn collect_all(
    origin: &Origin,
    (samples, restarts): (u32, u32),
    circumstances: Circumstances,
    kept: &Kept,
) -> Result<()> {
    ensure!(samples > 0, "an assessment needs samples");
    let spinner = term::spinner(&format!("taking {samples} consecutive samples"));
    let run = origin.run(samples);
    spinner.finish_and_clear();
    let run = run?;
    let mut notes =
        Notes { circumstances, wider: run.wider, end: run.end, restarts: 0, refused: 0 };
    kept.put_consecutive(&run.samples)?;
    kept.put_notes(&notes)?;
    let bar = term::bar(u64::from(restarts), "starts");
    let mut matrix = Vec::new();
    // Nothing of a start that was refused is credited, so nothing of it is assessed; another takes its place.
    while notes.restarts - notes.refused < restarts && notes.restarts < restarts.saturating_mul(2) {
        let run = origin.run(OF_A_START)?;
        match run.end {
            End::Credited { .. } => matrix.extend_from_slice(&run.samples),
            End::Refused(_) => notes.refused += 1,
        }
        notes.restarts += 1;
        kept.put_restarts(&matrix)?;
        kept.put_notes(&notes)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Has the samples judged, by everything at once.
fn judge(kept: &Kept, python: &Path, permutations: u32) -> Result<Found> {
    let consecutive = fs::read(kept.consecutive())?;
    let matrix = fs::read(kept.restarts())?;
    let width = OF_A_START as usize;
    ensure!(matrix.len().is_multiple_of(width), "the starts are of different lengths");
    let (columns, conditioned) = (kept.beside("columns.bin"), kept.beside("conditioned.bin"));
    fs::write(&columns, restart::transposed(&matrix, width))?;
    fs::write(&conditioned, condition(&consecutive))?;
    let control = kept.beside("control.bin");
    fs::write(&control, hashes_of_numbers(fs::metadata(&conditioned)?.len() as usize))?;
    let spinner = term::spinner("estimating");
    let found = thread::scope(|scope| {
        let whole = scope.spawn(|| Estimates::of(python, &kept.consecutive(), What::Consecutive));
        let of_starts = scope.spawn(|| -> Result<_> {
            if matrix.is_empty() {
                return Ok((None, None));
            }
            let rows = Estimates::of(python, &kept.restarts(), What::Matrix)?;
            Ok((Some(rows), Some(Estimates::of(python, &columns, What::Matrix)?)))
        });
        let bits = scope.spawn(|| Ok((a_bit(python, &conditioned)?, a_bit(python, &control)?)));
        let permutations = permutation::judge(&consecutive, permutations, SEED);
        let (rows, columns) = joined(of_starts)?;
        let consecutive = joined(whole)?;
        let claim = report::CLAIM;
        let check = |claim: f64| Sanity::check(&matrix, width, consecutive.initial().min(claim));
        let sanity = rows.as_ref().map(|_| check(claim));
        let sanity_without_claim = rows.as_ref().map(|_| check(estimates::WIDTH));
        let conditioned = Some(joined(bits)?);
        Ok(Found {
            consecutive,
            claim,
            rows,
            columns,
            sanity,
            sanity_without_claim,
            permutations,
            conditioned,
        })
    });
    spinner.finish_and_clear();
    found
}

/// The least estimate of a bit of a file.
fn a_bit(python: &Path, file: &Path) -> Result<f64> {
    Ok(Estimates::of(python, file, What::Bits)?.of_samples().min(1.0))
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread of this program itself went wrong"))?
}

/// BLAKE2s of pieces of the samples.
fn condition(samples: &[u8]) -> Vec<u8> {
    samples.chunks_exact(HASHED).flat_map(|piece| Blake2s256::digest(piece).to_vec()).collect()
}

/// BLAKE2s of 0, 1, 2 and so on: what the estimators say of this, nobody's samples are to blame for.
fn hashes_of_numbers(bytes: usize) -> Vec<u8> {
    let hashes = (0u64..).flat_map(|number| Blake2s256::digest(number.to_le_bytes()).to_vec());
    hashes.take(bytes).collect()
}

/// What every change has to pass: the kernel shows what it takes, in short, and all of the above runs on it, NIST's
/// estimators where they are installed (they need a compiler and PyPI); a clock that counts instructions is refused.
pub fn sample() -> Result<()> {
    let machine = Machine::new(paths::kernel()).cpu("qemu64").memory("64M");
    let origin = Origin::Guest(machine.clone());
    let folder = tempfile::tempdir()?;
    let kept = Kept::new(folder.path())?;
    // A quiet host may have little jitter for a moment: the kernel itself gives the counter three chances.
    let mut chances = 3;
    let notes = loop {
        let circumstances = Circumstances::now("a sample".to_owned())?;
        collect_all(&origin, (IN_SAMPLE, 3), circumstances, &kept)?;
        let notes = kept.notes()?;
        match &notes.end {
            End::Credited { .. } => break notes,
            End::Refused(why) if chances == 1 => bail!("jitter was refused three times: {why}"),
            End::Refused(_) => chances -= 1,
        }
    };
    let (samples, matrix) = (fs::read(kept.consecutive())?, fs::read(kept.restarts())?);
    ensure!(matrix.len() >= 2000, "of {} starts {} were refused", notes.restarts, notes.refused);
    ensure!(matrix[..1000] != matrix[1000..2000], "two starts gave the same samples");
    let sanity = Sanity::check(&matrix, OF_A_START as usize, report::CLAIM / 2.0);
    ensure!(sanity.passed(), "the restart sanity check failed: {sanity:?}");
    if let Some(python) = estimators::installed() {
        let found = judge(&kept, &python, FEW)?;
        ensure!(found.entropy() > 0.0, "the estimators find nothing");
        let report = report::text(&notes, &kept.hashes()?, Some(&found));
        ensure!(report.contains("| **least** |"), "no estimates in the report:\n{report}");
    } else {
        println!("NIST's estimators are not installed, `cargo xtask assess` does that");
        permutation::judge(&samples, FEW, SEED);
    }
    let counted = Origin::Guest(machine.clone().icount(true)).run(OF_A_START)?;
    let refused = matches!(counted.end, End::Refused(_));
    ensure!(refused, "a clock that counts instructions was credited: {}", counted.end);
    // The times of interrupts come from outside: of this few nothing is estimated.
    let interrupts = Origin::Interrupts(machine.clone()).run(OF_A_START)?;
    println!("interrupts of the serial port: {}", interrupts.end);
    let again = Origin::Interrupts(machine).run(OF_A_START)?;
    let (first, second) = (interrupts.samples, again.samples);
    ensure!(!first.is_empty() && first != second, "two starts gave the same times of interrupts");
    Ok(())
}
