//! A virtio console: its ports, each with a queue for each direction, and the control queues by which the host says which
//! ports it gave.
//!
//! Owns the queues, the buffers of the ports that are there, and what the host said of each port. A device without the
//! multi-port feature has port 0, a console, and says nothing of it. What comes through the control queue is believed as far as it can be
//! checked: a number of a port is a number below [`MOST_PORTS`] or ignored, and a name is not looked at. Nothing here ever
//! waits. Never gives a buffer back. No locks; whoever shares a device puts one around it.
//!
//! Knows nothing of this kernel, so that the host tests it against hostile devices (`tests/tests/virtio/`).
//! Source: Virtual I/O Device 1.2, section 5.3.

use core::array;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::slice;

use super::queue::{Broken, Features, Line, Progress, begin};
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::{DeviceStatus, Transport};
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE};

/// Ports with higher numbers are not used.
pub const MOST_PORTS: usize = 8;
/// The control queue from the host, and the one towards it.
const FROM_HOST: u16 = 2;
const TO_HOST: u16 = 3;
/// Messages that the host may send at once: QEMU drops what finds no buffer.
const LETTERS: usize = 32;
const LETTER_BYTES: usize = PAGE_SIZE / LETTERS;
/// Answers that wait until the device has taken the one before; a device that lets more wait is broken.
const MOST_ANSWERS: usize = 64;
/// Where configuration space has the number of ports.
const CONFIG_PORTS: usize = 4;

/// What a control message is about.
mod event {
    pub const DEVICE_READY: u16 = 0;
    pub const PORT_ADD: u16 = 1;
    pub const PORT_REMOVE: u16 = 2;
    pub const PORT_READY: u16 = 3;
    pub const CONSOLE_PORT: u16 = 4;
    pub const PORT_OPEN: u16 = 6;
}

/// A control message without what may follow it: struct virtio_console_control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Message {
    port: u32,
    event: u16,
    value: u16,
}

impl Message {
    const BYTES: usize = 8;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let number =
            u64::from(self.port) | u64::from(self.event) << 32 | u64::from(self.value) << 48;
        number.to_le_bytes()
    }

    fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let number = u64::from_le_bytes(bytes);
        Self { port: number as u32, event: (number >> 32) as u16, value: (number >> 48) as u16 }
    }
}

/// The control queue from the host: every buffer is with the device but while it is looked at.
struct Mailbox<H: Hal> {
    // Never dropped: the device knows its memory.
    queue: ManuallyDrop<VirtQueue<H, LETTERS>>,
    buffer: NonNull<u8>,
    /// Which part of the buffer was offered with a token.
    part_of: [u8; LETTERS],
    broken: bool,
}

// SAFETY: the buffer belongs to this value alone, wherever it is.
unsafe impl<H: Hal> Send for Mailbox<H> {}

impl<H: Hal> Mailbox<H> {
    fn new<T: Transport>(transport: &mut T) -> Result<Self, Broken> {
        let queue = VirtQueue::new(transport, FROM_HOST, false, false)?;
        let mut queue = ManuallyDrop::new(queue);
        queue.set_dev_notify(false);
        let (phys, buffer) = H::dma_alloc(1, BufferDirection::DeviceToDriver);
        if phys == 0 {
            return Err(Broken);
        }
        Ok(Self { queue, buffer, part_of: [0; LETTERS], broken: false })
    }

    fn part(&self, part: u8) -> *mut u8 {
        self.buffer.as_ptr().wrapping_add(usize::from(part) % LETTERS * LETTER_BYTES)
    }

    fn offer<T: Transport>(&mut self, transport: &mut T, part: u8) -> Result<(), Broken> {
        // SAFETY: a part of the buffer, which is never freed, and which is not touched until `take` has it back.
        let token = unsafe {
            let bytes = slice::from_raw_parts_mut(self.part(part), LETTER_BYTES);
            self.queue.add(&[], &mut [bytes])
        }?;
        *self.part_of.get_mut(usize::from(token)).ok_or(Broken)? = part;
        if self.queue.should_notify() {
            transport.notify(FROM_HOST);
        }
        Ok(())
    }

    /// The next message, if there is one. Its buffer goes back to the device.
    fn take<T: Transport>(&mut self, transport: &mut T) -> Result<Option<Message>, Broken> {
        if self.broken {
            return Err(Broken);
        }
        let Some(token) = self.queue.peek_used() else { return Ok(None) };
        let taken = self.pop(token);
        if taken.is_err() {
            // Whatever the device meant, it may still have the buffer: nothing is offered again.
            self.broken = true;
            transport.set_status(DeviceStatus::FAILED);
        }
        let (part, message) = taken?;
        self.offer(transport, part)?;
        Ok(Some(message))
    }

