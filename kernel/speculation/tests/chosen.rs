//! What is chosen for CPUs that no test can boot, and what is said of it.
#![allow(clippy::unreadable_literal, reason = "signatures are written as the vendors do")]

mod common;

use alea_speculation::{Buffers, Done, Facts, File, Line, Tsa};
use common::{AMD, INTEL, asked};

const MD_CLEAR: u32 = 1 << 10;
const FLUSH_L1D: u32 = 1 << 28;
const CAPABILITIES: u32 = 1 << 29;
const RTM: u32 = 1 << 11;
const FSGSBASE_AND_SMAP: u32 = 1 << 0 | 1 << 20;

fn cpu(vendor: [u32; 3], signature: u32) -> Facts {
    Facts { vendor, signature, leaf_7_ebx: FSGSBASE_AND_SMAP, ..Facts::default() }
}

fn says(cpu: &Facts, text: &str, file: File) -> String {
    Line { file, cpu, done: &Done::choose(cpu, &asked(text)) }.to_string()
}

/// Skylake, with microcode of 2019.
fn skylake() -> Facts {
    let mut cpu = cpu(INTEL, 0x000506e3);
    cpu.leaf_7_edx = MD_CLEAR | FLUSH_L1D;
    cpu.leaf_7_ebx |= RTM;
    cpu.threads = true;
    cpu.siblings = true;
    cpu
}

/// Who asks for one of them off has them all on, unless all are off.
#[test]
fn one_instruction_is_for_all() {
    let cpu = skylake();
    let clear = "Mitigation: Clear CPU buffers; SMT vulnerable";
    let all_off = "mds=off tsx_async_abort=off mmio_stale_data=off";
    for text in
        ["", "mds=off", "tsx_async_abort=off", "mds=off tsx_async_abort=off", "mds=full,nosmt"]
    {
        for file in [File::Mds, File::TsxAsyncAbort, File::MmioStaleData] {
            assert_eq!(says(&cpu, text, file), clear, "{text}");
        }
        assert!(Done::choose(&cpu, &asked(text)).clears, "{text}");
    }
    for text in ["mitigations=off", all_off] {
        assert_eq!(says(&cpu, text, File::Mds), "Vulnerable; SMT vulnerable");
        assert_eq!(says(&cpu, text, File::TsxAsyncAbort), "Vulnerable");
        assert_eq!(says(&cpu, text, File::MmioStaleData), "Vulnerable");
        assert!(!Done::choose(&cpu, &asked(text)).clears, "{text}");
    }
}

#[test]
fn without_microcode_it_is_attempted() {
    let mut cpu = skylake();
    cpu.leaf_7_edx = 0;
    let text = "Vulnerable: Clear CPU buffers attempted, no microcode; SMT vulnerable";
    for file in [File::Mds, File::TsxAsyncAbort, File::MmioStaleData] {
        assert_eq!(says(&cpu, "", file), text);
    }
}

/// Cascade Lake is free of MDS, and clears for TAA; newer microcode than that of MDS it takes.
#[test]
fn transactions_alone_are_reason_enough() {
    let mut cpu = cpu(INTEL, 0x00050657);
    cpu.leaf_7_edx = MD_CLEAR | FLUSH_L1D | CAPABILITIES;
    cpu.leaf_7_ebx |= RTM;
    cpu.capabilities = 1 << 0 | 1 << 5;
    let attempted = "Vulnerable: Clear CPU buffers attempted, no microcode; SMT disabled";
    assert_eq!(says(&cpu, "", File::TsxAsyncAbort), attempted);
    cpu.capabilities |= 1 << 7;
    let clear = "Mitigation: Clear CPU buffers; SMT disabled";
    assert_eq!(says(&cpu, "", File::TsxAsyncAbort), clear);
    assert_eq!(says(&cpu, "", File::Mds), "Not affected");
    // Without transactions nothing is left in the buffers, and stale data of MMIO is a matter of guests.
    cpu.leaf_7_ebx &= !RTM;
    assert_eq!(says(&cpu, "mitigations=off", File::TsxAsyncAbort), "Mitigation: TSX disabled");
    assert_eq!(says(&cpu, "", File::MmioStaleData), attempted);
    let done = Done::choose(&cpu, &asked(""));
    assert!(!done.clears && done.clears_when_idle);
    cpu.capabilities |= 1 << 14 | 1 << 17;
    assert_eq!(says(&cpu, "", File::MmioStaleData), clear);
    assert!(!Done::choose(&cpu, &asked("")).clears_when_idle);
}

