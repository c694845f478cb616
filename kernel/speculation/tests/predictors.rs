//! What the predictors of CPUs are told that no test can boot, what is said of it, and what tasks may choose.
#![allow(clippy::unreadable_literal, reason = "signatures are written as the vendors do")]

mod common;

use alea_speculation::predictors::{Kernel, Users, answer, spec_ctrl, which};
use alea_speculation::{Choice, Done, Facts, File, Flaws, Line, Predictors, Refusal};
use common::{AMD, INTEL, asked};

const NONE: Choice = Choice(0);

fn chosen(cpu: &Facts, text: &str) -> Predictors {
    Done::choose(cpu, &asked(text)).predictors
}

fn says(cpu: &Facts, text: &str, file: File) -> String {
    Line { file, cpu, done: &Done::choose(cpu, &asked(text)) }.to_string()
}

/// Two threads a core; IBRS with IBPB, STIBP, SSBD.
fn skylake() -> Facts {
    Facts {
        vendor: INTEL,
        signature: 0x000506e3,
        leaf_7_edx: 1 << 26 | 1 << 27 | 1 << 31,
        threads: true,
        siblings: true,
        ..Facts::default()
    }
}

/// Enhanced IBRS, and a control of the history.
fn sapphire_rapids() -> Facts {
    let mut cpu = skylake();
    cpu.signature = 0x000806f8;
    cpu.leaf_7_edx |= 1 << 29;
    cpu.leaf_7_2_edx = 1 << 4;
    cpu.capabilities = 0x16b | 7 << 13 | 1 << 24 | 1 << 26 | 1 << 27;
    cpu
}

/// Automatic IBRS; IBPB, IBRS, STIBP that is better always on, SSBD.
fn zen_4() -> Facts {
    Facts {
        vendor: AMD,
        signature: 0x00a60f12,
        leaf_8000_0008_ebx: 1 << 12 | 1 << 14 | 1 << 15 | 1 << 17 | 1 << 24,
        leaf_8000_0021_eax: 1 << 8,
        threads: true,
        siblings: true,
        ..Facts::default()
    }
}

#[test]
fn what_holds_is_switched_on() {
    let found = chosen(&sapphire_rapids(), "");
    assert_eq!(
        (found.kernel, found.base),
        (Kernel::Enhanced, spec_ctrl::IBRS | spec_ctrl::BHI_DIS_S)
    );
    // Enhanced IBRS keeps the threads apart by itself.
    assert_eq!(found.single, Users::Nobody);
    let text = "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; PBRSB-eIBRS: Not affected; BHI: BHI_DIS_S";
    assert_eq!(says(&sapphire_rapids(), "", File::SpectreV2), text);
    assert_eq!(chosen(&sapphire_rapids(), "spectre_bhi=off").base, spec_ctrl::IBRS);
    let found = chosen(&zen_4(), "");
    assert_eq!((found.kernel, found.base), (Kernel::Automatic, spec_ctrl::STIBP));
    let text = "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; STIBP: always-on; PBRSB-eIBRS: Not affected; BHI: Not affected";
    assert_eq!(says(&zen_4(), "", File::SpectreV2), text);
}

/// Cascade Lake holds IBRS, and has no control of the history.
#[test]
fn the_history_is_cleared_by_hand_where_it_must() {
    let mut cpu = sapphire_rapids();
    cpu.leaf_7_2_edx = 0;
    let mitigated = "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; PBRSB-eIBRS: Not affected; BHI: ";
    for (words, wanted) in [
        ("", "SW loop, KVM: SW loop"),
        ("spectre_bhi=on", "SW loop, KVM: SW loop"),
        ("spectre_bhi=off", "Vulnerable"),
    ] {
        assert_eq!(says(&cpu, words, File::SpectreV2), format!("{mitigated}{wanted}"), "{words}");
        assert_eq!(chosen(&cpu, words).clears_history, wanted != "Vulnerable", "{words}");
    }
    for words in ["nospectre_v2", "mitigations=off"] {
        assert!(!chosen(&cpu, words).clears_history, "{words}");
    }
}

