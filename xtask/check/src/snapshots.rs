//! `cargo xtask snapshots`: the machine is saved at every instruction of what the random generator does, and each snapshot
//! becomes twins that differ by nothing but the VM generation id.
//!
//! The guest's program is `userland/random/snapshots.c`. What twins draw must differ, except where the bytes had been
//! compared with the id before the snapshot: how many instructions that are is told for each operation.

mod compare;
mod found;
mod kept;
mod rig;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use compare::{Common, Thread};
use found::Share;
pub use found::{Fault, Found};
use kept::Kept;
pub use rig::State;
use rig::{End, Id, Rig};
use xtask_guest::qemu;
use xtask_host::paths;
use xtask_host::table::Table;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

const CLONED: Id = *b"cloned once ....";
const TWINS: [Id; 2] = [*b"twin number one.", *b"twin number two."];

/// Saves the machine at every instruction of draws, reseeds and the learning of an id, and compares twins.
#[derive(Args)]
pub struct Snapshots {
    /// Save at one instruction in so many
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: u64,
    /// Which one of them; default: by chance, and told
    #[arg(long, value_name = "N")]
    offset: Option<u64>,
    /// Only from this instruction of an operation on, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Only before this one
    #[arg(long, value_name = "N", default_value_t = u64::MAX)]
    to: u64,
    /// Go through an operation of one CPU with so many machines side by side
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=64))]
    jobs: u64,
    /// Save nothing more of an operation after so long
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
    /// Add what was looked at to what earlier runs have kept of the same kernel, and leave that out
    #[arg(long)]
    keep: bool,
    /// Put all that was kept into the table of docs/random.md, too
    #[arg(long, requires = "keep")]
    write: bool,
    /// This kernel, instead of one that is built now
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,
    /// Only operations with one of these names, or whose names contain one where none has it
    #[arg(value_name = "NAME")]
    only: Vec<String>,
}

impl Snapshots {
    pub fn run(self) -> Result<ExitCode> {
        setup::ensure(&[Need::RustTarget, Need::Qemu, Need::Compiler, Need::Busybox])?;
        let kernel = match &self.kernel {
            Some(kernel) => kernel.clone(),
            None => {
                build::build(build::Options::default())?;
                paths::kernel()
            }
        };
        let offset = self.offset.unwrap_or_else(|| chance(self.every));
        println!(
            "QEMU {}, one instruction in {}, from number {offset} on",
            qemu::version()?,
            self.every
        );
        let kept = if self.keep { Some(Kept::of(&kernel)?) } else { None };
        let mut table = Table::new(&HEADER);
        let mut faults = 0;
        for scenario in SCENARIOS.iter().filter(|scenario| self.wants(scenario)) {
            let found = self.explore(scenario, &kernel, offset, kept.as_ref())?;
            faults += found.faults.len();
            table.row(found.row(scenario.name));
        }
        print!("{}", table.render());
        if let Some(kept) = kept.filter(|_| self.write) {
            kept.write()?;
        }
        Ok(if faults > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Goes through one operation, as far as is asked for.
    fn explore(
        &self,
        scenario: &Scenario,
        kernel: &Path,
        offset: u64,
        kept: Option<&Kept>,
    ) -> Result<Found> {
        let started = Instant::now();
        let sample = Sample {
            range: self.from..self.to,
            without: kept
                .map(|kept| kept.looked_at(scenario.name))
                .transpose()?
                .unwrap_or_default(),
            until: self.minutes.map(|minutes| started + Duration::from_secs_f64(60.0 * minutes)),
            ..Sample::one_in(self.every, offset)
        };
        // What another CPU has done meanwhile differs from start to start.
        let jobs = if scenario.other.is_some() { 1 } else { self.jobs };
        let found = scenario.explore_side_by_side(kernel, &sample, jobs)?;
        if let Some(kept) = kept {
            kept.add(scenario.name, &found)?;
        }
        eprintln!("{}: {:.0?}\n{}", scenario.name, started.elapsed(), found.tell(kernel));
        Ok(found)
    }

    fn wants(&self, scenario: &Scenario) -> bool {
        let is_name = |part: &str| SCENARIOS.iter().any(|scenario| scenario.name == part);
        let fits = |part: &String| match is_name(part) {
            true => scenario.name == part,
            false => scenario.name.contains(part.as_str()),
        };
        self.only.is_empty() || self.only.iter().any(fits)
    }
}

const HEADER: [&str; 8] = [
    "operation",
    "instructions",
    "of the id",
    "snapshots",
    "twins",
    "already compared",
    "held",
    "equal windows",
];

/// A number below `limit` that differs from run to run.
pub fn chance(limit: u64) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| u64::from(now.subsec_micros())) % limit.max(1)
}

/// Which instructions get a snapshot: one in `every`, from number `offset` on.
#[derive(Clone, Debug)]
pub struct Sample {
    every: u64,
    offset: u64,
    range: Range<u64>,
    /// But not these.
    without: BTreeSet<u64>,
    /// And none after this.
    until: Option<Instant>,
    /// Of blocks of instructions in turn, those with this number; and how many numbers there are.
    share: (u64, u64),
}

