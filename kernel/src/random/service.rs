//! Boot of the service, and what the kernel itself draws.
//!
//! Owns nothing: pool, generator and sources have their files. Never blocks; unseeded draws are logged once. No locks.

use super::live::{self, RANDOM};
use super::stats::{self, Interface};
use super::{generator, known_answers, schedule, shown, sources};
use crate::arch::copy::chacha20;
use crate::base::boot_info::BootInfo;
use crate::machine::vm_id;
use alea_random::credit::{EntropyBits, State};
use alea_random::request::uuid_text;
use alea_vdso::data::Random;
use core::sync::atomic::{AtomicBool, Ordering};
use zerocopy::IntoBytes;

/// All that the service keeps: bytes that the CPUs share, and bytes for each CPU. Stacks and the vDSO's page
/// of data, which has the clocks too, are not counted.
pub(super) const MEMORY: (usize, usize) = (
    live::MEMORY.0 + stats::MEMORY.0 + sources::MEMORY.0 + known_answers::MEMORY,
    live::MEMORY.1 + stats::MEMORY.1 + sources::MEMORY.1,
);
const _: () = assert!(MEMORY.0 <= 16 << 10 && MEMORY.1 <= 2 << 10, "the service is to stay small");

/// Starts the service. On every machine that has a source it is ready when this returns. After the
/// clock, before anything that wants an address or a key.
pub fn init(info: &BootInfo) {
    chacha20::init();
    known_answers::ask_at_boot();
    // Once, and when everything is mixed in: the first key is to depend on no single source.
    RANDOM.credit(sources::collect_at_boot(info));
    sources::watch_interrupts();
    generator::select();
    schedule::start();
    log::info!(
        "random: {}, {} credited, generator {} ({:?})",
        match RANDOM.state() {
            State::Ready => "ready",
            _ => "NOT ready",
        },
        RANDOM.credited(),
        generator::kind().name(),
        chacha20::routine(),
    );
}

/// How far the service is.
pub fn state() -> State {
    RANDOM.state()
}

/// The credited bits, 0 to 256.
pub fn credited() -> EntropyBits {
    RANDOM.credited()
}

/// Shows programs the generation of the key, on the vDSO's page of data. After the generator was selected, before the
/// first program; with a weak generator they are shown nothing.
pub fn show_to_programs(random: &'static Random) {
    if !generator::is_chacha20() {
        return;
    }
    random.set_wide(chacha20::is_wide());
    if let Some(place) = vm_id::place() {
        random.set_id_place((place.as_u64() & 0xfff) as usize);
    }
    shown::set(random);
    RANDOM.show();
}

/// Fills `out` with bytes that nobody else knows: AT_RANDOM, keys, canaries. Never fails; before the
/// service is ready it uses all there is and says so once.
pub fn fill_secret(out: &mut [u8]) {
    stats::count(Interface::Kernel, out.len());
    if generator::fill(out).is_err() {
        warn_unseeded("the kernel");
        RANDOM.fill_unseeded(out);
    }
}

/// Several secret numbers in one draw, in task context.
pub fn secret_words<const N: usize>() -> [u64; N] {
    if generator::is_chacha20()
        && let Some(words) = RANDOM.ready()
    {
        stats::count(Interface::Kernel, size_of_val(&words));
        return words;
    }
    let mut words = [0u64; N];
    fill_secret(words.as_mut_bytes());
    words
}

/// A random UUID, version 4, as text.
pub fn uuid() -> [u8; 36] {
    let mut bytes = [0u8; 16];
    fill_secret(&mut bytes);
    uuid_text(&mut bytes)
}

/// Says once that somebody was served before the service was ready.
fn warn_unseeded(who: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Relaxed: at worst the warning comes twice.
    if !SAID.swap(true, Ordering::Relaxed) {
        log::warn!("random: {who} is served before the generator is ready");
    }
}