    fn pop(&mut self, token: u16) -> Result<(u8, Message), Broken> {
        let part = *self.part_of.get(usize::from(token)).ok_or(Broken)?;
        let at = self.part(part);
        // SAFETY: the same part of the buffer that was offered with this token. A device that writes on after it gave
        // the part back changes what is copied and nothing else: no reference to the bytes is left then.
        let (claimed, bytes) = unsafe {
            let bytes = slice::from_raw_parts_mut(at, LETTER_BYTES);
            let claimed = self.queue.pop_used(token, &[], &mut [bytes])?;
            (claimed, at.cast::<[u8; Message::BYTES]>().read_volatile())
        };
        // A message that is too short is one that says nothing.
        let whole = claimed as usize >= Message::BYTES;
        let nothing = Message { port: u32::MAX, ..Message::default() };
        Ok((part, if whole { Message::from_bytes(bytes) } else { nothing }))
    }
}

/// The control queues, and the answers that are not sent yet.
struct Control<H: Hal> {
    inbox: Mailbox<H>,
    outbox: Line<H>,
    answers: [Message; MOST_ANSWERS],
    /// Of `answers`: the first that is not sent, and how many there are.
    first: usize,
    waiting: usize,
}

impl<H: Hal> Control<H> {
    fn post(&mut self, message: Message) -> Result<(), Broken> {
        if self.waiting == MOST_ANSWERS {
            return Err(Broken);
        }
        let at = (self.first + self.waiting) % MOST_ANSWERS;
        *self.answers.get_mut(at).ok_or(Broken)? = message;
        self.waiting += 1;
        Ok(())
    }

    /// Sends the next answer, if the device has taken the one before. Whether nothing is left to send.
    fn send<T: Transport>(&mut self, transport: &mut T) -> Result<bool, Broken> {
        if self.outbox.poll(transport)? == Progress::Pending {
            return Ok(false);
        }
        if self.waiting == 0 {
            return Ok(true);
        }
        let message = *self.answers.get(self.first).ok_or(Broken)?;
        self.outbox.send(transport, &message.to_bytes())?;
        self.first = (self.first + 1) % MOST_ANSWERS;
        self.waiting -= 1;
        Ok(false)
    }
}

/// What the host said of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// The host gave it, and its buffers are there.
    pub exists: bool,
    /// Somebody listens at the host's end.
    pub connected: bool,
    /// The host means it for a console.
    pub console: bool,
}

/// The two queues of a port.
struct Port<H: Hal> {
    incoming: Line<H>,
    outgoing: Line<H>,
    state: PortState,
}

/// A console device.
pub struct Ports<H: Hal, T: Transport> {
    transport: ManuallyDrop<T>,
    ports: [Option<Port<H>>; MOST_PORTS],
    control: Option<Control<H>>,
    /// Pages of each buffer.
    pages: usize,
    beyond: u32,
}

/// The number of a port's queue from the host; the other one is the next.
fn queue_of(port: usize) -> u16 {
    if port == 0 { 0 } else { port as u16 * 2 + 2 }
}

impl<H: Hal, T: Transport> Ports<H, T> {
    /// Sets the device up. Each port gets a buffer of `pages` for each direction once it is known to be there.
    pub fn new(transport: T, pages: usize) -> Result<Self, Broken> {
        let (mut transport, features) =
            begin(transport, Features::VERSION_1 | Features::MULTIPORT)?;
        let many = features.contains(Features::MULTIPORT);
        let count = match many {
            true => (transport.read_config_space::<u32>(CONFIG_PORTS)? as usize).min(MOST_PORTS),
            false => 1,
        };
        let mut ports = array::from_fn(|_| None);
        for (number, port) in ports.iter_mut().enumerate().take(count) {
            let index = queue_of(number);
            let incoming = Line::without_buffer(&mut *transport, index)?;
            let outgoing = Line::without_buffer(&mut *transport, index + 1)?;
            *port = Some(Port { incoming, outgoing, state: PortState::default() });
        }
        let control = match many {
            true => Some(Control {
                inbox: Mailbox::new(&mut *transport)?,
                outbox: Line::new(&mut *transport, TO_HOST, 1)?,
                answers: [Message::default(); MOST_ANSWERS],
                first: 0,
                waiting: 0,
            }),
            false => None,
        };
        transport.finish_init();
        let mut ports = Self { transport, ports, control, pages, beyond: 0 };
        ports.begin_to_talk()?;
        Ok(ports)
    }

    fn begin_to_talk(&mut self) -> Result<(), Broken> {
        let Some(control) = &mut self.control else {
            self.add(0)?;
            self.set(0, |state| (state.connected, state.console) = (true, true));
            return Ok(());
        };
        for part in 0..LETTERS as u8 {
            control.inbox.offer(&mut *self.transport, part)?;
        }
        // The port's number means nothing here.
        control.post(Message { port: 0, event: event::DEVICE_READY, value: 1 })
    }

