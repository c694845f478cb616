//! What the guest's script prints, as verdicts.

use std::collections::BTreeMap;
use std::fmt;

/// A stressor, and as whom it ran.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub user: String,
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.name, self.user)
    }
}

/// How each ended.
pub type Verdicts = BTreeMap<Key, String>;

/// Lines of `USER NAME: VERDICT`; whatever else stands between them is not looked at.
pub fn parse(said: &str) -> Verdicts {
    let verdict = |line: &str| {
        let (key, verdict) = line.trim_end().split_once(": ")?;
        let (user, name) = key.split_once(' ')?;
        let is_one = matches!(user, "root" | "user") && !name.contains(' ');
        is_one.then(|| (Key { user: user.to_owned(), name: name.to_owned() }, verdict.to_owned()))
    };
    said.lines().filter_map(verdict).collect()
}

/// The last lines, for who looks why a machine stopped.
pub fn end_of(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let last = lines[lines.len().saturating_sub(12)..].iter();
    last.map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_found_between_other_lines() {
        let said = "-- stressors\nbegins root get\nroot get: fails\n  stress-ng: fail: [7] get: x: y\n\
            begins user sem-sysv\nuser sem-sysv: no end\nbegins user last\n";
        let all = parse(said);
        let shown: Vec<String> =
            all.iter().map(|(key, verdict)| format!("{key} {verdict}")).collect();
        assert_eq!(shown, ["get as root fails", "sem-sysv as user no end"]);
        assert_eq!(end_of("a\nb"), "    a\n    b\n");
    }
}
