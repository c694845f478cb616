//! The machine's names: its host name and its domain name.
//!
//! Owns both. Never has another of either: there are no name spaces of them. Locks: `Leaf`.

use crate::sync::{SpinLock, level};
use arrayvec::ArrayVec;

/// Longest host or domain name.
pub const NAME_MAX: usize = 64;

/// One of the two.
pub type Name = ArrayVec<u8, NAME_MAX>;

static NODE: SpinLock<Names, level::Leaf> =
    SpinLock::new(Names { host: ArrayVec::new_const(), domain: ArrayVec::new_const() });

struct Names {
    host: Name,
    domain: Name,
}

const UNSET: &[u8] = b"(none)";

#[expect(clippy::disallowed_methods, reason = "collects into an array of that size")]
fn shown(name: &[u8]) -> Name {
    let shown = if name.is_empty() { UNSET } else { name };
    shown.iter().copied().collect()
}

/// The host name.
pub fn hostname() -> Name {
    shown(&NODE.lock().host)
}

/// The NIS domain name.
pub fn domainname() -> Name {
    shown(&NODE.lock().domain)
}

/// Changes the host name.
pub fn set_hostname(name: Name) {
    NODE.lock().host = name;
}

/// Changes the NIS domain name.
pub fn set_domainname(name: Name) {
    NODE.lock().domain = name;
}
