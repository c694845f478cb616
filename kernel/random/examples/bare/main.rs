//! 32 random bytes on a machine without an operating system: everything that `alea-random` wants of a kernel, and no more.
//!
//! Owns the service. `machine` is the one file that differs from one architecture to
//! the next: a counter of time, a hardware generator where there is one, a way to print and a way to end. On a host
//! (`cargo run --example bare`) it is the standard library's. It must never print a byte before the service is ready.
//! Locks: those of [`alea_random::service`].
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

use alea_random::credit::{EntropyBits, State};
use alea_random::crng::NotSeeded;
use alea_random::hardware::HardwareRng;
use alea_random::jitter::CycleCounter;
use alea_random::service::{Base, CpuCrng, Exclusive, Mixing, Platform, Service};
use lock::Locked;

/// What the machine has, as the service asks for it.
struct Mine {
    /// Of the one CPU that there is.
    cpu: Locked<CpuCrng>,
}

impl Platform for Mine {
    type Lock<T: Send> = Locked<T>;

    fn with_cpu<R>(&self, f: impl FnOnce(&mut CpuCrng) -> R) -> Option<R> {
        Some(self.cpu.with(f))
    }
}

static RANDOM: Service<Mine> = Service::new(
    Mine { cpu: Locked::new(CpuCrng::vacant()) },
    Locked::new(Mixing::new()),
    Locked::new(Base::vacant()),
);

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

/// Asks the sources, and credits at once what all of them gave: the hardware generator is believed for half of its length,
/// and there is enough jitter to be ready by itself, if the counter shows any.
fn start() -> State {
    RANDOM.start(&mut [
        &mut |_| RANDOM.collect_hardware(&mut Instruction, EntropyBits(32)),
        &mut |_| {
            let collected = RANDOM.collect_jitter(&mut Counter);
            collected.map_or(EntropyBits(0), |report| report.credit)
        },
    ])
}

/// What the rest of a kernel calls.
fn fill(out: &mut [u8]) -> Result<(), NotSeeded> {
    RANDOM.fill(out)
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
