//! The kernel's code for a TPM's FIFO, against a device that keeps to the interface, and against devices that do not.

use proptest::prelude::*;

use crate::tpm::fifo::{Broken, Fifo, PATIENCE, REGISTERS, Registers};

const ACCESS: usize = 0x00;
const STATUS: usize = 0x18;
const DATA: usize = 0x24;

const VALID: u32 = 0x80;
const READY: u32 = 0x40;
const AVAILABLE: u32 = 0x10;
const EXPECTS: u32 = 0x08;

const COMMAND: [u8; 12] = [0x80, 0x01, 0, 0, 0, 12, 0, 0, 0x01, 0x7b, 0, 32];

#[derive(Default)]
enum At {
    #[default]
    Idle,
    Ready,
    Reception,
    Answering,
}

/// A device as the profile's figure of the states has it. It gives bursts of three bytes, and now and then none.
#[derive(Default)]
struct Device {
    granted: bool,
    at: At,
    command: Vec<u8>,
    /// What it answers, and how much of that was read.
    answer: Vec<u8>,
    read: usize,
    looks: u32,
    /// What was written beside the data.
    writes: Vec<(usize, u8)>,
}

impl Device {
    fn answering(answer: &[u8]) -> Self {
        Self { answer: answer.to_vec(), ..Self::default() }
    }

    fn status(&mut self) -> u32 {
        self.looks += 1;
        let pauses = self.looks.is_multiple_of(2);
        let burst = if pauses { 0 } else { 3 << 8 };
        match self.at {
            At::Idle => VALID,
            At::Ready => VALID | READY | burst,
            // Not valid at first: the bits for the data are the wrong ones then.
            At::Reception if pauses && !self.wants_more() => EXPECTS,
            At::Reception if self.wants_more() => VALID | burst | EXPECTS,
            At::Reception => VALID | burst,
            At::Answering if pauses => 0,
            At::Answering if self.read < self.answer.len() => VALID | AVAILABLE | burst,
            At::Answering => VALID,
        }
    }

    /// By the length that stands in the command.
    fn wants_more(&self) -> bool {
        let len = self.command.get(2..6).map(|len| u32::from_be_bytes(len.try_into().unwrap()));
        len.is_none_or(|len| self.command.len() < len as usize)
    }
}

impl Registers for &mut Device {
    fn byte(&mut self, register: usize) -> u8 {
        assert!(register < REGISTERS);
        match register {
            ACCESS => 0x80 | u8::from(self.granted) << 5,
            DATA => {
                self.read += 1;
                *self.answer.get(self.read - 1).expect("a byte that is not there was read")
            }
            _ => panic!("register {register:#x} was read"),
        }
    }

    fn word(&mut self, register: usize) -> u32 {
        assert_eq!(register, STATUS);
        self.status()
    }

    fn write(&mut self, register: usize, value: u8) {
        match (register, value) {
            (DATA, byte) => {
                assert!(matches!(self.at, At::Ready | At::Reception), "nothing is expected");
                self.at = At::Reception;
                self.command.push(byte);
                return;
            }
            (ACCESS, 0x02) => self.granted = true,
            (STATUS, 0x40) => {
                (self.at, self.read) = (At::Ready, 0);
                self.command.clear();
            }
            (STATUS, 0x20) => {
                assert!(!self.wants_more());
                self.at = At::Answering;
            }
            _ => panic!("{value:#x} was written to register {register:#x}"),
        }
        self.writes.push((register, value));
    }
}

/// What a TPM says to the command, in a buffer of `room` bytes.
fn ask(registers: impl Registers, room: usize) -> Result<Option<Vec<u8>>, Broken> {
    let mut fifo = Fifo::open(registers)?;
    fifo.send(&COMMAND)?;
    let mut out = vec![0; room];
    // The device needs a look or two.
    let taken = (0..4).find_map(|_| fifo.answer(&mut out));
    taken.transpose().map(|count| count.map(|count| out[..count].to_vec()))
}

