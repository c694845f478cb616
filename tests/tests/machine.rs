//! The machinery that the other tests stand on: a guest of a few instructions, under TCG.

use std::time::Duration;

use xtask::accel::tiny_guest;
use xtask::guest::{End, Guest, Limits};
use xtask::qemu::Machine;

const LIMIT: Limits = Limits { total: Some(Duration::from_secs(60)), idle: None };

/// A kernel image in a file of its own.
fn image(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

#[test]
fn the_tiny_guest_runs_to_its_end() {
    let image = image(&tiny_guest());
    let guest = Guest::start(&Machine::new(image.path())).unwrap();
    assert_eq!(guest.finish(LIMIT).unwrap().end, End::Panicked);
}

#[test]
fn a_guest_that_hangs_is_found_where_it_hangs() {
    let mut bytes = tiny_guest();
    // The first instruction becomes a jump to itself.
    bytes[32..34].copy_from_slice(&[0xeb, 0xfe]);
    let image = image(&bytes);
    let guest = Guest::start(&Machine::new(image.path())).unwrap();
    let outcome = guest.finish(Limits::idle(Duration::from_secs(5))).unwrap();
    assert_eq!(outcome.end, End::TimedOut);
    assert_eq!(outcome.traces.len(), 1, "one CPU was asked");
    assert_eq!(outcome.traces[0].addresses, [0x10_0020], "it turned on the spot");
}
