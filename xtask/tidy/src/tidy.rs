//! `cargo xtask tidy`: the house rules that neither rustfmt nor clippy knows, one file for each.
//!
//! Owns nothing: it reads the files that git knows, and the rules' data, `xtask/tidy.toml`. A rule reports faults to
//! `Faults`; those that may be excepted carry a key, and a key listed under `[except]` is excused as long as the
//! fault is there. A rule never changes a file, and never looks at one that git ignores. No locks.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::data::Rules;
use crate::faults::Faults;
use crate::rules::{
    circles, commands, figures, floors, growth, heads, length, named, once, opening, pace, seams,
    text, workspace,
};
use crate::shown::Figures;
use crate::tree::Tree;
use crate::{graph, marked, runs, shrink, syscalls, words};
use xtask_host::paths;

/// The kernel's source folder.
const KERNEL: &str = "kernel/src/";

/// Checks the house rules of `xtask/tidy.toml`.
#[derive(Args)]
pub struct Tidy {
    /// Print the exceptions that the tree needs as it is, in the form of the data file
    #[arg(long)]
    list: bool,
    /// Write the tables of docs that are made from data anew
    #[arg(long)]
    write: bool,
}

impl Tidy {
    pub fn run(self) -> Result<ExitCode> {
        let root = paths::root();
        if self.list {
            let rules = Rules::load(root)?;
            print!("{}", look(&Tree::read(root)?, &rules).list());
            return Ok(ExitCode::SUCCESS);
        }
        if self.write {
            write(root)?;
        }
        check(root)?;
        shrink::check(root)?;
        println!("tidy: ok");
        Ok(ExitCode::SUCCESS)
    }
}

/// Checks every file that git knows or would add; the error lists all that is wrong.
pub fn check(root: &Path) -> Result<()> {
    let rules = Rules::load(root)?;
    let mut faults = look(&Tree::read(root)?, &rules);
    if let Err(error) = syscalls::check(root) {
        faults.add(format!("{error:#}"));
    }
    let faults = faults.judge(&rules.except);
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{} faults:\n{}", faults.len(), faults.join("\n"))
}

/// Makes the tables anew that docs have from the data.
fn write(root: &Path) -> Result<()> {
    let rules = Rules::load(root)?;
    let page = root.join(marked::PAGE);
    let text = fs::read_to_string(&page)?;
    let text = floors::with_table(&text, &rules).context("no marks of the floors")?;
    let text = circles::with_table(&text, &rules).context("no marks of the circles")?;
    fs::write(page, text)?;
    let page = root.join(words::PAGE);
    let text = fs::read_to_string(root.join(words::FILE))?;
    let text = words::with_table(&fs::read_to_string(&page)?, &text)?;
    fs::write(page, text)?;
    let page = root.join("README.md");
    let text = runs::with_table(&fs::read_to_string(&page)?, &runs::load(root)?);
    fs::write(page, text.context("README.md: no marks of what runs")?)?;
    Figures::load(root)?.write(root)
}

/// All rules that look at nothing but the tree.
fn look(tree: &Tree, rules: &Rules) -> Faults {
    let mut faults = Faults::default();
    text::check(tree, rules, &mut faults);
    once::check(tree, &mut faults);
    opening::check(tree, rules, &mut faults);
    pace::check(tree, &mut faults);
    growth::check(tree, &mut faults);
    workspace::check(tree, &mut faults);
    length::check(tree, rules, &mut faults);
    heads::check(tree, rules, &mut faults);
    named::check(tree, &mut faults);
    seams::check(tree, &mut faults);
    figures::check(tree, &mut faults);
    runs::check(tree, &mut faults);
    commands::check(tree, &mut faults);
    words::check(tree, &mut faults);
    let edges = graph::edges(tree, KERNEL);
    floors::check(tree, rules, &edges, &mut faults);
    circles::check(tree, rules, &edges, &mut faults);
    faults
}
