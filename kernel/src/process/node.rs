//! The machine's names: its host name and its domain name.
//!
//! Owns both. Never has another of either: there are no name spaces of them. Locks: `Leaf`.

use crate::sync::{SpinLock, level};
use arrayvec::ArrayVec;

/// Longest host or domain name.
pub const NAME_MAX: usize = 64;

/// One of the two.
pub type Name = ArrayVec<u8, NAME_MAX>;

static NODE: SpinLock<Names, level::Leaf> = SpinLock::new(Names { host: None, domain: None });

/// Either may be empty, which is another than one that was never set.
struct Names {
    host: Option<Name>,
    domain: Option<Name>,
}

const UNSET: &[u8] = b"(none)";

#[expect(clippy::disallowed_methods, reason = "collects into an array of that size")]
fn shown(name: Option<Name>) -> Name {
    name.unwrap_or_else(|| UNSET.iter().copied().collect())
}

/// The host name.
pub fn hostname() -> Name {
    shown(NODE.lock().host.clone())
}

/// The NIS domain name.
pub fn domainname() -> Name {
    shown(NODE.lock().domain.clone())
}

/// Changes the host name.
pub fn set_hostname(name: Name) {
    NODE.lock().host = Some(name);
}

/// Changes the NIS domain name.
pub fn set_domainname(name: Name) {
    NODE.lock().domain = Some(name);
}
