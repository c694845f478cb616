//! The lists of exceptions only get shorter: none may be longer than in any commit before that had it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::data::{self, Exceptions, Rules};
use super::faults::Faults;
use crate::process;

/// How far back to look: more than a change has commits, and few enough to be quick.
const COMMITS: &str = "-30";

pub fn check(root: &Path, rules: &Rules, faults: &mut Faults) {
    match earlier(root) {
        Ok(earlier) => compare(&rules.except, &earlier, faults),
        Err(error) => faults.add(format!("the history of {}: {error:#}", data::FILE)),
    }
}

/// Of an earlier data file, whose other tables may have had another form.
#[derive(Deserialize)]
struct Earlier {
    #[serde(default)]
    except: Exceptions,
}

/// The exceptions of earlier commits.
fn earlier(root: &Path) -> Result<Vec<Exceptions>> {
    let mut log = git(root);
    log.args(["log", COMMITS, "--format=%H", "--diff-filter=AM", "--", data::FILE]);
    let mut all = Vec::new();
    for commit in process::output(&mut log)?.lines() {
        let text = process::output(git(root).args(["show", &format!("{commit}:{}", data::FILE)]))?;
        all.push(toml::from_str::<Earlier>(&text).with_context(|| commit.to_owned())?.except);
    }
    Ok(all)
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(root);
    git
}

fn compare(now: &Exceptions, earlier: &[Exceptions], faults: &mut Faults) {
    let mut least = BTreeMap::<&str, usize>::new();
    for (rule, list) in earlier.iter().flatten() {
        let least = least.entry(rule).or_insert(usize::MAX);
        *least = list.len().min(*least);
    }
    for (rule, list) in now {
        if let Some(least) = least.get(rule.as_str()).filter(|least| list.len() > **least) {
            let now = list.len();
            faults.add(format!("{now} exceptions from {rule}, where {least} were enough before"));
        }
    }
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
        let mut faults = Faults::default();
        compare(&exceptions("a = [\"4\", \"2\"]\nnew = [\"x\"]"), &earlier, &mut faults);
        assert!(faults.all().is_empty());
        let mut faults = Faults::default();
        compare(&exceptions("a = [\"4\", \"2\", \"3\"]"), &earlier, &mut faults);
        assert_eq!(faults.all(), ["3 exceptions from a, where 2 were enough before"]);
    }
}
