//! The differences that are known, with their reasons.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::verdicts::Key;
use xtask_host::paths;

/// Where they stand.
pub const FILE: &str = "tests/stress/known.toml";

/// By user: each as `NAME: REASON`.
#[derive(Deserialize)]
pub struct Known {
    except: BTreeMap<String, Vec<String>>,
}

impl Known {
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| paths::shown(path))?;
        Self::parse(&text).with_context(|| paths::shown(path))
    }

    fn parse(text: &str) -> Result<Self> {
        let known: Self = toml::from_str(text)?;
        for one in known.except.values().flatten() {
            let reason = one.split_once(": ").map_or("", |(_, reason)| reason);
            ensure!(!reason.trim().is_empty(), "`{one}` gives no reason");
        }
        Ok(known)
    }

    /// Why a stressor may end otherwise than on Linux.
    pub fn reason(&self, key: &Key) -> Option<&str> {
        let all = self.except.get(&key.user)?;
        all.iter().find_map(|one| one.strip_prefix(&key.name)?.strip_prefix(": "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_a_reason() {
        let known = Known::parse("edition = 1\n[except]\nroot = [\"get: not there\"]\n").unwrap();
        let key = |name: &str| Key { user: "root".into(), name: name.into() };
        assert_eq!(known.reason(&key("get")), Some("not there"));
        assert_eq!(known.reason(&key("ge")), None);
        assert!(Known::parse("[except]\nroot = [\"get\"]\n").is_err());
    }

    #[test]
    fn the_file_can_be_read() {
        Known::load(&paths::source(FILE)).unwrap();
    }
}
