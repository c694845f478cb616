//! 32 random bytes on a machine without an operating system: everything that `alea-random` wants of a kernel, and no more.
//!
//! Owns the pool, the credit, the generator and its lock. `machine` is the one file that differs from one architecture to
//! the next: a counter of time, a hardware generator where there is one, a way to print and a way to end. On a host
//! (`cargo run --example bare`) it is the standard library's. It must never print a byte before the service is ready.
//! Locks: each static has its own, and none is taken with another held.
//!
//! Built with `--cfg getrandom_backend="custom"` the bytes come from `getrandom::fill`, whose backend is in `backend`: so does
//! every crate of such a kernel that asks `getrandom` for bytes.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(getrandom_backend = "custom")]
mod backend;
mod lock;
#[cfg_attr(all(target_os = "none", target_arch = "x86_64"), path = "x86_64.rs")]
#[cfg_attr(all(target_os = "none", target_arch = "aarch64"), path = "aarch64.rs")]
#[cfg_attr(all(target_os = "none", target_arch = "riscv64"), path = "riscv64.rs")]
#[cfg_attr(all(target_os = "none", target_arch = "arm"), path = "thumbv7em.rs")]
#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod machine;

use alea_random::block::{Key, Portable};
use alea_random::boot;
use alea_random::credit::{Credit, EntropyBits, State, Transition};
use alea_random::crng::handle::CpuRng;
use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, NotSeeded};
use alea_random::hardware::{self, HardwareRng};
use alea_random::jitter::{CycleCounter, Jitter};
use alea_random::pool::{FRESH_WORDS, Pool};
use lock::Locked;

static POOL: Locked<Pool> = Locked::new(Pool::new());
static CREDIT: Credit = Credit::none();
static CRNG: Crng<Locked<Base>> = Crng::new(Locked::new(Base::vacant()));
/// Of the one CPU that there is.
static CPU: Locked<CpuCrng> = Locked::new(CpuCrng::vacant());

struct Instruction;

impl HardwareRng for Instruction {
    fn next_u64(&mut self) -> Option<u64> {
        machine::hardware()
    }
}

struct Counter;

impl CycleCounter for Counter {
    fn now(&mut self) -> u64 {
        machine::now()
    }
}

/// What the hardware generator delivers, if it is there and sane: believed for half of its length.
fn from_hardware() -> EntropyBits {
    if hardware::self_test(&mut Instruction).is_err() {
        return EntropyBits(0);
    }
    let mut words = [0; 8];
    let count = hardware::gather(&mut Instruction, &mut words);
    words[..count].iter().for_each(|word| mix(&word.to_le_bytes()));
    EntropyBits(32 * count as u32)
}

/// Enough jitter to be ready by itself, if the counter shows any: a few milliseconds.
fn from_jitter() -> EntropyBits {
    // Mixing wipes its stack each time, so samples are mixed in 64 at once.
    let (mut buffer, mut used) = ([[0; 8]; 64], 0);
    let result = Jitter::new().collect(&mut Counter, EntropyBits::READY, |sample| {
        buffer[used] = sample.to_le_bytes();
        used += 1;
        if used == buffer.len() {
            mix(buffer.as_flattened());
            used = 0;
        }
    });
    mix(buffer.as_flattened());
    result.map_or(EntropyBits(0), |report| report.credit)
}

fn mix(bytes: &[u8]) {
    POOL.with(|pool| pool.mix(bytes));
}

/// Makes a new key of all that was mixed in. A kernel does it again by the clock: see `alea_random::reseed`.
fn reseed() {
    let mut fresh = [0; FRESH_WORDS];
    hardware::gather(&mut Instruction, &mut fresh);
    let mut seed = Key::vacant();
    POOL.with(|pool| pool.extract(&fresh, &mut seed));
    CRNG.reseed(&mut seed);
}

/// Asks the sources, and credits at once what all of them gave.
fn start() -> State {
    let credit = boot::collect(&mut [&mut |_| from_hardware(), &mut |_| from_jitter()]);
    if let Some(Transition { to: State::Ready, .. }) = CREDIT.add(credit) {
        reseed();
    }
    CREDIT.state()
}

/// What the rest of a kernel calls.
fn fill(out: &mut [u8]) -> Result<(), NotSeeded> {
    CPU.with(|cpu| CpuRng::new(&CRNG, cpu, Portable).fill(out))
}

/// Called by the machine's first instructions; whether it came to a good end.
fn run() -> bool {
    if start() != State::Ready {
        print(b"this machine has no source of entropy\n");
        return false;
    }
    let mut bytes = [0; 32];
    #[cfg(not(getrandom_backend = "custom"))]
    let drawn = fill(&mut bytes).is_ok();
    #[cfg(getrandom_backend = "custom")]
    let drawn = getrandom::fill(&mut bytes).is_ok();
    print(b"random: ");
    for byte in bytes {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        print(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
    print(b"\n");
    drawn
}

fn print(text: &[u8]) {
    text.iter().for_each(|&byte| machine::put(byte));
}

#[cfg(not(target_os = "none"))]
fn main() -> std::process::ExitCode {
    if run() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    machine::exit(false)
}
