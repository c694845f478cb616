//! The text of /proc/alea/random.

use super::live::{self, RANDOM};
use super::{generator, known_answers, service, stats};
use alloc::string::String;
use core::fmt::Write;

/// The text of /proc/alea/random. Batch refills are those of the CPU that reads.
pub fn report() -> abi::Result<String> {
    crate::mm::fallible::written(write)
}

#[expect(clippy::disallowed_methods, reason = "what it writes to can fail")]
fn write(to: &mut dyn Write) -> core::fmt::Result {
    writeln!(to, "state {:?}", RANDOM.state())?;
    writeln!(to, "credited_bits {}", RANDOM.credited().0)?;
    writeln!(to, "generator {}", generator::kind().name())?;
    writeln!(to, "vector {:?}", crate::arch::copy::chacha20::routine())?;
    writeln!(to, "generation {}", RANDOM.generation().get())?;
    writeln!(to, "pool_bytes {}", RANDOM.mixed())?;
    writeln!(to, "batch_refills {}", live::refills())?;
    let (shared, per_cpu) = service::MEMORY;
    writeln!(to, "memory_shared_bytes {shared}")?;
    writeln!(to, "memory_cpu_bytes {per_cpu}")?;
    write!(to, "waiting_bytes")?;
    for bytes in RANDOM.waiting() {
        write!(to, " {bytes}")?;
    }
    writeln!(to)?;
    known_answers::write(to)?;
    stats::write(to)
}
