//! The kernel command line, parsed on demand.
//!
//! Owns a reference to the text; nothing is copied. Words are separated by blanks, double quotes keep
//! blanks together; a later word wins over an earlier one of the same name. What neither this kernel nor Linux
//! knows ([`known`]) belongs to init.
//!
//! Never changes the text. Locks: none.

use super::known;
use super::words::{self, Word};
use crate::sync::Once;

static TEXT: Once<&'static str> = Once::new();

/// Stores the text; called once by boot.
pub fn init(text: &'static str) {
    TEXT.call_once(|| text);
}

/// The whole line, as /proc/cmdline shows it.
pub fn text() -> &'static str {
    TEXT.get().copied().unwrap_or("")
}

/// The value of `name=value`; the last one counts.
pub fn value(name: Word) -> Option<&'static str> {
    values(name).last()
}

/// The values of a word that may be there several times, in their order.
pub fn values(name: Word) -> impl Iterator<Item = &'static str> {
    words().filter_map(move |word| word.strip_prefix(name.0)?.strip_prefix('=')).map(unquote)
}

/// True when the bare word `name` is there.
pub fn flag(name: Word) -> bool {
    words().any(|word| word == name.0)
}

/// A number in decimal, or hexadecimal after 0x.
pub fn number(name: Word) -> Option<i64> {
    let text = value(name)?;
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A switch: `name=1|y|yes|on|true` or `name=0|n|no|off|false`; nothing for any other value.
pub fn switch(name: Word) -> Option<bool> {
    match value(name)? {
        "1" | "y" | "Y" | "yes" | "on" | "true" => Some(true),
        "0" | "n" | "N" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

/// The words up to `--`, which separates init's arguments.
pub fn words() -> impl Iterator<Item = &'static str> {
    Words(text()).take_while(|word| *word != "--")
}

/// The words behind `--`, up to another one.
pub fn init_arguments() -> impl Iterator<Item = Parameter> {
    Words(text())
        .skip_while(|word| *word != "--")
        .skip(1)
        .take_while(|word| *word != "--")
        .map(Parameter::parse)
}

/// One word of the line: `name`, or `name=value`. Of quotes, as on Linux, only those go that stand around the
/// value or the whole word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: &'static str,
    pub value: Option<&'static str>,
}

impl Parameter {
    fn parse(word: &'static str) -> Self {
        let (whole, bare) = match word.strip_prefix('"') {
            Some(bare) => (true, bare),
            None => (false, word),
        };
        let end = |text: &'static str| text.strip_suffix('"').unwrap_or(text);
        // An equals sign in front separates nothing.
        match bare.char_indices().find(|&(at, c)| at > 0 && c == '=') {
            Some((at, _)) => {
                let value = &bare[at + 1..];
                let value = match value.strip_prefix('"') {
                    Some(value) => end(value),
                    None if whole => end(value),
                    None => value,
                };
                Self { name: &bare[..at], value: Some(value) }
            }
            None => Self { name: if whole { end(bare) } else { bare }, value: None },
        }
    }

    /// Whether it is the kernel's: known by name, or of a module (`module.parameter`). Linux gives `nokaslr` to init though it
    /// obeys it, and a shell that is init would take it for the name of a script.
    pub fn is_kernels(&self) -> bool {
        self.name.contains('.')
            || words::NOKASLR.is(self.name.as_bytes())
            || known::is_known(self.name, self.value.is_some())
    }
}

/// The words before `--`, one by one.
pub fn parameters() -> impl Iterator<Item = Parameter> {
    words().map(Parameter::parse)
}

struct Words(&'static str);

impl Iterator for Words {
    type Item = &'static str;

    fn next(&mut self) -> Option<&'static str> {
        let text = self.0.trim_start();
        if text.is_empty() {
            return None;
        }
        let mut quoted = false;
        let end = text
            .find(|c: char| {
                quoted ^= c == '"';
                c.is_ascii_whitespace() && !quoted
            })
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        Some(word)
    }
}

fn unquote(text: &'static str) -> &'static str {
    text.trim_matches('"')
}
