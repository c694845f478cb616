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
use alea_random::tpm::{GET_RANDOM, LONGEST_ANSWER, STARTUP, TpmFault, random_bytes};
use core::fmt;
use zeroize::Zeroize;

/// Nanoseconds that the boot waits for the first 64 bytes.
const WAIT: u64 = 1_000_000_000;
/// The same where the service is ready without them.
const SHORT_WAIT: u64 = 1_000_000;

static STATE: SpinLock<Option<State>, level::Random> = SpinLock::new(None);

/// Bytes that all CPUs share.
pub const MEMORY: usize = size_of::<SpinLock<Option<State>, level::Random>>();

struct State {
    tpm: Tpm,
    start: Start,
    /// What was answered and not judged yet.
    bytes: [u8; PIECE],
    len: usize,
    tests: DeviceTests,
    is_credited: bool,
}

/// Firmware starts the TPM; where it has not, that is tried once.
#[derive(PartialEq, Eq)]
enum Start {
    NotTried,
    Sent,
    Tried,
}

/// Why the TPM is not asked again.
enum Fault {
    Interface,
    Answer(TpmFault),
    Content(DeviceFault),
}

impl From<Broken> for Fault {
    fn from(_: Broken) -> Self {
        Self::Interface
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface => f.write_str("it does not keep to its interface"),
            Self::Answer(fault) => fault.fmt(f),
            Self::Content(fault) => fault.fmt(f),
        }
    }
}

/// Asks the TPM, if there is one, and waits for its bytes a little; what they are worth.
pub fn collect(so_far: EntropyBits, info: &BootInfo) -> EntropyBits {
    let Some(found) = Tpm::find(info) else { return EntropyBits(0) };
    let asked = found.and_then(|mut tpm| tpm.send(&GET_RANDOM).map(|()| tpm));
    let tpm = match asked {
        Ok(tpm) => tpm,
        Err(broken) => return give_up(&broken.into()),
    };
    let bytes = [0; PIECE];
    let (tests, is_credited) = (DeviceTests::new(), false);
    let state = State { tpm, start: Start::NotTried, bytes, len: 0, tests, is_credited };
    *STATE.lock() = Some(state);
    wait_for(if so_far < EntropyBits::READY { WAIT } else { SHORT_WAIT }, look)
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
            RANDOM.mix(&bytes);
            bytes.zeroize();
        }
        Err(_) => {}
    }
    Some(looked.map_or_else(|fault| give_up(&fault), |bits| bits.unwrap_or_default()))
}

impl State {
    /// Takes an answer and sends the next command. Fills `out` when there are enough bytes, and says what they are worth.
    fn look(&mut self, out: &mut [u8; PIECE]) -> Result<Option<EntropyBits>, Fault> {
        let mut answer = [0; LONGEST_ANSWER];
        let Some(count) = self.tpm.answer(&mut answer) else { return Ok(None) };
        let count = count?;
        let told = if self.start == Start::Sent {
            // The next answer tells whether it helped.
            self.start = Start::Tried;
            Ok(&[][..])
        } else {
            random_bytes(&answer[..count])
        };
        let command = match told {
            Ok(bytes) => {
                let room = &mut self.bytes[self.len..];
                let len = bytes.len().min(room.len());
                room[..len].copy_from_slice(&bytes[..len]);
                self.len += len;
                &GET_RANDOM
            }
            Err(TpmFault::NotStarted) if self.start == Start::NotTried => {
                self.start = Start::Sent;
                &STARTUP
            }
            Err(fault) => return Err(Fault::Answer(fault)),
        };
        answer.zeroize();
        self.tpm.send(command)?;
        if self.len < self.bytes.len() {
            return Ok(None);
        }
        *out = self.bytes;
        self.bytes.zeroize();
        self.len = 0;
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
