//! CPUs that no test can boot: what they say of themselves, and what is said of them.
#![allow(clippy::unreadable_literal, reason = "signatures are written as the vendors do")]

use alea_speculation::{Done, FILES, Facts, File, Flaws, Line};

const INTEL: [u32; 3] = [0x756e6547, 0x6c65746e, 0x49656e69];
const AMD: [u32; 3] = [0x68747541, 0x444d4163, 0x69746e65];
const HYPERVISOR: u32 = 1 << 31;
const AVX_AND_RDRAND: u32 = 1 << 28 | 1 << 30;

fn cpu(vendor: [u32; 3], signature: u32) -> Facts {
    Facts { vendor, signature, leaf_1_ecx: AVX_AND_RDRAND, ..Facts::default() }
}

fn says(cpu: &Facts, file: File) -> String {
    Line { file, cpu, done: &Done::default() }.to_string()
}

/// Sapphire Rapids on its own machine: RDCL_NO, IBRS_ALL, SKIP_L1DFL, MDS_NO, PSCHANGE_MC_NO, TAA_NO, the three of MMIO, PBRSB_NO,
/// GDS_NO, RFDS_NO; BHI_CTRL.
fn sapphire_rapids() -> Facts {
    let mut cpu = cpu(INTEL, 0x000806f8);
    cpu.leaf_7_edx = 1 << 26 | 1 << 29;
    cpu.leaf_7_2_edx = 1 << 4;
    cpu.capabilities = 0x16b | 7 << 13 | 1 << 24 | 1 << 26 | 1 << 27;
    cpu
}

#[test]
fn a_cpu_that_says_it_is_free_is() {
    let cpu = sapphire_rapids();
    let flaws = Flaws::of(&cpu);
    let wanted = Flaws {
        spectre_v1: true,
        spectre_v2: true,
        ssb: true,
        swapgs: true,
        bhi: true,
        vmscape: true,
        ..Flaws::default()
    };
    assert_eq!(flaws, wanted);
    let text =
        "Vulnerable; IBPB: disabled; STIBP: disabled; PBRSB-eIBRS: Not affected; BHI: Vulnerable";
    assert_eq!(says(&cpu, File::SpectreV2), text);
}

#[test]
fn one_immunity_of_three_is_none() {
    let mut cpu = cpu(INTEL, 0x00050654);
    cpu.leaf_7_edx = 1 << 29;
    for bits in [1 << 13, 1 << 14, 1 << 15, 3 << 13] {
        cpu.capabilities = bits;
        assert!(Flaws::of(&cpu).mmio, "{bits:#x}");
    }
    cpu.capabilities = 7 << 13;
    assert!(!Flaws::of(&cpu).mmio);
}

#[test]
fn steppings_decide() {
    for (signature, its) in
        [(0x00050655, false), (0x00050656, true), (0x000806eb, false), (0x000806ec, true)]
    {
        assert_eq!(Flaws::of(&cpu(INTEL, signature)).its, its, "{signature:#x}");
    }
}

#[test]
fn microcode_works_until_it_is_told_not_to() {
    let mut cpu = cpu(INTEL, 0x000906e9);
    assert_eq!(says(&cpu, File::Srbds), "Vulnerable: No microcode");
    assert_eq!(says(&cpu, File::GatherDataSampling), "Vulnerable: No microcode");
    cpu.leaf_7_edx = 1 << 9 | 1 << 29;
    cpu.capabilities = 1 << 25;
    assert_eq!(says(&cpu, File::Srbds), "Mitigation: Microcode");
    assert_eq!(says(&cpu, File::GatherDataSampling), "Mitigation: Microcode");
    cpu.microcode_options = 1 << 0 | 1 << 4;
    assert_eq!(says(&cpu, File::Srbds), "Vulnerable");
    assert_eq!(says(&cpu, File::GatherDataSampling), "Vulnerable");
    cpu.microcode_options = 1 << 5;
    assert_eq!(says(&cpu, File::GatherDataSampling), "Mitigation: Microcode (locked)");
    cpu.leaf_1_ecx |= HYPERVISOR;
    assert_eq!(says(&cpu, File::GatherDataSampling), "Unknown: Dependent on hypervisor status");
}

#[test]
fn threads_of_a_core_count_for_mds() {
    let mut cpu = cpu(INTEL, 0x000306c3);
    assert_eq!(says(&cpu, File::Mds), "Vulnerable; SMT disabled");
    cpu.siblings = true;
    assert_eq!(says(&cpu, File::Mds), "Vulnerable; SMT vulnerable");
    cpu.leaf_1_ecx |= HYPERVISOR;
    assert_eq!(says(&cpu, File::Mds), "Vulnerable; SMT Host state unknown");
}

#[test]
fn zen_by_zen() {
    // Zen 1, 2, 3, 4, 5: Retbleed, SRSO, TSA.
    let rows = [
        (0x00800f12, true, true, false),
        (0x00830f10, true, true, false),
        (0x00a20f10, false, true, true),
        (0x00a60f12, false, true, true),
        (0x00b40f40, false, true, false),
    ];
    for (signature, retbleed, srso, tsa) in rows {
        let flaws = Flaws::of(&cpu(AMD, signature));
        assert_eq!(
            (flaws.retbleed, flaws.srso, flaws.tsa),
            (retbleed, srso, tsa),
            "{signature:#x}"
        );
        assert!(!flaws.meltdown && !flaws.mds && !flaws.l1tf, "{signature:#x}");
    }
}

/// A CPU that runs in order has none, whatever else is asked of it.
#[test]
fn one_that_does_not_speculate_has_none() {
    let mut cpu = cpu(INTEL, 0x000106c2);
    cpu.leaf_1_ecx |= HYPERVISOR;
    assert_eq!(Flaws::of(&cpu), Flaws::default());
    assert!(FILES.iter().all(|&(_, file)| says(&cpu, file) == "Not affected"));
}

/// Nothing is said to be mitigated of which nothing is known, but for what is so on every CPU.
#[test]
fn an_unknown_cpu_is_vulnerable() {
    let cpu = Facts { vendor: INTEL, signature: 0x000f0ff0, ..Facts::default() };
    for (name, file) in FILES {
        assert!(file == File::L1tf || !says(&cpu, file).starts_with("Mitigation"), "{name}");
    }
    assert_eq!(says(&cpu, File::Meltdown), "Vulnerable");
}
