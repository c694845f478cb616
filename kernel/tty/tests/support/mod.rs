//! A terminal that only remembers what it was told.

use alea_tty::{Host, TtySignal};

pub struct Screen {
    pub room: usize,
    pub shown: Vec<u8>,
    pub signals: Vec<TtySignal>,
    pub stopped: bool,
    /// Output that a real terminal might not have shown yet when it was discarded.
    pub discarded: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Self { room: 1 << 20, shown: vec![], signals: vec![], stopped: false, discarded: false }
    }
}

#[allow(dead_code, reason = "each test compiles this file anew, and not each looks at the text")]
impl Screen {
    pub fn text(&self) -> &[u8] {
        &self.shown
    }
}

impl Host for Screen {
    fn room(&mut self) -> usize {
        if self.stopped { 0 } else { self.room }
    }

    fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room, "more than there was room for");
        self.room -= bytes.len();
        self.shown.extend_from_slice(bytes);
    }

    fn raise(&mut self, signal: TtySignal) {
        self.signals.push(signal);
    }

    fn discard_output(&mut self) {
        self.discarded = true;
    }

    fn flow_changed(&mut self, stopped: bool) {
        self.stopped = stopped;
    }
}
