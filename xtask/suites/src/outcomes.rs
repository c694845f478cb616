//! How the tests of somebody else's suite ended on Linux and on Alea: read from what a guest printed, and compared.
//!
//! A guest prints a line with `MARK` and the test's name, what the test prints, and `STATUS` with its exit status. Differences that
//! are known stand in a file of `tests` with a reason; any other fails, and so does one that has gone away.

use std::collections::BTreeMap;
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

/// Says of each test how it ended on both, and counts those that end the same, or otherwise as is known.
pub fn compare(linux: &Outcomes, alea: &Outcomes, known: &Outcomes) -> Tally {
    let mut tally = Tally::default();
    for (test, want) in linux {
        let got = alea.get(test).map_or("not run", String::as_str);
        let line = match (want == got, known.get(test)) {
            (true, None) => format!("ok      {test}: {want}"),
            (false, Some(why)) => format!("known   {test}: linux {want}, alea {got}: {why}"),
            (true, Some(_)) => {
                format!("FAILED  {test}: now as on Linux, take it out of known.toml")
            }
            (false, None) => format!("FAILED  {test}: linux {want}, alea {got}"),
        };
        tally.count(!line.starts_with("FAILED"));
        println!("{line}");
    }
    if linux.is_empty() {
        println!("FAILED  no test has run");
        tally.count(false);
    }
    tally
}

/// How each test ended: its own words for that, if it has them.
pub fn read(output: &str) -> Outcomes {
    let mut name = "";
    let mut all = Outcomes::new();
    for line in output.lines() {
        if let Some(test) = line.strip_prefix(MARK) {
            name = test.trim_end();
        } else if let Some((_, status)) = line.split_once(STATUS) {
            let outcome = match status.trim_end() {
                "0" => "passed".to_owned(),
                "77" => "skipped".to_owned(),
                "124" | "137" | "143" => "too long".to_owned(),
                other => format!("failed ({other})"),
            };
            all.insert(name.to_owned(), outcome);
        }
    }
    all
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
}
