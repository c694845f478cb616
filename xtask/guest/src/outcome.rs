//! How long to wait for a guest, and what is left of it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::monitor::{CpuTrace, KERNEL_HALF};
use crate::symbolize;

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From QEMU's start.
    pub total: Option<Duration>,
    /// Without any output.
    pub idle: Option<Duration>,
}

impl Limits {
    pub const NONE: Self = Self { total: None, idle: None };

    pub fn total(limit: Duration) -> Self {
        Self { total: Some(limit), idle: None }
    }

    pub fn idle(limit: Duration) -> Self {
        Self { total: None, idle: Some(limit) }
    }
}

/// Why a guest no longer runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// QEMU's exit status: 0 after a power-off.
    Exited(i32),
    /// The kernel panicked; it may also have said so by the debug-exit port.
    Panicked,
    /// A limit passed, and QEMU was killed.
    TimedOut,
    /// A signal killed QEMU.
    Signalled(i32),
}

/// What is left of a guest.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub end: End,
    /// All that came from the serial line.
    pub output: String,
    /// What QEMU itself complained of.
    pub stderr: String,
    pub elapsed: Duration,
    /// Where the CPUs were when a limit passed.
    pub traces: Vec<CpuTrace>,
}

impl Outcome {
    /// An error that carries the last output, unless the guest powered itself off.
    pub fn powered_off(self) -> Result<Self> {
        match self.end {
            End::Exited(0) => Ok(self),
            _ => bail!("{}", self.describe()),
        }
    }

    /// Where each CPU hung, symbolised from `kernel`; empty unless a limit passed.
    pub fn stuck_at(&self, kernel: &Path) -> String {
        let one = |trace: &CpuTrace| {
            let lines = symbolize::lines(kernel, &linked(kernel, trace))
                .unwrap_or_else(|error| format!("  {:#x?} ({error:#})\n", trace.addresses));
            format!("CPU {} was at:\n{lines}", trace.cpu)
        };
        self.traces.iter().map(one).collect()
    }

    /// The end in words, with the last lines of output.
    pub fn describe(&self) -> String {
        let how = match self.end {
            End::Exited(0) => "the guest powered off".into(),
            End::Exited(status) => format!("QEMU exited with status {status}"),
            End::Panicked => "the kernel panicked".into(),
            End::TimedOut => "the guest hung and was stopped".into(),
            End::Signalled(signal) => format!("signal {signal} killed QEMU"),
        };
        let stderr = self.stderr.trim();
        let stderr = if stderr.is_empty() { String::new() } else { format!("\nQEMU: {stderr}") };
        format!("{how} after {:.1?}{stderr}\nlast output:\n{}", self.elapsed, tail(&self.output))
    }
}

/// The addresses as the kernel's file has them, wherever KASLR has put the image.
fn linked(kernel: &Path, trace: &CpuTrace) -> Vec<u64> {
    const IDT: &str = "alea_kernel::arch::x86_64::entry::idt::IDT";
    let own = symbolize::address_of(kernel, IDT).ok();
    let moved = trace.idt.zip(own).map_or(0, |(idt, own)| idt.wrapping_sub(own));
    let linked = |&address: &u64| match address >= KERNEL_HALF {
        true => address.wrapping_sub(moved),
        false => address,
    };
    trace.addresses.iter().map(linked).collect()
}

/// The last lines of `output`, enough to see what went wrong.
pub fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
