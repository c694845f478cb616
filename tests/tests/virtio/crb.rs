//! The kernel's code for a TPM's command/response buffer, against a device that keeps to the interface, and against devices that
//! do not.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use proptest::prelude::*;

use crate::tpm::crb::{Buffer, Control, Crb, LONGEST, PATIENCE, REGISTERS, place};
use crate::tpm::fifo::Broken;

const COMMAND: [u8; 12] = [0x80, 0x01, 0, 0, 0, 12, 0, 0, 0x01, 0x7b, 0, 32];
const ANSWER: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

const REQUEST_LOCALITY: usize = 0x08;
const LOCALITY_STATUS: usize = 0x0c;
const CONTROL_REQUEST: usize = 0x40;
const CONTROL_STATUS: usize = 0x44;
const START: usize = 0x4c;
/// Size, low and high half of the address, of the command's buffer and of the answer's.
const PLACES: [[usize; 3]; 2] = [[0x58, 0x5c, 0x60], [0x64, 0x68, 0x6c]];

/// Memory of the device's.
type Memory = Rc<RefCell<Vec<u8>>>;

#[derive(Clone)]
struct Shared(Memory);

impl Buffer for Shared {
    fn len(&self) -> usize {
        self.0.borrow().len()
    }

    fn load(&self, at: usize) -> u8 {
        self.0.borrow()[at]
    }

    fn store(&mut self, at: usize, byte: u8) {
        self.0.borrow_mut()[at] = byte;
    }
}

/// A device that takes a command from its first buffer and answers in the second, which may be the same.
struct Device {
    buffers: [Memory; 2],
    sizes: [u32; 2],
    granted: bool,
    request: u32,
    is_fatal: bool,
    /// The command that it was given.
    heard: Rc<RefCell<Vec<u8>>>,
}

impl Device {
    fn new(buffers: [Memory; 2]) -> Self {
        let sizes = buffers.each_ref().map(|buffer| buffer.borrow().len() as u32);
        let heard = Rc::default();
        Self { buffers, sizes, granted: false, request: 0, is_fatal: false, heard }
    }

    fn addresses(&self) -> [u64; 2] {
        let same = Rc::ptr_eq(&self.buffers[0], &self.buffers[1]);
        [0x1_0000_1000, if same { 0x1_0000_1000 } else { 0x1_0000_3000 }]
    }
}

impl Control for Device {
    fn read(&self, register: usize) -> u32 {
        assert!(register + 4 <= REGISTERS && register.is_multiple_of(4));
        match register {
            LOCALITY_STATUS => self.granted.into(),
            CONTROL_REQUEST => self.request,
            CONTROL_STATUS => self.is_fatal.into(),
            START => 0,
            _ => {
                let is_of = |place: &[usize; 3]| place.contains(&register);
                let which = PLACES.iter().position(is_of).expect("a register that there is");
                let [size, low, _] = PLACES[which];
                match register {
                    _ if register == size => self.sizes[which],
                    _ if register == low => self.addresses()[which] as u32,
                    _ => (self.addresses()[which] >> 32) as u32,
                }
            }
        }
    }

    fn write(&mut self, register: usize, value: u32) {
        match (register, value) {
            (REQUEST_LOCALITY, 1) => self.granted = true,
            // Ready, or idle, at once.
            (CONTROL_REQUEST, 1 | 2) => self.request = 0,
            (START, 1) => {
                assert!(self.granted);
                *self.heard.borrow_mut() = self.buffers[0].borrow()[..COMMAND.len()].to_vec();
                self.buffers[1].borrow_mut()[..ANSWER.len()].copy_from_slice(&ANSWER);
            }
            _ => panic!("{value:#x} was written to register {register:#x}"),
        }
    }
}

fn memory(len: usize) -> Memory {
    Rc::new(RefCell::new(vec![0; len]))
}

/// A TPM with these buffers; each is made reachable by its address.
fn open(device: Device) -> Result<Crb<Device, Shared>, Broken> {
    let (addresses, buffers) = (device.addresses(), device.buffers.clone());
    Crb::open(device, |start, len| {
        let which = addresses.iter().position(|at| *at == start).ok_or(Broken)?;
        assert!(len <= LONGEST);
        Ok(Shared(buffers[which].clone()))
    })
}

