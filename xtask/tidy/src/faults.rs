//! What the rules found: plain faults, and those that an exception of the data file may excuse.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::data::Exceptions;

#[derive(Default)]
pub struct Faults {
    plain: Vec<String>,
    /// By rule and key, what is wrong.
    keyed: BTreeMap<&'static str, BTreeMap<String, Vec<String>>>,
}

impl Faults {
    /// A fault that nothing excuses.
    pub fn add(&mut self, what: String) {
        self.plain.push(what);
    }

    /// A fault that an exception `key` of `rule` excuses.
    pub fn of(&mut self, rule: &'static str, key: impl Into<String>, what: String) {
        self.keyed.entry(rule).or_default().entry(key.into()).or_default().push(what);
    }

    /// All that is wrong, given what is excepted; an exception without its fault is wrong too.
    pub fn judge(self, except: &Exceptions) -> Vec<String> {
        let mut all = self.plain;
        for (rule, list) in except {
            for key in list {
                if !self.keyed.get(rule.as_str()).is_some_and(|found| found.contains_key(key)) {
                    all.push(format!("the exception {key:?} from {rule} is no longer needed"));
                }
            }
        }
        for (rule, found) in self.keyed {
            let excused = |key: &String| except.get(rule).is_some_and(|list| list.contains(key));
            for (_, faults) in found.into_iter().filter(|(key, _)| !excused(key)) {
                all.extend(faults.into_iter().map(|fault| format!("{fault} ({rule})")));
            }
        }
        all
    }

    /// The exceptions that would excuse all that can be excused, as the data file writes them.
    pub fn list(&self) -> String {
        let mut text = String::from("[except]\n");
        for (rule, found) in &self.keyed {
            let _ = writeln!(text, "{rule} = [");
            for key in found.keys() {
                let _ = writeln!(text, "    {key:?},");
            }
            text.push_str("]\n");
        }
        text
    }

    #[cfg(test)]
    pub fn all(self) -> Vec<String> {
        self.judge(&Exceptions::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_excuse_and_must_be_needed() {
        let mut faults = Faults::default();
        faults.add("plain".into());
        faults.of("long", "a.rs", "a.rs is long".into());
        faults.of("long", "b.rs", "b.rs is long".into());
        assert_eq!(faults.list(), "[except]\nlong = [\n    \"a.rs\",\n    \"b.rs\",\n]\n");
        let except = toml::from_str("long = [\"a.rs\", \"c.rs\"]\nwide = [\"d.rs\"]\n").unwrap();
        assert_eq!(
            faults.judge(&except),
            [
                "plain",
                "the exception \"c.rs\" from long is no longer needed",
                "the exception \"d.rs\" from wide is no longer needed",
                "b.rs is long (long)",
            ]
        );
    }
}
