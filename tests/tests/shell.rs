//! A session typed at the serial console, as a person would: commands, pipes, editing, full-screen
//! programs, job control, power-off. Linux must pass the same session: that checks the script.

use std::time::Instant;

use alea_tests::{PATIENCE, Shell, Terminal, alea};
use anyhow::{Result, ensure};
use xtask_guest::guest::End;
use xtask_guest::qemu::Machine;
use xtask_host::paths;

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";
const ESCAPE: &str = "\x1b";

#[test]
fn a_session_on_alea() {
    check(session(&alea().append("console=ttyS0 quiet")));
}

#[test]
fn a_session_on_linux() {
    let linux = Machine::new(paths::vmlinuz()).initrd(paths::programs_initramfs());
    check(session(&linux.append("console=ttyS0 quiet loglevel=1")));
}

/// Fails with the error and its causes, without the library's backtrace.
fn check(result: Result<()>) {
    if let Err(error) = result {
        panic!("{error:#}");
    }
}

fn session(machine: &Machine) -> Result<()> {
    let mut shell = Shell::start(machine)?;
    commands(&mut shell)?;
    editing(&mut shell)?;
    full_screen(&mut shell)?;
    interrupts(&mut shell)?;
    jobs(&mut shell)?;
    shell.keys("exit\n")?;
    shell.wait_for_prompt()?;
    let end = shell.power_off()?;
    ensure!(end == End::Exited(0), "poweroff -f ended in {end:?}");
    Ok(())
}

/// Runs a line; each of `wanted` must be in what it printed after its own echo.
fn expect(shell: &mut Shell, line: &str, wanted: &[&str]) -> Result<()> {
    let text = shell.run(line)?;
    let printed = text.split_once('\n').map_or("", |(_, rest)| rest);
    for want in wanted {
        ensure!(printed.contains(want), "{line:?} did not print {want:?}:\n{text}");
    }
    Ok(())
}

fn commands(shell: &mut Shell) -> Result<()> {
    expect(shell, "ls -l /", &["bin", "proc", "tmp"])?;
    expect(shell, "cat /proc/cpuinfo | head", &["processor\t: 0", "vendor_id"])?;
    expect(shell, "ps", &["PID", "init", "ps"])?;
    expect(shell, "top -b -n1", &["Mem:", "CPU:", "init"])?;
    expect(shell, "top -n1", &["Mem:", "CPU:"])?;
    expect(
        shell,
        "hexdump -C /dev/urandom | head -3",
        &["00000000  ", "00000010  ", "00000020  "],
    )?;
    expect(shell, "echo abc | tr a-c x-z", &["xyz"])?;
    expect(shell, "seq 1 1000 | sort -rn | head -1 | sed s/1/one/", &["one000"])?;
    expect(shell, "tty", &["/dev/ttyS0"])?;
    expect(shell, "dmesg | head -5 | wc -l", &["5"])?;
    expect(shell, "for i in 1 2 3; do echo -n $i-; done; echo", &["1-2-3-"])?;
    expect(shell, "mkdir -p /tmp/a/b && touch /tmp/a/b/c && find /tmp/a", &["/tmp/a/b/c"])?;
    expect(shell, "rm -r /tmp/a; ls /tmp/a", &["No such file"])?;
    expect(shell, "cat /no/such/file", &["No such file"])?;
    expect(shell, "no-such-command", &["not found"])?;
    ensure!(shell.status()? == "127", "the status of a command that is not there");
    expect(shell, "(exit 42); echo \"$?!\"", &["42!"])?;
    expect(shell, "sh -c 'kill -SEGV $$'", &["Segmentation fault"])?;
    shell.resize(30, 100)?;
    expect(shell, "stty size", &["30 100"])?;
    expect(shell, "stty -a", &["speed", "rows 30; columns 100", "intr = ^C", " icanon", " echo"])
}

fn editing(shell: &mut Shell) -> Result<()> {
    // Erased by the shell's own editor, then by the terminal's canonical mode.
    shell.keys("echo onf\x7fe\n")?;
    shell.wait_until("one", |terminal| terminal.has_row("one"))?;
    shell.wait_for_prompt()?;
    shell.start_program("cat", "cat")?;
    shell.keys("canonical lime\x7f\x7fne\n")?;
    shell.wait_until("the line twice", |terminal| {
        terminal.rows().windows(2).any(|two| two == ["canonical line", "canonical line"])
    })?;
    shell.keys(CTRL_D)?;
    shell.wait_for_prompt()
}

