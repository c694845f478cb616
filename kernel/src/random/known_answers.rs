//! The questions with known answers that this machine has to answer before it may make a key.
//!
//! Owns whether it did. A wrong answer ends all credit, so that the service stays Empty for ever: `getrandom` waits, and
//! nothing is handed out as random. `alea.known_answers=chacha20|vector|vdso|blake2s` makes one answer wrong, to see
//! that. Never asks the vDSO's routine once there are tasks, whose vector registers it would wipe. Locks: none.

use super::live::RANDOM;
use crate::arch::copy::chacha20;
use crate::cmdline::{self, words};
use crate::sync::Once;
use crate::time;
use alea_random::block::Block;
use alea_random::known_answers::{
    Part, QUESTION_BLOCKS, QUESTION_COUNTER, QUESTION_KEY, Wrong, check, check_group,
};
use core::fmt;
use zerocopy::IntoBytes;

/// What the boot found, and how long that took, in nanoseconds.
static AT_BOOT: Once<(Result<(), Wrong>, u64)> = Once::new();

/// Bytes that all CPUs share.
pub const MEMORY: usize = size_of::<Once<(Result<(), Wrong>, u64)>>();

/// Asks all questions. Once, on the boot CPU, after the vector routine was chosen and before any credit.
pub fn ask_at_boot() {
    let spoilt = cmdline::value(words::KNOWN_ANSWERS).and_then(|wanted| {
        let part = Part::ALL.into_iter().find(|part| part.name() == wanted);
        log::warn!("random: one known answer of {wanted:?} is made wrong on request");
        part
    });
    let start = time::since_boot_ns();
    let verdict = ask(spoilt).and_then(|()| ask_vdso(spoilt));
    let took = time::since_boot_ns().saturating_sub(start);
    if let Err(wrong) = verdict {
        RANDOM.condemn();
        log::error!(
            "random: {wrong}: this machine cannot keep secrets, the generator is never ready"
        );
    }
    AT_BOOT.call_once(|| (verdict, took));
}

/// Asks what can be asked beside running tasks: all but the vDSO.
pub fn ask(spoilt: Option<Part>) -> Result<(), Wrong> {
    check(spoilt)?;
    ask_vector(Part::Vector, spoilt, chacha20::keystream)
}

fn ask_vdso(spoilt: Option<Part>) -> Result<(), Wrong> {
    ask_vector(Part::Vdso, spoilt, chacha20::vdso_keystream)
}

fn ask_vector(
    part: Part,
    spoilt: Option<Part>,
    keystream: impl Fn(&[u8; 32], u32, &mut [[u8; chacha20::GROUP]]),
) -> Result<(), Wrong> {
    let mut made: [Block; QUESTION_BLOCKS] = [[0; 64]; QUESTION_BLOCKS];
    let (groups, _) = made.as_mut_bytes().as_chunks_mut();
    keystream(&QUESTION_KEY, QUESTION_COUNTER, groups);
    check_group(part, &mut made, chacha20::lanes(), spoilt)
}

/// The verdict of the boot, for the report.
#[expect(clippy::disallowed_methods, reason = "what it writes to can fail")]
pub fn write(to: &mut dyn fmt::Write) -> fmt::Result {
    let Some((verdict, took)) = AT_BOOT.get() else { return Ok(()) };
    match verdict {
        Ok(()) => writeln!(to, "known_answers right")?,
        Err(Wrong(part)) => writeln!(to, "known_answers wrong {}", part.name())?,
    }
    writeln!(to, "known_answers_ns {took}")
}
