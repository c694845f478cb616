//! The machines that run a suite's tests: what they print, kept as it comes, and another one for the rest when one stops.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use xtask_host::{paths, process};

use super::Suite;
use crate::outcomes::STATUS;
use crate::programs::MARK;

/// What one machine printed, line by line, and which test it began last.
#[derive(Default)]
struct Printed {
    output: String,
    last: Option<String>,
    all: bool,
}

/// All that the tests print on `kernel`, which is kept as it comes in `target/alea/NAME-KERNEL.txt`: an error if they were not all run,
/// unless they are listed. Then a test with which a machine stops is said to have ended so.
pub fn ran(suite: &Suite, root: &Path, kernel: &str, tests: &[String], smp: u32) -> Result<String> {
    // What is compiled first would count as the silence of a test.
    let mut build = process::cargo();
    build.args(["xtask", "build"]);
    process::run("building what the guests need", &mut build)?;
    let log = paths::alea().join(format!("{}-{kernel}.txt", suite.name));
    let mut kept = File::create(&log).with_context(|| paths::shown(&log))?;
    println!("running on {kernel}, to be read in {} ...", paths::shown(&log));
    let mut output = String::new();
    let mut rest = tests;
    loop {
        let mut command = process::cargo();
        command.args(["xtask", "run", "--root"]).arg(root);
        command.args(["--kernel", kernel, "--smp", &smp.to_string()]);
        command.args(["--", "/bin/sh", "-c", &suite.script("run.sh")?, "run"]).args(rest);
        let printed = boot(command, Duration::from_secs(suite.silence), &mut kept, rest)?;
        output += &printed.output;
        if printed.all {
            return Ok(output);
        }
        let at = rest.iter().position(|test| Some(test) == printed.last.as_ref());
        let Some(at) = at.filter(|_| suite.is_listed) else {
            bail!("{kernel} did not run all tests of {}: see {}", suite.name, paths::shown(&log));
        };
        println!("{kernel} stopped in {}", rest[at]);
        let stopped = format!("\n{STATUS}the machine stopped\n");
        kept.write_all(stopped.as_bytes())?;
        output += &stopped;
        rest = &rest[at + 1..];
        if rest.is_empty() {
            return Ok(output);
        }
    }
}

/// Runs the command until it ends or prints nothing for so long.
fn boot(command: Command, silence: Duration, kept: &mut File, tests: &[String]) -> Result<Printed> {
    // Whoever stops this program stops the machine, too.
    let mut command = process::bound(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().context("cannot start cargo")?;
    let lines = lines(child.stdout.take().context("no standard output")?);
    let mut printed = Printed::default();
    let mut begun = 0;
    while let Ok(line) = lines.recv_timeout(silence) {
        kept.write_all(line.as_bytes())?;
        printed.output.push_str(&line);
        match line.strip_prefix(MARK).map(str::trim_end) {
            Some("end") => printed.all = true,
            Some(test) => {
                begun += 1;
                if !tests.is_empty() {
                    println!("  {begun} of {}: {test}", tests.len());
                }
                printed.last = Some(test.to_owned());
            }
            None => {}
        }
    }
    if !printed.all {
        // It may have ended by itself.
        let _ = child.kill();
    }
    child.wait()?;
    Ok(printed)
}

/// The lines that come, with no carriage returns, until the end.
fn lines(from: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = sync_channel(64);
    std::thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).replace('\r', "") + "\n";
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
