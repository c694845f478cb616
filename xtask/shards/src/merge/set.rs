//! Parts that belong together: those of one command with the same options.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use serde::Serialize;

use crate::divide;
use crate::results::Results;
use crate::shard::Shard;
use xtask_host::paths;

/// The results of a part, and where they lie.
pub struct Part {
    pub results: Results,
    pub file: PathBuf,
}

/// All parts of one command's work that are there, in order, and those that are not.
#[derive(Serialize)]
pub struct Set {
    pub command: String,
    pub missing: Vec<Shard>,
    pub parts: Vec<Results>,
}

/// Sorts parts into sets. An error names what cannot be in one set: a part twice, a piece in two parts, other work.
pub fn sets(parts: Vec<Part>) -> Result<Vec<Set>> {
    let mut by_command = BTreeMap::<String, Vec<Part>>::new();
    for part in parts {
        by_command.entry(part.results.command.clone()).or_default().push(part);
    }
    by_command.into_iter().map(|(command, parts)| set(command, parts)).collect()
}

fn set(command: String, mut parts: Vec<Part>) -> Result<Set> {
    parts.sort_by_key(|part| part.results.shard);
    for pair in parts.windows(2) {
        if let [one, other] = pair {
            fit(&command, one, other)?;
        }
    }
    apart(&parts)?;
    let count = parts.first().map_or(1, |part| part.results.shard.count());
    let there = |shard: &Shard| parts.iter().any(|part| part.results.shard == *shard);
    let missing: Vec<Shard> = Shard::all(count).filter(|shard| !there(shard)).collect();
    let whole = parts.first().map(|part| part.results.whole.digest.clone());
    let all = parts.iter().flat_map(|part| &part.results.units).map(String::as_str);
    ensure!(
        !missing.is_empty() || whole == Some(divide::digest(all)),
        "the {count} parts of `{command}` are not the whole: were they divided by the same durations?"
    );
    Ok(Set { command, missing, parts: parts.into_iter().map(|part| part.results).collect() })
}

/// Whether two parts are of the same work, divided in the same way.
fn fit(command: &str, one: &Part, other: &Part) -> Result<()> {
    let (a, b) = (&one.results, &other.results);
    let files = format!("{} and {}", paths::shown(&one.file), paths::shown(&other.file));
    if a.shard.count() != b.shard.count() {
        bail!("`{command}`: parts of {} and of {}: {files}", a.shard.count(), b.shard.count());
    }
    if a.shard == b.shard {
        bail!("part {} of `{command}` is there twice: {files}", a.shard);
    }
    if a.whole != b.whole {
        let (a, b) = (a.whole.units, b.whole.units);
        bail!("`{command}`: parts of other work, of {a} pieces and of {b}: {files}");
    }
    if a.source != b.source {
        bail!("`{command}`: parts of other sources, {} and {}: {files}", a.source, b.source);
    }
    Ok(())
}

/// Whether no piece is in two parts.
fn apart(parts: &[Part]) -> Result<()> {
    let mut seen = BTreeMap::<&str, &Part>::new();
    for part in parts {
        for unit in &part.results.units {
            if let Some(other) = seen.insert(unit, part) {
                let files =
                    format!("{} and {}", paths::shown(&other.file), paths::shown(&part.file));
                bail!(
                    "{unit:?} is in two parts ({files}): were they divided by the same durations?"
                );
            }
        }
    }
    Ok(())
}
