//! The discipline against the real thing: the same settings and keys go to a pseudo-terminal of
//! the host's Linux and to the model, and both must read and show the same bytes.
#![cfg(target_os = "linux")]

mod support;

use alea_tty::termios::{NCCS, cc, iflag, lflag, oflag};
use alea_tty::{LineDiscipline, Termios, UserTermios};
use proptest::prelude::*;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use support::Screen;

const TCGETS: libc::Ioctl = 0x5401;
const TCSETS: libc::Ioctl = 0x5402;
const FIONREAD: libc::Ioctl = 0x541b;

/// A pseudo-terminal of the host.
struct Pty {
    master: File,
    slave: File,
}

impl Pty {
    fn open() -> Option<Self> {
        let (mut master, mut slave) = (0, 0);
        let null = std::ptr::null_mut();
        // SAFETY: openpty writes two descriptors; the other arguments may be null.
        let rc = unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()) };
        if rc != 0 {
            eprintln!("no pseudo-terminals here: skipped");
            return None;
        }
        for fd in [master, slave] {
            // SAFETY: plain fcntl on a descriptor we own.
            unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
        }
        // SAFETY: openpty gave both descriptors to us alone.
        Some(unsafe { Self { master: File::from_raw_fd(master), slave: File::from_raw_fd(slave) } })
    }

    fn set(&self, t: &Termios) {
        let mut bytes = t.to_termios().to_bytes();
        // SAFETY: TCSETS reads 36 bytes.
        let rc = unsafe { libc::ioctl(self.slave.as_raw_fd(), TCSETS, bytes.as_mut_ptr()) };
        assert_eq!(rc, 0);
    }

    fn get(&self) -> UserTermios {
        let mut bytes = [0; UserTermios::SIZE];
        // SAFETY: TCGETS writes 36 bytes.
        let rc = unsafe { libc::ioctl(self.slave.as_raw_fd(), TCGETS, bytes.as_mut_ptr()) };
        assert_eq!(rc, 0);
        UserTermios::from_bytes(&bytes)
    }

    fn pending(&self) -> usize {
        let mut n: i32 = 0;
        // SAFETY: FIONREAD writes one int.
        let rc = unsafe { libc::ioctl(self.slave.as_raw_fd(), FIONREAD, &raw mut n) };
        assert_eq!(rc, 0);
        n as usize
    }

    /// Waits until the host has processed what was typed. Nothing may be readable before it is
    /// typed: then polling either finds nothing and waits for the worker that moves bytes between
    /// the two ends, or finds that worker at work, and setting the settings waits for it.
    fn settle(&self, now: &Termios) {
        let mut poll =
            [libc::pollfd { fd: self.slave.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        // SAFETY: one pollfd, as the count says.
        unsafe { libc::poll(poll.as_mut_ptr(), 1, 0) };
        self.set(now);
    }
}

/// One read that must not block: `None` when there is nothing.
fn try_read(mut file: &File, size: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; size];
    match file.read(&mut bytes) {
        Ok(n) => {
            bytes.truncate(n);
            Some(bytes)
        }
        Err(_) => None,
    }
}

fn drain(file: &File) -> Vec<u8> {
    let mut all = vec![];
    while let Some(bytes) = try_read(file, 4096) {
        if bytes.is_empty() {
            break;
        }
        all.extend(bytes);
    }
    all
}

#[derive(Clone, Debug)]
enum Step {
    Settings(Termios),
    Type(Vec<u8>),
    Print(Vec<u8>),
    Read(usize),
}

const INPUT: [u32; 9] = [
    iflag::PARMRK,
    iflag::ISTRIP,
    iflag::INLCR,
    iflag::IGNCR,
    iflag::ICRNL,
    iflag::IUCLC,
    iflag::IUTF8,
    iflag::IXON,
    iflag::IXANY,
];
const OUTPUT: [u32; 7] = [
    oflag::OPOST,
    oflag::OLCUC,
    oflag::ONLCR,
    oflag::OCRNL,
    oflag::ONOCR,
    oflag::ONLRET,
    oflag::XTABS,
];
const LOCAL: [u32; 11] = [
    lflag::ISIG,
    lflag::ICANON,
    lflag::ECHO,
    lflag::ECHOE,
    lflag::ECHOK,
    lflag::ECHONL,
    lflag::NOFLSH,
    lflag::ECHOCTL,
    lflag::ECHOPRT,
    lflag::ECHOKE,
    lflag::IEXTEN,
];

/// A flag word: the usual one, one bit off it, or anything.
fn word(bits: &'static [u32], usual: u32) -> BoxedStrategy<u32> {
    let any = proptest::sample::subsequence(bits, 0..=bits.len());
    prop_oneof![
        2 => any.prop_map(|b: Vec<u32>| b.into_iter().fold(0, |a, b| a | b)),
        3 => proptest::sample::select(bits).prop_map(move |b| usual ^ b),
        1 => Just(usual),
    ]
    .boxed()
}

fn settings() -> BoxedStrategy<Termios> {
    let s = Termios::STANDARD;
    let eol = prop_oneof![3 => Just(0u8), 1 => Just(b'q'), 1 => Just(0xff)].boxed();
    (word(&INPUT, s.iflag), word(&OUTPUT, s.oflag), word(&LOCAL, s.lflag), eol)
        .prop_map(|(iflag, oflag, lflag, eol): (u32, u32, u32, u8)| {
            let mut t = Termios { iflag, oflag, lflag, ..Termios::STANDARD };
            t.cc[cc::VEOL] = eol;
            t.cc[cc::VMIN] = 1;
            t.cflag = 0xbf;
            t
        })
        .boxed()
}

