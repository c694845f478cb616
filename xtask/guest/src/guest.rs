//! A running virtual machine: its serial line, and how it ended.
//!
//! A [`Guest`] owns its QEMU process and kills it when dropped. QEMU ends too with the thread that started
//! it, and so with the whole program, by whatever signal: a guest must stay in its thread. Two more threads
//! copy QEMU's standard output and error into buffers; `state` is their only shared data, one short lock.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use tempfile::TempDir;

use crate::gdb::Gdb;
use crate::monitor::{CpuTrace, Monitor};
use crate::outcome::tail;
pub use crate::outcome::{End, Limits, Outcome};
use crate::qemu::{Machine, PANIC_STATUS};
pub use crate::symbolize::PANIC;
use xtask_host::{paths, process};

/// How long a kernel that has printed [`PANIC`] may stay silent before its report counts as finished.
const PANIC_GRACE: Duration = Duration::from_secs(10);

/// The monitor's socket in the guest's temporary folder.
const MONITOR: &str = "monitor";

/// The gdb stub's socket beside it.
const STUB: &str = "gdb";

/// How long QEMU may take until its monitor listens, and how often to look.
const MONITOR_PATIENCE: Duration = Duration::from_secs(30);
const MONITOR_POLL: Duration = Duration::from_millis(20);

/// A running virtual machine.
pub struct Guest {
    child: Child,
    stdin: Option<ChildStdin>,
    shared: Arc<Shared>,
    readers: Vec<JoinHandle<()>>,
    started: Instant,
    /// Where the next `wait_for` begins to look.
    seen: usize,
    /// How much was searched for a panic, and when one was found.
    scanned: usize,
    panicked: Option<Instant>,
    /// The folder of the monitor's socket, and the number of CPUs to ask about there.
    monitor: Option<(TempDir, u32)>,
    traces: Vec<CpuTrace>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    output: Vec<u8>,
    /// Length of the output after each piece that arrived, and when it did.
    arrivals: Vec<(usize, Instant)>,
    stderr: Vec<u8>,
    closed: bool,
}

impl Shared {
    /// A reader that panicked has left whole data behind: appending is all that they do.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change; an error if none that matters can come any more.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        deadline: Instant,
        past_panics: bool,
    ) -> Result<MutexGuard<'a, State>> {
        let trouble = if !past_panics && find(&state.output, PANIC.as_bytes()).is_some() {
            "the kernel panicked"
        } else if state.closed {
            "QEMU ended"
        } else if Instant::now() >= deadline {
            "nothing came in time"
        } else {
            let left = deadline.saturating_duration_since(Instant::now());
            let waited = self.changed.wait_timeout(state, left);
            return Ok(waited.unwrap_or_else(PoisonError::into_inner).0);
        };
        let (output, stderr) = (text(&state.output), text(&state.stderr));
        bail!("{trouble}\n{stderr}last output:\n{}", tail(&output))
    }
}

impl Guest {
    /// Starts `machine`.
    pub fn start(machine: &Machine) -> Result<Self> {
        Self::spawn_monitored(machine, None)
    }

    /// Starts `machine` and copies the serial line to `echo` as it comes.
    pub fn start_echoing(machine: &Machine, echo: impl Write + Send + 'static) -> Result<Self> {
        Self::spawn_monitored(machine, Some(Box::new(echo)))
    }

