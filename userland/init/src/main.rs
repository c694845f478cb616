//! Process 1 of a guest that runs one command (`cargo xtask run --root`).
//!
//! It gives files their extended attributes, mounts what Linux programs expect, asks the host over the virtio console what to do, starts that through itself
//! (`launch`), carries standard input, output and error, reaps whatever ends, kills what is left behind the command, sends what
//! the host wants to have, and says the exit status. Then the machine goes off.
//!
//! Owns the port; frames are written whole under its mutex.
#![forbid(unsafe_code)]

mod archive;
mod giving;
mod launch;
mod mounts;
mod network;
mod port;
mod relay;
mod users;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use alea_init::{FOLDER, Kind, PROGRAM, Task};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use rustix::system::{RebootCommand, reboot};

use crate::port::Port;

/// Exit status when the command could not even be looked for.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    if words.nth(1).as_deref() == Some(OsStr::new(launch::WORD)) {
        return launch::run(words);
    }
    if std::process::id() != 1 {
        eprintln!("alea-init: this is for process 1");
        return ExitCode::from(FAILED);
    }
    if let Err(error) = serve() {
        eprintln!("alea-init: {error}");
    }
    // It returns only when it fails, and then the kernel says why process 1 ended.
    let _ = reboot(RebootCommand::PowerOff);
    ExitCode::from(FAILED)
}

/// From the mounts to the exit status.
fn serve() -> io::Result<()> {
    // Before anything is mounted over a file.
    let missing = giving::give_all();
    mounts::mount_all();
    // A kernel without a network is none to give up for: a program that wants one says so better.
    let _ = network::bring_loopback_up();
    let (port, mut reader) = port::open()?;
    // The root is now as the user made it; this program lives on without a name.
    let _ = std::fs::remove_file(format!("/{PROGRAM}"));
    let _ = std::fs::remove_dir(format!("/{FOLDER}"));
    port.send(Kind::Hello, &[])?;
    if let Some(text) = missing {
        port.send(Kind::Note, text.as_bytes())?;
    }
    let task = match alea_init::receive(&mut reader)? {
        Some(frame) if frame.kind == Kind::Task => Task::decode(&frame.bytes)?,
        _ => return Err(io::Error::other("the host did not say what to do")),
    };
    let status = match run(&port, reader, &task) {
        Ok(status) => status,
        Err(error) => {
            port.send(Kind::Note, error.to_string().as_bytes())?;
            FAILED
        }
    };
    port.send(Kind::Exit, &[status])?;
    port.drain();
    Ok(())
}

/// The command, to its end and that of all it left behind; its exit status as a shell gives it.
fn run(port: &Port, reader: port::Reader, task: &Task) -> io::Result<u8> {
    let relay = relay::start(port, reader, task)?;
    port.send(Kind::Started, &[])?;
    let status = reap_until(Some(relay.command))?;
    // Nothing to kill is no error.
    let _ = kill_process_group(Pid::INIT, Signal::KILL);
    reap_until(None)?;
    relay.finish();
    for path in &task.out {
        let name = OsStr::from_bytes(path);
        if let Err(error) = archive::send(port, name.as_ref()) {
            let text = format!("{}: {error}", name.to_string_lossy());
            port.send(Kind::Note, text.as_bytes())?;
            return Ok(FAILED);
        }
    }
    Ok(status)
}

/// Waits for children until `command` has ended, or for all that there are.
fn reap_until(command: Option<Pid>) -> io::Result<u8> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == command => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                let status = status.exit_status().or(signal).unwrap_or(i32::from(FAILED));
                return Ok(u8::try_from(status).unwrap_or(FAILED));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) if command.is_none() => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    }
}