#[test]
fn a_command_and_its_answer_pass_the_buffers() {
    let one = memory(64);
    for buffers in [[one.clone(), one], [memory(64), memory(64)]] {
        let device = Device::new(buffers.clone());
        let heard = device.heard.clone();
        let mut tpm = open(device).unwrap();
        tpm.send(&COMMAND).unwrap();
        assert_eq!(*heard.borrow(), COMMAND);
        let mut out = [0; 44];
        assert_eq!(tpm.answer(&mut out), Some(Ok(44)));
        assert_eq!(out[..ANSWER.len()], ANSWER);
    }
}

/// The memory that the device answered in, after the answer was taken.
#[test]
fn an_answer_is_wiped_where_the_device_put_it() {
    let buffers = [memory(64), memory(64)];
    let mut tpm = open(Device::new(buffers.clone())).unwrap();
    for room in [8, 44, 64, 100] {
        tpm.send(&COMMAND).unwrap();
        assert_eq!(buffers[1].borrow()[..8], ANSWER);
        let mut out = vec![0; room];
        assert_eq!(tpm.answer(&mut out), Some(Ok(room.min(64))));
        assert_eq!((&out[..8], &buffers[1].borrow()[..]), (&ANSWER[..], &[0; 64][..]), "{room}");
    }
}

#[test]
fn a_command_longer_than_the_buffer_is_not_sent() {
    let mut tpm = open(Device::new([memory(11), memory(64)])).unwrap();
    assert_eq!(tpm.send(&COMMAND), Err(Broken));
}

#[test]
fn a_fatal_error_brings_nothing() {
    let mut device = Device::new([memory(64), memory(64)]);
    device.is_fatal = true;
    let mut tpm = open(device).unwrap();
    tpm.send(&COMMAND).unwrap();
    assert_eq!(tpm.answer(&mut [0; 44]), Some(Err(Broken)));
}

/// No more than [`LONGEST`] is reached of what a device calls its buffer, and nothing of what it may not name.
#[test]
fn buffers_that_cannot_be_are_refused_or_cut() {
    let mut device = Device::new([memory(LONGEST), memory(LONGEST)]);
    device.sizes = [u32::MAX; 2];
    assert!(open(device).is_ok());
    let nowhere = Device::new([memory(64), memory(64)]);
    assert!(Crb::open(nowhere, |_, _| Err::<Shared, _>(Broken)).is_err());
    assert_eq!((place(0x3f), place(0xfed4_0040)), (Err(Broken), Ok(0xfed4_0000)));
}

/// Registers that say what a list says, and never more often than they may be asked.
struct Liar {
    said: Vec<u32>,
    looks: Cell<usize>,
}

impl Control for Liar {
    fn read(&self, _: usize) -> u32 {
        let look = self.looks.replace(self.looks.get() + 1);
        assert!(look <= 3 * PATIENCE as usize, "it is waited for without end");
        self.said[look % self.said.len()]
    }

    fn write(&mut self, register: usize, _: u32) {
        assert!(register + 4 <= REGISTERS);
    }
}

proptest! {
    /// Whatever the registers say at each look: it comes to an end, and no buffer is longer than what was asked for.
    #[test]
    fn any_registers_come_to_an_end(said in prop::collection::vec(any::<u32>(), 1..50)) {
        let liar = Liar { said, looks: Cell::new(0) };
        let opened = Crb::open(liar, |_, len| Ok(Shared(memory(len))));
        if let Ok(mut tpm) = opened && tpm.send(&COMMAND).is_ok() {
            let mut out = [0; 44];
            prop_assert!(!matches!(tpm.answer(&mut out), Some(Ok(count)) if count > 44));
        }
    }

    #[test]
    fn one_word_for_ever_comes_to_an_end(word: u32) {
        let liar = Liar { said: vec![word], looks: Cell::new(0) };
        if let Ok(mut tpm) = Crb::open(liar, |_, len| Ok(Shared(memory(len)))) {
            let _judged_by_the_looks = tpm.send(&COMMAND);
        }
    }
}
