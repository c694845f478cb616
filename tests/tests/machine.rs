//! The machinery that the other tests stand on: a guest of a few instructions, under TCG.

use std::time::Duration;

use alea_tests::PATIENCE;
use xtask_guest::accel::tiny_guest;
use xtask_guest::guest::{End, Guest, Limits};
use xtask_guest::qemu::Machine;

const LIMIT: Limits = Limits { total: Some(PATIENCE), idle: None };

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
    #[rustfmt::skip]
    let code = [
        0x66, 0xba, 0xf8, 0x03, // mov dx, COM1
        0xb0, b'h',             // mov al, 'h'
        0xee,                   // out dx, al
        0xeb, 0xfe,             // 1: jmp 1b
    ];
    bytes[32..32 + code.len()].copy_from_slice(&code);
    let image = image(&bytes);
    let mut guest = Guest::start(&Machine::new(image.path())).unwrap();
    guest.wait_for("h", PATIENCE).unwrap();
    let outcome = guest.finish(Limits::idle(Duration::from_secs(1))).unwrap();
    assert_eq!(outcome.end, End::TimedOut);
    assert_eq!(outcome.traces.len(), 1, "one CPU was asked");
    assert_eq!(outcome.traces[0].addresses, [0x10_0027], "it turned on the spot");
}
