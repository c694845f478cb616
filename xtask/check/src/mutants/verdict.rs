//! What became of the mutants, against the list of those that may survive.

use std::collections::BTreeMap;
use std::fmt;

use super::data::Missed;

/// Mutants as cargo-mutants names them: file, line, column and what was done.
#[derive(Debug, Default)]
pub struct Outcomes {
    pub caught: Vec<String>,
    /// A test hung, which is a failure as well.
    pub hung: Vec<String>,
    /// Did not compile.
    pub unviable: Vec<String>,
    pub missed: Vec<String>,
    /// The build did not come to an end.
    pub undecided: Vec<String>,
    /// Changes of our own that no test noticed, or that could not be made.
    pub unnoticed: Vec<String>,
}

impl Outcomes {
    pub fn add(&mut self, other: Self) {
        self.caught.extend(other.caught);
        self.hung.extend(other.hung);
        self.unviable.extend(other.unviable);
        self.missed.extend(other.missed);
        self.undecided.extend(other.undecided);
        self.unnoticed.extend(other.unnoticed);
    }
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [caught, hung, unviable, missed] =
            [&self.caught, &self.hung, &self.unviable, &self.missed].map(Vec::len);
        write!(f, "{caught} caught, {hung} hung, {unviable} did not compile, {missed} missed")
    }
}

/// File below `src` and what was done, without the place.
pub fn split(mutant: &str) -> Option<(&str, &str)> {
    let (file, rest) = mutant.split_once(".rs:")?;
    let (_, file) = file.split_once("/src/")?;
    let (_, what) = rest.split_once(": ")?;
    Some((&mutant[mutant.find(file)?..][..file.len() + 3], what))
}

/// How often each mutant is in `list`: two places of a function may be changed in the same way.
fn count<'a>(
    list: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<(&'a str, &'a str), usize> {
    let mut counts = BTreeMap::new();
    for mutant in list {
        *counts.entry(mutant).or_default() += 1;
    }
    counts
}

/// What is wrong: survivors that are not listed, entries that are not needed. `made` are all mutants that there are.
pub fn faults(listed: &[Missed], made: &[String], outcomes: &Outcomes) -> Vec<String> {
    let names = |list: &'_ [String]| -> Vec<(String, String)> {
        let parts = list.iter().filter_map(|mutant| split(mutant));
        parts.map(|(file, what)| (file.to_owned(), what.to_owned())).collect()
    };
    let (missed, made_names) = (names(&outcomes.missed), names(made));
    let decided: Vec<_> = [&outcomes.caught, &outcomes.hung, &outcomes.unviable]
        .into_iter()
        .flat_map(|list| names(list))
        .collect();
    fn refs(list: &[(String, String)]) -> BTreeMap<(&str, &str), usize> {
        count(list.iter().map(|(file, what)| (file.as_str(), what.as_str())))
    }
    let (missed, made, decided) = (refs(&missed), refs(&made_names), refs(&decided));
    let listed = count(listed.iter().map(|entry| (entry.file.as_str(), entry.mutant.as_str())));
    let of = |counts: &BTreeMap<(&str, &str), usize>, key| counts.get(key).copied().unwrap_or(0);
    let mut faults = Vec::new();
    for (key @ (file, what), &times) in &missed {
        if times > of(&listed, key) {
            faults.push(format!("no test fails: {file}: {what}"));
        }
    }
    for (key @ (file, what), &times) in &listed {
        let (there, refuted) = (of(&made, key), of(&decided, key));
        if there < times {
            faults.push(format!("listed, and there is no such mutant: {file}: {what}"));
        } else if refuted > there - times {
            faults.push(format!("listed, and a test fails: {file}: {what}"));
        }
    }
    faults.extend(outcomes.undecided.iter().map(|mutant| format!("not built in time: {mutant}")));
    faults.extend(outcomes.unnoticed.iter().cloned());
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "kernel/random/src/crng/base.rs:9:5: replace + with - in f";
    const TWO: &str = "kernel/random/src/crng/base.rs:11:7: replace + with - in f";
    const OTHER: &str = "kernel/random/src/pool.rs:1:1: delete ! in g";

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|mutant| (*mutant).to_owned()).collect()
    }

    fn judged(listed: &[Missed], caught: &[&str], missed: &[&str]) -> Vec<String> {
        let outcomes =
            Outcomes { caught: strings(caught), missed: strings(missed), ..Outcomes::default() };
        faults(listed, &strings(&[ONE, TWO, OTHER]), &outcomes)
    }

    #[test]
    fn names_lose_their_place() {
        assert_eq!(split(ONE), Some(("crng/base.rs", "replace + with - in f")));
    }

    #[test]
    fn survivors_have_to_be_listed_and_listed_ones_to_survive() {
        let entry = Missed::new("crng/base.rs", "replace + with - in f");
        assert_eq!(judged(&[], &[ONE, TWO, OTHER], &[]).len(), 0);
        assert_eq!(judged(&[], &[TWO, OTHER], &[ONE]).len(), 1, "not listed");
        let one = std::slice::from_ref(&entry);
        assert_eq!(judged(one, &[TWO, OTHER], &[ONE]).len(), 0);
        assert_eq!(judged(one, &[OTHER], &[ONE, TWO]).len(), 1, "only one of two is listed");
        assert_eq!(judged(one, &[ONE, TWO, OTHER], &[]).len(), 1, "none survives");
        // A part in which it was not tested says nothing.
        assert_eq!(judged(one, &[OTHER], &[]).len(), 0);
        assert_eq!(judged(one, &[TWO], &[]).len(), 0);
        let gone = Missed::new("pool.rs", "delete ! in h");
        assert_eq!(judged(&[gone], &[ONE, TWO, OTHER], &[]).len(), 1, "there is none");
        assert_eq!(judged(&[entry.clone(), entry], &[OTHER], &[ONE, TWO]).len(), 0);
    }

    #[test]
    fn what_could_not_be_decided_is_a_fault() {
        let outcomes = Outcomes { undecided: strings(&[ONE]), ..Outcomes::default() };
        assert_eq!(faults(&[], &strings(&[ONE]), &outcomes).len(), 1);
    }
}
