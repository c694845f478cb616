//! The discipline by itself: the rules that are awkward to show on a real terminal.

mod support;

use alea_tty::termios::{cc, iflag, lflag, oflag};
use alea_tty::{LineDiscipline, LineStatus, ReadRules, Termios, TtySignal};
use support::Screen;

fn terminal() -> (LineDiscipline, Screen) {
    (LineDiscipline::try_new(Termios::STANDARD).unwrap(), Screen::default())
}

fn read(tty: &mut LineDiscipline) -> Vec<u8> {
    let mut out = [0; 64];
    let taken = tty.take(&mut out, true);
    out[..taken.bytes].to_vec()
}

#[test]
fn a_line_is_edited_and_delivered_whole() {
    let (mut tty, mut screen) = terminal();
    assert_eq!(tty.receive(b"helo\x7flo", &mut screen), 7);
    assert!(!tty.has_input());
    tty.receive(b"\r", &mut screen);
    assert!(tty.has_input());
    assert_eq!(read(&mut tty), b"hello\n");
    assert_eq!(screen.text(), b"helo\x08 \x08lo\r\n");
}

#[test]
fn signals_flush_what_was_typed() {
    let (mut tty, mut screen) = terminal();
    tty.receive(b"rm -rf\x03", &mut screen);
    assert_eq!(screen.signals, [TtySignal::Interrupt]);
    assert_eq!(tty.input_count(), 0);
    tty.receive(b"ok\n", &mut screen);
    assert_eq!(read(&mut tty), b"ok\n");
}

#[test]
fn end_of_file_ends_a_read_once() {
    let (mut tty, mut screen) = terminal();
    tty.receive(b"ab\x04", &mut screen);
    assert_eq!(tty.input_count(), 2);
    let mut two = [0; 2];
    assert_eq!(tty.take(&mut two, true).bytes, 2);
    assert!(!tty.has_input());
    tty.receive(b"\x04", &mut screen);
    assert!(tty.has_input());
    assert_eq!(read(&mut tty), b"");
    assert!(!tty.has_input());
}

#[test]
fn full_screen_delays_echo_and_output() {
    let (mut tty, mut screen) = terminal();
    screen.room = 1;
    assert_eq!(tty.write(b"a\nb", &mut screen), 1);
    screen.room = 2;
    tty.receive(b"x", &mut screen);
    screen.room = 100;
    assert_eq!(tty.write(b"\nb", &mut screen), 2);
    assert_eq!(screen.text(), b"ax\r\nb");
}

#[test]
fn stopped_output_restarts_on_start_character() {
    let (mut tty, mut screen) = terminal();
    tty.receive(b"\x13", &mut screen);
    assert!(tty.is_stopped() && screen.stopped);
    tty.receive(b"\x11", &mut screen);
    assert!(!tty.is_stopped() && !screen.stopped);
    tty.set_stopped_by_user(true, &mut screen);
    tty.receive(b"\x11", &mut screen);
    assert!(tty.is_stopped());
    tty.set_stopped_by_user(false, &mut screen);
    assert!(!tty.is_stopped());
}

#[test]
fn the_line_end_can_always_be_typed() {
    let (mut tty, mut screen) = terminal();
    screen.room = usize::MAX;
    let long = vec![b'a'; 5000];
    assert_eq!(tty.receive(&long, &mut screen), 5000);
    assert_eq!(tty.receive(b"\n", &mut screen), 1);
    assert_eq!(tty.input_count(), 4096);
    assert_eq!(tty.receive(b"more", &mut screen), 0);
}

#[test]
fn raw_mode_stops_when_full() {
    let (mut tty, mut screen) = terminal();
    let mut raw = Termios::STANDARD;
    raw.iflag = 0;
    raw.lflag = 0;
    tty.set_termios(raw, &mut screen);
    assert_eq!(tty.receive(&vec![0x80; 5000], &mut screen), 4095);
    assert!(screen.text().is_empty());
}

#[test]
fn reading_rules_follow_vmin_and_vtime() {
    let (mut tty, mut screen) = terminal();
    assert_eq!(tty.read_rules(), ReadRules { minimum: 0, first: None, next: None });
    let mut t = Termios::STANDARD;
    t.lflag &= !lflag::ICANON;
    for (min, time, rules) in [
        (0, 0, ReadRules { minimum: 1, first: Some(0), next: None }),
        (0, 7, ReadRules { minimum: 1, first: Some(7), next: None }),
        (3, 0, ReadRules { minimum: 3, first: None, next: None }),
        (3, 7, ReadRules { minimum: 3, first: None, next: Some(7) }),
    ] {
        (t.cc[cc::VMIN], t.cc[cc::VTIME]) = (min, time);
        tty.set_termios(t, &mut screen);
        assert_eq!(tty.read_rules(), rules);
    }
    (t.cc[cc::VMIN], t.cc[cc::VTIME]) = (3, 0);
    tty.set_termios(t, &mut screen);
    tty.receive(b"ab", &mut screen);
    assert!(tty.has_input() && !tty.poll_input());
    tty.receive(b"c", &mut screen);
    assert!(tty.poll_input());
}

#[test]
fn line_conditions_are_reported_as_asked() {
    let (mut tty, mut screen) = terminal();
    let mut t = Termios::STANDARD;
    t.lflag = 0;
    for (flags, status, wanted) in [
        (iflag::IGNBRK, LineStatus::Break, &b""[..]),
        (0, LineStatus::Break, b"\0"),
        (iflag::PARMRK, LineStatus::Break, b"\xff\0\0"),
        (0, LineStatus::Parity, b"x"),
        (iflag::INPCK, LineStatus::Parity, b"\0"),
        (iflag::INPCK | iflag::IGNPAR, LineStatus::Parity, b""),
        (iflag::INPCK | iflag::PARMRK, LineStatus::Frame, b"\xff\0x"),
    ] {
        t.iflag = flags;
        tty.set_termios(t, &mut screen);
        assert!(tty.receive_flagged(b'x', status, &mut screen));
        assert_eq!(read(&mut tty), wanted, "{flags:#x} {status:?}");
    }
    t.iflag = iflag::BRKINT;
    tty.set_termios(t, &mut screen);
    tty.receive_flagged(0, LineStatus::Break, &mut screen);
    assert_eq!(screen.signals, [TtySignal::Interrupt]);
}

#[test]
fn tabs_expand_from_the_true_column() {
    let (mut tty, mut screen) = terminal();
    let mut t = Termios::STANDARD;
    t.oflag |= oflag::XTABS;
    tty.set_termios(t, &mut screen);
    tty.write(b"abc\td\n\tx", &mut screen);
    assert_eq!(screen.text(), b"abc     d\r\n        x");
}

#[test]
fn speeds_follow_the_coded_ones_unless_other() {
    let mut t = Termios::STANDARD;
    let mut user = t.to_termios2();
    user.cflag = (user.cflag & !0x100f) | 0x1002;
    t.set_from_termios2(&user);
    assert_eq!((t.ispeed, t.ospeed), (115_200, 115_200));
    user.cflag = (user.cflag & !0x100f) | 0x1000;
    (user.ispeed, user.ospeed) = (1234, 1234);
    t.set_from_termios2(&user);
    assert_eq!(t.ospeed, 1234);
    assert_eq!(t.to_termios2(), user);
    let bytes = user.to_bytes();
    assert_eq!(alea_tty::UserTermios2::from_bytes(&bytes), user);
    let old = t.to_termio();
    assert_eq!(alea_tty::Termio::from_bytes(&old.to_bytes()), old);
}
