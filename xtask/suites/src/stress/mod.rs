//! `cargo xtask stress`: all stressors of Debian's stress-ng, with their own checks, on Linux and on Alea, verdict by verdict.
//!
//! The guest runs `tests/debian/stress.sh`, one stressor after the other; a machine that stops is ended, and another goes on with
//! the next stressor. A verdict that differs is asked for once more on both kernels. What differs then stands in
//! `tests/stress/known.toml` with its reason, or fails.

mod known;
mod verdicts;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};
use clap::Args;

use crate::debian::root::{hook, tar};
use known::Known;
use verdicts::{Key, Verdicts};
use xtask_host::tally::Tally;
use xtask_host::{paths, process, term};

/// The two kernels, by the names that `cargo xtask run --kernel` knows.
const KERNELS: [&str; 2] = ["linux", "alea"];

/// Stressors to a machine.
const CHUNK: usize = 24;

/// Runs all stressors of stress-ng on Linux and on Alea, and compares their verdicts.
#[derive(Args)]
pub struct Stress {
    /// Names of stressors; default: all
    stressors: Vec<String>,
    /// Numbers of CPUs, in turn
    #[arg(long, value_delimiter = ',', default_value = "1,2,4")]
    smp: Vec<u32>,
    /// As whom
    #[arg(
        long = "as",
        value_name = "root|user",
        value_delimiter = ',',
        default_value = "root,user"
    )]
    users: Vec<String>,
    /// How long each stressor runs
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// How long it may take with its beginning and end, until it is killed
    #[arg(long, default_value_t = 60)]
    limit: u32,
    /// Run on this kernel only, and print the verdicts
    #[arg(long, value_name = "alea|linux", value_parser = KERNELS)]
    only: Option<String>,
}

impl Stress {
    pub fn run(self) -> Result<ExitCode> {
        let root = tar(&["stress-ng"], &hook(&[], false), false)?;
        let all = match self.stressors.is_empty() {
            true => self.names(&root)?,
            false => self.stressors.clone(),
        };
        let known = Known::load(&paths::source(known::FILE))?;
        let mut tally = Tally::default();
        for &smp in &self.smp {
            for user in &self.users {
                match &self.only {
                    Some(kernel) => {
                        for (key, verdict) in self.verdicts(&root, kernel, smp, user, &all)? {
                            println!("{key}, {smp} CPUs: {verdict}");
                        }
                    }
                    None => self.compare(&root, smp, user, &all, &known, &mut tally)?,
                }
            }
        }
        Ok(tally.conclude())
    }

    /// The names of all stressors.
    fn names(&self, root: &Path) -> Result<Vec<String>> {
        let said = self.guest(root, "linux", 1, "exec stress-ng --stressors", 120)?;
        Ok(said.split_whitespace().map(String::from).collect())
    }

    fn compare(
        &self,
        root: &Path,
        smp: u32,
        user: &str,
        all: &[String],
        known: &Known,
        tally: &mut Tally,
    ) -> Result<()> {
        let [mut linux, mut alea] = [BTreeMap::new(), BTreeMap::new()];
        for names in all.chunks(CHUNK) {
            linux.extend(self.verdicts(root, "linux", smp, user, names)?);
            alea.extend(self.verdicts(root, "alea", smp, user, names)?);
        }
        let differ = |linux: &Verdicts, alea: &Verdicts| -> Vec<String> {
            let other = |(key, verdict): &(&Key, &String)| alea.get(key) != Some(verdict);
            linux.iter().filter(other).map(|(key, _)| key.name.clone()).collect()
        };
        // A verdict may be chance: a busy host, a race of the stressor's own.
        let again = differ(&linux, &alea);
        for names in again.chunks(CHUNK) {
            linux.extend(self.verdicts(root, "linux", smp, user, names)?);
            alea.extend(self.verdicts(root, "alea", smp, user, names)?);
        }
        for (key, expected) in &linux {
            let found = alea.get(key).map_or("nothing", String::as_str);
            let reason = known.reason(key);
            let same = found == expected;
            // What is known may go away on some numbers of CPUs only.
            tally.count(same || reason.is_some());
            if !same {
                let reason =
                    reason.map_or_else(|| "FAILED".to_owned(), |why| format!("known: {why}"));
                println!("{key}, {smp} CPUs: Linux {expected}, Alea {found}; {reason}");
            }
        }
        let same = linux.len() - differ(&linux, &alea).len();
        println!("{user}, {smp} CPUs: {same} of {} stressors as on Linux", linux.len());
        Ok(())
    }

    /// The verdicts on stressors; where a machine stops, another goes on.
    fn verdicts(
        &self,
        root: &Path,
        kernel: &str,
        smp: u32,
        user: &str,
        names: &[String],
    ) -> Result<Verdicts> {
        let mut all = Verdicts::new();
        let mut rest = names;
        while !rest.is_empty() {
            let (now, _) = rest.split_at(rest.len().min(CHUNK));
            let script = self.script(user, now)?;
            let each = u64::from(self.limit.min(self.seconds + 15));
            let limit = 60 + each * now.len() as u64;
            let said = self.guest(root, kernel, smp, &script, limit)?;
            let found = verdicts::parse(&said);
            let done = found.len();
            all.extend(found);
            if done < now.len() {
                let key = Key { user: user.to_owned(), name: now[done].clone() };
                println!(
                    "{key}, {smp} CPUs: the machine stops on {kernel}\n{}",
                    verdicts::end_of(&said)
                );
                all.insert(key, "the machine stops".to_owned());
            }
            rest = &rest[now.len().min(done + 1)..];
        }
        Ok(all)
    }

    fn script(&self, user: &str, names: &[String]) -> Result<String> {
        let file = paths::source("tests/debian/stress.sh");
        let text = std::fs::read_to_string(&file).with_context(|| paths::shown(&file))?;
        let (names, seconds, limit) = (names.join(" "), self.seconds, self.limit);
        Ok(format!(
            "exec 2>&1\ntells=yes users={user} stressors='{names}' seconds={seconds} limit={limit}\n{text}"
        ))
    }

    /// Runs a script in a machine of its own: what it prints, however it ends.
    fn guest(
        &self,
        root: &Path,
        kernel: &str,
        smp: u32,
        script: &str,
        limit: u64,
    ) -> Result<String> {
        let spinner = term::spinner(&format!("stress-ng on {kernel}, {smp} CPUs"));
        let mut command = process::cargo();
        command.args(["xtask", "run", "--root"]).arg(root);
        command.args(["--kernel", kernel, "--smp", &smp.to_string(), "--memory", "1G"]);
        command.args(["--timeout", &limit.to_string(), "--", "/bin/sh", "-c", script]);
        let output = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .context("cannot start cargo")?;
        spinner.finish_and_clear();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        Ok(format!("{said}{errors}"))
    }
}
