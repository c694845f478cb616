//! The lists of exceptions only get shorter: none may be longer than in a commit before, and there may not be more circles, nor
//! more rooms in those of a folder. A new edition of the rules, or of the layout that they speak of, begins anew; the data file
//! says which edition it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::data::{self, Exceptions};
use xtask_host::process;

/// How far back to look: more than a change has commits, and few enough to be quick.
const COMMITS: &str = "-30";

/// The files with such lists.
const FILES: [&str; 2] = [data::FILE, "tests/stress/known.toml"];

/// Compares the exceptions with those of the last commits.
pub fn check(root: &Path) -> Result<()> {
    let mut grown = Vec::new();
    for file in FILES {
        let path = root.join(file);
        let text = fs::read_to_string(&path).with_context(|| file.to_owned())?;
        let now: Lists = toml::from_str(&text).with_context(|| file.to_owned())?;
        let before = earlier(root, file, now.edition)?;
        grown.extend(compare(&now.except, &before));
        grown.extend(compare_circles(&now.circle, &before));
    }
    if !grown.is_empty() {
        bail!("{}", grown.join("\n"));
    }
    Ok(())
}

/// Of a data file, whose other tables may have had another form earlier.
#[derive(Default, Deserialize)]
struct Lists {
    #[serde(default)]
    edition: u32,
    #[serde(default)]
    except: Exceptions,
    #[serde(default)]
    circle: Vec<Ring>,
}

/// The rooms of a circle.
#[derive(Deserialize)]
struct Ring {
    below: String,
    rooms: BTreeSet<String>,
}

/// The lists of earlier commits of this edition.
fn earlier(root: &Path, file: &str, edition: u32) -> Result<Vec<Lists>> {
    let mut log = git(root);
    log.args(["log", COMMITS, "--format=%H", "--diff-filter=AM", "--", file]);
    let mut all = Vec::new();
    for commit in process::output(&mut log)?.lines() {
        let text = process::output(git(root).args(["show", &format!("{commit}:{file}")]))?;
        let earlier: Lists = toml::from_str(&text).with_context(|| commit.to_owned())?;
        all.extend((earlier.edition == edition).then_some(earlier));
    }
    Ok(all)
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(root);
    git
}

/// Which exceptions have become more.
fn compare(now: &Exceptions, earlier: &[Lists]) -> Vec<String> {
    let mut least = BTreeMap::<&str, usize>::new();
    for (rule, list) in earlier.iter().flat_map(|earlier| &earlier.except) {
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

/// How many circles there are, and where there are more, or more rooms in them, than there were.
fn compare_circles(now: &[Ring], earlier: &[Lists]) -> Vec<String> {
    let rooms = |circles: &[Ring], below: &str| -> usize {
        circles.iter().filter(|ring| ring.below == below).map(|ring| ring.rooms.len()).sum()
    };
    let mut grown = Vec::new();
    if let Some(least) = earlier.iter().map(|earlier| earlier.circle.len()).min()
        && now.len() > least
    {
        grown.push(format!("{} circles, where {least} were enough before", now.len()));
    }
    let folders: BTreeSet<&str> = now.iter().map(|ring| ring.below.as_str()).collect();
    for below in folders {
        // A folder that had none has a new name, or one circle too many.
        let before = earlier.iter().map(|earlier| rooms(&earlier.circle, below));
        let (rooms, least) = (rooms(now, below), before.filter(|rooms| *rooms > 0).min());
        if let Some(least) = least.filter(|least| rooms > *least) {
            grown.push(format!("{rooms} rooms in circles of {below}, where {least} were before"));
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
        let earlier = ["a = [\"1\", \"2\"]", "a = [\"1\", \"2\", \"3\"]"]
            .map(|text| Lists { except: exceptions(text), ..Lists::default() });
        assert!(compare(&exceptions("a = [\"4\", \"2\"]\nnew = [\"x\"]"), &earlier).is_empty());
        let grown = compare(&exceptions("a = [\"4\", \"2\", \"3\"]"), &earlier);
        assert_eq!(grown, ["3 exceptions from a, where 2 were enough before"]);
    }

    fn circles(all: &[(&str, &str)]) -> Vec<Ring> {
        let ring = |(below, rooms): &(&str, &str)| Ring {
            below: (*below).into(),
            rooms: rooms.split(' ').map(String::from).collect(),
        };
        all.iter().map(ring).collect()
    }

    #[test]
    fn circles_do_not_grow() {
        let earlier = [[("a/", "1 2 3"), ("b/", "x y")], [("a/", "1 2 3 4"), ("b/", "x y")]]
            .map(|all| Lists { circle: circles(&all), ..Lists::default() });
        let grown = |now: &[(&str, &str)]| compare_circles(&circles(now), &earlier);
        assert!(grown(&[("a/", "1 2 9"), ("b/", "x y")]).is_empty());
        assert!(grown(&[("a/", "1 2")]).is_empty());
        assert!(grown(&[("new/", "1 2"), ("b/", "x y")]).is_empty());
        let more = "4 rooms in circles of a/, where 3 were before";
        assert_eq!(grown(&[("a/", "1 2 3 4"), ("b/", "x y")]), [more]);
        assert_eq!(grown(&[("a/", "1 2"), ("a/", "3 4")]), [more]);
        let third = "3 circles, where 2 were enough before";
        assert_eq!(grown(&[("a/", "1 2"), ("b/", "x y"), ("c/", "1 2")]), [third]);
    }
}
