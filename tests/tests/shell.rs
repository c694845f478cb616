//! A session typed at the serial console, as a person would: commands, pipes, editing, full-screen
//! programs, job control, power-off. Linux must pass the same session: that checks the script.

use std::time::Duration;

use alea_tests::{Shell, alea};
use anyhow::{Result, ensure};
use xtask::guest::End;
use xtask::paths;
use xtask::qemu::Machine;

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
    let linux = Machine::new(paths::vmlinuz()).initrd(paths::tests_initramfs());
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
    shell.wait_for(alea_tests::PROMPT)?;
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

/// Gives a command the time to start: keys typed before belong to the shell's line editor.
fn settle() {
    std::thread::sleep(Duration::from_millis(500));
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
    expect(shell, "stty rows 30 columns 100; stty size", &["30 100"])?;
    expect(shell, "stty -a", &["speed", "rows 30; columns 100", "intr = ^C", " icanon", " echo"])
}

fn editing(shell: &mut Shell) -> Result<()> {
    // Erased by the shell's own editor, then by the terminal's canonical mode.
    shell.keys("echo onf\x7fe\n")?;
    shell.wait_for("one\n")?;
    shell.keys("cat\n")?;
    shell.wait_for("cat\n")?;
    settle();
    shell.keys("canonical lime\x7f\x7fne\n")?;
    shell.wait_for("canonical line\n")?;
    shell.keys(CTRL_D)?;
    shell.wait_for(alea_tests::PROMPT)
}

fn full_screen(shell: &mut Shell) -> Result<()> {
    shell.keys("vi /tmp/text\n")?;
    shell.wait_for("/tmp/text")?;
    // The end of the screen: Linux's serial driver may stall when keys arrive while it still sends.
    shell.wait_for("1/1 100%")?;
    shell.keys("ityped in vi")?;
    shell.wait_for("in vi")?;
    shell.keys(ESCAPE)?;
    // Or the escape and what follows are taken for one function key.
    settle();
    shell.keys(":wq\n")?;
    shell.wait_for(alea_tests::PROMPT)?;
    expect(shell, "cat /tmp/text", &["typed in vi"])?;
    shell.keys("vi /tmp/text\n")?;
    shell.wait_for("typed in vi")?;
    shell.keys(":q!\n")?;
    shell.wait_for(alea_tests::PROMPT)?;
    shell.keys("top -d 1\n")?;
    shell.wait_for("Mem:")?;
    shell.wait_for("Mem:")?;
    shell.keys("q")?;
    shell.wait_for(alea_tests::PROMPT)?;
    shell.keys("seq 1 100 | less\n")?;
    shell.wait_for("10")?;
    shell.keys("q")?;
    shell.wait_for(alea_tests::PROMPT)
}

fn interrupts(shell: &mut Shell) -> Result<()> {
    for line in
        ["sleep 100", "cat", "while :; do :; done", "sh -c 'sleep 100 | cat'", "yes > /dev/null"]
    {
        shell.keys(&format!("{line}; echo not reached\n"))?;
        shell.wait_for("reached\n")?;
        settle();
        shell.keys(CTRL_C)?;
        shell.wait_for(alea_tests::PROMPT)?;
        ensure!(shell.status()? == "130", "{line:?} was interrupted with another status");
    }
    Ok(())
}

fn jobs(shell: &mut Shell) -> Result<()> {
    expect(shell, "sleep 100 &", &[])?;
    expect(shell, "jobs", &["[1]+", "Running", "sleep 100"])?;
    expect(shell, "kill %1; wait %1; echo \"$?!\"", &["143!"])?;
    shell.keys("sleep 200\n")?;
    shell.wait_for("sleep 200\n")?;
    settle();
    shell.keys(CTRL_Z)?;
    shell.wait_for("Stopped")?;
    shell.wait_for(alea_tests::PROMPT)?;
    expect(shell, "bg", &["sleep 200"])?;
    expect(shell, "jobs", &["Running"])?;
    shell.keys("fg\n")?;
    shell.wait_for("sleep 200\n")?;
    settle();
    shell.keys(CTRL_C)?;
    shell.wait_for(alea_tests::PROMPT)?;
    // A background reader of the terminal stops.
    shell.keys("cat &\n")?;
    shell.wait_for(alea_tests::PROMPT)?;
    settle();
    expect(shell, "jobs", &["Stopped"])?;
    expect(shell, "kill -9 %1; wait; jobs", &[])
}
