//! Linux's self tests of ptrace, seccomp, perf events, and of what a tracer does to registers.

use anyhow::{Context, Result};

use xtask_guest::initramfs::Tree;

use crate::selftests::{Headers, SelfTest, SelfTests};

const fn test(folder: &'static str, name: &'static str) -> SelfTest {
    SelfTest { folder, name, more: &[] }
}

const fn with(folder: &'static str, name: &'static str, more: &'static [&'static str]) -> SelfTest {
    SelfTest { folder, name, more }
}

/// The tests, each a unit. Of x86, `ptrace_syscall` begins with 32-bit calls and `fsgsbase` with segments of an LDT, which Alea has
/// not: they would end there.
pub const TESTS: [SelfTest; 17] = [
    with("seccomp", "seccomp_bpf", &["-lcap"]),
    test("ptrace", "get_syscall_info"),
    test("ptrace", "get_set_sud"),
    test("ptrace", "peeksiginfo"),
    test("ptrace", "vmaccess"),
    test("perf_events", "mmap"),
    test("perf_events", "remove_on_exec"),
    test("perf_events", "sigtrap_threads"),
    test("perf_events", "watermark_signal"),
    test("breakpoints", "breakpoint_test"),
    test("syscall_user_dispatch", "sud_test"),
    test("x86", "single_step_syscall"),
    test("x86", "sigtrap_loop"),
    test("x86", "mov_ss_trap"),
    test("x86", "syscall_nt"),
    test("x86", "syscall_numbering"),
    test("x86", "corrupt_xstate_header"),
];

/// The names of the units.
pub fn units() -> impl Iterator<Item = String> {
    TESTS.iter().map(|test| format!("linux:{}", test.name))
}

/// Adds the tests that `units` names.
pub fn add(tree: &mut Tree, units: &[String]) -> Result<()> {
    let chosen: Vec<&SelfTest> =
        TESTS.iter().filter(|test| units.contains(&format!("linux:{}", test.name))).collect();
    if chosen.is_empty() {
        return Ok(());
    }
    let source = SelfTests::open()?;
    for test in chosen {
        let program = source.compile(test, Headers::Installed)?;
        let target = format!("usr/lib/alea/programs/linux:{}", test.name);
        tree.host_file(&target, 0o755, &program).with_context(|| test.name)?;
    }
    Ok(())
}
