//! Asks what is to be done against the flaws of the CPU: the command line, and then `base::speculation`.
//!
//! Owns nothing. Never asks twice. Locks: none.

use crate::base::{isolation, speculation};
use crate::cmdline::{self, words};
use alea_speculation::Asked;

/// Decides it, once.
pub(super) fn choose() {
    match cmdline::value(words::PREDICTORS) {
        Some("1") => speculation::pretend(false),
        Some("held") => speculation::pretend(true),
        _ => {}
    }
    speculation::choose(&Asked {
        mitigations: cmdline::value(words::MITIGATIONS),
        nospectre_v1: cmdline::flag(words::NOSPECTRE_V1),
        pti: pti(),
        mds: cmdline::value(words::MDS),
        tsx_async_abort: cmdline::value(words::TSX_ASYNC_ABORT),
        mmio_stale_data: cmdline::value(words::MMIO_STALE_DATA),
        reg_file_data_sampling: cmdline::value(words::REG_FILE_DATA_SAMPLING),
        tsa: cmdline::value(words::TSA),
        nospectre_v2: cmdline::flag(words::NOSPECTRE_V2),
        spectre_v2: cmdline::value(words::SPECTRE_V2),
        spectre_v2_user: cmdline::value(words::SPECTRE_V2_USER),
        spectre_bhi: cmdline::value(words::SPECTRE_BHI),
        nospec_store_bypass_disable: cmdline::flag(words::NOSPEC_STORE_BYPASS_DISABLE),
        spec_store_bypass_disable: cmdline::value(words::SPEC_STORE_BYPASS_DISABLE),
    });
    isolation::choose(speculation::done().isolates);
}

/// What is said of isolated page tables: the last word that says anything.
fn pti() -> Option<&'static str> {
    let said = |word: cmdline::Parameter| match word.value {
        _ if words::NOPTI.is(word.name.as_bytes()) => Some("off"),
        Some(value @ ("on" | "off" | "auto")) if words::PTI.is(word.name.as_bytes()) => Some(value),
        _ => None,
    };
    cmdline::parameters().filter_map(said).last()
}
