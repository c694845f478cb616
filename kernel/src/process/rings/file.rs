//! The file: each opening is a session of its own, which begins with the first command that says whom to trace.
//!
//! What it may see is decided by who opened it, not by who writes to it or reads it later. Owns a session until its last
//! descriptor is closed. Never waits for who is traced. Locks: a mutex for its commands, one for its readers.

use super::command::{Command, obey};
use super::record::{HEAD, Kind, first};
use super::ring::{Ring, Taker};
use super::session::{Config, Session};
use super::tell;
use crate::base::tsc;
use crate::fs::procfs::register_stream;
use crate::mm::fallible::try_arc;
use crate::mm::{Sink, Source};
use crate::process::task::current::current;
use crate::process::tree::table;
use crate::sync::{Mutex, Pace, PollTable};
use crate::time;
use crate::trace::{Point, Points};
use crate::vfs::{Capability, FileOps, OpenFile, PollEvents, Position};
use abi::{Errno, Result};
use alloc::sync::Arc;
use zerocopy::IntoBytes;

/// How often readers look for themselves: most of who writes cannot wake them.
const LOOK_EVERY_NS: u64 = 10_000_000;

/// Most bytes of the commands of one write.
const COMMANDS: usize = 4096;

/// Bytes of a ring, unless `size` says otherwise.
const SIZE: usize = 128 << 10;

/// Adds the file to /proc.
pub(in crate::process) fn register() -> Result<()> {
    tell::register();
    register_stream("alea/trace", 0o666, None, open)
}

fn open() -> Result<Arc<dyn FileOps>> {
    let cred = current().cred_arc();
    let points = Points::none().with(Point::Enter).with(Point::Leave);
    let config = Config { cred, points, calls: None, size: SIZE, strings: 32, follow: false };
    let state = State { config: Some(config), session: None };
    Ok(try_arc(TraceFile { state: Mutex::new(state), readers: Mutex::new(0) })?)
}

struct State {
    /// Until it has begun.
    config: Option<Config>,
    session: Option<Arc<Session>>,
}

struct TraceFile {
    state: Mutex<State>,
    /// The ring that is read next.
    readers: Mutex<usize>,
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        if let Some(session) = self.state.get_mut().session.take() {
            session.end();
        }
    }
}

impl State {
    fn obey(&mut self, line: &str) -> Result<()> {
        let command = match &mut self.config {
            Some(config) => obey(line, config)?,
            // What is wanted is settled; it may go on to trace more.
            None => match line.split_ascii_whitespace().next() {
                Some("trace") => obey(line, &mut self.unchanged()?)?,
                None => return Ok(()),
                _ => return Err(Errno::EBUSY),
            },
        };
        match command {
            Command::Set => Ok(()),
            Command::All => self.begin(true).map(drop),
            Command::Trace(pid) => {
                let process = table::lookup(pid).ok_or(Errno::ESRCH)?;
                self.begin(false)?.trace(&process)
            }
        }
    }

    /// A copy to be thrown away.
    fn unchanged(&self) -> Result<Config> {
        let session = self.session.as_ref().ok_or(Errno::EINVAL)?;
        let Config { ref cred, points, calls, size, strings, follow } = session.config;
        Ok(Config { cred: cred.clone(), points, calls, size, strings, follow })
    }

    /// The session, which begins now if it has not.
    fn begin(&mut self, sees_all: bool) -> Result<Arc<Session>> {
        if let Some(session) = &self.session {
            return Ok(session.clone());
        }
        let config = self.config.as_ref().ok_or(Errno::EINVAL)?;
        if sees_all && !config.cred.capable(Capability::SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        let Config { ref cred, points, calls, size, strings, follow } = *config;
        let config = Config { cred: cred.clone(), points, calls, size, strings, follow };
        let session = Session::begin(config, current().process().pid(), sees_all)?;
        self.config = None;
        self.session = Some(session.clone());
        Ok(session)
    }
}

impl TraceFile {
    fn session(&self) -> Option<Arc<Session>> {
        self.state.lock().session.clone()
    }
}

/// Words of the record of the time.
const NOW: usize = HEAD + 1;

/// What a read puts together.
struct Reading<'a, 'b> {
    dst: &'a mut Sink<'b>,
    done: usize,
}

impl Taker for Reading<'_, '_> {
    /// How many words fit yet, behind the time that the first records bring.
    fn room(&self) -> usize {
        let now = if self.done == 0 { NOW } else { 0 };
        (self.dst.remaining() / size_of::<u64>()).saturating_sub(now)
    }

