//! This process's own side: keys or bytes for the guest's standard input, signals, the size of the terminal.
//!
//! Each of the threads here sleeps in a call that nothing ends, and is never joined: they end with this process.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use alea_init::{INPUT_WINDOW, Kind, PIECE, Window};
use anyhow::Result;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use xtask_host::keys::Escapes;
use xtask_host::term;

use crate::session::Event;

/// Frames for the guest, from several threads.
#[derive(Clone)]
pub struct ToGuest {
    stream: Arc<Mutex<UnixStream>>,
    /// Of standard input, the guest takes only so much before its command has read it.
    window: Arc<Window>,
}

impl ToGuest {
    pub fn new(stream: UnixStream) -> Self {
        let window = Arc::new(Window::new(INPUT_WINDOW));
        Self { stream: Arc::new(Mutex::new(stream)), window }
    }

    /// The guest's command has read so many bytes.
    pub fn credit(&self, bytes: usize) {
        self.window.give(bytes);
    }

    /// Sends one frame.
    pub fn send(&self, kind: Kind, bytes: &[u8]) -> std::io::Result<()> {
        if kind == Kind::Input {
            self.window.take(bytes.len());
        }
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        alea_init::send(&mut *stream, kind, bytes)
    }
}

/// Carries standard input to the guest. From a terminal, Ctrl-A x is for this program.
pub fn feed(to: ToGuest, is_terminal: bool, events: SyncSender<Event>) {
    std::thread::spawn(move || {
        let mut escapes = Escapes::default();
        let mut buffer = vec![0; PIECE];
        while let Ok(length @ 1..) = std::io::stdin().read(&mut buffer) {
            let typed = &buffer[..length];
            let (bytes, leaves) =
                if is_terminal { escapes.filter(typed) } else { (typed.to_vec(), false) };
            // No bytes would be the end of the input.
            if !bytes.is_empty() && to.send(Kind::Input, &bytes).is_err() {
                return;
            }
            if leaves {
                // The guest has ended by itself if nobody listens.
                let _ = events.send(Event::Left);
                return;
            }
        }
        let _ = to.send(Kind::Input, &[]);
    });
}

/// Tells of signals that end this program, and tells the guest of the terminal's size.
pub fn watch_signals(events: SyncSender<Event>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let event = if signal == SIGWINCH { Event::Resized } else { Event::Signal(signal) };
            let ends = signal != SIGWINCH;
            let _ = events.send(event);
            if ends {
                // Whoever is to read what the guest prints may not do it, and then nobody gets to hear of the event.
                std::thread::sleep(std::time::Duration::from_secs(2));
                std::process::exit(128 + signal);
            }
        }
    });
    Ok(())
}

/// Tells the guest how large the terminal is now.
pub fn resize(to: &ToGuest) {
    if let Some((columns, rows)) = term::size() {
        let [r, c] = [rows, columns].map(u16::to_le_bytes);
        // A guest that is gone has no terminal.
        let _ = to.send(Kind::Window, &[r[0], r[1], c[0], c[1]]);
    }
}
