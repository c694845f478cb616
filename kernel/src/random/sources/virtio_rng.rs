//! virtio-rng: random bytes of the host, through a device on the PCI bus.
//!
//! **Trust**: the host, which can read all of a guest's memory anyway; but the bytes may come from a
//! program of lower standing than the hypervisor (vhost-user), so nothing that the device says is
//! believed unchecked: see [`alea_random::device`] and `virtio::device`. `alea.trust_virtio_rng=off`
//! denies it credit. **Credit**: 256 bits for the first whole answer that passes the tests, none later.
//! **Cost**: one request of 64 bytes at boot and at each reseed; at boot it is waited for, at most 10 ms.
//!
//! A device that breaks the protocol or whose bytes fail a test is not asked again; a silent one is looked
//! at whenever the generator is reseeded, and counts when it answers. Interface: Virtual I/O Device 1.2,
//! section 5.4. Owns the device. Locks: `Random`, for the device; the pool's is never taken under it.

use crate::base::PAGE_SIZE;
use crate::base::boot_info::BootInfo;
use crate::random::{pool, stats};
use crate::sync::{SpinLock, level};
use crate::virtio::{self, Channel, DeviceType, Progress};
use crate::{cmdline, time};
use alea_random::credit::{EntropyBits, State};
use alea_random::device::{DeviceFault, REQUEST, judge, written};
use alea_random::reseed::Cause;
use core::sync::atomic::{AtomicBool, Ordering};
use zeroize::Zeroize;

/// How long the boot waits for the first answer, in nanoseconds.
const BOOT_WAIT: u64 = 10_000_000;
/// The only queue of the device.
const REQUESTS: u16 = 0;

/// Bytes that all CPUs share: the device's state, and if there is one its two ring pages and its buffer.
pub const MEMORY: usize = size_of::<SpinLock<Option<Channel>, level::Random>>() + 3 * PAGE_SIZE;

static DEVICE: SpinLock<Option<Channel>, level::Random> = SpinLock::new(None);
/// Whether it has been credited. Relaxed: changed under the lock only.
static CREDITED: AtomicBool = AtomicBool::new(false);

pub fn collect(info: &BootInfo) {
    let Some(device) = virtio::find(DeviceType::EntropySource, info) else { return };
    let opened = device.open(REQUESTS, 1).and_then(|mut channel| {
        channel.request(REQUEST)?;
        Ok(channel)
    });
    let Ok(channel) = opened else {
        give_up("cannot be set up");
        return;
    };
    *DEVICE.lock() = Some(channel);
    let deadline = time::since_boot_ns().saturating_add(BOOT_WAIT);
    while !look() && time::since_boot_ns() < deadline {
        core::hint::spin_loop();
    }
}

/// Mixes in what the device has answered since the last look and asks it again; whether it had. Gives up
/// rather than wait for another CPU.
pub fn look() -> bool {
    let mut answer = [0; REQUEST];
    let Some(claimed) = take(&mut answer) else { return false };
    let len = written(REQUEST, claimed);
    stats::mixed(stats::Source::VirtioRng, len);
    pool::mix(&answer[..len]);
    match judge(&answer, claimed) {
        Ok(()) => believe(),
        // Nothing wrong with that.
        Err(DeviceFault::Short) => {}
        Err(fault) => {
            *DEVICE.lock() = None;
            stats::failed(stats::Source::VirtioRng);
            log::error!("random: virtio-rng is not reliable, disabled: {fault}");
        }
    }
    answer.zeroize();
    true
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

/// The first good answer: credit on the way to readiness, or a reseed if that was reached without.
fn believe() {
    // Relaxed: at worst two CPUs credit an answer each.
    if CREDITED.swap(true, Ordering::Relaxed) {
        return;
    }
    if !cmdline::switch("alea.trust_virtio_rng").unwrap_or(true) {
        return;
    }
    log::info!("random: virtio-rng delivers");
    stats::credited(stats::Source::VirtioRng, EntropyBits::READY);
    if pool::state() == State::Ready {
        pool::reseed(Cause::NewSource);
    } else {
        pool::credit(EntropyBits::READY);
    }
}

fn give_up(why: &str) {
    stats::failed(stats::Source::VirtioRng);
    log::error!("random: virtio-rng {why}, disabled");
}
