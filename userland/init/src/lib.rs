//! What the host and process 1 of a guest say to each other over the virtio console: frames, and the task that is to be done.
//!
//! A frame is a byte that says its kind, the length of what follows (four bytes, little-endian), and that. Both sides
//! refuse a kind that is not known and a length beyond [`LIMIT`]. No statics; a [`Window`] is a lock of its own.
//!
//! Each side may have sent so many bytes ([`WINDOW`], [`INPUT_WINDOW`]) that the other has not used yet and given credit for. QEMU drops
//! what a console sends to a socket that is full, and so it never may be; and neither side may have to wait for the other
//! to be able to listen.
#![forbid(unsafe_code)]

pub mod attributes;

use std::io::{self, Read, Write};
use std::sync::{Condvar, Mutex, PoisonError};

/// The longest content of a frame, in bytes: a task may carry as many words as an exec.
pub const LIMIT: usize = 4 << 20;

/// The most of input or output in one frame, in bytes.
pub const PIECE: usize = (32 << 10) - HEAD;

/// Bytes of frames that the guest may have sent without credit: a third of what Linux lets a socket hold.
pub const WINDOW: usize = 64 << 10;

/// Bytes of standard input that the host may have sent without credit.
pub const INPUT_WINDOW: usize = 256 << 10;

const HEAD: usize = 5;

/// The folder in the guest's root that holds process 1, until it has started.
pub const FOLDER: &str = ".alea";

