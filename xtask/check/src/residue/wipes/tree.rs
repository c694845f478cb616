//! A copy of the sources in which every wipe can be switched off, and its kernel.
//!
//! One build holds all of them: a build for each would take a quarter of an hour. Each asks for its number in a word
//! that the host writes into the machine's memory before the first instruction. The image of the vDSO has such a
//! word of its own, because programs do not see the kernel's.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::super::machine::MARKER;
use super::list::{Asm, Wipe, tracked};
use xtask_host::{paths, process};
use xtask_setup::setup::TARGET;

/// Where the crate `alea_random` begins, and the vDSO's.
const CORE: &str = "kernel/random/src/lib.rs";
const VDSO: &str = "kernel/vdso/src/lib.rs";
/// Switches need an attribute that counts as unsafe.
const STRICT: &str = "#![forbid(unsafe_code)]";

/// Writes the copy and builds its kernel; the place of that.
pub fn build(wipes: &[Wipe]) -> Result<PathBuf> {
    let folder = paths::alea().join("residue");
    let tree = folder.join("tree");
    let mut changes: BTreeMap<&str, Vec<(usize, String)>> = BTreeMap::new();
    for (number, wipe) in wipes.iter().enumerate() {
        if !wipe.reading.is_empty() {
            changes.entry(&wipe.file).or_default().push((wipe.at, switched(wipe, number)));
        }
    }
    for file in tracked()? {
        let Ok(text) = fs::read_to_string(paths::source(&file)) else { continue };
        let mut lines: Vec<&str> = text.lines().collect();
        for (at, code) in changes.get(file.as_str()).into_iter().flatten() {
            lines[*at] = code;
        }
        let mut text = lines.join("\n") + "\n";
        match file.as_str() {
            CORE => {
                ensure!(text.contains(STRICT), "{CORE} has no {STRICT}");
                text = text.replace(STRICT, "") + &in_kernel();
            }
            VDSO => text += &in_vdso(),
            _ => {}
        }
        let to = tree.join(&file);
        // What is the same keeps its time, so that cargo builds only what has changed.
        if fs::read_to_string(&to).ok().as_ref() != Some(&text) {
            fs::create_dir_all(to.parent().context("a file without a folder")?)?;
            fs::write(&to, text)?;
        }
    }
    let mut cargo = process::cargo();
    cargo.current_dir(&tree).args(["build", "--package", "alea-kernel", "--profile", "kernel"]);
    cargo.args(["--target", TARGET, "--target-dir"]).arg(folder.join("build"));
    process::run("building a kernel whose wipes can be switched off", &mut cargo)?;
    Ok(folder.join("build").join(TARGET).join("kernel/alea-kernel"))
}

/// The line that does what `wipe` does unless its number is in the switch.
fn switched(wipe: &Wipe, number: usize) -> String {
    let line = &wipe.line;
    let here = match wipe.file.as_str() {
        file if file.starts_with("kernel/vdso/") => "alea_vdso_switched_off",
        _ => "alea_switched_off",
    };
    if let Some(asm) = wipe.asm {
        let (load, test, skip) = match asm {
            Asm::Flags => (None, format!("cmp dword ptr [rip + {here} + 12], {number}"), "je 91f"),
            Asm::Rcx => {
                let load = format!("mov ecx, dword ptr [rip + {here} + 12]");
                (Some(load), format!("lea rcx, [rcx - {number}]"), "jrcxz 91f")
            }
        };
        let quoted = line.starts_with('"');
        let instruction = line.trim_end_matches(',').trim_matches('"');
        let all = load.into_iter().chain([test, skip.into(), instruction.into(), "91:".into()]);
        return match quoted {
            true => all.map(|line| format!("\"{line}\", ")).collect(),
            false => all.collect::<Vec<_>>().join("\n"),
        };
    }
    let name = match wipe.file.as_str() {
        file if file.starts_with("kernel/random/") || file.starts_with("kernel/vdso/") => "crate",
        _ => "alea_random",
    };
    match &wipe.instead {
        None => format!("if !{name}::is_off({number}) {{ {line} }}"),
        Some(instead) => format!("if {name}::is_off({number}) {{ {instead} }} else {{ {line} }}"),
    }
}

/// The switch of the kernel. Inlined: a call would have what is in registers saved on the stack.
fn in_kernel() -> String {
    let [a, b, c] = MARKER;
    format!(
        "
use core::sync::atomic::AtomicU32 as Switch;
/// What the host looks for, and the number of the wipe that is left out.
#[unsafe(no_mangle)]
#[allow(missing_docs, non_upper_case_globals)]
pub static alea_switched_off: [Switch; 4] =
    [Switch::new({a:#x}), Switch::new({b:#x}), Switch::new({c:#x}), Switch::new(u32::MAX)];
#[inline(always)]
#[allow(missing_docs)]
pub fn is_off(number: u32) -> bool {{
    alea_switched_off[3].load(core::sync::atomic::Ordering::Relaxed) == number
}}
"
    )
}

/// The switch of the vDSO's image, which has no data that may change: the host writes before it is copied anywhere.
fn in_vdso() -> String {
    let [a, b, c] = MARKER;
    format!(
        "
core::arch::global_asm!(
    \".section .rodata.alea_switched_off, \\\"a\\\"\",
    \".balign 16\",
    \".globl alea_vdso_switched_off\",
    \".hidden alea_vdso_switched_off\",
    \"alea_vdso_switched_off:\",
    \".long {a:#x}, {b:#x}, {c:#x}, 0xffffffff\",
    \".section .text\",
);
#[inline(always)]
#[allow(missing_docs)]
pub fn is_off(number: u32) -> bool {{
    let off: u32;
    // SAFETY: the word is there.
    unsafe {{
        core::arch::asm!(
            \"mov {{0:e}}, dword ptr [rip + alea_vdso_switched_off + 12]\",
            out(reg) off,
            options(readonly, nostack, preserves_flags),
        );
    }}
    off == number
}}
"
    )
}