    /// Hears what the host has to say and sends what is to be said; never waits. Whether nothing is left to say.
    pub fn look(&mut self) -> Result<bool, Broken> {
        // Bounded: a device that never stops talking is heard again at the next look.
        for _ in 0..LETTERS {
            let Some(control) = &mut self.control else { return Ok(true) };
            let Some(message) = control.inbox.take(&mut *self.transport)? else { break };
            self.hear(message)?;
        }
        let Some(control) = &mut self.control else { return Ok(true) };
        control.send(&mut *self.transport)
    }

    fn hear(&mut self, message: Message) -> Result<(), Broken> {
        let port = message.port as usize;
        match message.event {
            event::PORT_ADD if port < MOST_PORTS => {
                self.add(port)?;
                self.say(port, event::PORT_READY, 1)
            }
            event::PORT_ADD if message.port != u32::MAX => {
                self.beyond = self.beyond.saturating_add(1);
                Ok(())
            }
            event::PORT_REMOVE => {
                if let Some(Some(port)) = self.ports.get_mut(port) {
                    port.state = PortState::default();
                }
                Ok(())
            }
            event::PORT_OPEN => {
                self.set(port, |state| state.connected = message.value != 0);
                Ok(())
            }
            event::CONSOLE_PORT if self.state(port).exists => {
                self.set(port, |state| state.console = true);
                self.say(port, event::PORT_OPEN, 1)
            }
            // Names, and sizes of screens.
            _ => Ok(()),
        }
    }

    fn add(&mut self, port: usize) -> Result<(), Broken> {
        let Some(Some(port)) = self.ports.get_mut(port) else { return Ok(()) };
        if port.outgoing.capacity() == 0 {
            port.incoming.give_buffer(self.pages)?;
            port.outgoing.give_buffer(self.pages)?;
            port.incoming.request(&mut *self.transport)?;
        }
        port.state.exists = true;
        Ok(())
    }

    fn set(&mut self, port: usize, set: impl FnOnce(&mut PortState)) {
        if let Some(Some(port)) = self.ports.get_mut(port) {
            set(&mut port.state);
        }
    }

    fn say(&mut self, port: usize, event: u16, value: u16) -> Result<(), Broken> {
        match &mut self.control {
            Some(control) => control.post(Message { port: port as u32, event, value }),
            None => Ok(()),
        }
    }

    /// Tells the host whether a program has the port open.
    pub fn set_open(&mut self, port: usize, open: bool) -> Result<(), Broken> {
        self.say(port, event::PORT_OPEN, u16::from(open))?;
        self.look().map(drop)
    }

    /// What is known of a port.
    pub fn state(&self, port: usize) -> PortState {
        self.ports.get(port).and_then(Option::as_ref).map_or(PortState::default(), |p| p.state)
    }

    /// How many ports the host gave whose numbers are too high.
    pub fn beyond(&self) -> u32 {
        self.beyond
    }

    /// How many bytes fit into one transfer, of either direction.
    pub fn capacity(&self) -> usize {
        self.pages * PAGE_SIZE
    }

    fn with<R>(
        &mut self,
        port: usize,
        f: impl FnOnce(&mut Port<H>, &mut T) -> Result<R, Broken>,
    ) -> Result<R, Broken> {
        let port = self.ports.get_mut(port).and_then(Option::as_mut).ok_or(Broken)?;
        f(port, &mut *self.transport)
    }

    /// Lets the device fill the port's incoming buffer. A port that appears is asked at once.
    pub fn request(&mut self, port: usize) -> Result<(), Broken> {
        self.with(port, |port, transport| port.incoming.request(transport))
    }

    /// Looks whether the device has filled the incoming buffer; never waits.
    pub fn poll_incoming(&mut self, port: usize) -> Result<Progress, Broken> {
        self.with(port, |port, transport| port.incoming.poll(transport))
    }

    /// Copies the start of the incoming buffer, and wipes it there. Not while the device has it.
    pub fn take(&mut self, port: usize, out: &mut [u8]) -> Result<(), Broken> {
        self.with(port, |port, _| port.incoming.take(out))
    }

    /// Gives the device `bytes`, of which as many as fit are taken: their number.
    pub fn send(&mut self, port: usize, bytes: &[u8]) -> Result<usize, Broken> {
        self.with(port, |port, transport| port.outgoing.send(transport, bytes))
    }

    /// Looks whether the device has given the outgoing buffer back; never waits.
    pub fn poll_outgoing(&mut self, port: usize) -> Result<Progress, Broken> {
        self.with(port, |port, transport| port.outgoing.poll(transport))
    }
}