    /// Puts whole records if they fit.
    fn take(&mut self, records: &[u64]) -> Result<bool> {
        if self.room() < records.len() {
            return Ok(false);
        }
        if self.done == 0 {
            let now = [first(Kind::Now, 0, NOW, 0), tsc::read(), time::tsc_hz()];
            self.put_whole(now.as_bytes())?;
        }
        self.put_whole(records.as_bytes())?;
        Ok(true)
    }
}

impl Reading<'_, '_> {
    fn put_whole(&mut self, bytes: &[u8]) -> Result<()> {
        let put = self.dst.put(bytes)?;
        if put < bytes.len() {
            return Err(Errno::EFAULT);
        }
        self.done += put;
        Ok(())
    }
}

fn is_empty(session: &Session) -> bool {
    session.rings.iter().all(Ring::is_empty)
}

impl FileOps for TraceFile {
    fn read(&self, file: &OpenFile, dst: &mut Sink<'_>, _: &mut u64) -> Result<usize> {
        let session = self.session().ok_or(Errno::EINVAL)?;
        loop {
            let over = session.is_over();
            let (done, is_full) = self.read_now(&session, dst)?;
            if done > 0 || over && !is_full || dst.remaining() == 0 {
                return Ok(done);
            }
            if is_full {
                // Not even one record fits.
                return Err(Errno::EINVAL);
            }
            if file.nonblock() {
                return Err(Errno::EAGAIN);
            }
            let deadline = time::since_boot_ns().saturating_add(LOOK_EVERY_NS);
            let ready = || (!is_empty(&session) || session.is_over()).then_some(());
            match session.readers.wait_deadline(Some(deadline), ready) {
                Ok(()) | Err(crate::sync::wait::WaitError::TimedOut) => {}
                Err(crate::sync::wait::WaitError::Interrupted) => return Err(Errno::ERESTARTSYS),
            }
        }
    }

    fn write(&self, _: &OpenFile, src: &mut Source<'_>, _: &mut u64) -> Result<usize> {
        let len = src.remaining();
        if len > COMMANDS {
            return Err(Errno::EINVAL);
        }
        let text = src.take_vec(len)?;
        let text = core::str::from_utf8(&text).map_err(|_| Errno::EINVAL)?;
        let mut state = self.state.lock();
        for line in text.lines() {
            state.obey(line)?;
        }
        Ok(len)
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn poll(&self, _: &OpenFile, table: &mut PollTable) -> PollEvents {
        let Some(session) = self.session() else { return PollEvents::WRITABLE };
        table.watch(&session.readers);
        let mut events = PollEvents::WRITABLE;
        let ready = !is_empty(&session) || session.is_over();
        events.set(PollEvents::READABLE, ready);
        events
    }
}

impl TraceFile {
    /// Gives what stands in the rings now, each in its order, as far as there is room: how many bytes, and whether there was
    /// more.
    fn read_now(&self, session: &Session, dst: &mut Sink<'_>) -> Result<(usize, bool)> {
        let mut next = self.readers.lock();
        let mut reading = Reading { dst, done: 0 };
        for _ in (0..session.rings.len()).paced() {
            let cpu = *next % session.rings.len();
            let ring = &session.rings[cpu];
            match empty(ring, cpu, &mut reading) {
                Ok(true) => {}
                // It goes on here.
                Ok(false) => return Ok((reading.done, true)),
                Err(_) if reading.done > 0 => break,
                Err(error) => return Err(error),
            }
            *next = cpu.wrapping_add(1);
        }
        Ok((reading.done, false))
    }
}

/// Reads a ring, and tells what it had no room for; false if it has more.
fn empty(ring: &Ring, cpu: usize, reading: &mut Reading<'_, '_>) -> Result<bool> {
    Ok(ring.read(reading)? && tell_lost(ring, cpu, reading)?)
}

/// Tells how many records were lost after those that stood in the ring; false if there is no room for that.
fn tell_lost(ring: &Ring, cpu: usize, reading: &mut Reading<'_, '_>) -> Result<bool> {
    let lost = ring.take_lost();
    if lost == 0 {
        return Ok(true);
    }
    let words = HEAD + 1;
    let record = [first(Kind::Lost, cpu, words, 0), tsc::read(), lost];
    let told = reading.take(&record)?;
    if !told {
        ring.give_back_lost(lost);
    }
    Ok(told)
}