fn keys() -> BoxedStrategy<Vec<u8>> {
    let key = prop_oneof![
        6 => proptest::sample::select(&b"abcXYZ019 _-.\t"[..]),
        2 => proptest::sample::select(&b"\x7f\x17\x15\x12\x16\x04\r\n"[..]),
        1 => proptest::sample::select(&b"\x01\x08\x1b\x00\xffq\xc3\xa9\xe2\x82\xac\x80\xe9"[..]),
        // No XON: it plays echo out early, and whether a signal later in the batch still finds that
        // echo in the host's queue depends on timing.
        1 => proptest::sample::select(&b"\x03\x1c\x1a"[..]),
    ];
    proptest::collection::vec(key, 1..24).boxed()
}

fn step() -> BoxedStrategy<Step> {
    prop_oneof![
        1 => settings().prop_map(Step::Settings),
        6 => keys().prop_map(Step::Type),
        2 => proptest::collection::vec(
            proptest::sample::select(&b"abcXYZ \t\n\r\x08\x01\xc3\xa9\xff"[..]), 1..20)
            .prop_map(Step::Print),
        4 => (1usize..12).prop_map(Step::Read),
    ]
    .boxed()
}

fn compare_read(pty: &Pty, model: &mut LineDiscipline, size: usize) -> Result<(), TestCaseError> {
    let theirs = try_read(&pty.slave, size);
    let ours = model.has_input().then(|| {
        let mut out = vec![0; size];
        let taken = model.take(&mut out, true);
        out.truncate(taken.bytes);
        out
    });
    prop_assert_eq!(theirs, ours, "read of {}", size);
    Ok(())
}

/// Plays the steps on both and compares after each.
fn compare(steps: &[Step]) -> Result<(), TestCaseError> {
    let Some(mut pty) = Pty::open() else { return Ok(()) };
    let mut now = Termios::STANDARD;
    now.cflag = 0xbf;
    pty.set(&now);
    let mut model = LineDiscipline::try_new(now).unwrap();
    let mut screen = Screen::default();
    for step in steps {
        match step {
            Step::Settings(t) => {
                now = *t;
                pty.set(t);
                model.set_termios(*t, &mut screen);
                prop_assert_eq!(pty.get(), model.termios().to_termios());
            }
            Step::Type(bytes) => {
                while model.has_input() {
                    compare_read(&pty, &mut model, 64)?;
                }
                pty.master.write_all(bytes).unwrap();
                pty.settle(&now);
                model.receive(bytes, &mut screen);
            }
            Step::Print(bytes) => {
                pty.slave.write_all(bytes).unwrap();
                prop_assert_eq!(model.write(bytes, &mut screen), bytes.len());
            }
            Step::Read(size) => compare_read(&pty, &mut model, *size)?,
        }
        let wanted = std::mem::take(&mut screen.shown);
        prop_assert_eq!(drain(&pty.master), wanted, "shown");
        prop_assert_eq!(pty.pending(), model.input_count(), "waiting");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_session_looks_like_linux(steps in proptest::collection::vec(step(), 1..20)) {
        compare(&steps)?;
    }
}

#[test]
fn familiar_sessions_look_like_linux() {
    let mut oddities = Termios::STANDARD;
    oddities.lflag |= lflag::ECHOPRT;
    let mut raw = Termios::STANDARD;
    (raw.iflag, raw.lflag) = (0, 0);
    let mut utf8 = Termios::STANDARD;
    utf8.iflag |= iflag::IUTF8;
    for steps in [
        vec![Step::Type(b"a\tbc\td\x7f\x7f\x7f\x7f\x7f\x15x\n".to_vec()), Step::Read(9)],
        vec![Step::Print(b"$ ".to_vec()), Step::Type(b"ab\t\x7f\t\x7f\x01\x7f\x12\n".to_vec())],
        vec![Step::Settings(oddities), Step::Type(b"abc\x7f\x7fd\x17e\n".to_vec()), Step::Read(3)],
        vec![Step::Settings(utf8), Step::Type("é€x\x7f\x7f\x7f".as_bytes().to_vec())],
        vec![Step::Type(b"ab\x04cd\x04\x04".to_vec()), Step::Read(2), Step::Read(2), Step::Read(1)],
        vec![
            Step::Type(b"abc".to_vec()),
            Step::Settings(raw),
            Step::Read(2),
            Step::Settings(Termios::STANDARD),
            Step::Read(9),
            Step::Type(b"\n".to_vec()),
            Step::Read(3),
        ],
        vec![Step::Type(b"\x16\x03\x16\x16\xff\n".to_vec()), Step::Read(9)],
    ] {
        let steps: Vec<_> = steps
            .into_iter()
            .map(|s| match s {
                Step::Settings(mut t) => {
                    t.cflag = 0xbf;
                    Step::Settings(t)
                }
                other => other,
            })
            .collect();
        compare(&steps).unwrap();
    }
    assert_eq!(Termios::STANDARD.cc.len(), NCCS);
}

#[test]
fn long_lines_overflow_like_linux() {
    let Some(mut pty) = Pty::open() else { return };
    let mut t = Termios::STANDARD;
    t.lflag &= !lflag::ECHO;
    pty.set(&t);
    let mut model = LineDiscipline::try_new(t).unwrap();
    let mut screen = Screen::default();
    for chunk in 0..50u8 {
        let bytes = [b'a' + chunk % 26; 100];
        pty.master.write_all(&bytes).unwrap();
        model.receive(&bytes, &mut screen);
        pty.settle(&t);
    }
    pty.master.write_all(b"\n").unwrap();
    model.receive(b"\n", &mut screen);
    pty.settle(&t);
    let mut ours = vec![0; 8192];
    let n = model.take(&mut ours, true).bytes;
    ours.truncate(n);
    assert_eq!(try_read(&pty.slave, 8192).unwrap(), ours);
}