    fn spawn_monitored(machine: &Machine, echo: Option<Box<dyn Write + Send>>) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("alea-").tempdir()?;
        let mut qemu = machine.command();
        let socket = folder.path().join(MONITOR);
        let chardev = format!("socket,id=monitor,server=on,wait=off,path={}", socket.display());
        qemu.args(["-chardev", &chardev, "-mon", "chardev=monitor,mode=control"]);
        if machine.debug {
            let stub = folder.path().join(STUB);
            qemu.args(["-S", "-gdb", &format!("unix:{},server=on,wait=off", stub.display())]);
            let kernel = machine.kernel().map_or_else(String::new, paths::shown);
            eprintln!(
                "the machine waits for a debugger, in another terminal:\n    gdb {kernel} -ex 'target remote {}'",
                stub.display()
            );
        }
        let mut guest = Self::spawn(process::bound(qemu), echo)?;
        guest.monitor = Some((folder, machine.smp));
        Ok(guest)
    }

    fn spawn(mut qemu: Command, echo: Option<Box<dyn Write + Send>>) -> Result<Self> {
        let started = Instant::now();
        let mut child = qemu
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{}`", process::show(&qemu)))?;
        let shared = Arc::new(Shared::default());
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("QEMU has no standard output")?;
        let stderr = child.stderr.take().context("QEMU has no standard error")?;
        let readers = vec![read_serial(stdout, shared.clone(), echo), read_stderr(stderr, &shared)];
        Ok(Self {
            child,
            stdin,
            shared,
            readers,
            started,
            seen: 0,
            scanned: 0,
            panicked: None,
            monitor: None,
            traces: Vec::new(),
        })
    }

    /// When QEMU was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// A handle to type on, for a thread of its own. `send` no longer works after this.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Types `bytes` on the guest's serial line.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the serial line is not open for typing")?;
        stdin.write_all(bytes.as_ref())?;
        stdin.flush().context("the guest is gone")
    }

    /// QEMU's monitor, for one connection at a time.
    pub fn monitor(&self) -> Result<Monitor> {
        let (folder, _) = self.monitor.as_ref().context("this guest has no monitor")?;
        let socket = folder.path().join(MONITOR);
        let deadline = Instant::now() + MONITOR_PATIENCE;
        loop {
            match Monitor::connect(&socket) {
                // QEMU has only just started.
                Err(_) if Instant::now() < deadline => std::thread::sleep(MONITOR_POLL),
                result => return result,
            }
        }
    }

    /// QEMU's gdb stub, which the monitor is asked to open: the machine stands from now on. Once for each guest, while
    /// nobody else is connected to the monitor.
    pub fn gdb(&self) -> Result<Gdb> {
        let (folder, _) = self.monitor.as_ref().context("this guest has no monitor")?;
        let socket = folder.path().join(STUB);
        self.monitor()?.open_gdb_stub(&socket)?;
        Gdb::connect(&socket)
    }

    /// Where gdb reaches a machine that waits for it ([`Machine::debugged`]), once QEMU listens there.
    pub fn debugger_socket(&self) -> Result<PathBuf> {
        drop(self.monitor()?);
        let (folder, _) = self.monitor.as_ref().context("this guest has no monitor")?;
        Ok(folder.path().join(STUB))
    }

    /// All output so far.
    pub fn output(&self) -> String {
        text(&self.shared.lock().output)
    }

    /// Waits until `needle` is printed after what earlier waits have found, and returns when
    /// (counted from QEMU's start) it arrived. A panic, an exit or a passed limit is an error.
    pub fn wait_for(&mut self, needle: &str, limit: Duration) -> Result<Duration> {
        let deadline = Instant::now() + limit;
        let mut state = self.shared.lock();
        loop {
            if let Some(at) = find(&state.output[self.seen..], needle.as_bytes()) {
                let end = self.seen + at + needle.len();
                self.seen = end;
                let arrival = state.arrivals.iter().find(|(length, _)| *length >= end);
                let arrival = arrival.map_or_else(Instant::now, |(_, when)| *when);
                return Ok(arrival.duration_since(self.started));
            }
            let waiting_for_panic = needle == PANIC;
            state = self
                .shared
                .wait(state, deadline, waiting_for_panic)
                .with_context(|| format!("waiting for {needle:?}"))?;
        }
    }

    /// Waits until there is output beyond the first `seen` bytes, and returns it. A panic, an exit
    /// or a passed `deadline` is an error.
    pub fn more_output(&self, seen: usize, deadline: Instant) -> Result<Vec<u8>> {
        let mut state = self.shared.lock();
        loop {
            match state.output.get(seen..) {
                Some(new) if !new.is_empty() => return Ok(new.to_vec()),
                _ => state = self.shared.wait(state, deadline, false)?,
            }
        }
    }

    /// Waits for QEMU's end; stops it when a limit passes or the kernel has panicked.
    pub fn finish(mut self, limits: Limits) -> Result<Outcome> {
        loop {
            if let Some(end) = self.poll_end(limits, Duration::from_secs(3600))? {
                return self.finish_with(end);
            }
        }
    }

    /// What is left of a guest whose end [`Self::poll_end`] has told.
    pub fn finish_with(mut self, end: End) -> Result<Outcome> {
        for reader in self.readers.drain(..) {
            // Its only job was to fill the buffers, and they are read below.
            let _ = reader.join();
        }
        let elapsed = self.started.elapsed();
        let state = self.shared.lock();
        let (output, stderr) = (text(&state.output), text(&state.stderr));
        drop(state);
        let traces = std::mem::take(&mut self.traces);
        Ok(Outcome { end, output, stderr, elapsed, traces })
    }

    /// Kills QEMU and returns what there was.
    pub fn stop(mut self) -> Result<Outcome> {
        self.child.kill().context("cannot stop QEMU")?;
        self.finish(Limits::NONE)
    }

    /// Waits at most `patience` for QEMU's end; nothing means that it still runs.
    pub fn poll_end(&mut self, limits: Limits, patience: Duration) -> Result<Option<End>> {
        let patience = Instant::now() + patience;
        let shared = self.shared.clone();
        let mut state = shared.lock();
        while !state.closed {
            self.look_for_panic(&state.output);
            let now = Instant::now();
            let last = state.arrivals.last().map_or(self.started, |(_, when)| *when);
            let deadline = [
                limits.total.map(|limit| self.started + limit),
                limits.idle.map(|limit| last + limit),
                self.panicked.map(|when| when.max(last) + PANIC_GRACE),
            ];
            let deadline = deadline.into_iter().flatten().min();
            if deadline.is_some_and(|deadline| now >= deadline) {
                drop(state);
                if self.panicked.is_none() {
                    match self.ask_monitor() {
                        Ok(traces) => self.traces = traces,
                        // Worth a line beside what QEMU says, and no reason to give up.
                        Err(error) => {
                            let line = format!("no backtrace: {error:#}\n");
                            shared.lock().stderr.extend_from_slice(line.as_bytes());
                        }
                    }
                }
                self.child.kill().context("cannot stop QEMU")?;
                self.child.wait()?;
                let panicked = self.panicked.is_some();
                return Ok(Some(if panicked { End::Panicked } else { End::TimedOut }));
            }
            if now >= patience {
                return Ok(None);
            }
            let wake = deadline.unwrap_or(patience).min(patience);
            let waited = shared.changed.wait_timeout(state, wake - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.look_for_panic(&state.output);
        drop(state);
        let status = self.child.wait().context("cannot wait for QEMU")?;
        Ok(Some(match (status.code(), status.signal()) {
            (Some(PANIC_STATUS), _) => End::Panicked,
            (Some(_), _) if self.panicked.is_some() => End::Panicked,
            (Some(code), _) => End::Exited(code),
            (None, signal) => End::Signalled(signal.unwrap_or(0)),
        }))
    }

    fn ask_monitor(&self) -> Result<Vec<CpuTrace>> {
        let Some((folder, cpus)) = &self.monitor else { return Ok(Vec::new()) };
        Monitor::connect(&folder.path().join(MONITOR))?.backtraces(*cpus)
    }

    fn look_for_panic(&mut self, output: &[u8]) {
        if self.panicked.is_none() {
            // Step back by a needle's length: it may have come in two pieces.
            let from = self.scanned.saturating_sub(PANIC.len());
            if find(&output[from..], PANIC.as_bytes()).is_some() {
                self.panicked = Some(Instant::now());
            }
            self.scanned = output.len();
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Both fail only when QEMU has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_serial(
    mut from: impl Read + Send + 'static,
    shared: Arc<Shared>,
    mut echo: Option<Box<dyn Write + Send>>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            if let Some(echo) = &mut echo {
                // A closed standard output must not stop the guest from being watched.
                let _ = echo.write_all(&buffer[..n]).and_then(|()| echo.flush());
            }
            let mut state = shared.lock();
            state.output.extend_from_slice(&buffer[..n]);
            let length = state.output.len();
            state.arrivals.push((length, Instant::now()));
            shared.changed.notify_all();
        }
        shared.lock().closed = true;
        shared.changed.notify_all();
    })
}

fn read_stderr(mut from: impl Read + Send + 'static, shared: &Arc<Shared>) -> JoinHandle<()> {
    let shared = shared.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            shared.lock().stderr.extend_from_slice(&buffer[..n]);
        }
    })
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Serial output as text, with the terminal's line ends made plain.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// For what comes soon, on a machine that may be busy.
    const LONG: Duration = Duration::from_secs(120);

    fn shell(script: &str) -> Guest {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Guest::spawn(command, None).unwrap()
    }

    #[test]
    fn output_is_found_in_order_and_the_status_kept() {
        let mut guest = shell("echo one; read line; echo got $line; exit 7");
        guest.wait_for("one", LONG).unwrap();
        guest.send("two\n").unwrap();
        guest.wait_for("got two", LONG).unwrap();
        let outcome = guest.finish(Limits::total(LONG)).unwrap();
        assert_eq!(outcome.end, End::Exited(7));
        assert_eq!(outcome.output, "one\ngot two\n");
        assert!(outcome.powered_off().unwrap_err().to_string().contains("status 7"));
    }

    #[test]
    fn a_silent_guest_is_stopped() {
        let mut guest = shell("echo x; exec sleep 6000");
        guest.wait_for("x\n", LONG).unwrap();
        let outcome = guest.finish(Limits::idle(SECOND / 5)).unwrap();
        assert_eq!(outcome.end, End::TimedOut);
        assert_eq!(outcome.output, "x\n");
    }

    #[test]
    fn a_panic_is_seen_by_its_text_and_by_its_status() {
        let text = shell("echo 'Kernel panic - not syncing: x'; exit 0");
        assert_eq!(text.finish(Limits::total(LONG)).unwrap().end, End::Panicked);
        let status = shell("exit 33");
        assert_eq!(status.finish(Limits::total(LONG)).unwrap().end, End::Panicked);
        let mut waiting = shell("echo 'Kernel panic - not syncing: no init'; exec sleep 6000");
        let error = waiting.wait_for("login", LONG).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("panicked") && error.contains("no init"), "{error}");
    }

    #[test]
    fn waiting_ends_with_the_guest_and_with_time() {
        let error = shell("echo bye").wait_for("hello", LONG).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("QEMU ended") && error.contains("bye"), "{error}");
        let error = shell("exec sleep 6000").wait_for("hello", SECOND / 5).unwrap_err();
        assert!(format!("{error:#}").contains("in time"));
    }
}