#[test]
fn nothing_is_switched_on_that_is_not_asked_for() {
    for cpu in [skylake(), sapphire_rapids(), zen_4()] {
        for text in [
            "mitigations=off",
            "nospectre_v2 spec_store_bypass_disable=off",
            "spectre_v2=off nospec_store_bypass_disable",
        ] {
            let found = Predictors { has_register: true, ..chosen(&cpu, text) };
            let wanted = Predictors { has_register: true, ..Predictors::default() };
            assert_eq!(found, wanted, "{text}");
            assert!(!Done::choose(&cpu, &asked(text)).fills, "{text}");
        }
    }
    let none = Facts { vendor: INTEL, signature: 0x000506e3, ..Facts::default() };
    assert_eq!(chosen(&none, "spectre_v2=on spec_store_bypass_disable=on"), Predictors::default());
}

/// The kernel's own branches are open there, and said to be.
#[test]
fn without_retpolines_an_old_cpu_is_vulnerable() {
    let cpu = skylake();
    let text = "Vulnerable; IBPB: conditional; STIBP: conditional; RSB filling; PBRSB-eIBRS: Not affected; BHI: Not affected";
    for words in ["", "spectre_v2=retpoline", "spectre_v2=auto"] {
        assert_eq!(says(&cpu, words, File::SpectreV2), text, "{words}");
    }
    let text = "Vulnerable; IBPB: always-on; STIBP: forced; RSB filling; PBRSB-eIBRS: Not affected; BHI: Not affected";
    for words in ["spectre_v2=on", "spectre_v2_user=on"] {
        assert_eq!(says(&cpu, words, File::SpectreV2), text, "{words}");
        assert_eq!(chosen(&cpu, words).base, spec_ctrl::STIBP, "{words}");
    }
    assert_eq!(says(&cpu, "", File::Retbleed), "Vulnerable");
    let mut cpu = sapphire_rapids();
    cpu.capabilities |= 1 << 2;
    assert_eq!(says(&cpu, "", File::Retbleed), "Mitigation: Enhanced IBRS");
}

#[test]
fn words_say_who_is_kept_apart() {
    for (words, barrier, single) in [
        ("", Users::Asking, Users::Asking),
        ("spectre_v2_user=auto", Users::Asking, Users::Asking),
        ("spectre_v2_user=prctl", Users::Asking, Users::Asking),
        ("spectre_v2_user=prctl,ibpb", Users::All, Users::Asking),
        ("spectre_v2_user=seccomp", Users::AskingOrFiltered, Users::AskingOrFiltered),
        ("spectre_v2_user=seccomp,ibpb", Users::All, Users::AskingOrFiltered),
        ("spectre_v2_user=on", Users::All, Users::All),
        ("spectre_v2_user=off", Users::Nobody, Users::Nobody),
        ("spectre_v2=off spectre_v2_user=on", Users::Nobody, Users::Nobody),
    ] {
        let found = chosen(&skylake(), words);
        assert_eq!((found.barrier, found.single), (barrier, single), "{words}");
    }
    let mut alone = skylake();
    alone.threads = false;
    assert_eq!(chosen(&alone, "spectre_v2_user=on").single, Users::Nobody);
}

#[test]
fn the_register_follows_the_task() {
    let found = chosen(&skylake(), "");
    assert!(found.changes_with_tasks());
    let (stores, branches) = (Choice(Choice::STORES), Choice(Choice::BRANCHES));
    assert_eq!(found.value(NONE), 0);
    assert_eq!(found.value(stores), spec_ctrl::SSBD);
    assert_eq!(found.value(branches), spec_ctrl::STIBP);
    assert!(
        !found.parts(NONE, stores) && found.parts(NONE, branches) && found.parts(branches, NONE)
    );
    let all = chosen(&skylake(), "spectre_v2_user=on spec_store_bypass_disable=on");
    assert!(!all.changes_with_tasks() && all.parts(NONE, NONE));
    assert_eq!(all.value(NONE), spec_ctrl::SSBD | spec_ctrl::STIBP);
}