/// Instructions of a block, which one machine goes through.
const BLOCK: u64 = 64;

impl Sample {
    /// Of the whole operation.
    pub fn one_in(every: u64, offset: u64) -> Self {
        Self {
            every,
            offset,
            range: 0..u64::MAX,
            without: BTreeSet::new(),
            until: None,
            share: (0, 1),
        }
    }

    /// None: instructions are only counted.
    pub fn none() -> Self {
        Self { range: 0..0, ..Self::one_in(1, 0) }
    }

    /// That of one machine of several.
    fn share(&self, number: u64, of: u64) -> Self {
        Self { share: (number, of), ..self.clone() }
    }

    /// Whether instruction `at` gets one; those that follow a read of the id get one, whatever `every` is.
    fn has(&self, at: u64, first_after_read: bool) -> bool {
        (first_after_read || at % self.every == self.offset)
            && at / BLOCK % self.share.1 == self.share.0
            && self.range.contains(&at)
            && !self.without.contains(&at)
            && self.until.is_none_or(|until| Instant::now() < until)
    }
}

/// An operation, and what another CPU does beside it.
#[derive(Debug)]
pub struct Scenario {
    pub name: &'static str,
    operation: &'static str,
    /// With it the operation runs on CPU 1, and this one on CPU 0, before and after the rest of it.
    other: Option<&'static str>,
    /// The machine is a copy already when the operation begins, which has not noticed.
    cloned: bool,
    /// Whether the operation is a draw, whose bytes may have been compared before it returns.
    draws: bool,
}

const fn alone(name: &'static str, operation: &'static str) -> Scenario {
    Scenario { name, operation, other: None, cloned: false, draws: true }
}

const fn learns(name: &'static str, operation: &'static str) -> Scenario {
    Scenario { cloned: true, ..alone(name, operation) }
}

const fn beside(name: &'static str, operation: &'static str, other: &'static str) -> Scenario {
    Scenario { other: Some(other), ..alone(name, operation) }
}

/// All that are explored.
pub const SCENARIOS: [Scenario; 20] = [
    alone("getrandom(16)", "pair"),
    alone("getrandom(64)", "words"),
    alone("getrandom(100)", "small"),
    alone("urandom, 32 bytes", "device"),
    alone("getrandom(16), new batch", "refill"),
    alone("getrandom(16), new key", "rekey"),
    alone("getrandom(8192)", "stream"),
    alone("vDSO", "vdso"),
    alone("vDSO, new batch", "vdso_refill"),
    alone("vDSO, new key", "vdso_rekey"),
    Scenario { draws: false, ..alone("reseed", "reseed") },
    learns("learning by getrandom(16)", "pair"),
    learns("learning by getrandom(8192)", "stream"),
    learns("learning by the vDSO", "vdso"),
    beside("getrandom(16) | learning", "pair", "pair"),
    beside("getrandom(16), new key | reseed", "rekey", "reseed"),
    beside("vDSO, new key | learning", "vdso_rekey", "pair"),
    Scenario { draws: false, ..beside("reseed | learning", "reseed", "pair") },
    Scenario { draws: false, ..beside("reseed | reseed", "reseed", "reseed") },
    Scenario { cloned: true, ..beside("learning | learning", "pair", "pair") },
];

impl Scenario {
    /// A machine that stands where the operation begins.
    fn begin(&self, kernel: &Path) -> Result<Rig> {
        let arguments = [self.operation, self.other.unwrap_or("")].join(" ");
        let mut rig = Rig::start(kernel, arguments.trim(), 1 + u32::from(self.other.is_some()))?;
        if self.cloned {
            rig.set_id(CLONED)?;
        }
        Ok(rig)
    }

    /// All that a program could tell two machines apart by that stand where the operation begins.
    pub fn begun(&self, kernel: &Path) -> Result<State> {
        self.begin(kernel)?.state()
    }

    /// Goes through the operation with `jobs` machines, each of which looks at its share of the sample.
    fn explore_side_by_side(&self, kernel: &Path, sample: &Sample, jobs: u64) -> Result<Found> {
        let found: Vec<Result<Found>> = std::thread::scope(|scope| {
            let explore = |n| scope.spawn(move || self.explore(kernel, sample.share(n, jobs)));
            let threads: Vec<_> = (0..jobs).map(explore).collect();
            threads.into_iter().map(|thread| thread.join().expect("a machine's thread")).collect()
        });
        let joined = found.into_iter().reduce(|one, other| one?.join(other?));
        joined.context("no machine went through it")?
    }

