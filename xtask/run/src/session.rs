//! One boot: the machine with its port, what comes through it, and the exit status.
//!
//! QEMU is this thread's; a thread of its own reads the port, and the events of it, of signals and of the keyboard come by one
//! queue. The guest's serial line has only the kernel's log, which is shown if the kernel or the machine fails.

use std::io::{ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use alea_init::{Frame, Kind, Task};
use anyhow::{Context, Result};
use xtask_guest::guest::{End, Guest, Limits, Outcome};
use xtask_guest::qemu::Machine;
use xtask_guest::symbolize;
use xtask_host::term;

use crate::out::Outs;
use crate::streams::{self, ToGuest};
use crate::{FAILED, LEFT, TIMED_OUT};

/// How often to look whether QEMU still runs, when nothing comes.
const LOOK: Duration = Duration::from_millis(50);

/// How long process 1 of the guest may take until it speaks, on a machine with much else to do.
const BOOT: Duration = Duration::from_secs(180);

/// 128 + SIGPIPE.
const CLOSED_PIPE: u8 = 141;

/// What happens in a session.
pub enum Event {
    /// The guest's port is open.
    Connected(UnixStream),
    Frame(Frame),
    /// The port is closed, or what came from it was no frame.
    Closed(Option<std::io::Error>),
    Signal(i32),
    Resized,
    /// The user typed Ctrl-A x.
    Left,
}

/// All that a boot needs.
pub struct Session {
    pub machine: Machine,
    pub kernel: PathBuf,
    pub task: Task,
    /// Standard input and output are a terminal, and the command gets one.
    pub terminal: bool,
    pub limit: Option<Duration>,
    pub timing: bool,
    /// Where what the task wants brought back goes to.
    pub outs: Vec<PathBuf>,
}

/// What a frame or another event means for the loop.
enum Next {
    GoOn,
    /// The exit status, and the guest is of no more use.
    Stop(u8),
    /// QEMU ends by itself.
    Ends,
}

impl Session {
    /// Boots, and returns the exit status for this program.
    pub fn run(self) -> Result<u8> {
        // First: a signal leaves nothing behind from here on.
        let (sender, events) = sync_channel(16);
        streams::watch_signals(sender.clone())?;
        let folder = tempfile::Builder::new().prefix("alea-run-").tempdir()?;
        let socket = folder.path().join("port");
        let listener = UnixListener::bind(&socket)?;
        let machine = self.machine.clone().args([
            "-device".to_owned(),
            "virtio-serial-pci".to_owned(),
            "-chardev".to_owned(),
            format!("socket,id=port,path={}", socket.display()),
            "-device".to_owned(),
            "virtserialport,chardev=port".to_owned(),
        ]);
        let raw = if self.terminal { Some(term::RawMode::enter()?) } else { None };
        let guest = Guest::start(&machine)?;
        let port = sender.clone();
        std::thread::spawn(move || listen(&listener, &port));
        let outs = Outs::new(self.outs.clone());
        let started = guest.started();
        let mut running = Running {
            session: &self,
            guest: Some(guest),
            sender,
            to_guest: None,
            outs,
            started,
            spoke: false,
            notes: Vec::new(),
        };
        let end = running.events(&events);
        let guest = running.guest.take();
        let (notes, spoke) = (std::mem::take(&mut running.notes), running.spoke);
        let result = match end {
            Ok(Next::Stop(status)) => Ok((status, None)),
            Ok(_) => match guest {
                Some(guest) => finish(guest, self.limit).map(|outcome| (FAILED, Some(outcome))),
                None => Ok((FAILED, None)),
            },
            Err(error) => Err(error),
        };
        // Messages are for a terminal in its usual state.
        drop(raw);
        for note in notes {
            eprintln!("alea: {note}");
        }
        let (status, outcome) = result?;
        Ok(outcome.map_or(status, |outcome| explain(&outcome, &self.kernel, spoke, self.limit)))
    }
}

struct Running<'a> {
    session: &'a Session,
    guest: Option<Guest>,
    sender: SyncSender<Event>,
    to_guest: Option<ToGuest>,
    outs: Outs,
    started: Instant,
    spoke: bool,
    notes: Vec<String>,
}