/// The file in [`FOLDER`].
pub const PROGRAM: &str = ".alea/init";

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $byte:literal,)*) => {
        /// What a frame is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $name = $byte,)*
        }

        impl Kind {
            fn of(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Both: so many bytes (four bytes, little-endian) have been used. Of the guest's, all frames but these count; of the
    /// host's, the contents of [`Kind::Input`].
    Credit = b'C',
    /// Guest: process 1 listens.
    Hello = b'H',
    /// Host: what is to be done, a [`Task`]. Comes first.
    Task = b'T',
    /// Host: bytes of standard input; none at its end.
    Input = b'I',
    /// Host: the terminal has another size, rows and columns in two bytes each.
    Window = b'W',
    /// Guest: the command runs.
    Started = b'S',
    /// Guest: bytes of standard output.
    Output = b'O',
    /// Guest: bytes of standard error.
    Error = b'E',
    /// Guest: a piece of the archive of the next path of [`Task::out`].
    Archive = b'A',
    /// Guest: the end of that archive, its SHA-256.
    Digest = b'D',
    /// Guest: a line for the user.
    Note = b'N',
    /// Guest: the exit status, one byte. Comes last.
    Exit = b'X',
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

/// Sends one frame, in one write if the other side takes it.
pub fn send(to: &mut impl Write, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= LIMIT);
    let length = length.ok_or_else(|| invalid("a frame is too long"))?;
    let mut whole = Vec::with_capacity(HEAD + bytes.len());
    whole.push(kind as u8);
    whole.extend_from_slice(&length.to_le_bytes());
    whole.extend_from_slice(bytes);
    to.write_all(&whole)?;
    to.flush()
}

/// The next frame; nothing at the end of the input. A frame that is cut off is an error.
pub fn receive(from: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut head = [0; HEAD];
    if from.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[1..])?;
    let [kind, length @ ..] = head;
    let kind = Kind::of(kind).ok_or_else(|| invalid("a frame of a kind that is not known"))?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LIMIT {
        return Err(invalid("a frame is too long"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(Some(Frame { kind, bytes }))
}

impl Frame {
    /// How much of the guest's window it takes.
    pub fn cost(&self) -> usize {
        cost(self.kind, self.bytes.len())
    }

    /// What a frame of [`Kind::Credit`] gives.
    pub fn credit(&self) -> usize {
        self.bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
    }
}

/// How much of the guest's window a frame with `length` bytes of content takes.
pub fn cost(kind: Kind, length: usize) -> usize {
    if kind == Kind::Credit { 0 } else { HEAD + length }
}

/// What is left of a window: taken before something is sent, given back when it has been used.
#[derive(Debug)]
pub struct Window {
    left: Mutex<usize>,
    more: Condvar,
}

impl Window {
    /// A window of `bytes`.
    pub fn new(bytes: usize) -> Self {
        Self { left: Mutex::new(bytes), more: Condvar::new() }
    }

    /// Waits until `bytes` may be sent.
    pub fn take(&self, bytes: usize) {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.more.wait_while(left, |left| *left < bytes);
        *left.unwrap_or_else(PoisonError::into_inner) -= bytes;
    }

    /// Lets `bytes` more be sent.
    pub fn give(&self, bytes: usize) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.saturating_add(bytes);
        self.more.notify_all();
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// What process 1 is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The command and its arguments.
    pub args: Vec<Vec<u8>>,
    /// `NAME=value` each; a later one of a name counts.
    pub env: Vec<Vec<u8>>,
    /// Where the command runs; default: the root folder.
    pub workdir: Option<Vec<u8>>,
    /// `USER` or `USER:GROUP`, by name or number; default: root.
    pub user: Option<Vec<u8>>,
    /// The command gets a terminal of so many rows and columns.
    pub terminal: Option<(u16, u16)>,
    /// Files and folders that the host wants when the command has ended.
    pub out: Vec<Vec<u8>>,
}

impl Task {
    /// As the content of a frame: fields of a letter, the value and a NUL, which no value may hold.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut field = |letter: u8, value: &[u8]| {
            bytes.push(letter);
            bytes.extend(value.iter().filter(|&&byte| byte != 0));
            bytes.push(0);
        };
        self.args.iter().for_each(|value| field(b'a', value));
        self.env.iter().for_each(|value| field(b'e', value));
        self.out.iter().for_each(|value| field(b'o', value));
        self.workdir.iter().for_each(|value| field(b'w', value));
        self.user.iter().for_each(|value| field(b'u', value));
        if let Some((rows, columns)) = self.terminal {
            field(b't', format!("{rows} {columns}").as_bytes());
        }
        bytes
    }

    /// The opposite of [`encode`](Self::encode).
    pub fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut task = Self::default();
        let broken = || invalid("a task cannot be read");
        for field in bytes.split_inclusive(|&byte| byte == 0) {
            let (letter, value) = field.split_first().ok_or_else(broken)?;
            let value = value.strip_suffix(&[0]).ok_or_else(broken)?.to_vec();
            match letter {
                b'a' => task.args.push(value),
                b'e' => task.env.push(value),
                b'o' => task.out.push(value),
                b'w' => task.workdir = Some(value),
                b'u' => task.user = Some(value),
                b't' => {
                    let text = String::from_utf8(value).map_err(|_| broken())?;
                    let (rows, columns) = text.split_once(' ').ok_or_else(broken)?;
                    let size = (rows.parse().ok(), columns.parse().ok());
                    let (Some(rows), Some(columns)) = size else { return Err(broken()) };
                    task.terminal = Some((rows, columns));
                }
                _ => return Err(broken()),
            }
        }
        Ok(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were_sent() {
        let mut line = Vec::new();
        send(&mut line, Kind::Output, b"hello").unwrap();
        send(&mut line, Kind::Input, b"").unwrap();
        let mut from = &line[..];
        let first = receive(&mut from).unwrap();
        assert_eq!(first, Some(Frame { kind: Kind::Output, bytes: b"hello".to_vec() }));
        let second = receive(&mut from).unwrap();
        assert_eq!(second, Some(Frame { kind: Kind::Input, bytes: Vec::new() }));
        assert_eq!(receive(&mut from).unwrap(), None);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bad in [&b"?\0\0\0\0"[..], b"O\xff\xff\xff\xff", b"O\x05\0\0\0hell", b"O\x05\0"] {
            assert!(receive(&mut &bad[..]).is_err(), "{bad:?}");
        }
        assert!(send(&mut Vec::new(), Kind::Output, &vec![0; LIMIT + 1]).is_err());
    }

    #[test]
    fn a_window_is_used_up_and_filled() {
        let window = std::sync::Arc::new(Window::new(10));
        window.take(7);
        let other = window.clone();
        let waiting = std::thread::spawn(move || other.take(4));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!waiting.is_finished(), "only three are left");
        window.give(1);
        waiting.join().unwrap();
        assert_eq!(cost(Kind::Credit, 4), 0, "or credit would wait for credit");
        let frame = Frame { kind: Kind::Credit, bytes: 300u32.to_le_bytes().to_vec() };
        assert_eq!(frame.credit(), 300);
    }

    #[test]
    fn a_task_comes_back_as_it_was() {
        let task = Task {
            args: vec![b"sh".to_vec(), b"".to_vec(), b"\xff".to_vec()],
            env: vec![b"A=B".to_vec()],
            workdir: Some(b"/tmp".to_vec()),
            user: None,
            terminal: Some((24, 80)),
            out: vec![b"/var/log".to_vec()],
        };
        assert_eq!(Task::decode(&task.encode()).unwrap(), task);
        assert_eq!(Task::decode(b"").unwrap(), Task::default());
        for bad in [&b"a"[..], b"zx\0", b"t1\0", b"t1 x\0", b"\0"] {
            assert!(Task::decode(bad).is_err(), "{bad:?}");
        }
    }
}
