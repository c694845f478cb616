//! How long each piece of work in a guest takes: its serial line says when one begins.

use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Listens to a serial line, on which each piece begins with a line of `mark` and its name. A copy hears what the first one hears.
#[derive(Clone)]
pub struct Stopwatch {
    mark: &'static str,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    line: Vec<u8>,
    running: Option<(String, Instant)>,
    seconds: BTreeMap<String, f64>,
}

impl Stopwatch {
    pub fn new(mark: &'static str) -> Self {
        Self { mark, heard: Arc::default() }
    }

    /// Stops the piece that runs: the guest has ended.
    pub fn stop(&self) {
        self.heard().stop(Instant::now());
    }

    /// Seconds by name, of all that has ended; those of one name are added up.
    pub fn seconds(&self) -> BTreeMap<String, f64> {
        self.heard().seconds.clone()
    }

    /// A panic elsewhere leaves it whole: lines are taken one at a time.
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    fn stop(&mut self, now: Instant) {
        if let Some((name, since)) = self.running.take() {
            let took = now.saturating_duration_since(since).as_secs_f64();
            *self.seconds.entry(name).or_default() += took;
        }
    }

    fn take(&mut self, bytes: &[u8], mark: &str, now: Instant) {
        for &byte in bytes {
            if byte != b'\n' {
                self.line.push(byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
            self.line.clear();
            if let Some(name) = line.strip_prefix(mark) {
                self.stop(now);
                self.running = Some((name.to_owned(), now));
            }
        }
    }
}

impl Write for Stopwatch {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.heard().take(bytes, self.mark, Instant::now());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_piece_lasts_until_the_next_one_begins() {
        let mut heard = Heard::default();
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        heard.take(b"boot\n=== a\r\n1\n", "=== ", at(1));
        heard.take(b"=== ", "=== ", at(3));
        heard.take(b"b\n", "=== ", at(4));
        heard.stop(at(9));
        heard.stop(at(20));
        heard.take(b"=== a\n", "=== ", at(20));
        heard.stop(at(21));
        assert_eq!(heard.seconds, BTreeMap::from([("a".into(), 4.0), ("b".into(), 5.0)]));
    }
}
