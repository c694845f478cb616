//! `--fail-alloc EVERY_N[,SEED[,GENERATION]]`: a run in which about one in so many of the kernel's allocations fails.
//!
//! With 0 only what programs name fails (`/proc/thread-self/alea/fail_nth`), and they say what Linux's say where nothing does.
//! Else programs may fail then, so nobody compares what they print. What is checked: no panic, no hang, nothing that the kernel
//! holds afterwards. The guest tells at its end how many allocations were asked for and how many failed.

use std::fmt::{self, Display, Formatter};
use std::ops::AddAssign;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use clap::Args;

/// Makes allocations of the kernel fail.
#[derive(Args, Clone, Copy, Default)]
pub struct FailAlloc {
    /// Make about one in N of the kernel's allocations fail, drawn from a seed; nothing that programs print is compared.
    /// Only processes with so many forks between process 1 and them. 0: only those that a program names
    #[arg(long = "fail-alloc", value_name = "EVERY_N[,SEED[,GENERATION]]")]
    pub rate: Option<Rate>,
    /// Write what was made to fail, and what broke, into docs/figures.toml and the page that shows it
    #[arg(long, requires = "rate")]
    pub write_figures: bool,
}

impl FailAlloc {
    /// The options that ask for it.
    pub fn words(&self) -> Vec<String> {
        let rate = self.rate.map(|rate| ["--fail-alloc".to_owned(), rate.to_string()]);
        rate.into_iter().flatten().collect()
    }
}

/// One in how many, 0 for those that programs name, and what is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub every: u32,
    pub seed: u64,
    /// How many forks lie between process 1 and the first whose allocations fail, if that was said.
    pub generation: Option<u32>,
}

impl FromStr for Rate {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        const FORM: &str = "not EVERY_N[,SEED[,GENERATION]]";
        let (every, rest) = text.split_once(',').unwrap_or((text, "1"));
        let (seed, generation) =
            rest.split_once(',').map_or((rest, None), |(seed, after)| (seed, Some(after)));
        let every = every.parse().context(FORM)?;
        ensure!(every != 1, "with one in {every} nothing can run");
        let generation = generation.map(str::parse).transpose().context(FORM)?;
        Ok(Self { every, seed: seed.parse().context(FORM)?, generation })
    }
}

impl Display for Rate {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{},{}", self.every, self.seed)?;
        self.generation.map_or(Ok(()), |generation| write!(to, ",{generation}"))
    }
}

impl Rate {
    /// What the kernel's command line says of it.
    pub fn word(self) -> String {
        format!("alea.fail_alloc={self}")
    }

    /// Whether only those allocations fail that a program names, so that what it prints is the same.
    pub fn is_named_only(self) -> bool {
        self.every == 0
    }
}

/// What the guest told of its allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Allocations that could have failed, and those that did.
    pub asked: u64,
    pub failed: u64,
    /// Of the latter the frames of memory.
    pub frames: u64,
}

impl Told {
    /// Adds what one guest printed last: it tells its counts again and again, in case it does not come to its end.
    pub fn add(&mut self, output: &str) {
        let told = |line| str::strip_prefix(str::trim_end(line), "fail_alloc: ");
        if let Some(line) = output.lines().rev().find_map(told) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let of = |name| {
                let at = words.iter().position(|word| *word == name)?;
                words.get(at + 1)?.parse::<u64>().ok()
            };
            self.asked += of("asked").unwrap_or(0);
            self.failed += of("failed").unwrap_or(0);
            self.frames += of("frames").unwrap_or(0);
        }
    }
}

impl AddAssign for Told {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.failed += other.failed;
        self.frames += other.frames;
    }
}

impl Display for Told {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let Self { asked, failed, frames } = self;
        write!(to, "{failed} allocations of {asked} were made to fail, {frames} of them frames")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_one_in_some_and_perhaps_a_seed() {
        assert_eq!("50".parse::<Rate>().unwrap(), Rate { every: 50, seed: 1, generation: None });
        assert_eq!("50,7".parse::<Rate>().unwrap().word(), "alea.fail_alloc=50,7");
        assert_eq!("50,7,4".parse::<Rate>().unwrap().word(), "alea.fail_alloc=50,7,4");
        assert_eq!("0".parse::<Rate>().unwrap().word(), "alea.fail_alloc=0,1");
        assert!("1".parse::<Rate>().is_err());
        assert!("50,x".parse::<Rate>().is_err());
    }

    #[test]
    fn what_several_boots_told_is_added_up() {
        let mut told = Told::default();
        told.add("fail_alloc: every 50 seed 1 asked 90 failed 2 frames 1\nfail_alloc: every 50 seed 1 asked 100 failed 3 frames 1\r\n");
        told.add("fail_alloc: every 50 seed 1 asked 10 failed 2 frames 0\nPanic\n");
        assert_eq!(told, Told { asked: 110, failed: 5, frames: 1 });
    }
}
