//! The files of `/sys/devices/system/cpu/vulnerabilities`: their names, and what each says.
//!
//! Owns Linux 6.12's words (`cpu_show_common` in `arch/x86/kernel/cpu/bugs.c`). Never says more than is done: what nobody
//! works against is `Vulnerable`, in the words that Linux has for itself with `mitigations=off`.

use crate::choose::{Buffers, Done, Tsa};
use crate::flaws::{Facts, Flaws, capability};
use crate::predictors::{Kernel, Users};
use core::fmt;

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
const CLEARED: &str = "Mitigation: Clear CPU buffers";
const ATTEMPTED: &str = "Vulnerable: Clear CPU buffers attempted, no microcode";
const TSX_DISABLED: &str = "Mitigation: TSX disabled";
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
            File::Mds if flaws.mds => {
                write!(out, "{}; SMT {}", buffers(done.mds), threads(cpu, &flaws, done))
            }
            File::TsxAsyncAbort if flaws.taa && cpu.has_rtm() && done.taa != Buffers::Kept => {
                write!(out, "{}; SMT {}", buffers(done.taa), threads_of_any(cpu))
            }
            File::MmioStaleData if flaws.mmio && done.mmio != Buffers::Kept => {
                write!(out, "{}; SMT {}", buffers(done.mmio), threads_of_any(cpu))
            }
            _ => out.write_str(file.phrase(cpu, &flaws, done)),
        }
    }
}

impl File {
    /// What those say that say one thing.
    fn phrase(self, cpu: &Facts, flaws: &Flaws, done: &Done) -> &'static str {
        let vulnerable = |is| if is { VULNERABLE } else { NOT_AFFECTED };
        match self {
            Self::GatherDataSampling if flaws.gds => gather(cpu),
            Self::GatherDataSampling => NOT_AFFECTED,
            Self::IndirectTargetSelection => vulnerable(flaws.its),
            // As of a kernel that runs no guests.
            Self::ItlbMultihit if flaws.itlb_multihit => "Processor vulnerable",
            Self::ItlbMultihit => NOT_AFFECTED,
            // Whatever is asked for: entries are made so.
            Self::L1tf if flaws.l1tf => "Mitigation: PTE Inversion",
            Self::L1tf => NOT_AFFECTED,
            Self::Mds => vulnerable(flaws.mds),
            Self::Meltdown if flaws.meltdown && done.isolates => "Mitigation: PTI",
            Self::Meltdown => vulnerable(flaws.meltdown),
            Self::MmioStaleData if flaws.mmio_unknown => "Unknown: No mitigations",
            Self::MmioStaleData => vulnerable(flaws.mmio),
            Self::RegFileDataSampling if flaws.rfds => match done.rfds {
                Buffers::Kept => VULNERABLE,
                Buffers::Cleared => "Mitigation: Clear Register File",
                Buffers::Attempted => NO_MICROCODE,
            },
            Self::RegFileDataSampling => NOT_AFFECTED,
            // Intel's is of returns that go where indirect branches would, which IBRS keeps apart.
            Self::Retbleed if flaws.retbleed && done.predictors.kernel == Kernel::Enhanced => {
                "Mitigation: Enhanced IBRS"
            }
            Self::Retbleed => vulnerable(flaws.retbleed),
            Self::SpecRstackOverflow => vulnerable(flaws.srso),
            Self::SpecStoreBypass if flaws.ssb => store_bypass(done),
            Self::SpecStoreBypass => NOT_AFFECTED,
            Self::SpectreV1 if flaws.spectre_v1 => spectre_v1(done),
            Self::SpectreV1 => NOT_AFFECTED,
            Self::SpectreV2 => vulnerable(flaws.spectre_v2),
            Self::Srbds if flaws.srbds => special_registers(cpu, flaws),
            Self::Srbds => NOT_AFFECTED,
            Self::Tsa if flaws.tsa => transient_scheduler(done),
            Self::Tsa => NOT_AFFECTED,
            Self::TsxAsyncAbort if flaws.taa && !cpu.has_rtm() => TSX_DISABLED,
            Self::TsxAsyncAbort => vulnerable(flaws.taa),
            Self::Vmscape => vulnerable(flaws.vmscape),
        }
    }
}

