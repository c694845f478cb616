//! The port of a virtio console that leads to the host.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use alea_init::{Kind, WINDOW, Window};

/// QEMU numbers its ports from 1: 0 is kept for a console.
const PLACE: &str = "/dev/vport0p1";

/// The side that sends, for all threads.
#[derive(Clone)]
pub struct Port {
    file: Arc<Mutex<File>>,
    /// What the host has not used yet is limited.
    window: Arc<Window>,
}

/// The side that listens.
pub struct Reader(File);

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Port {
    /// Sends one frame; the frames of several threads come one after another.
    pub fn send(&self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        self.window.take(alea_init::cost(kind, bytes.len()));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        alea_init::send(&mut *file, kind, bytes)
    }

    /// The host has used so many bytes.
    pub fn credit(&self, bytes: usize) {
        self.window.give(bytes);
    }

    /// Waits until the host has taken all.
    pub fn drain(&self) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = file.flush();
        // Linux's port has nothing to wait for then, and says that it cannot.
        let _ = file.sync_all();
    }
}

/// Opens the port, both ways.
pub fn open() -> io::Result<(Port, Reader)> {
    let file = File::options().read(true).write(true).open(PLACE)?;
    let reader = Reader(file.try_clone()?);
    let file = Arc::new(Mutex::new(file));
    let window = Arc::new(Window::new(WINDOW));
    Ok((Port { file, window }, reader))
}
