//! Starts the command and carries its standard input, output and error: through pipes, or through a terminal of its own.
//!
//! A thread for each direction, and one that listens to the host. The outputs' threads end when nobody holds the other
//! end of their pipe or terminal any more, the others with the machine.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use alea_init::{Kind, PIECE, Task};
use rustix::fs::OFlags;
use rustix::process::Pid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::port::{Port, Reader};
use crate::{launch, users};

/// Where programs are looked for when nobody says.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A command that runs.
pub struct Relay {
    pub command: Pid,
    outputs: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Waits until all that was printed has been sent. When nobody is left who could print.
    pub fn finish(self) {
        for output in self.outputs {
            // It has said itself what went wrong, if anything did.
            let _ = output.join();
        }
    }
}

/// Starts the task's command.
pub fn start(port: &Port, reader: Reader, task: &Task) -> io::Result<Relay> {
    let mut command = command(task)?;
    if let Some(size) = task.terminal {
        return on_terminal(command, port, reader, size);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let command = pid(&child)?;
    let stdin = child.stdin.take().map(OwnedFd::from).map(File::from);
    feed(port, reader, stdin, None);
    let mut outputs = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        outputs.push(carry(port, Kind::Output, stdout));
    }
    if let Some(stderr) = child.stderr.take() {
        outputs.push(carry(port, Kind::Error, stderr));
    }
    Ok(Relay { command, outputs })
}

fn on_terminal(
    mut command: Command,
    port: &Port,
    reader: Reader,
    (rows, columns): (u16, u16),
) -> io::Result<Relay> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    resize(&master, rows, columns);
    let name = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(&*name, flags, rustix::fs::Mode::empty())?;
    command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
    let child = command.spawn()?;
    // It holds the terminal open, which would never end.
    drop(command);
    let keyboard = File::from(master.try_clone()?);
    let window = master.try_clone()?;
    feed(port, reader, Some(keyboard), Some(window));
    let outputs = vec![carry(port, Kind::Output, File::from(master))];
    Ok(Relay { command: pid(&child)?, outputs })
}

fn pid(child: &std::process::Child) -> io::Result<Pid> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("a bad process number"))
}

/// The step that becomes the command, with the environment that it has.
fn command(task: &Task) -> io::Result<Command> {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let user = String::from_utf8_lossy(task.user.as_deref().unwrap_or(b"root")).into_owned();
    let identity = users::find(&user, &read("/etc/passwd"), &read("/etc/group"))?;
    let workdir = OsString::from_vec(task.workdir.clone().unwrap_or_else(|| b"/".to_vec()));
    let mut command = Command::new("/proc/self/exe");
    command.args(launch::words(&identity, task.terminal.is_some(), workdir));
    command.args(task.args.iter().map(|word| OsStr::from_bytes(word)));
    command.env_clear().env("PATH", PATH).env("HOME", &identity.home);
    command.env("USER", &identity.name).env("LOGNAME", &identity.name);
    for pair in &task.env {
        let at = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
        let value = pair.get(at + 1..).unwrap_or_default();
        command.env(OsStr::from_bytes(&pair[..at]), OsStr::from_bytes(value));
    }
    Ok(command)
}

/// Listens to the host until the machine goes off. Input is for a thread of its own: whoever waits for the command to read must
/// not keep credit from those who print.
fn feed(port: &Port, mut reader: Reader, stdin: Option<File>, window: Option<OwnedFd>) {
    let (to_input, input) = channel();
    let (listener, typist) = (port.clone(), port.clone());
    let is_terminal = window.is_some();
    std::thread::spawn(move || type_in(&typist, &input, stdin, is_terminal));
    std::thread::spawn(move || {
        while let Ok(Some(frame)) = alea_init::receive(&mut reader) {
            match (frame.kind, &frame.bytes[..]) {
                (Kind::Credit, _) => listener.credit(frame.credit()),
                (Kind::Input, _) => drop(to_input.send(frame.bytes)),
                (Kind::Window, &[r0, r1, c0, c1]) => {
                    if let Some(window) = &window {
                        let [rows, columns] = [[r0, r1], [c0, c1]].map(u16::from_le_bytes);
                        resize(window, rows, columns);
                    }
                }
                _ => {}
            }
        }
    });
}

/// Writes what the host has sent to the command, and gives the host credit for it, whether the command reads it or not.
fn type_in(port: &Port, input: &Receiver<Vec<u8>>, mut stdin: Option<File>, is_terminal: bool) {
    for bytes in input {
        if bytes.is_empty() {
            // A terminal has no end of input but the key for it.
            stdin = stdin.filter(|_| is_terminal);
            continue;
        }
        if let Some(file) = &mut stdin
            && file.write_all(&bytes).is_err()
        {
            // Nobody reads any more.
            stdin = None;
        }
        // Below the input's window.
        let used = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if port.send(Kind::Credit, &used.to_le_bytes()).is_err() {
            return;
        }
    }
}

fn resize(terminal: &OwnedFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // A terminal of another size is no reason to stop.
    let _ = tcsetwinsize(terminal, size);
}

/// All that `from` gives, to the host.
fn carry(port: &Port, kind: Kind, mut from: impl Read + Send + 'static) -> JoinHandle<()> {
    let port = port.clone();
    std::thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        // A terminal that everybody has left ends with an error.
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if let Err(error) = port.send(kind, &buffer[..length]) {
                eprintln!("alea-init: {error}");
                return;
            }
        }
    })
}