/// Alder Lake: the register file, with microcode that says so.
#[test]
fn the_register_file_is_cleared() {
    let mut cpu = cpu(INTEL, 0x00090672);
    cpu.leaf_7_edx = MD_CLEAR | CAPABILITIES;
    cpu.capabilities = 1 << 0 | 1 << 5 | 1 << 8 | 7 << 13;
    assert_eq!(says(&cpu, "", File::RegFileDataSampling), "Vulnerable: No microcode");
    assert!(!Done::choose(&cpu, &asked("")).clears);
    cpu.capabilities |= 1 << 28;
    assert_eq!(says(&cpu, "", File::RegFileDataSampling), "Mitigation: Clear Register File");
    assert!(Done::choose(&cpu, &asked("")).clears);
    let off = asked("reg_file_data_sampling=off");
    assert_eq!(Done::choose(&cpu, &off).rfds, Buffers::Kept);
    assert!(!Done::choose(&cpu, &off).clears);
}

/// Silvermont has only the store buffer's part: threads are safe where halts clear.
#[test]
fn a_halt_clears_for_the_other_thread() {
    let mut cpu = cpu(INTEL, 0x00050671);
    cpu.leaf_7_edx = MD_CLEAR;
    assert_eq!(says(&cpu, "", File::Mds), "Mitigation: Clear CPU buffers; SMT disabled");
    assert!(!Done::choose(&cpu, &asked("")).clears_when_idle);
    cpu.threads = true;
    cpu.siblings = true;
    assert_eq!(says(&cpu, "", File::Mds), "Mitigation: Clear CPU buffers; SMT mitigated");
    assert!(Done::choose(&cpu, &asked("")).clears_when_idle);
    assert_eq!(says(&cpu, "mds=off", File::Mds), "Vulnerable; SMT vulnerable");
}

/// Zen 4, with microcode that clears by VERW or without.
#[test]
fn the_scheduler_is_cleared() {
    let mut cpu = cpu(AMD, 0x00a60f12);
    let attempted = "Vulnerable: Clear CPU buffers attempted, no microcode";
    assert_eq!(says(&cpu, "", File::Tsa), attempted);
    assert!(!Done::choose(&cpu, &asked("")).clears);
    cpu.leaf_8000_0021_eax = 1 << 5;
    for (text, tsa, clears) in [
        ("", Tsa::Full, true),
        ("tsa=on", Tsa::Full, true),
        ("tsa=user", Tsa::User, true),
        ("tsa=vm", Tsa::Vm, false),
        ("tsa=off", Tsa::Nothing, false),
        ("mitigations=off", Tsa::Nothing, false),
    ] {
        let done = Done::choose(&cpu, &asked(text));
        assert_eq!((done.tsa, done.clears), (tsa, clears), "{text}");
    }
    assert_eq!(says(&cpu, "", File::Tsa), "Mitigation: Clear CPU buffers");
}

/// Who may set its GS base or whom the kernel may read can lead it past SWAPGS.
#[test]
fn fences_where_swapgs_may_be_missed() {
    let fences = |cpu: &Facts, text| {
        let done = Done::choose(cpu, &asked(text));
        (done.fences_user, done.fences_kernel)
    };
    let mut intel = skylake();
    assert_eq!(fences(&intel, "nopti"), (true, true));
    // The kernel's own traps come by there without a write of CR3.
    assert_eq!(fences(&intel, ""), (true, true));
    assert_eq!(fences(&intel, "nospectre_v1"), (false, false));
    assert_eq!(fences(&intel, "mitigations=off"), (false, false));
    // SMAP does not hold where Meltdown reads.
    intel.leaf_7_ebx = 1 << 20;
    assert_eq!(fences(&intel, "nopti"), (true, true));
    let mut amd = cpu(AMD, 0x00800f12);
    assert_eq!(fences(&amd, ""), (false, true));
    amd.leaf_7_ebx = 1 << 20;
    assert_eq!(fences(&amd, ""), (false, false));
    let mitigated = "Mitigation: usercopy/swapgs barriers and __user pointer sanitization";
    assert_eq!(says(&amd, "", File::SpectreV1), mitigated);
}

/// Who has the flaw is isolated, and who asks for it; `mitigations=off` has the last word, as on Linux 6.12.
#[test]
fn tables_are_isolated() {
    let (vulnerable, mut free) = (skylake(), skylake());
    free.leaf_7_edx |= CAPABILITIES;
    free.capabilities = 1 << 0;
    for (text, of_vulnerable, of_free) in [
        ("", true, false),
        ("pti=auto", true, false),
        ("pti=on", true, true),
        ("pti=off", false, false),
        ("nopti", false, false),
        ("mitigations=off", false, false),
        ("mitigations=off pti=on", false, false),
    ] {
        assert_eq!(Done::choose(&vulnerable, &asked(text)).isolates, of_vulnerable, "{text}");
        assert_eq!(Done::choose(&free, &asked(text)).isolates, of_free, "{text}");
        let words = if of_vulnerable { "Mitigation: PTI" } else { "Vulnerable" };
        assert_eq!(says(&vulnerable, text, File::Meltdown), words, "{text}");
        assert_eq!(says(&free, text, File::Meltdown), "Not affected", "{text}");
    }
}