fn buffers(done: Buffers) -> &'static str {
    match done {
        Buffers::Kept => VULNERABLE,
        Buffers::Cleared => CLEARED,
        Buffers::Attempted => ATTEMPTED,
    }
}

/// What is said of the threads of a core: each sees the buffers of the other.
fn threads_of_any(cpu: &Facts) -> &'static str {
    if cpu.in_guest() {
        "Host state unknown"
    } else if cpu.siblings {
        "vulnerable"
    } else {
        "disabled"
    }
}

/// The same of MDS, of which a CPU may have only the part that is worked against when a thread halts.
fn threads(cpu: &Facts, flaws: &Flaws, done: &Done) -> &'static str {
    if cpu.in_guest() || !flaws.msbds_only {
        threads_of_any(cpu)
    } else if done.mds == Buffers::Kept {
        "vulnerable"
    } else if cpu.siblings {
        "mitigated"
    } else {
        "disabled"
    }
}

fn spectre_v1(done: &Done) -> &'static str {
    if done.spectre_v1 {
        "Mitigation: usercopy/swapgs barriers and __user pointer sanitization"
    } else {
        "Vulnerable: __user pointer sanitization and usercopy barriers only; no swapgs barriers"
    }
}

fn transient_scheduler(done: &Done) -> &'static str {
    match done.tsa {
        Tsa::Nothing => VULNERABLE,
        Tsa::NoMicrocode => ATTEMPTED,
        Tsa::Full => CLEARED,
        Tsa::User => "Mitigation: Clear CPU buffers: user/kernel boundary",
        Tsa::Vm => "Mitigation: Clear CPU buffers: VM",
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
        TSX_DISABLED
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
    done: &Done,
    out: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let predictors = &done.predictors;
    out.write_str(match predictors.kernel {
        Kernel::Open => VULNERABLE,
        Kernel::Enhanced | Kernel::Automatic => "Mitigation: Enhanced / Automatic IBRS",
    })?;
    if cpu.has_ibpb() {
        out.write_str(match predictors.barrier {
            Users::Nobody => "; IBPB: disabled",
            Users::All | Users::AllPreferred => "; IBPB: always-on",
            Users::Asking | Users::AskingOrFiltered => "; IBPB: conditional",
        })?;
    }
    out.write_str(match predictors.single {
        // It comes with IBRS that is held.
        _ if predictors.kernel == Kernel::Enhanced => "",
        Users::Nobody => "; STIBP: disabled",
        Users::All => "; STIBP: forced",
        Users::AllPreferred => "; STIBP: always-on",
        _ if cpu.siblings => "; STIBP: conditional",
        _ => "",
    })?;
    out.write_str(if done.fills { "; RSB filling" } else { "" })?;
    out.write_str("; PBRSB-eIBRS: ")?;
    out.write_str(if flaws.pbrsb { VULNERABLE } else { NOT_AFFECTED })?;
    out.write_str("; BHI: ")?;
    out.write_str(match flaws.bhi {
        false => NOT_AFFECTED,
        true if predictors.no_history => "BHI_DIS_S",
        true if predictors.clears_history => "SW loop, KVM: SW loop",
        true => VULNERABLE,
    })
}

fn store_bypass(done: &Done) -> &'static str {
    match done.predictors.in_order {
        Users::Nobody => VULNERABLE,
        Users::All | Users::AllPreferred => "Mitigation: Speculative Store Bypass disabled",
        Users::Asking => "Mitigation: Speculative Store Bypass disabled via prctl",
        Users::AskingOrFiltered => {
            "Mitigation: Speculative Store Bypass disabled via prctl and seccomp"
        }
    }
}