#[test]
fn a_command_and_its_answer_pass_a_fifo() {
    let mut device = Device::answering(&[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(ask(&mut device, 44), Ok(Some(vec![1, 2, 3, 4, 5, 6, 7, 8])));
    assert_eq!(device.command, [0; 0], "the device is ready for the next command");
    assert_eq!(device.writes, [(ACCESS, 2), (STATUS, 0x40), (STATUS, 0x20), (STATUS, 0x40)]);
    let mut device = Device::answering(&[1, 2, 3, 4, 5, 6, 7, 8]);
    Fifo::open(&mut device).unwrap().send(&COMMAND).unwrap();
    assert_eq!(device.command, COMMAND);
}

#[test]
fn an_answer_longer_than_the_buffer_ends_there() {
    let mut device = Device::answering(&[7; 4096]);
    assert_eq!(ask(&mut device, 44), Ok(Some(vec![7; 44])));
    assert!(device.read == 0 && matches!(device.at, At::Ready), "the rest is not left there");
}

#[test]
fn a_tpm_at_work_is_not_waited_for() {
    assert_eq!(ask(&mut Device::default(), 44), Ok(None));
}

/// Registers that always say the same, or anything.
struct Liar<F> {
    status: F,
    looks: u32,
}

impl<F: FnMut() -> u32> Registers for Liar<F> {
    fn byte(&mut self, register: usize) -> u8 {
        assert!(register < REGISTERS);
        if register == ACCESS { 0xa0 } else { 0x5a }
    }

    fn word(&mut self, _: usize) -> u32 {
        self.looks += 1;
        assert!(self.looks <= 3 * PATIENCE, "it is waited for without end");
        (self.status)()
    }

    fn write(&mut self, register: usize, _: u8) {
        assert!(register < REGISTERS);
    }
}

fn ask_liar(status: impl FnMut() -> u32) -> Result<Option<Vec<u8>>, Broken> {
    ask(Liar { status, looks: 0 }, 44)
}

#[test]
fn registers_that_always_say_the_same_end_the_wait() {
    // Nothing there at all; never ready; no room for a byte, ever; more is expected, ever.
    for status in [0xffff_ffff, 0, VALID, VALID | READY, VALID | READY | EXPECTS | 0x100] {
        assert_eq!(ask_liar(|| status), Err(Broken), "{status:#x}");
    }
}

/// A device that gives no locality is left alone.
#[test]
fn a_locality_that_is_refused_ends_the_wait() {
    struct Refuses(u32);
    impl Registers for Refuses {
        fn byte(&mut self, _: usize) -> u8 {
            self.0 += 1;
            assert!(self.0 <= 2 * PATIENCE);
            0x81
        }
        fn word(&mut self, _: usize) -> u32 {
            unreachable!()
        }
        fn write(&mut self, _: usize, _: u8) {}
    }
    assert!(Fifo::open(Refuses(0)).is_err());
}

/// It said that it had more, and then gives no byte.
#[test]
fn an_answer_that_never_comes_ends_the_wait() {
    let mut looks = 0;
    let told = ask_liar(|| {
        looks += 1;
        match looks {
            1..=2 => VALID | READY | 0x100,
            3..=13 => VALID | EXPECTS | 0x100,
            14 => VALID,
            _ => VALID | AVAILABLE,
        }
    });
    assert_eq!(told, Err(Broken));
}

proptest! {
    /// Whatever the status says at each look: it comes to an end, and nothing beyond the buffer is taken.
    #[test]
    fn any_status_comes_to_an_end(said in prop::collection::vec(any::<u32>(), 1..200), ready in any::<bool>()) {
        let mut at = 0;
        let told = ask_liar(|| {
            at += 1;
            said[at % said.len()] | if ready { READY | VALID | 0x100 } else { 0 }
        });
        if let Ok(Some(bytes)) = told {
            prop_assert!(bytes.len() <= 44 && bytes.iter().all(|&byte| byte == 0x5a));
        }
    }
}