    /// Goes through the operation, and makes twins at each instruction of the sample.
    pub fn explore(&self, kernel: &Path, sample: Sample) -> Result<Found> {
        let mut rig = self.begin(kernel)?;
        let returned_before = rig.returned()?[0];
        let start = match self.other {
            None => Some(rig.state()?.hash()),
            Some(_) => None,
        };
        let found = Found { start, ..Found::default() };
        let mut run = Run {
            scenario: self,
            rig,
            found,
            returned_before,
            compared: [0; 2],
            controlled: false,
            held: false,
        };
        let mut rip = Some(run.rig.rip()?);
        // Between two reads of the id nothing depends on it: one snapshot there stands for all, if no other CPU acts.
        let mut first_after_read = true;
        while let Some(at) = rip {
            if sample.has(run.found.instructions, first_after_read) {
                run.snapshot(at, first_after_read)?;
                run.found.looked_at.push(run.found.instructions);
            }
            let step = run.rig.step()?;
            run.found.instructions += 1;
            if step.read_id {
                run.found.reads += 1;
                run.found.last_read = run.found.instructions;
            }
            (rip, first_after_read) = (step.next, step.read_id);
        }
        let reads = run.found.reads;
        ensure!(reads > 0 || !self.draws, "{}: nothing has read the id", self.name);
        run.found.judge_shares();
        Ok(run.found)
    }
}

/// A scenario on its way.
struct Run<'a> {
    scenario: &'a Scenario,
    rig: Rig,
    found: Found,
    /// Calls that had returned when the operation began.
    returned_before: usize,
    /// Bytes of the interrupted call that the last twins shared, by who went first.
    compared: [usize; 2],
    /// Twins with one id were found to draw the same on one CPU. On two they are compared at each snapshot, since who waits for
    /// whom differs from instruction to instruction.
    controlled: bool,
    /// The other CPU waited for this one, which has not taken interrupts since.
    held: bool,
}

impl Run<'_> {
    /// Makes twins of the machine as it stands, and goes back to that.
    fn snapshot(&mut self, rip: u64, first_after_read: bool) -> Result<()> {
        let returned = self.rig.returned()?;
        let two = returned.len() == 2;
        // What another CPU did not touch is the same after each instruction that does not read the id.
        let alone = !two || first_after_read;
        let beside = two && self.may_go_first()?;
        if !alone && !beside {
            return Ok(());
        }
        self.rig.save()?;
        self.found.snapshots += 1;
        if alone {
            self.compare(rip, &returned, false)?;
        }
        if beside {
            self.rig.restore(Some(TWINS[0]))?;
            self.held = !self.rig.other_may_go_first()?;
            match self.held {
                true => self.found.held += 1,
                false => self.compare(rip, &returned, true)?,
            }
        }
        self.rig.restore(self.scenario.cloned.then_some(CLONED))
    }

    /// Whether the other CPU may do its part before the rest of the operation: not where it waited for this one, until this
    /// one takes interrupts again.
    fn may_go_first(&mut self) -> Result<bool> {
        self.held = self.held && !self.rig.interrupts_on()?;
        self.found.held += u64::from(self.held);
        Ok(!self.held)
    }

    /// Compares twins of what was saved.
    fn compare(&mut self, rip: u64, returned: &[usize], other_first: bool) -> Result<()> {
        let one = self.end_of(TWINS[0], other_first)?;
        let two = self.end_of(TWINS[1], other_first)?;
        if !self.controlled || returned.len() > 1 {
            // Otherwise something else than the id tells the twins apart, and nothing is shown.
            let same = self.end_of(TWINS[0], other_first)?;
            ensure!(
                same == one,
                "{}: twins with one id differ at instruction {}, the other CPU {}:\n{}",
                self.scenario.name,
                self.found.instructions,
                if other_first { "first" } else { "after it" },
                one.differs_from(&same),
            );
            self.controlled = true;
        }
        let in_call = self.scenario.draws && returned[0] == self.returned_before;
        let threads: Vec<_> = (0..returned.len())
            .map(|n| Thread {
                twins: [&one.logs[n], &two.logs[n]],
                returned: returned[n],
                in_call: in_call && n == 0,
            })
            .collect();
        self.judge(rip, other_first, compare::compare(&threads));
        Ok(())
    }

    fn end_of(&mut self, id: Id, other_first: bool) -> Result<End> {
        self.rig.restore(Some(id))?;
        self.rig.finish(other_first)
    }

    fn judge(&mut self, rip: u64, other_first: bool, common: Common) {
        self.found.twins += 1;
        let before = &mut self.compared[usize::from(other_first)];
        if common.windows > 0 || (common.of > 0 && common.compared < *before) {
            let instruction = self.found.instructions;
            self.found.faults.push(Fault { instruction, rip, other_first, common });
        }
        *before = common.compared.max(*before);
        if common.compared == 0 {
            return;
        }
        let (instruction, reads) = (self.found.instructions, self.found.reads);
        self.found
            .shares
            .push(Share { at: Fault { instruction, rip, other_first, common }, reads });
        if common.compared == common.of {
            self.found.compared += 1;
            self.found.from.get_or_insert((self.found.instructions, rip));
        } else {
            self.found.compared_in_part += 1;
        }
    }
}
