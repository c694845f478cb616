//! The standard library as a machine, so that the example runs under `cargo run`, too.
//!
//! Owns nothing. It has no hardware generator: what it prints stems from jitter alone. Locks: none.

use std::io::Write as _;
use std::sync::LazyLock;
use std::time::Instant;

pub fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

pub fn hardware() -> Option<u64> {
    None
}

pub fn put(byte: u8) {
    // Nobody is left to tell that nobody listens.
    let _closed = std::io::stdout().write_all(&[byte]);
}
