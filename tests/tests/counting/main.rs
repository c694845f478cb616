//! System calls that are counted: /proc/alea/syscalls and /proc/PID/alea/syscalls, which Linux does not have.

use alea_tests::{Shell, alea};
use anyhow::{Context as _, Result, ensure};
use xtask_guest::guest::End;

/// The counts of `name` in lines of `name calls errors ns`.
fn counted(text: &str, name: &str) -> Option<[u64; 3]> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(name))?;
    let numbers: Vec<u64> =
        line.split(' ').skip(1).filter_map(|word| word.trim().parse().ok()).collect();
    numbers.get(..3)?.try_into().ok()
}

/// The same in lines of `number name count calls errors ns missing`.
fn counted_of_all(text: &str, name: &str) -> Option<[u64; 3]> {
    let line = text.lines().find(|line| line.split(' ').nth(1) == Some(name))?;
    let numbers: Vec<u64> =
        line.split(' ').skip(3).take(3).filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().ok()
}

fn session(cpus: u32) -> Result<()> {
    let machine = alea().smp(cpus).append("console=ttyS0 quiet");
    let mut shell = Shell::start(&machine)?;
    of_a_process(&mut shell)?;
    of_all(&mut shell)?;
    of_others(&mut shell)?;
    let end = shell.power_off()?;
    ensure!(end == End::Exited(0), "poweroff -f ended in {end:?}");
    Ok(())
}

fn of_a_process(shell: &mut Shell) -> Result<()> {
    let off = shell
        .run("cat /proc/$$/alea/syscalls | wc -c; ls /proc/$$/alea /proc/$$/task/$$/alea 2>&1")?;
    ensure!(off.contains("\n0") && off.contains("syscalls"), "off at first:\n{off}");
    ensure!(off.contains("No such file"), "threads have no such folder:\n{off}");
    shell.run("echo 1 > /proc/$$/alea/syscalls")?;
    shell.run("cd /root; cd /no/such/folder; cd /no/such; umask 22; umask 22")?;
    let text = shell.run("cat /proc/$$/alea/syscalls")?;
    let [calls, errors, ns] =
        counted(&text, "chdir").with_context(|| format!("no chdir:\n{text}"))?;
    ensure!((calls, errors) == (3, 2) && ns > 0, "chdir {calls} {errors} {ns}:\n{text}");
    ensure!(
        counted(&text, "umask").is_some_and(|[calls, errors, _]| calls >= 2 && errors == 0),
        "{text}"
    );
    // A child is another process.
    ensure!(counted(&text, "execve").is_none(), "a child was counted:\n{text}");
    shell.run("echo 0 > /proc/$$/alea/syscalls; cd /root; cd /root; cd /root")?;
    let text = shell.run("cat /proc/$$/alea/syscalls")?;
    ensure!(counted(&text, "chdir").is_some_and(|[calls, ..]| calls == 3), "it is off:\n{text}");
    shell.run("echo 1 > /proc/$$/alea/syscalls")?;
    let text = shell.run("cat /proc/$$/alea/syscalls")?;
    ensure!(counted(&text, "chdir").is_none(), "from nothing:\n{text}");
    shell.run("echo 0 > /proc/$$/alea/syscalls")?;
    Ok(())
}

fn of_all(shell: &mut Shell) -> Result<()> {
    let text = shell.run("cat /proc/alea/syscalls")?;
    ensure!(counted_of_all(&text, "execve") == Some([0, 0, 0]), "off at first:\n{text}");
    shell.run(
        "echo 1 > /proc/alea/syscalls; /bin/true; /bin/true; sh -c 'exec /etc' 2> /dev/null",
    )?;
    let text = shell.run("cat /proc/alea/syscalls")?;
    let [calls, errors, ns] = counted_of_all(&text, "execve").with_context(|| text.clone())?;
    ensure!(calls >= 3 && errors >= 1 && ns > 0, "execve {calls} {errors} {ns}:\n{text}");
    // The end of a process is a call that does not return.
    ensure!(counted_of_all(&text, "exit_group").is_some_and(|[calls, ..]| calls >= 2), "{text}");
    shell.run("echo 0 > /proc/alea/syscalls; /bin/true; /bin/true")?;
    shell.run("/bin/true")?;
    let text = shell.run("cat /proc/alea/syscalls")?;
    let after = counted_of_all(&text, "execve").with_context(|| text.clone())?;
    shell.run("/bin/true; /bin/true")?;
    let text = shell.run("cat /proc/alea/syscalls")?;
    ensure!(counted_of_all(&text, "execve") == Some(after), "it is off:\n{text}");
    let bad = shell.run("echo 2 > /proc/alea/syscalls; echo > /proc/$$/alea/syscalls")?;
    ensure!(bad.matches("nvalid argument").count() == 2, "bad values:\n{bad}");
    Ok(())
}

/// Who may not look into a process, may not count it, either; and nobody but root counts all.
fn of_others(shell: &mut Shell) -> Result<()> {
    let line = "su -s /bin/sh nobody -c 'cat /proc/1/alea/syscalls; echo 1 > /proc/1/alea/syscalls; \
                echo 1 > /proc/alea/syscalls; echo 1 > /proc/self/alea/syscalls && echo own'";
    let text = shell.run(line)?;
    ensure!(
        text.matches("ermission denied").count() == 3 && text.contains("\nown"),
        "rights:\n{text}"
    );
    Ok(())
}

#[test]
fn calls_are_counted() {
    session(1).unwrap();
}

#[test]
fn calls_are_counted_on_two_cpus() {
    session(2).unwrap();
}
