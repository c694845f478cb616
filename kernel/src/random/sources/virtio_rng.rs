//! virtio-rng: random bytes of the host, through a device on the PCI bus.
//!
//! **Trust**: the host, which can read all of a guest's memory anyway; but the bytes may come from a
//! program of lower standing than the hypervisor (vhost-user), so nothing that the device says is
//! believed unchecked: see [`alea_random::device`] and `virtio::device`. `alea.trust_virtio_rng=off`
//! denies it credit, and so does a confidential machine. **Credit**: 256 bits once its first 1,024 bytes have passed the tests, which takes one answer of most
//! devices; none later. **Cost**: one request of 1,024 bytes at boot and at each reseed; at boot it is waited for, at most
//! 10 ms.
//!
//! A device that breaks the protocol is not asked again; one whose bytes fail a test is, and they are mixed in, but never
//! credited; a silent one is looked at whenever the generator is reseeded, ten times a second until the service is ready, and counts when
//! it answers. Interface: Virtual I/O Device 1.2,
//! section 5.4. Owns the device and its tests. Never believes it. Locks: `Random`, for the device; the
//! pool's is never taken under it.

use super::trust;
use super::wait::wait_for;
use crate::base::PAGE_SIZE;
use crate::base::boot_info::BootInfo;
use crate::cmdline::{self, words};
use crate::random::live::RANDOM;
use crate::random::stats;
use crate::sync::{SpinLock, level};
use crate::virtio::{self, Channel, DeviceType, Progress};
use alea_random::credit::EntropyBits;
use alea_random::device::{DeviceTests, REQUEST, written};
use alea_random::health::Health;
use core::sync::atomic::{AtomicBool, Ordering};

/// How long the boot waits for the first answer, and a test on demand for as many as it takes, in nanoseconds.
const WAIT: u64 = 10_000_000;
/// The only queue of the device.
const REQUESTS: u16 = 0;

/// Bytes that all CPUs share: the device's state, and if there is one its two ring pages and its buffer.
pub const MEMORY: usize = size_of::<SpinLock<Option<Channel>, level::Random>>()
    + size_of::<SpinLock<DeviceTests, level::Random>>()
    + 3 * PAGE_SIZE;

static DEVICE: SpinLock<Option<Channel>, level::Random> = SpinLock::new(None);
static TESTS: SpinLock<DeviceTests, level::Random> = SpinLock::new(DeviceTests::new());
/// Whether it has been credited. Relaxed: changed under the lock only.
static CREDITED: AtomicBool = AtomicBool::new(false);

/// Sets the device up, waits for its first answer and mixes that in; what it is worth.
pub fn collect(info: &BootInfo) -> EntropyBits {
    let nothing = EntropyBits(0);
    let Some(device) = virtio::find(DeviceType::EntropySource, info) else { return nothing };
    let opened = device.open(REQUESTS, 1).and_then(|mut channel| {
        channel.request(REQUEST)?;
        Ok(channel)
    });
    let Ok(channel) = opened else {
        give_up("cannot be set up");
        return nothing;
    };
    *DEVICE.lock() = Some(channel);
    wait_for(WAIT, look)
}

/// The start-up tests once more, over what the device answers now; what takes longer than a moment ends at reseeds.
pub fn test() {
    if DEVICE.lock().is_none() {
        return;
    }
    stats::stands(stats::Source::VirtioRng, TESTS.lock().test_again());
    let has_ended = || {
        let _credited_once = look();
        (stats::health(stats::Source::VirtioRng) != Health::Starting).then_some(EntropyBits(0))
    };
    wait_for(WAIT, has_ended);
}

/// Mixes in what the device has answered since the last look and asks it again; what the answer is worth, if there was
/// one. Gives up rather than wait for another CPU.
pub fn look() -> Option<EntropyBits> {
    let mut answer = [0; REQUEST];
    let claimed = take(&mut answer)?;
    let len = written(REQUEST, claimed);
    stats::mixed(stats::Source::VirtioRng, len);
    let before = stats::health(stats::Source::VirtioRng);
    let verdict = TESTS.lock().judge(&answer, claimed);
    // Before anything is credited, and whatever the verdict is. Bytes beyond what was claimed are used for nothing.
    RANDOM.mix_secret(&mut answer[..len]);
    Some(match verdict {
        Ok(health) => {
            stats::stands(stats::Source::VirtioRng, health);
            if health == Health::Healthy { believe() } else { EntropyBits(0) }
        }
        Err(fault) => {
            if before != Health::Failed {
                stats::failed(stats::Source::VirtioRng);
                log::error!("random: virtio-rng is not reliable, disabled: {fault}");
            }
            stats::stands(stats::Source::VirtioRng, Health::Failed);
            EntropyBits(0)
        }
    })
}

/// The answer to the last request, if it is there; the next request is on its way then.
fn take(answer: &mut [u8; REQUEST]) -> Option<u32> {
    let mut device = DEVICE.try_lock()?;
    let channel = device.as_mut()?;
    let result = match channel.poll() {
        Ok(Progress::Done { claimed, .. }) => {
            channel.take(answer).and_then(|()| channel.request(REQUEST)).map(|()| claimed)
        }
        Ok(Progress::Pending | Progress::Idle) => return None,
        Err(broken) => Err(broken),
    };
    if result.is_err() {
        *device = None;
        drop(device);
        give_up("breaks the protocol");
    }
    result.ok()
}

/// What a good answer is worth: the first one alone.
fn believe() -> EntropyBits {
    // Relaxed: at worst two CPUs credit an answer each.
    if CREDITED.swap(true, Ordering::Relaxed)
        || !(trust::host() && cmdline::switch(words::TRUST_VIRTIO_RNG).unwrap_or(true))
    {
        return EntropyBits(0);
    }
    log::info!("random: virtio-rng delivers");
    stats::credited(stats::Source::VirtioRng, EntropyBits::READY);
    EntropyBits::READY
}

fn give_up(why: &str) {
    stats::failed(stats::Source::VirtioRng);
    stats::stands(stats::Source::VirtioRng, Health::Failed);
    log::error!("random: virtio-rng {why}, disabled");
}