fn full_screen(shell: &mut Shell) -> Result<()> {
    // In each the screen must be whole before a key is typed.
    shell.keys("vi /tmp/text\n")?;
    shell.wait_until("vi's empty screen", |terminal| {
        terminal.cursor() == (0, 0) && terminal.last_row() == "- /tmp/text 1/1 100%"
    })?;
    shell.keys("ityped in vi")?;
    shell.wait_until("the text", |terminal| {
        terminal.row(0) == "typed in vi" && terminal.cursor() == (0, 11)
    })?;
    shell.keys(ESCAPE)?;
    // Or the escape and what follows are taken for one function key.
    shell.wait_until("the end of inserting", |terminal| {
        terminal.cursor() == (0, 10) && terminal.last_row().starts_with("- /tmp/text")
    })?;
    shell.keys(":wq\n")?;
    shell.wait_for_prompt()?;
    expect(shell, "cat /tmp/text", &["typed in vi"])?;
    shell.wipe();
    shell.keys("vi /tmp/text\n")?;
    shell.wait_until("vi with the text", |terminal| {
        terminal.cursor() == (0, 0)
            && terminal.row(0) == "typed in vi"
            && terminal.last_row() == "- /tmp/text 1/1 100%"
    })?;
    shell.keys(":q!\n")?;
    shell.wait_for_prompt()?;
    shell.keys("top -d 1\n")?;
    let top = |terminal: &Terminal| terminal.row(0).starts_with("Mem:");
    shell.wait_until("top", top)?;
    shell.wipe();
    shell.wait_until("top's second look", top)?;
    shell.keys("q")?;
    shell.wait_for_prompt()?;
    shell.keys("seq 1 100 | less\n")?;
    shell.wait_until("a page", |terminal| {
        terminal.row(0) == "1"
            && terminal.row(28) == "29"
            && terminal.before_cursor() == "standard input"
    })?;
    shell.keys("q")?;
    shell.wait_for_prompt()
}

fn interrupts(shell: &mut Shell) -> Result<()> {
    for (line, name) in [("sleep 100", "sleep"), ("cat", "cat"), ("sh -c 'sleep 100 | cat'", "cat")]
    {
        shell.start_program(&format!("{line}; echo not reached"), name)?;
        interrupt(shell, line)?;
    }
    // What never sleeps has to say itself that it is there.
    for line in
        ["echo here we are; while :; do :; done", "sh -c 'echo here we are; exec yes > /dev/null'"]
    {
        shell.wipe();
        shell.keys(&format!("{line}; echo not reached\n"))?;
        shell.wait_until("the start", |terminal| {
            terminal.last_line().as_deref() == Some("here we are")
        })?;
        interrupt(shell, line)?;
    }
    Ok(())
}

fn interrupt(shell: &mut Shell, line: &str) -> Result<()> {
    shell.keys(CTRL_C)?;
    shell.wait_for_prompt()?;
    ensure!(!shell.terminal().has_row("not reached"), "{line:?} only stopped");
    ensure!(shell.status()? == "130", "{line:?} was interrupted with another status");
    Ok(())
}

fn jobs(shell: &mut Shell) -> Result<()> {
    expect(shell, "sleep 100 &", &[])?;
    expect(shell, "jobs", &["[1]+", "Running", "sleep 100"])?;
    expect(shell, "kill %1; wait %1; echo \"$?!\"", &["143!"])?;
    shell.start_program("sleep 200", "sleep")?;
    shell.keys(CTRL_Z)?;
    shell.wait_for_prompt()?;
    expect(shell, "jobs", &["[1]+", "Stopped", "sleep 200"])?;
    expect(shell, "bg", &["sleep 200"])?;
    expect(shell, "jobs", &["Running"])?;
    shell.start_program("fg", "sleep")?;
    ensure!(shell.terminal().has_row("sleep 200"), "fg does not say what comes to the front");
    shell.keys(CTRL_C)?;
    shell.wait_for_prompt()?;
    // A background reader of the terminal stops. The shell tells so at a prompt.
    shell.wipe();
    expect(shell, "cat &", &[])?;
    let deadline = Instant::now() + PATIENCE;
    while !shell.run("jobs")?.contains("Stopped") {
        ensure!(Instant::now() < deadline, "a background reader of the terminal runs on");
    }
    expect(shell, "kill -9 %1; wait; jobs", &[])
}
