//! A TPM 2.0: random bytes of a chip, or of the host's emulation of one.
//!
//! **Trust**: the chip's maker; in a virtual machine the host, so that a confidential machine gives no credit.
//! `alea.trust_tpm=off` denies it. **Credit**: 256 bits for the first 64 bytes that pass the tests of
//! [`alea_random::device`], none later: the start-up tests of 1,024 bytes would take a chip a tenth of a second and more; they
//! end while it is asked at reseeds. **Cost**: some milliseconds for 32 bytes on a chip; the boot waits for a second
//! where nothing else made the service ready, and for a millisecond elsewhere. An answer that comes later is taken at the
//! next reseed, and another one asked for at each.
//!
//! A TPM that breaks its interface or whose bytes fail a test is not asked again. Owns the TPM, of which nothing else in the
//! kernel makes use. Never waits but at boot. Locks: `Random`, for the TPM; the pool's is never taken under it.

use super::trust;
use super::wait::wait_for;
use crate::base::boot_info::BootInfo;
use crate::cmdline::{self, words};
use crate::machine::tpm::{Broken, Tpm};
use crate::random::live::RANDOM;
use crate::random::stats;
use crate::sync::{SpinLock, level};
use alea_random::credit::EntropyBits;
use alea_random::device::{DeviceFault, DeviceTests, PIECE};
use alea_random::health::Health;
use alea_random::tpm::{self, Collector};
use core::fmt;

/// Nanoseconds that the boot waits for the first 64 bytes.
const WAIT: u64 = 1_000_000_000;
/// The same where the service is ready without them.
const SHORT_WAIT: u64 = 1_000_000;

static STATE: SpinLock<Option<State>, level::Random> = SpinLock::new(None);

/// Bytes that all CPUs share.
pub const MEMORY: usize = size_of::<SpinLock<Option<State>, level::Random>>();

struct State {
    tpm: Collector<Tpm>,
    tests: DeviceTests,
    is_credited: bool,
}

/// Why the TPM is not asked again.
enum Fault {
    Tpm(tpm::Fault<Broken>),
    Content(DeviceFault),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tpm(tpm::Fault::Interface(Broken)) => {
                f.write_str("it does not keep to its interface")
            }
            Self::Tpm(tpm::Fault::Answer(fault)) => fault.fmt(f),
            Self::Content(fault) => fault.fmt(f),
        }
    }
}

/// Asks the TPM, if there is one, and waits for its bytes a little; what they are worth.
pub fn collect(so_far: EntropyBits, info: &BootInfo) -> EntropyBits {
    let Some(found) = Tpm::find(info) else { return EntropyBits(0) };
    let tpm = match found.and_then(Collector::begin) {
        Ok(tpm) => tpm,
        Err(broken) => return give_up(&Fault::Tpm(tpm::Fault::Interface(broken))),
    };
    *STATE.lock() = Some(State { tpm, tests: DeviceTests::new(), is_credited: false });
    wait_for(if so_far < EntropyBits::READY { WAIT } else { SHORT_WAIT }, look)
}

/// The start-up tests once more. They end at reseeds, when a slow chip has given as many bytes as they want.
pub fn test() {
    if let Some(state) = STATE.lock().as_mut() {
        stats::stands(stats::Source::Tpm, state.tests.test_again());
    }
    let _credited_once = look();
}

/// Mixes in what the TPM has answered since the last look and asks it again; what the answers are worth, once there is enough
/// of them. Gives up rather than wait for another CPU.
pub fn look() -> Option<EntropyBits> {
    let mut bytes = [0; PIECE];
    let mut state = STATE.try_lock()?;
    let looked = state.as_mut()?.look(&mut bytes);
    if looked.is_err() {
        *state = None;
    }
    drop(state);
    match looked {
        Ok(None) => return None,
        // Bytes that fail the test are worth mixing in all the same.
        Ok(Some(_)) | Err(Fault::Content(_)) => {
            stats::mixed(stats::Source::Tpm, bytes.len());
            RANDOM.mix_secret(&mut bytes);
        }
        Err(_) => {}
    }
    Some(looked.map_or_else(|fault| give_up(&fault), |bits| bits.unwrap_or_default()))
}

impl State {
    /// Takes an answer and has the TPM asked again. Fills `out` when there are enough bytes, and says what they are worth.
    fn look(&mut self, out: &mut [u8; PIECE]) -> Result<Option<EntropyBits>, Fault> {
        if !self.tpm.look(out).map_err(Fault::Tpm)? {
            return Ok(None);
        }
        let health = self.tests.judge(out, out.len() as u32).map_err(Fault::Content)?;
        stats::stands(stats::Source::Tpm, health);
        Ok(Some(self.believe()))
    }

    /// What good bytes are worth: the first ones alone.
    fn believe(&mut self) -> EntropyBits {
        let trusted = trust::host() && cmdline::switch(words::TRUST_TPM).unwrap_or(true);
        if core::mem::replace(&mut self.is_credited, true) || !trusted {
            return EntropyBits(0);
        }
        log::info!("random: the TPM delivers");
        stats::credited(stats::Source::Tpm, EntropyBits::READY);
        EntropyBits::READY
    }
}

fn give_up(why: &Fault) -> EntropyBits {
    stats::failed(stats::Source::Tpm);
    stats::stands(stats::Source::Tpm, Health::Failed);
    log::error!("random: the TPM is not reliable, disabled: {why}");
    EntropyBits(0)
}
