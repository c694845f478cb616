//! The control queues of a console: what a host says of its ports, and what it says wrongly.

use super::*;
use crate::ports::{MOST_PORTS, PortState};

/// A device that says which ports it has, and its sides of the queues by number.
fn talkative(ports: u32) -> (Ports<HostHal, FakeTransport>, Rc<RefCell<State>>) {
    SHARED.with_borrow_mut(Vec::clear);
    let state = Rc::new(RefCell::new(State::default()));
    let features = VERSION_1 | 1 << 1;
    let transport = FakeTransport { state: state.clone(), features, queue_size: 64, ports };
    (Ports::new(transport, 1).unwrap_or_else(|_| panic!("the device was refused")), state)
}

/// The device's end of the control queues.
struct Host {
    to_guest: Device,
    from_guest: Device,
    said: u16,
    heard: u16,
}

impl Host {
    fn new(state: &Rc<RefCell<State>>) -> Self {
        let side = |queue| Device(state.clone(), queue);
        Self { to_guest: side(2), from_guest: side(3), said: 0, heard: 0 }
    }

    /// Puts a message into the next buffer.
    fn say(&mut self, port: u32, event: u16, value: u16, claimed: u32) {
        let slot = u64::from(self.said) % 32;
        // SAFETY: the driver's descriptor table, 16 bytes an entry.
        let at = unsafe {
            (self.to_guest.rings().descriptors as *const u64).add(2 * slot as usize).read()
        };
        let mut bytes = port.to_le_bytes().to_vec();
        bytes.extend(event.to_le_bytes());
        bytes.extend(value.to_le_bytes());
        self.to_guest.write(at, &bytes);
        self.to_guest.used(slot, slot as u32, claimed);
        self.said += 1;
        self.to_guest.set_index(self.said);
    }

    /// The message that the guest sent last; it gets its buffer back.
    fn hear(&mut self) -> (u32, u16, u16) {
        let (at, len) = self.from_guest.buffer();
        assert_eq!(len, 8);
        // SAFETY: the buffer of the queue, which nobody changes meanwhile.
        let bytes = unsafe { (at as *const [u8; 8]).read_unaligned() };
        self.from_guest.used(u64::from(self.heard) % 2, 0, 0);
        self.heard += 1;
        self.from_guest.set_index(self.heard);
        let number = u64::from_le_bytes(bytes);
        (number as u32, (number >> 32) as u16, (number >> 48) as u16)
    }
}

const ADD: u16 = 1;
const REMOVE: u16 = 2;
const CONSOLE: u16 = 4;
const OPEN: u16 = 6;

/// QEMU's `virtserialport` is port 1 of 31: port 0 is not there, and nothing goes to it.
#[test]
fn a_port_is_there_when_the_host_says_so() {
    let (mut ports, state) = talkative(31);
    let mut host = Host::new(&state);
    assert_eq!(ports.look(), Ok(false));
    assert_eq!(host.hear(), (0, 0, 1), "the device is ready");
    assert_eq!(ports.send(1, b"too early"), Err(Broken));
    host.say(1, ADD, 1, 8);
    assert_eq!(ports.look(), Ok(false));
    assert_eq!(host.hear(), (1, 3, 1), "the port is ready");
    host.say(1, OPEN, 1, 8);
    assert_eq!(ports.look(), Ok(true));
    assert_eq!(ports.state(1), PortState { exists: true, connected: true, console: false });
    assert_eq!(ports.state(0), PortState::default());
    assert_eq!(ports.send(1, b"to the host"), Ok(11));
    assert_eq!(ports.send(0, b"to nobody"), Err(Broken));
    let (at, len) = Device(state.clone(), 5).buffer();
    // SAFETY: the buffer of the outgoing queue, which nobody changes meanwhile.
    let sent = unsafe { std::slice::from_raw_parts(at as *const u8, len as usize) };
    assert_eq!(sent, b"to the host");
    ports.set_open(1, true).unwrap();
    assert_eq!(host.hear(), (1, 6, 1));
    host.say(1, OPEN, 0, 8);
    host.say(1, REMOVE, 1, 8);
    ports.look().unwrap();
    assert_eq!(ports.state(1), PortState::default());
    guards_are_whole();
}

/// QEMU's `virtconsole`: the host says that it is a console, and hears that it is open.
#[test]
fn a_port_is_a_console_when_the_host_says_so() {
    let (mut ports, state) = talkative(31);
    let mut host = Host::new(&state);
    assert_eq!(ports.look(), Ok(false));
    host.hear();
    host.say(0, CONSOLE, 1, 8);
    host.say(0, ADD, 1, 8);
    ports.look().unwrap();
    assert!(!ports.state(0).console, "the port was not there yet");
    assert_eq!(host.hear(), (0, 3, 1));
    host.say(0, CONSOLE, 1, 8);
    ports.look().unwrap();
    assert_eq!(host.hear(), (0, 6, 1));
    assert_eq!(ports.state(0), PortState { exists: true, connected: false, console: true });
}

/// Ports with wild numbers, messages that are cut off, and more of them than there are buffers.
#[test]
fn what_a_host_says_wrongly_is_ignored() {
    let (mut ports, state) = talkative(u32::MAX);
    let mut host = Host::new(&state);
    for port in [8, 31, 0x1_0000, u32::MAX - 1] {
        host.say(port, ADD, 1, 8);
        host.say(port, OPEN, 1, 8);
    }
    host.say(2, ADD, 1, 7);
    host.say(3, OPEN, 1, 8);
    host.say(u32::MAX, 0xffff, 0xffff, u32::MAX);
    ports.look().unwrap();
    assert_eq!(ports.beyond(), 4);
    assert!((0..MOST_PORTS).all(|port| !ports.state(port).exists));
    for _ in 0..100 {
        host.say(1, ADD, 1, 8);
        let looked = ports.look();
        if looked == Err(Broken) {
            guards_are_whole();
            return;
        }
    }
    panic!("answers pile up without end while the device takes none");
}

#[test]
fn a_wrong_buffer_of_the_control_queue_is_the_end() {
    let (mut ports, state) = talkative(31);
    let host = Host::new(&state);
    host.to_guest.used(0, 32, 8);
    host.to_guest.set_index(1);
    assert_eq!(ports.look(), Err(Broken));
    assert_eq!(state.borrow().status, DeviceStatus::FAILED);
    assert_eq!(ports.look(), Err(Broken), "it is not talked to any more");
}
