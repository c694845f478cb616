//! The files of `/sys/devices/system/cpu/vulnerabilities`: their names, and what each says.
//!
//! Owns Linux 6.12's words (`cpu_show_common` in `arch/x86/kernel/cpu/bugs.c`). Never says more than is done: what nobody
//! works against is `Vulnerable`, in the words that Linux has for itself with `mitigations=off`.

use crate::flaws::{Facts, Flaws, capability};
use core::fmt;

/// What the kernel does against the flaws of the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {}

/// One file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    GatherDataSampling,
    IndirectTargetSelection,
    ItlbMultihit,
    L1tf,
    Mds,
    Meltdown,
    MmioStaleData,
    RegFileDataSampling,
    Retbleed,
    SpecRstackOverflow,
    SpecStoreBypass,
    SpectreV1,
    SpectreV2,
    Srbds,
    Tsa,
    TsxAsyncAbort,
    Vmscape,
}

/// All of them, with their names.
pub const FILES: [(&str, File); 17] = [
    ("gather_data_sampling", File::GatherDataSampling),
    ("indirect_target_selection", File::IndirectTargetSelection),
    ("itlb_multihit", File::ItlbMultihit),
    ("l1tf", File::L1tf),
    ("mds", File::Mds),
    ("meltdown", File::Meltdown),
    ("mmio_stale_data", File::MmioStaleData),
    ("reg_file_data_sampling", File::RegFileDataSampling),
    ("retbleed", File::Retbleed),
    ("spec_rstack_overflow", File::SpecRstackOverflow),
    ("spec_store_bypass", File::SpecStoreBypass),
    ("spectre_v1", File::SpectreV1),
    ("spectre_v2", File::SpectreV2),
    ("srbds", File::Srbds),
    ("tsa", File::Tsa),
    ("tsx_async_abort", File::TsxAsyncAbort),
    ("vmscape", File::Vmscape),
];

const NOT_AFFECTED: &str = "Not affected";
const VULNERABLE: &str = "Vulnerable";
const BY_MICROCODE: &str = "Mitigation: Microcode";
const NO_MICROCODE: &str = "Vulnerable: No microcode";
const HOST_KNOWS: &str = "Unknown: Dependent on hypervisor status";

/// The one line of a file.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub file: File,
    pub cpu: &'a Facts,
    pub done: &'a Done,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, cpu, done } = *self;
        let flaws = Flaws::of(cpu);
        match file {
            File::SpectreV2 if flaws.spectre_v2 => spectre_v2(cpu, &flaws, done, out),
            File::Mds if flaws.mds => write!(out, "{VULNERABLE}; SMT {}", threads(cpu, &flaws)),
            _ => out.write_str(file.phrase(cpu, &flaws)),
        }
    }
}

impl File {
    /// What those say that say one thing.
    fn phrase(self, cpu: &Facts, flaws: &Flaws) -> &'static str {
        let vulnerable = |is| if is { VULNERABLE } else { NOT_AFFECTED };
        match self {
            Self::GatherDataSampling if flaws.gds => gather(cpu),
            Self::GatherDataSampling => NOT_AFFECTED,
            Self::IndirectTargetSelection => vulnerable(flaws.its),
            // As of a kernel that runs no guests.
            Self::ItlbMultihit if flaws.itlb_multihit => "Processor vulnerable",
            Self::ItlbMultihit => NOT_AFFECTED,
            Self::L1tf => vulnerable(flaws.l1tf),
            Self::Mds => vulnerable(flaws.mds),
            Self::Meltdown => vulnerable(flaws.meltdown),
            Self::MmioStaleData if flaws.mmio_unknown => "Unknown: No mitigations",
            Self::MmioStaleData => vulnerable(flaws.mmio),
            Self::RegFileDataSampling => vulnerable(flaws.rfds),
            Self::Retbleed => vulnerable(flaws.retbleed),
            Self::SpecRstackOverflow => vulnerable(flaws.srso),
            Self::SpecStoreBypass => vulnerable(flaws.ssb),
            Self::SpectreV1 => vulnerable(flaws.spectre_v1),
            Self::SpectreV2 => vulnerable(flaws.spectre_v2),
            Self::Srbds if flaws.srbds => special_registers(cpu, flaws),
            Self::Srbds => NOT_AFFECTED,
            Self::Tsa => vulnerable(flaws.tsa),
            Self::TsxAsyncAbort => vulnerable(flaws.taa),
            Self::Vmscape => vulnerable(flaws.vmscape),
        }
    }
}

/// What is said of the threads of a core, where MDS is not worked against.
fn threads(cpu: &Facts, flaws: &Flaws) -> &'static str {
    if cpu.in_guest() {
        "Host state unknown"
    } else if flaws.msbds_only || cpu.siblings {
        "vulnerable"
    } else {
        "disabled"
    }
}

/// Gather data sampling: microcode that knows it works against it until told not to.
fn gather(cpu: &Facts) -> &'static str {
    const OFF: u64 = 1 << 4;
    const LOCKED: u64 = 1 << 5;
    if cpu.in_guest() {
        HOST_KNOWS
    } else if !cpu.can(capability::GDS_CTRL) {
        NO_MICROCODE
    } else if cpu.microcode_options & OFF != 0 {
        VULNERABLE
    } else if cpu.microcode_options & LOCKED != 0 {
        "Mitigation: Microcode (locked)"
    } else {
        BY_MICROCODE
    }
}

/// Special register buffer data sampling: likewise.
fn special_registers(cpu: &Facts, flaws: &Flaws) -> &'static str {
    const OFF: u64 = 1 << 0;
    let has_control = cpu.leaf_7_edx >> 9 & 1 != 0;
    if cpu.can(capability::MDS_NO) && !cpu.has_rtm() && !flaws.mmio {
        "Mitigation: TSX disabled"
    } else if cpu.in_guest() {
        HOST_KNOWS
    } else if !has_control {
        NO_MICROCODE
    } else if cpu.microcode_options & OFF != 0 {
        VULNERABLE
    } else {
        BY_MICROCODE
    }
}

/// Spectre v2 is told in parts.
fn spectre_v2(
    cpu: &Facts,
    flaws: &Flaws,
    _done: &Done,
    out: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    out.write_str(VULNERABLE)?;
    if cpu.has_ibpb() {
        out.write_str("; IBPB: disabled")?;
    }
    out.write_str("; STIBP: disabled; PBRSB-eIBRS: ")?;
    out.write_str(if flaws.pbrsb { VULNERABLE } else { NOT_AFFECTED })?;
    write!(out, "; BHI: {}", if flaws.bhi { VULNERABLE } else { NOT_AFFECTED })
}