/// The answers of `prctl`, as Linux's `ssb_prctl_set` and `ib_prctl_set` give them.
#[test]
fn tasks_choose() {
    let (found, flaws) = (chosen(&skylake(), ""), Flaws::of(&skylake()));
    for which in [which::STORE_BYPASS, which::INDIRECT_BRANCH] {
        let get = |choice| found.get(&flaws, choice, which);
        assert_eq!(get(NONE), Ok(answer::PRCTL | answer::ENABLE));
        let disabled = found.set(NONE, which, answer::DISABLE).unwrap();
        assert_eq!(get(disabled), Ok(answer::PRCTL | answer::DISABLE));
        assert_eq!(found.set(disabled, which, answer::ENABLE), Ok(NONE));
        let forced = found.set(NONE, which, answer::FORCE_DISABLE).unwrap();
        assert_eq!(get(forced), Ok(answer::PRCTL | answer::FORCE_DISABLE));
        assert_eq!(found.set(forced, which, answer::ENABLE), Err(Refusal::Forbidden));
        assert_eq!(found.set(forced, which, answer::DISABLE), Ok(forced));
        assert_eq!(found.set(NONE, which, 0), Err(Refusal::OutOfRange));
        assert_eq!(forced.executed(), forced);
    }
    let until_exec = found.set(NONE, which::STORE_BYPASS, answer::DISABLE_NOEXEC).unwrap();
    let told = found.get(&flaws, until_exec, which::STORE_BYPASS);
    assert_eq!(told, Ok(answer::PRCTL | answer::DISABLE_NOEXEC));
    assert_eq!(until_exec.executed(), NONE);
    let refused = found.set(NONE, which::INDIRECT_BRANCH, answer::DISABLE_NOEXEC);
    assert_eq!(refused, Err(Refusal::OutOfRange));
    assert_eq!(found.get(&flaws, NONE, which::L1D_FLUSH), Ok(answer::FORCE_DISABLE));
    assert_eq!(found.set(NONE, which::L1D_FLUSH, answer::ENABLE), Err(Refusal::Forbidden));
    assert_eq!(found.get(&flaws, NONE, 3), Err(Refusal::Unknown));
    assert_eq!(found.set(NONE, 3, answer::ENABLE), Err(Refusal::Unknown));
}

#[test]
fn nobody_chooses_what_is_so_for_all_or_for_nobody() {
    let flaws = Flaws::of(&skylake());
    let (stores, branches) = (which::STORE_BYPASS, which::INDIRECT_BRANCH);
    let all = chosen(&skylake(), "spectre_v2_user=on spec_store_bypass_disable=on");
    assert_eq!(all.get(&flaws, NONE, stores), Ok(answer::DISABLE));
    assert_eq!(all.get(&flaws, NONE, branches), Ok(answer::DISABLE));
    assert_eq!(all.set(NONE, stores, answer::DISABLE), Err(Refusal::NotHere));
    assert_eq!(all.set(NONE, branches, answer::ENABLE), Err(Refusal::Forbidden));
    assert_eq!(all.set(NONE, branches, answer::DISABLE), Ok(NONE));
    let none = chosen(&skylake(), "mitigations=off");
    assert_eq!(none.get(&flaws, NONE, stores), Ok(answer::ENABLE));
    assert_eq!(none.get(&flaws, NONE, branches), Ok(answer::ENABLE));
    assert_eq!(none.set(NONE, stores, answer::ENABLE), Err(Refusal::NotHere));
    assert_eq!(none.set(NONE, branches, answer::ENABLE), Ok(NONE));
    assert_eq!(none.set(NONE, branches, answer::DISABLE), Err(Refusal::Forbidden));
}

#[test]
fn a_filter_chooses_where_it_is_told_to() {
    let forced =
        Choice::STORES | Choice::STORES_FORCED | Choice::BRANCHES | Choice::BRANCHES_FORCED;
    assert_eq!(chosen(&skylake(), "").filtered(NONE), NONE);
    let words = "spectre_v2_user=seccomp spec_store_bypass_disable=seccomp";
    assert_eq!(chosen(&skylake(), words).filtered(NONE), Choice(forced));
}
