//! The virtio console that leads to the host: Alea's /dev/vport0p0, or Linux's /dev/hvc0 made raw.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use alea_init::{Kind, WINDOW, Window};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

/// Linux gives the port of a console as a terminal only.
const PLACES: [&str; 2] = ["/dev/vport0p0", "/dev/hvc0"];

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
        // One of the two is not what this kind of file can do.
        let _ = file.flush();
        let _ = file.sync_all();
        let _ = tcdrain(&*file);
    }
}

/// Opens the port, both ways.
pub fn open() -> io::Result<(Port, Reader)> {
    let mut failure = io::Error::other("there is no port to the host");
    for place in PLACES {
        match File::options().read(true).write(true).open(place) {
            Ok(file) => {
                if let Ok(mut settings) = tcgetattr(&file) {
                    settings.make_raw();
                    tcsetattr(&file, OptionalActions::Now, &settings)?;
                }
                let reader = Reader(file.try_clone()?);
                let file = Arc::new(Mutex::new(file));
                let window = Arc::new(Window::new(WINDOW));
                return Ok((Port { file, window }, reader));
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
