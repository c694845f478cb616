//! Chooses between KVM and TCG by running a guest: that `/dev/kvm` exists proves nothing.
//!
//! The answer is kept in `target/alea/kvm.json`, for this boot of the host, this QEMU and the CPU model
//! that was asked for last.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::guest::{End, Guest, Limits};
use crate::qemu::{self, Accel, DEBUG_EXIT_PORT, Machine, PANIC_BYTE};
use xtask_host::paths;

/// A nested host without hardware help starts a guest and then crawls.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
struct Answer {
    host: String,
    usable: bool,
    why: String,
}

/// KVM if a guest has really run on it, else TCG, and then one line on standard error says why.
pub fn choose(cpu: &str) -> Result<Accel> {
    let answer = answer(cpu)?;
    if answer.usable {
        return Ok(Accel::Kvm);
    }
    eprintln!("note: no KVM ({}); the guest runs under TCG, which is slower", answer.why);
    Ok(Accel::Tcg)
}

/// The same without the line.
pub fn choose_quietly(cpu: &str) -> Result<Accel> {
    Ok(if answer(cpu)?.usable { Accel::Kvm } else { Accel::Tcg })
}

fn answer(cpu: &str) -> Result<Answer> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let host = format!("{} QEMU {} {cpu}", boot.trim(), qemu::version()?);
    let file = paths::alea().join("kvm.json");
    let kept = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if let Some(kept) = kept.filter(|kept: &Answer| kept.host == host) {
        return Ok(kept);
    }
    let found = probe(cpu);
    let why = found.as_ref().err().map(|error| format!("{error:#}")).unwrap_or_default();
    let answer = Answer { host, usable: found.is_ok(), why };
    std::fs::create_dir_all(paths::alea())?;
    std::fs::write(&file, serde_json::to_vec_pretty(&answer)?)?;
    Ok(answer)
}

/// Runs the tiny guest; an error says why KVM is of no use.
fn probe(cpu: &str) -> Result<()> {
    let device = Path::new("/dev/kvm");
    anyhow::ensure!(device.exists(), "there is no /dev/kvm");
    let opened = std::fs::File::options().read(true).write(true).open(device);
    anyhow::ensure!(opened.is_ok(), "/dev/kvm may not be opened by this user");
    let spinner = xtask_host::term::spinner("trying KVM");
    let outcome = run_tiny(cpu);
    spinner.finish_and_clear();
    let (end, elapsed, stderr) = outcome?;
    let first = stderr
        .lines()
        .next()
        .unwrap_or("")
        .trim_start_matches("qemu-system-x86_64: error: ")
        .to_owned();
    match end {
        End::Panicked if elapsed <= PATIENCE => Ok(()),
        End::TimedOut | End::Panicked => {
            anyhow::bail!("a tiny guest did not finish in {} s on it", PATIENCE.as_secs())
        }
        _ if first.is_empty() => anyhow::bail!("a tiny guest failed on it"),
        _ => anyhow::bail!("{first}"),
    }
}

fn run_tiny(cpu: &str) -> Result<(End, Duration, String)> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), tiny_guest())?;
    let mut machine = Machine::new(file.path()).memory("64M").cpu(cpu);
    machine.accel = Accel::Kvm;
    let started = Instant::now();
    let outcome = Guest::start(&machine)?.finish(Limits::total(PATIENCE))?;
    Ok((outcome.end, started.elapsed(), outcome.stderr))
}

/// A multiboot kernel that counts to ten million, leaves the virtual CPU a thousand times through
/// an I/O port, and then exits QEMU with the panic status.
pub fn tiny_guest() -> Vec<u8> {
    const LOAD: u32 = 0x10_0000;
    const MAGIC: u32 = 0x1bad_b002;
    const HAS_ADDRESSES: u32 = 1 << 16;
    const HEADER: u32 = 32;
    let [port_low, port_high] = DEBUG_EXIT_PORT.to_le_bytes();
    let exit = u8::try_from(PANIC_BYTE).expect("the panic status is a byte");
    #[rustfmt::skip]
    let code = [
        0xb9, 0x80, 0x96, 0x98, 0x00,             // mov ecx, 10_000_000
        0x49,                                     // 1: dec ecx
        0x75, 0xfd,                               // jnz 1b
        0xb9, 0xe8, 0x03, 0x00, 0x00,             // mov ecx, 1000
        0xe6, 0x80,                               // 2: out 0x80, al
        0x49,                                     // dec ecx
        0x75, 0xfb,                               // jnz 2b
        0x66, 0xba, port_low, port_high,          // mov dx, DEBUG_EXIT_PORT
        0xb0, exit,                               // mov al, PANIC_BYTE
        0xee,                                     // out dx, al
        0xf4,                                     // 3: hlt
        0xeb, 0xfd,                               // jmp 3b
    ];
    let end = LOAD + HEADER + code.len() as u32;
    let checksum = 0u32.wrapping_sub(MAGIC).wrapping_sub(HAS_ADDRESSES);
    // magic, flags, checksum; where the header is, load start and end, bss end, entry
    let header = [MAGIC, HAS_ADDRESSES, checksum, LOAD, LOAD, end, end, LOAD + HEADER];
    header.iter().flat_map(|word| word.to_le_bytes()).chain(code).collect()
}

/// The host's answer in one line, for `setup`.
pub fn describe() -> Result<String> {
    let answer = answer(qemu::FAIR_CPU)?;
    Ok(if answer.usable { "KVM".into() } else { format!("TCG: {}", answer.why) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiny_guest_has_a_valid_multiboot_header() {
        let bytes = tiny_guest();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(word(0).wrapping_add(word(4)).wrapping_add(word(8)), 0);
        assert_eq!(word(20) - word(16), bytes.len() as u32, "all of it is loaded");
    }
}
