//! The lists of exceptions only get shorter: none may be longer than in a commit before. A new edition of the rules, or of
//! the layout that they speak of, begins anew; the data file says which edition it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::data::{self, Exceptions, Rules};
use xtask_host::process;

/// How far back to look: more than a change has commits, and few enough to be quick.
const COMMITS: &str = "-30";

/// Other files with such lists.
const OTHERS: [&str; 1] = ["tests/stress/known.toml"];

/// Compares the exceptions with those of the last commits.
pub fn check(root: &Path) -> Result<()> {
    let rules = Rules::load(root)?;
    let mut grown = compare(&rules.except, &earlier(root, data::FILE, rules.edition)?);
    for file in OTHERS {
        let path = root.join(file);
        let text = fs::read_to_string(&path).with_context(|| file.to_owned())?;
        let now: Earlier = toml::from_str(&text).with_context(|| file.to_owned())?;
        grown.extend(compare(&now.except, &earlier(root, file, now.edition)?));
    }
    if !grown.is_empty() {
        bail!("{}", grown.join("\n"));
    }
    Ok(())
}

/// Of an earlier data file, whose other tables may have had another form.
#[derive(Deserialize)]
struct Earlier {
    #[serde(default)]
    edition: u32,
    #[serde(default)]
    except: Exceptions,
}

/// The exceptions of earlier commits.
fn earlier(root: &Path, file: &str, edition: u32) -> Result<Vec<Exceptions>> {
    let mut log = git(root);
    log.args(["log", COMMITS, "--format=%H", "--diff-filter=AM", "--", file]);
    let mut all = Vec::new();
    for commit in process::output(&mut log)?.lines() {
        let text = process::output(git(root).args(["show", &format!("{commit}:{file}")]))?;
        let earlier: Earlier = toml::from_str(&text).with_context(|| commit.to_owned())?;
        all.extend((earlier.edition == edition).then_some(earlier.except));
    }
    Ok(all)
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(root);
    git
}

/// What has grown.
fn compare(now: &Exceptions, earlier: &[Exceptions]) -> Vec<String> {
    let mut least = BTreeMap::<&str, usize>::new();
    for (rule, list) in earlier.iter().flatten() {
        let least = least.entry(rule).or_insert(usize::MAX);
        *least = list.len().min(*least);
    }
    let mut grown = Vec::new();
    for (rule, list) in now {
        if let Some(least) = least.get(rule.as_str()).filter(|least| list.len() > **least) {
            let now = list.len();
            grown.push(format!("{now} exceptions from {rule}, where {least} were enough before"));
        }
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceptions(text: &str) -> Exceptions {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn lists_do_not_grow() {
        let earlier = [exceptions("a = [\"1\", \"2\"]"), exceptions("a = [\"1\", \"2\", \"3\"]")];
        assert!(compare(&exceptions("a = [\"4\", \"2\"]\nnew = [\"x\"]"), &earlier).is_empty());
        let grown = compare(&exceptions("a = [\"4\", \"2\", \"3\"]"), &earlier);
        assert_eq!(grown, ["3 exceptions from a, where 2 were enough before"]);
    }
}
