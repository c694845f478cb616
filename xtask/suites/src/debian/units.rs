//! The units: the scripts of `tests/debian`, and what their heads ask for.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use xtask_host::paths;

/// One script.
#[derive(Debug, PartialEq)]
pub struct Unit {
    pub name: String,
    /// What it does, in one sentence.
    pub about: String,
    /// What Debian's minimal root must have more of.
    pub packages: Vec<String>,
    /// Packages that lie in `/repository`, not installed.
    pub repository: Vec<String>,
    /// The process 1 that brings the machine to a login, where root types the script.
    pub init: Option<String>,
    pub script: String,
}

/// The units of these names, or all.
pub fn named(names: &[String]) -> Result<Vec<Unit>> {
    let folder = paths::source("tests/debian");
    let mut all = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| paths::shown(&folder))? {
        all.push(read(&entry?.path())?);
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    for name in names {
        if !all.iter().any(|unit| unit.name == *name) {
            let there: Vec<&str> = all.iter().map(|unit| unit.name.as_str()).collect();
            bail!("there is no unit {name}; there are {}", there.join(" "));
        }
    }
    all.retain(|unit| names.is_empty() || names.contains(&unit.name));
    Ok(all)
}

/// The unit that only boots.
pub fn boot() -> Result<Unit> {
    read(&paths::source("tests/debian/boot.sh"))
}

fn read(path: &Path) -> Result<Unit> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let text = fs::read_to_string(path).with_context(|| paths::shown(path))?;
    parse(&name, &text).with_context(|| paths::shown(path))
}

/// A script begins with comments: what it does, and lines of `key: words`.
fn parse(name: &str, text: &str) -> Result<Unit> {
    let mut heads = text.lines().map_while(|line| line.strip_prefix("# "));
    let about = heads.next().unwrap_or_default().to_owned();
    ensure!(
        about.ends_with('.'),
        "the first line must be a comment that says what the script does"
    );
    let mut unit = Unit {
        name: name.to_owned(),
        about,
        packages: Vec::new(),
        repository: Vec::new(),
        init: None,
        script: text.to_owned(),
    };
    for head in heads {
        let (key, words) = head.split_once(':').with_context(|| format!("`{head}` has no key"))?;
        let mut words = words.split_whitespace().map(String::from);
        match key {
            "packages" => unit.packages = words.collect(),
            "repository" => unit.repository = words.collect(),
            "init" => unit.init = words.next(),
            _ => bail!("`{key}` is no key of a head"),
        }
    }
    Ok(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_what_a_script_needs() {
        let text = "# Does it.\n# packages: a b\n# init: /sbin/init\nset -eu # packages: no\n";
        let unit = parse("it", text).unwrap();
        assert_eq!((unit.about.as_str(), unit.init.as_deref()), ("Does it.", Some("/sbin/init")));
        assert_eq!(unit.packages, ["a", "b"]);
        assert_eq!(unit.script, text);
    }

    #[test]
    fn a_head_that_means_nothing_is_refused() {
        assert!(parse("it", "true\n").is_err());
        assert!(parse("it", "# Does it.\n# package: a\n").is_err());
    }

    #[test]
    fn all_scripts_have_heads() {
        let all = named(&[]).unwrap();
        assert!(all.len() > 5);
        let boots = all.iter().filter(|unit| unit.init.is_some());
        assert_eq!(boots.count(), 1);
        let named = named(&["nothing".to_owned()]).unwrap_err().to_string();
        assert!(named.contains("there are apt boot"), "{named}");
    }
}
