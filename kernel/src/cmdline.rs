//! The kernel command line, parsed on demand.
//!
//! Owns a reference to the text; nothing is copied. Words are separated by blanks, double quotes keep
//! blanks together; a later word wins over an earlier one of the same name.
#![forbid(unsafe_code)]

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
pub fn value(name: &str) -> Option<&'static str> {
    words().filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')).last().map(unquote)
}

/// True when the bare word `name` is there.
pub fn flag(name: &str) -> bool {
    words().any(|word| word == name)
}

/// A number in decimal, or hexadecimal after 0x.
pub fn number(name: &str) -> Option<i64> {
    let text = value(name)?;
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A switch: `name=1|y|yes|on|true` or `name=0|n|no|off|false`; nothing for any other value.
pub fn switch(name: &str) -> Option<bool> {
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

/// The words behind `--`.
pub fn init_arguments() -> impl Iterator<Item = &'static str> {
    Words(text()).skip_while(|word| *word != "--").skip(1)
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
