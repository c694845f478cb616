//! The devices of a reading's machine, virtio-rng and a TPM, which give bytes that are known here: what the kernel has mixed in of them
//! must be in the pool and nowhere else.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use xtask_guest::{fake_rng, fake_tpm};

/// Bytes of one answer of the TPM, and how many answers are judged together.
const ANSWER: usize = 32;
const JUDGED: usize = 2;

/// What the devices gave.
pub struct Devices {
    /// Bytes of virtio-rng.
    rng: Arc<AtomicUsize>,
    /// Answers of the TPM.
    tpm: Arc<AtomicUsize>,
    /// Bytes of each that [`given`](Self::given) has returned.
    told: [usize; 2],
}

impl Devices {
    /// Starts what answers for both, with sockets in `folder`, and returns QEMU's arguments too.
    pub fn start(folder: &Path) -> Result<(Self, Vec<String>)> {
        let (rng_socket, tpm_socket) = (folder.join("rng"), folder.join("tpm"));
        let (rng, tpm) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let given = rng.clone();
        fake_rng::start(&rng_socket, move |at, wanted| {
            given.store(at + wanted, Ordering::SeqCst);
            noise(0, at, wanted)
        })?;
        let asked = tpm.clone();
        fake_tpm::start(&tpm_socket, move |request| {
            asked.store(request + 1, Ordering::SeqCst);
            fake_tpm::random_answer(&noise(1, request * ANSWER, ANSWER))
        })?;
        let mut arguments = fake_rng::arguments(&rng_socket).to_vec();
        arguments.extend(fake_tpm::arguments(fake_tpm::INTERFACES[0], &tpm_socket));
        Ok((Self { rng, tpm, told: [0; 2] }, arguments))
    }

    /// What each gave since the last call, with the device's name. Of the TPM, which answers at once, the last answer waits to be taken, and
    /// one without a second to be judged with is kept: neither is among them.
    pub fn given(&mut self) -> Vec<(&'static str, Vec<u8>)> {
        let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        let judged = count(&self.tpm).saturating_sub(1) / JUDGED * JUDGED;
        let given = [count(&self.rng), judged * ANSWER];
        let told = std::mem::replace(&mut self.told, given);
        let devices = [("virtio-rng", 0), ("the TPM", 1)].into_iter();
        devices
            .map(|(name, at)| (name, noise(at, told[at], given[at] - told[at])))
            .filter(|(_, bytes)| !bytes.is_empty())
            .collect()
    }
}

/// `len` bytes of a device, from its byte `at` on: the same in every reading, and good enough for any test of the kernel's.
fn noise(device: usize, at: usize, len: usize) -> Vec<u8> {
    let word = |n: usize| {
        // SplitMix64.
        let mut z = ((device as u64 + 1) << 40 | n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31).to_le_bytes()
    };
    (at..at + len).map(|at| word(at / 8)[at % 8]).collect()
}
