//! What tasks do, as /proc/alea/trace tells it, which Linux does not have.

mod timeline;

use alea_tests::{Shell, alea};
use anyhow::{Result, ensure};
use std::time::Duration;
use xtask_guest::guest::{End, Guest, Limits};
use xtask_host::paths;

const SECONDS: Duration = Duration::from_secs(120);

fn session(cpus: u32) -> Result<()> {
    let machine = alea().smp(cpus).append("console=ttyS0 quiet");
    let mut shell = Shell::start(&machine)?;
    of_the_shell(&mut shell)?;
    of_others(&mut shell)?;
    tool(&mut shell)?;
    let end = shell.power_off()?;
    ensure!(end == End::Exited(0), "poweroff -f ended in {end:?}");
    Ok(())
}

/// A shell traces itself and reads its own records.
fn of_the_shell(shell: &mut Shell) -> Result<()> {
    let script = "exec 3<>/proc/alea/trace
        echo early; dd bs=64k count=1 <&3; echo size 9999999 >&3; echo points x >&3
        echo points calls,fork,exec,exit,fault,switch >&3; echo size 64 >&3; echo trace $$ >&3
        echo begun; cd /no/such/folder; umask 22
        echo points calls >&3; exec 4<>/proc/alea/trace; echo trace $$ >&4; echo trace $$ >&3
        echo read; dd bs=64k count=1 <&3 2> /dev/null | od -An -v -w8 -tx8 > /tmp/records";
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    for line in lines {
        shell.run(&format!("echo '{line}' >> /tmp/script"))?;
    }
    let text = shell.run("sh /tmp/script 2>&1; wc -l /tmp/records")?;
    ensure!(text.matches("nvalid argument").count() == 3, "before it begins:\n{text}");
    ensure!(text.matches("busy").count() == 2, "it has begun:\n{text}");
    // "/no/such", as a word.
    let found = shell.run("grep -c 686375732f6f6e2f /tmp/records")?;
    ensure!(found.contains("\n1"), "the path is not there:\n{text}{found}");
    Ok(())
}

/// Nobody but root sees all tasks, or those of others.
fn of_others(shell: &mut Shell) -> Result<()> {
    let line = "su -s /bin/sh nobody -c 'exec 3<>/proc/alea/trace; echo all >&3; echo trace 1 >&3; \
                echo trace $$ >&3 && echo own'";
    let text = shell.run(line)?;
    ensure!(
        text.matches("not permitted").count() == 2 && text.contains("\nown"),
        "rights:\n{text}"
    );
    Ok(())
}

/// alea-trace shows calls, counts them, follows children, and ends as the program does.
fn tool(shell: &mut Shell) -> Result<()> {
    let has = |text: &str, parts: &[&str]| -> Result<()> {
        parts.iter().try_for_each(|part| {
            ensure!(text.contains(part), "{part} is missing:\n{text}");
            Ok(())
        })
    };
    let text = shell.run("alea-trace sh -c 'cd /no/such; kill -USR1 $$'; echo status $?")?;
    let parts =
        ["execve(\"/bin/sh\", ", "chdir(\"/no/such\")", " = -1 ENOENT (No such file or directory)"];
    has(&text, &parts)?;
    has(&text, &["kill(", ", SIGUSR1)", "+++ killed by SIGUSR1 +++", "status 138"])?;
    ensure!(!text.contains("[pid") && !text.contains("read(4"), "only the program:\n{text}");
    let text = shell
        .run("alea-trace -f -T -e execve,wait4,openat sh -c '/bin/true; exit 3'; echo status $?")?;
    has(
        &text,
        &["[pid", "execve(\"/bin/true\"", "WEXITSTATUS(s) == 0", "exited with 3", "status 3"],
    )?;
    ensure!(!text.contains("brk("), "filtered:\n{text}");
    let text = shell
        .run("alea-trace -c -f -o /tmp/counts sh -c '/bin/true; /bin/true' && cat /tmp/counts")?;
    ensure!(
        text.lines()
            .any(|line| line.contains(" execve") && line.split_whitespace().nth(3) == Some("3")),
        "three execs:\n{text}"
    );
    let text = shell
        .run("alea-trace /no/such; echo status $?; alea-trace -e nocall true; echo status $?")?;
    has(&text, &["status 127", "refuses `calls nocall", "status 126"])?;
    // A call that goes on is shown.
    let text = shell.run("alea-trace -e nanosleep,clock_nanosleep sleep 1")?;
    has(&text, &["<unfinished ...>", "nanosleep resumed>"])?;
    // Too many for a small ring: what is lost is said, and nothing hangs.
    let text = shell.run("alea-trace -c -f -b 8 -o /tmp/lost sh -c 'for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=1 \
                          count=20000 2> /dev/null; done'; tail -n 1 /tmp/lost")?;
    ensure!(text.contains("were lost") || text.contains("total"), "lost:\n{text}");
    Ok(())
}

/// The worst that users of it can do: userland/trace/trace_attack.c.
#[test]
fn attacks_find_nothing() {
    for cpus in [1, 2] {
        let machine = alea()
            .smp(cpus)
            .initrd(paths::programs_initramfs())
            .append("console=ttyS0 quiet rdinit=/usr/lib/alea/trace_attack");
        let outcome = Guest::start(&machine).unwrap().finish(Limits::total(SECONDS)).unwrap();
        assert!(outcome.output.contains("trace_attack: all"), "{cpus} CPUs:\n{}", outcome.output);
    }
}

/// What a traced getpid costs: at most three times what it costs alone, in instructions.
#[test]
fn a_traced_call_is_cheap() {
    let machine = alea()
        .icount(true)
        .initrd(paths::programs_initramfs())
        .append("console=ttyS0 quiet rdinit=/usr/lib/alea/trace_cost");
    let outcome = Guest::start(&machine).unwrap().finish(Limits::total(SECONDS)).unwrap();
    let line = outcome.output.lines().find_map(|line| line.split_once("trace_cost "));
    let numbers = line.map(|(_, numbers)| numbers.split_whitespace().map(str::parse));
    let numbers: Vec<f64> = numbers.unwrap().collect::<Result<_, _>>().unwrap();
    assert!(numbers[1] <= 3.0 * numbers[0], "traced: {numbers:?}");
    // On one CPU, with the records read meanwhile.
    assert!(numbers[2] <= 4.5 * numbers[0], "read: {numbers:?}");
}

#[test]
fn records_tell_of_calls() {
    session(1).unwrap();
}

#[test]
fn records_tell_of_calls_on_two_cpus() {
    session(2).unwrap();
}
