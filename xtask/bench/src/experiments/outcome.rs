//! What an experiment's guest prints.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use serde::Serialize;
use xtask_host::table;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Unit {
    /// Nanoseconds of one call, or instructions of one.
    Call,
    /// Percent of the whole.
    Share,
    /// How often something happened for each piece of work.
    Times,
}

impl Unit {
    /// The figure as a table shows it.
    pub fn show(self, figure: f64, instructions: bool) -> String {
        match self {
            Self::Call if instructions => table::count(figure),
            Self::Call => table::time(figure),
            Self::Share => format!("{figure:.1} %"),
            Self::Times => format!("{figure:.2}"),
        }
    }
}

/// One line of a table.
#[derive(Debug, PartialEq, Serialize)]
pub struct Figure {
    pub name: String,
    pub unit: Unit,
    pub value: f64,
}

/// What one guest measured and found.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// In the order in which they were printed.
    pub figures: Vec<Figure>,
    pub facts: BTreeMap<String, bool>,
}

impl Outcome {
    /// Reads what a guest printed; an error if it did not come to its end.
    pub fn read(output: &str) -> Result<Self> {
        let mut found = Self::default();
        let mut ended = false;
        for line in output.lines() {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                ["rung", name, calls, ns] => {
                    found.note(name, Unit::Call, ns.parse::<f64>()? / calls.parse::<f64>()?);
                }
                ["count", name, pieces, calls] => {
                    let calls = calls.parse::<f64>()? / pieces.parse::<f64>()?;
                    found.note(&format!("getrandom, {name}"), Unit::Times, calls);
                }
                ["share", name, percent] => {
                    found.note(&format!("{name}, of an exec"), Unit::Share, percent.parse()?);
                }
                ["fact", name, holds] => {
                    found.facts.insert(name.to_owned(), holds == "yes");
                }
                ["experiment:", ..] => bail!("{line}"),
                ["experiment-end"] => ended = true,
                _ => {}
            }
        }
        ensure!(ended && !found.figures.is_empty(), "the experiment did not come to its end");
        Ok(found)
    }

    fn note(&mut self, name: &str, unit: Unit, value: f64) {
        self.figures.push(Figure { name: name.to_owned(), unit, value });
    }

    /// The value with that name, if this guest measured it.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "noise\nrung syscall 10 2994\ncount strings 10 193\nshare random 53.30\n\
                        fact wiped no\nexperiment-end\n";

    #[test]
    fn what_a_guest_prints_is_read() {
        let found = Outcome::read(GOOD).unwrap();
        assert_eq!(found.value("syscall"), Some(299.4));
        assert_eq!(found.value("getrandom, strings"), Some(19.3));
        assert_eq!(found.value("random, of an exec"), Some(53.3));
        assert_eq!(found.value("nothing"), None);
        assert!(!found.facts["wiped"]);
    }

    #[test]
    fn a_guest_that_ends_early_or_fails_is_an_error() {
        assert!(Outcome::read(&GOOD.replace("experiment-end", "")).is_err());
        assert!(Outcome::read("experiment-end\n").is_err());
        assert!(Outcome::read(&format!("experiment: FAILED: fork: x\n{GOOD}")).is_err());
    }

    #[test]
    fn each_unit_has_its_form() {
        assert_eq!(Unit::Call.show(2994.0, true), "2.99 k");
        assert_eq!(Unit::Call.show(2994.0, false), "2.99 us");
        assert_eq!(Unit::Share.show(53.3, true), "53.3 %");
        assert_eq!(Unit::Times.show(19.3, true), "19.30");
    }
}
