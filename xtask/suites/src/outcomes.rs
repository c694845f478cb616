//! How the tests of somebody else's suite ended on Linux and on Alea: read from what a guest printed, and compared.
//!
//! A guest prints a line with `MARK` and the test's name, what the test prints, and `STATUS` with its exit status. Differences that
//! are known stand in a file of `tests` with a reason; any other fails, and so does one that has gone away.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use xtask_host::paths;
use xtask_host::tally::Tally;
use xtask_setup::build;
use xtask_setup::setup::{self, Need};

use crate::programs::MARK;

/// What stands before a test's status; no test prints it.
pub const STATUS: &str = "=-=-> ";

/// How a test ended, by its name.
pub type Outcomes = BTreeMap<String, String>;

/// The image of the kernel `name`, built or fetched if it is missing.
pub fn kernel(name: &str, options: build::Options) -> Result<PathBuf> {
    match name {
        "linux" => setup::ensure(&[Need::Linux]).map(|()| paths::vmlinuz()),
        "alea" => build::build(options).map(|_| paths::kernel()),
        other => bail!("--only takes alea or linux, not {other}"),
    }
}

/// The test that a name is of: `TEST: CHECK` is a check of `TEST`.
pub fn whole(name: &str) -> &str {
    name.split_once(": ").map_or(name, |(test, _)| test)
}

/// The name by which a difference is known, if it is: the check's own, or the whole test's.
fn known_as<'a>(test: &'a str, known: &Outcomes) -> Option<&'a str> {
    [test, whole(test)].into_iter().find(|name| known.contains_key(*name))
}

/// How each test that ran on Linux ended on both.
fn both<'a>(linux: &'a Outcomes, alea: &'a Outcomes) -> Vec<(&'a str, &'a str, &'a str)> {
    let of_theirs = alea.keys().filter(|name| linux.contains_key(whole(name)));
    let names: BTreeSet<&String> = linux.keys().chain(of_theirs).collect();
    let of = |all: &'a Outcomes, name: &String| all.get(name).map_or("not run", String::as_str);
    names.into_iter().map(|name| (name.as_str(), of(linux, name), of(alea, name))).collect()
}

/// Says of each test how it ended on both, and counts those that end the same, or otherwise as is known. Of a test's checks only
/// those are told of that differ.
pub fn compare(linux: &Outcomes, alea: &Outcomes, known: &Outcomes) -> Tally {
    let mut tally = Tally::default();
    let mut seen = BTreeSet::new();
    for (test, want, got) in both(linux, alea) {
        let name = known_as(test, known).filter(|_| want != got);
        seen.extend(name);
        match (want == got, name) {
            (true, _) if whole(test) != test => {}
            (true, _) => println!("ok      {test}: {want}"),
            (false, Some(name)) => {
                println!("known   {test}: linux {want}, alea {got}: {}", known[name]);
            }
            (false, None) => println!("FAILED  {test}: linux {want}, alea {got}"),
        }
        tally.count(want == got || name.is_some());
    }
    for gone in known.keys().filter(|name| linux.contains_key(whole(name))) {
        if !seen.contains(gone.as_str()) {
            println!("FAILED  {gone}: now as on Linux, take it out of known.toml");
            tally.count(false);
        }
    }
    if linux.is_empty() {
        println!("FAILED  no test has run");
        tally.count(false);
    }
    tally
}

/// The tests that differ, or a check of them, in a way that is not known.
pub fn unexplained(linux: &Outcomes, alea: &Outcomes, known: &Outcomes) -> Vec<String> {
    let differ = both(linux, alea)
        .into_iter()
        .filter(|(test, want, got)| want != got && known_as(test, known).is_none());
    let tests: BTreeSet<&str> = differ.map(|(test, ..)| whole(test)).collect();
    tests.into_iter().map(str::to_owned).collect()
}

