//! One test for each program of `tests/abi`: on Alea it prints what Linux printed, but for the
//! differences that `xfail.toml` knows. All chosen programs run in one boot.

use std::collections::BTreeMap;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use xtask_check::abi::{self, Known};
use xtask_guest::qemu::Machine;
use xtask_host::paths;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let names = abi::programs().expect("tests/abi is there");
    let known = Known::load().expect("xfail.toml is good");
    let stray = known.names().find(|name| !names.iter().any(|program| program == name));
    assert!(stray.is_none(), "xfail.toml names a program that is not there: {stray:?}");
    let chosen: Vec<String> = names.into_iter().filter(|name| chosen(&arguments, name)).collect();
    let mut results = BTreeMap::new();
    if !arguments.list && !chosen.is_empty() {
        let files = [paths::kernel(), paths::tests_initramfs()];
        let machine = Machine::new(paths::kernel());
        let ran = paths::require(&files)
            .and_then(|()| abi::run_on(&machine, &paths::kernel(), &chosen))
            .unwrap_or_else(|error| {
                eprintln!("{error:#}");
                BTreeMap::new()
            });
        for name in &chosen {
            let got = ran.get(name).map_or("--- did not run\n", String::as_str);
            let verdict = abi::expected(name).map_err(|error| format!("{error:#}"));
            results.insert(name.clone(), verdict.and_then(|want| known.judge(name, got, &want)));
        }
    }
    let trials = chosen.into_iter().map(|name| {
        let result = results.remove(&name).unwrap_or(Ok(0));
        Trial::test(name, move || result.map(drop).map_err(Failed::from))
    });
    let trials = trials.collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// What the harness itself would choose: nothing else need run in the guest.
fn chosen(arguments: &Arguments, name: &str) -> bool {
    let matches = |pattern: &String| {
        if arguments.exact { name == pattern } else { name.contains(pattern.as_str()) }
    };
    arguments.filter.as_ref().is_none_or(matches) && !arguments.skip.iter().any(matches)
}