impl Running<'_> {
    fn events(&mut self, events: &Receiver<Event>) -> Result<Next> {
        loop {
            match events.recv_timeout(LOOK) {
                Ok(event) => match self.event(event)? {
                    Next::GoOn => {}
                    end => return Ok(end),
                },
                Err(RecvTimeoutError::Timeout) => {
                    let standing = self.session.machine.debug;
                    let late = !self.spoke && !standing && self.started.elapsed() > BOOT;
                    // QEMU's end closes the port, behind all that has come through it.
                    if late || (self.to_guest.is_none() && self.has_ended()?) {
                        return Ok(Next::Ends);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(Next::Ends),
            }
            if self.session.limit.is_some_and(|limit| self.started.elapsed() > limit) {
                return Ok(Next::Ends);
            }
        }
    }

    fn has_ended(&mut self) -> Result<bool> {
        let Some(mut guest) = self.guest.take() else { return Ok(true) };
        // A guest that has ended says so again when it is finished.
        let ended = guest.poll_end(Limits::NONE, Duration::ZERO)?.is_some();
        self.guest = Some(guest);
        Ok(ended)
    }

    fn event(&mut self, event: Event) -> Result<Next> {
        match event {
            Event::Connected(stream) => self.to_guest = Some(ToGuest::new(stream)),
            Event::Frame(frame) => {
                let next = self.frame(&frame)?;
                let cost = u32::try_from(frame.cost()).unwrap_or(0);
                if let (Some(to), 1..) = (&self.to_guest, cost) {
                    // A guest that is gone is noticed by the end of what it sends.
                    let _ = to.send(Kind::Credit, &cost.to_le_bytes());
                }
                return Ok(next);
            }
            Event::Closed(None) => return Ok(Next::Ends),
            Event::Closed(Some(error)) => {
                self.notes.push(format!("what the guest sent cannot be read: {error}"));
                return Ok(Next::Stop(FAILED));
            }
            Event::Signal(signal) => {
                return Ok(Next::Stop(u8::try_from(128 + signal).unwrap_or(FAILED)));
            }
            Event::Resized => {
                if let (Some(to), true) = (&self.to_guest, self.session.terminal) {
                    streams::resize(to);
                }
            }
            Event::Left => {
                self.notes.push("left: the guest was stopped".to_owned());
                return Ok(Next::Stop(LEFT));
            }
        }
        Ok(Next::GoOn)
    }

    fn frame(&mut self, frame: &Frame) -> Result<Next> {
        match frame.kind {
            Kind::Hello => {
                self.spoke = true;
                if let Some(to) = &self.to_guest {
                    to.send(Kind::Task, &self.session.task.encode())?;
                    streams::feed(to.clone(), self.session.terminal, self.sender.clone());
                }
            }
            Kind::Credit => {
                if let Some(to) = &self.to_guest {
                    to.credit(frame.credit());
                }
            }
            Kind::Started => {
                if self.session.timing {
                    let elapsed = self.started.elapsed().as_millis();
                    self.notes.push(format!("the command ran {elapsed} ms after QEMU's start"));
                }
            }
            Kind::Output => return print(std::io::stdout(), &frame.bytes),
            Kind::Error => return print(std::io::stderr(), &frame.bytes),
            Kind::Archive => self.outs.piece(&frame.bytes)?,
            Kind::Digest => self.outs.end(&frame.bytes)?,
            Kind::Note => self.notes.push(String::from_utf8_lossy(&frame.bytes).into_owned()),
            Kind::Exit => return Ok(Next::Stop(*frame.bytes.first().unwrap_or(&FAILED))),
            Kind::Task | Kind::Input | Kind::Window => {
                self.notes.push("the guest said what only the host may say".to_owned());
                return Ok(Next::Stop(FAILED));
            }
        }
        Ok(Next::GoOn)
    }
}

/// Prints what the command printed. Where nobody reads any more, there is nothing left to run for.
fn print(mut to: impl Write, bytes: &[u8]) -> Result<Next> {
    match to.write_all(bytes).and_then(|()| to.flush()) {
        Ok(()) => Ok(Next::GoOn),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Next::Stop(CLOSED_PIPE)),
        Err(error) => Err(error).context("cannot print what the command printed"),
    }
}