/// Takes out what differs in the first run, but not between some run on Linux and some on Alea: it is not steady.
pub fn settle(linux: &mut Outcomes, alea: &mut Outcomes, [second, later]: &[Outcomes; 2]) {
    let mut settled = Vec::new();
    for (test, want, got) in both(linux, alea) {
        let again = both(second, later).into_iter().find(|(name, ..)| *name == test);
        let (_, want_again, got_again) = again.unwrap_or((test, "not run", "not run"));
        let is_run = second.contains_key(whole(test));
        let alike = [want, want_again].iter().any(|one| [got, got_again].contains(one));
        if want != got && is_run && alike {
            println!("unsteady {test}: linux {want}, {want_again}; alea {got}, {got_again}");
            settled.push(test.to_owned());
        }
    }
    for test in settled {
        linux.remove(&test);
        alea.remove(&test);
    }
}

/// How each test ended: its own words for that, if it has them.
pub fn read(output: &str) -> Outcomes {
    let mut name = "";
    let mut all = Outcomes::new();
    for line in output.lines() {
        if let Some(test) = line.strip_prefix(MARK) {
            name = test.trim_end();
        } else if let Some((_, status)) = line.split_once(STATUS) {
            all.insert(name.to_owned(), ended(status.trim_end()));
        }
    }
    all
}

/// What an exit status says.
pub fn ended(status: &str) -> String {
    match status {
        "0" => "passed".to_owned(),
        "77" => "skipped".to_owned(),
        "124" | "137" | "143" => "too long".to_owned(),
        other => format!("failed ({other})"),
    }
}

/// Known differences: the reason, by test, of the suite whose folder in `tests` is `suite`.
pub fn known(suite: &str) -> Result<Outcomes> {
    let file = paths::source(&format!("tests/{suite}/known.toml"));
    let text = fs::read_to_string(&file).with_context(|| paths::shown(&file))?;
    toml::from_str(&text).with_context(|| paths::shown(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_found_behind_what_tests_print() {
        let output = "boot\n=-=-= nop\n=-=-> 0\n=-=-= poll\nno newline=-=-> 1\n=-=-= old\n=-=-> 77\n\
                      =-=-= hangs\n=-=-> 137\n=-=-= end\n";
        let all = read(output);
        let of = |name: &str| all[name].as_str();
        assert_eq!(
            [of("nop"), of("poll"), of("old"), of("hangs")],
            ["passed", "failed (1)", "skipped", "too long"]
        );
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn differences_fail_unless_they_are_known() {
        let of = |all: &[(&str, &str)]| -> Outcomes {
            all.iter().map(|(test, how)| ((*test).to_owned(), (*how).to_owned())).collect()
        };
        let linux = of(&[("a", "passed"), ("b", "passed"), ("c", "failed (1)")]);
        let alea = of(&[("a", "passed"), ("b", "failed (1)"), ("c", "failed (1)")]);
        let failed = |known: &[(&str, &str)]| compare(&linux, &alea, &of(known)).failed;
        assert_eq!(failed(&[]), 1);
        assert_eq!(failed(&[("b", "why")]), 0);
        assert_eq!(failed(&[("b", "why"), ("c", "gone")]), 1);
        assert_eq!(compare(&Outcomes::new(), &alea, &Outcomes::new()).failed, 1);
    }
    #[test]
    fn a_check_is_of_its_test_and_asked_for_again_with_it() {
        let of = |all: &[(&str, &str)]| -> Outcomes {
            all.iter().map(|(test, how)| ((*test).to_owned(), (*how).to_owned())).collect()
        };
        let linux = of(&[("a", "passed"), ("a: one", "PASS"), ("a: two", "PASS")]);
        let alea = of(&[("a", "passed"), ("a: one", "FAIL"), ("a: new", "PASS")]);
        let failed = |known: &[(&str, &str)]| compare(&linux, &alea, &of(known)).failed;
        assert_eq!(failed(&[]), 3);
        assert_eq!(failed(&[("a: one", "why")]), 2);
        assert_eq!(failed(&[("a", "why")]), 0);
        assert_eq!(failed(&[("a", "why"), ("a: gone", "why")]), 1);
        assert_eq!(unexplained(&linux, &alea, &of(&[])), ["a"]);
        assert!(unexplained(&linux, &alea, &of(&[("a", "why")])).is_empty());
        let (mut first, mut other) = (linux.clone(), alea.clone());
        let again = [linux.clone(), of(&[("a: one", "PASS"), ("a: two", "FAIL")])];
        settle(&mut first, &mut other, &again);
        assert_eq!(compare(&first, &other, &of(&[])).failed, 1);
    }
}