/// Waits for QEMU's port, and passes on what comes through it.
fn listen(listener: &UnixListener, events: &SyncSender<Event>) {
    let connected = listener.accept().and_then(|(stream, _)| Ok((stream.try_clone()?, stream)));
    let (ours, mut stream) = match connected {
        Ok(both) => both,
        Err(error) => return drop(events.send(Event::Closed(Some(error)))),
    };
    let mut next = Event::Connected(ours);
    // Whoever does not listen any more has what he wanted.
    while events.send(next).is_ok() {
        next = match alea_init::receive(&mut stream) {
            Ok(Some(frame)) => Event::Frame(frame),
            ended => {
                let broken = ended.err().filter(|error| error.kind() == ErrorKind::InvalidData);
                return drop(events.send(Event::Closed(broken)));
            }
        };
    }
}

/// The machine's end, which comes by itself or now.
fn finish(guest: Guest, limit: Option<Duration>) -> Result<Outcome> {
    let grace = guest.started().elapsed() + Duration::from_secs(10);
    let total = limit.map_or(grace, |limit| limit.min(grace));
    guest.finish(Limits::total(total))
}

/// Says why there is no exit status of the command, and gives one.
fn explain(outcome: &Outcome, kernel: &Path, spoke: bool, limit: Option<Duration>) -> u8 {
    let (status, why) = verdict(&outcome.end, outcome.elapsed, spoke, limit);
    let timed_out = status == TIMED_OUT;
    if timed_out {
        eprintln!("alea: {why}");
    }
    eprint!("{}", outcome.stuck_at(kernel));
    if timed_out && spoke {
        return status;
    }
    if let Some(report) = symbolize::panic_report(kernel, &outcome.output) {
        eprintln!("{report}");
    } else {
        eprintln!("{}", xtask_guest::outcome::tail(&outcome.output));
    }
    let stderr = outcome.stderr.trim();
    if !stderr.is_empty() {
        eprintln!("QEMU: {stderr}");
    }
    if !timed_out {
        eprintln!("alea: {why}");
    }
    status
}

/// The exit status where the command has given none, and why: the user's own limit has a status of its own, wherever the guest was.
fn verdict(end: &End, elapsed: Duration, spoke: bool, limit: Option<Duration>) -> (u8, String) {
    let why = match end {
        End::TimedOut if limit.is_some_and(|limit| elapsed >= limit) => {
            return (TIMED_OUT, format!("stopped after {elapsed:.0?}: the time was up"));
        }
        End::TimedOut if spoke => "the guest said no more, and did not end".to_owned(),
        End::TimedOut => "the guest did not get to its first program".to_owned(),
        End::Exited(0) if spoke => "the guest powered off before the command had ended".to_owned(),
        End::Exited(0) => "the guest powered off before its first program ran".to_owned(),
        End::Exited(status) => format!("QEMU exited with status {status}"),
        End::Panicked => "the kernel panicked".to_owned(),
        End::Signalled(signal) => format!("signal {signal} killed QEMU"),
    };
    (FAILED, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_limit_has_its_own_status_wherever_the_guest_was() {
        let [short, long] = [Duration::from_secs(2), Duration::from_secs(200)];
        for spoke in [false, true] {
            let status = |end, limit| verdict(&end, long, spoke, limit).0;
            assert_eq!(status(End::TimedOut, Some(short)), TIMED_OUT, "{spoke}");
            assert_eq!(status(End::TimedOut, Some(long)), TIMED_OUT, "{spoke}");
            // Our own limits: of a boot, and of the time between the port's end and QEMU's.
            assert_eq!(status(End::TimedOut, Some(2 * long)), FAILED, "{spoke}");
            assert_eq!(status(End::TimedOut, None), FAILED, "{spoke}");
            for end in [End::Panicked, End::Exited(0), End::Exited(1), End::Signalled(9)] {
                assert_eq!(status(end, Some(short)), FAILED, "{spoke}");
            }
        }
    }
}
