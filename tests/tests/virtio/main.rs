//! The kernel's virtqueue code, and that of a TPM's two interfaces, on the host, against devices that lie.
//!
//! `kernel/src/virtio/queue.rs`, `ports.rs` and `kernel/src/machine/tpm/{crb,fifo}.rs` are compiled into this program. The virtio device here can do what a hostile one
//! can: write anything, at any time, to the memory it was given, which is the rings and the buffer. Around
//! each piece of that memory lie guard pages that nobody may touch.
#![allow(unsafe_code)]

mod control;
mod crb;
mod fifo;
#[path = "../../../kernel/src/virtio/ports.rs"]
mod ports;
#[path = "../../../kernel/src/virtio/queue.rs"]
mod queue;
/// As in the kernel: one of them has the other's error.
#[path = "../../../kernel/src/machine/tpm"]
mod tpm {
    pub mod crb;
    pub mod fifo;
}

use std::alloc::{Layout, alloc_zeroed};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::Rc;

use alea_random::device::{REQUEST, written};
use ports::Ports;
use proptest::prelude::*;
use queue::{Broken, Channel, Progress};
use virtio_drivers::transport::{DeviceStatus, DeviceType, InterruptStatus, Transport};
use virtio_drivers::{BufferDirection, Error, Hal, PAGE_SIZE, PhysAddr};
use zerocopy::{FromBytes, IntoBytes};

const GUARD: u8 = 0x5a;

thread_local! {
    /// All memory that was given to the device of this test, without its guard pages.
    static SHARED: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
}

struct HostHal;

// SAFETY: fresh, zeroed, page-aligned memory that is never freed.
unsafe impl Hal for HostHal {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let layout = Layout::from_size_align((pages + 2) * PAGE_SIZE, PAGE_SIZE).unwrap();
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        // SAFETY: the first and the last page of what was just allocated.
        unsafe {
            start.write_bytes(GUARD, PAGE_SIZE);
            start.add((pages + 1) * PAGE_SIZE).write_bytes(GUARD, PAGE_SIZE);
        }
        let inside = start.wrapping_add(PAGE_SIZE);
        SHARED.with_borrow_mut(|shared| shared.push((inside as usize, pages * PAGE_SIZE)));
        (inside as PhysAddr, NonNull::new(inside).unwrap())
    }

    unsafe fn dma_dealloc(_: PhysAddr, _: NonNull<u8>, _: usize) -> i32 {
        panic!("memory that a device knows was given back");
    }

    unsafe fn mmio_phys_to_virt(_: PhysAddr, _: usize) -> NonNull<u8> {
        unreachable!()
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.cast::<u8>().as_ptr() as PhysAddr
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

/// Where the driver put the parts of the queue.
#[derive(Clone, Copy, Default)]
struct Rings {
    descriptors: u64,
    used: u64,
}

#[derive(Default)]
struct State {
    /// Of each queue.
    rings: [Rings; 20],
    status: DeviceStatus,
    notified: u32,
}

/// The device as the driver's transport sees it.
struct FakeTransport {
    state: Rc<RefCell<State>>,
    features: u64,
    queue_size: u32,
    /// How many ports configuration space says there may be.
    ports: u32,
}

impl Transport for FakeTransport {
    fn device_type(&self) -> DeviceType {
        DeviceType::EntropySource
    }
    fn read_device_features(&mut self) -> u64 {
        self.features
    }
    fn write_driver_features(&mut self, _: u64) {}
    fn max_queue_size(&mut self, _: u16) -> u32 {
        self.queue_size
    }
    fn notify(&mut self, _: u16) {
        self.state.borrow_mut().notified += 1;
    }
    fn get_status(&self) -> DeviceStatus {
        self.state.borrow().status
    }
    fn set_status(&mut self, status: DeviceStatus) {
        self.state.borrow_mut().status = status;
    }
    fn set_guest_page_size(&mut self, _: u32) {}
    fn requires_legacy_layout(&self) -> bool {
        false
    }
    fn queue_set(&mut self, index: u16, _: u32, descriptors: u64, _: u64, used: u64) {
        self.state.borrow_mut().rings[usize::from(index)] = Rings { descriptors, used };
    }
    fn queue_unset(&mut self, _: u16) {}
    fn queue_used(&mut self, _: u16) -> bool {
        false
    }
    fn ack_interrupt(&mut self) -> InterruptStatus {
        InterruptStatus::empty()
    }
    fn read_config_generation(&self) -> u32 {
        0
    }
    fn read_config_space<T: FromBytes + IntoBytes>(&self, offset: usize) -> Result<T, Error> {
        assert_eq!(offset, 4, "the number of ports");
        T::read_from_bytes(&self.ports.to_le_bytes()).map_err(|_| Error::ConfigSpaceMissing)
    }
    fn write_config_space<T>(&mut self, _: usize, _: T) -> Result<(), Error> {
        Err(Error::ConfigSpaceMissing)
    }
}

/// The device's side of one queue.
struct Device(Rc<RefCell<State>>, usize);

impl Device {
    fn write(&self, at: u64, bytes: &[u8]) {
        let at = at as usize;
        let inside = SHARED.with_borrow(|shared| {
            shared.iter().any(|&(start, len)| at >= start && at + bytes.len() <= start + len)
        });
        assert!(inside, "the device was pointed at memory that is not its own: {at:#x}");
        // SAFETY: memory of `HostHal`, to which only raw pointers exist.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
    }

    fn rings(&self) -> Rings {
        self.0.borrow().rings[self.1]
    }

    /// The address and length of descriptor 0, as the driver wrote them.
    fn buffer(&self) -> (u64, u32) {
        // SAFETY: the driver's descriptor table, 16 bytes an entry.
        unsafe {
            let table = self.rings().descriptors as *const u64;
            (table.read_volatile(), table.add(1).read_volatile() as u32)
        }
    }

    /// Puts `id` and `len` into a slot of the used ring.
    fn used(&self, slot: u64, id: u32, len: u32) {
        let at = self.rings().used + 4 + 8 * slot;
        self.write(at, &id.to_le_bytes());
        self.write(at + 4, &len.to_le_bytes());
    }

    fn set_index(&self, index: u16) {
        self.write(self.rings().used + 2, &index.to_le_bytes());
    }

    /// Answers the request under way.
    fn answer(&self, slot: u64, index: u16, bytes: &[u8], claimed: u32) {
        let (at, len) = self.buffer();
        assert!(bytes.len() <= len as usize);
        self.write(at, bytes);
        self.used(slot, 0, claimed);
        self.set_index(index);
    }
}

const VERSION_1: u64 = 1 << 32;

fn open(
    features: u64,
    queue_size: u32,
) -> (Result<Channel<HostHal, FakeTransport>, Broken>, Device) {
    SHARED.with_borrow_mut(Vec::clear);
    let state = Rc::new(RefCell::new(State::default()));
    let transport = FakeTransport { state: state.clone(), features, queue_size, ports: 0 };
    (Channel::new(transport, 0, 1), Device(state, 0))
}

/// A device with two queues, and its side of each.
fn duplex() -> (Ports<HostHal, FakeTransport>, [Device; 2]) {
    SHARED.with_borrow_mut(Vec::clear);
    let state = Rc::new(RefCell::new(State::default()));
    let transport =
        FakeTransport { state: state.clone(), features: VERSION_1, queue_size: 64, ports: 0 };
    let duplex = Ports::new(transport, 1);
    let duplex = duplex.unwrap_or_else(|_| panic!("the device was refused"));
    (duplex, [0, 1].map(|queue| Device(state.clone(), queue)))
}

fn opened() -> (Channel<HostHal, FakeTransport>, Device) {
    let (channel, device) = open(VERSION_1, 64);
    let mut channel = channel.unwrap_or_else(|_| panic!("the device was refused"));
    channel.request(REQUEST).unwrap();
    assert_eq!(device.0.borrow().notified, 1);
    (channel, device)
}

fn guards_are_whole() {
    SHARED.with_borrow(|shared| {
        for &(start, len) in shared {
            for page in [start - PAGE_SIZE, start + len] {
                // SAFETY: a guard page of `HostHal`.
                let guard = unsafe { std::slice::from_raw_parts(page as *const u8, PAGE_SIZE) };
                assert!(
                    guard.iter().all(|&byte| byte == GUARD),
                    "memory beside the device's changed"
                );
            }
        }
    });
}

#[test]
fn an_honest_device_delivers_again_and_again() {
    let (mut channel, device) = opened();
    for round in 1..=5u16 {
        assert_eq!(channel.poll(), Ok(Progress::Pending));
        device.answer(u64::from(round - 1) % 2, round, &[round as u8; REQUEST], REQUEST as u32);
        let done = Progress::Done { offered: REQUEST, claimed: REQUEST as u32 };
        assert_eq!(channel.poll(), Ok(done));
        let mut bytes = [0; REQUEST];
        channel.take(&mut bytes).unwrap();
        assert_eq!(bytes, [round as u8; REQUEST]);
        channel.take(&mut bytes).unwrap();
        assert_eq!(bytes, [0; REQUEST], "wiped as they leave");
        channel.request(REQUEST).unwrap();
    }
    guards_are_whole();
}

#[test]
fn any_claimed_length_stays_inside_the_buffer() {
    for claimed in [0, 1, 63, 64, 65, 4096, 4097, 1 << 20, i32::MAX as u32, u32::MAX] {
        let (mut channel, device) = opened();
        device.answer(0, 1, &[7; REQUEST], claimed);
        let Ok(Progress::Done { offered, claimed: got }) = channel.poll() else {
            panic!("{claimed}")
        };
        assert_eq!(got, claimed);
        assert!(written(offered, got) <= REQUEST);
        guards_are_whole();
    }
}

#[test]
fn a_silent_device_is_pending_for_ever_and_keeps_only_its_buffer() {
    let (mut channel, _device) = opened();
    for _ in 0..1000 {
        assert_eq!(channel.poll(), Ok(Progress::Pending));
    }
    assert_eq!(channel.request(REQUEST), Err(Broken), "the buffer is not offered twice");
    assert_eq!(channel.take(&mut [0; 8]), Err(Broken), "nor read while the device has it");
}

#[test]
fn a_wrong_buffer_is_the_end() {
    for id in [1, 2, 0xffff, 0x1_0001, u32::MAX] {
        let (mut channel, device) = opened();
        device.used(0, id, 64);
        device.set_index(1);
        assert_eq!(channel.poll(), Err(Broken), "{id:#x}");
        assert_eq!(device.0.borrow().status, DeviceStatus::FAILED);
        device.answer(0, 1, &[1; REQUEST], 64);
        assert_eq!(channel.poll(), Err(Broken), "it is not talked to any more");
        assert_eq!(channel.request(REQUEST), Err(Broken));
    }
}

#[test]
fn an_answer_without_a_request_is_not_looked_at() {
    let (mut channel, device) = opened();
    device.answer(0, 1, &[1; REQUEST], 64);
    assert!(matches!(channel.poll(), Ok(Progress::Done { .. })));
    device.used(1, 0, 64);
    device.set_index(2);
    assert_eq!(channel.poll(), Ok(Progress::Idle));
}

#[test]
fn devices_that_cannot_be_set_up_are_refused() {
    assert!(open(0, 64).0.is_err(), "no present interface");
    assert!(open(VERSION_1, 0).0.is_err(), "no queue");
    assert!(open(VERSION_1, 1).0.is_err(), "a queue without room");
    assert!(
        open(u64::MAX, u32::MAX).0.is_ok(),
        "features that were not asked for are nothing to us"
    );
}

/// What the device has not read yet keeps nobody from reading what it has written.
#[test]
fn directions_do_not_wait_for_each_other() {
    let (mut duplex, [incoming, outgoing]) = duplex();
    assert_eq!(duplex.send(0, b"to the host"), Ok(11));
    assert_eq!(duplex.send(0, b"more"), Err(Broken), "the device has the buffer");
    for round in 1..=3u16 {
        assert_eq!(duplex.poll_incoming(0), Ok(Progress::Pending));
        incoming.answer(u64::from(round - 1) % 2, round, &[round as u8; 5], 5);
        let done = Progress::Done { offered: PAGE_SIZE, claimed: 5 };
        assert_eq!(duplex.poll_incoming(0), Ok(done));
        let mut bytes = [0; 5];
        duplex.take(0, &mut bytes).unwrap();
        assert_eq!(bytes, [round as u8; 5]);
        duplex.request(0).unwrap();
    }
    assert_eq!(duplex.poll_outgoing(0), Ok(Progress::Pending));
    let (at, len) = outgoing.buffer();
    // SAFETY: the buffer of the outgoing queue, which nobody changes meanwhile.
    let sent = unsafe { std::slice::from_raw_parts(at as *const u8, len as usize) };
    assert_eq!(sent, b"to the host");
    outgoing.used(0, 0, 0);
    outgoing.set_index(1);
    assert_eq!(duplex.poll_outgoing(0), Ok(Progress::Done { offered: 11, claimed: 0 }));
    assert_eq!(duplex.send(0, &[1; 5000]), Ok(duplex.capacity()), "as many as fit");
    guards_are_whole();
}

#[derive(Clone, Debug)]
enum Step {
    Request(usize),
    Send(usize),
    Poll,
    Take(usize),
    /// The device writes bytes somewhere into one of its pages.
    Scribble(usize, usize, Vec<u8>),
    /// The device returns something.
    Used(u64, u32, u32, u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![0..100usize, 4000..5000usize];
    let small = prop_oneof![0..4u32, any::<u32>()];
    prop::collection::vec(
        prop_oneof![
            len.clone().prop_map(Step::Request),
            len.clone().prop_map(Step::Send),
            Just(Step::Poll),
            len.prop_map(Step::Take),
            (0..3usize, 0..PAGE_SIZE, prop::collection::vec(any::<u8>(), 1..64))
                .prop_map(|(page, at, bytes)| Step::Scribble(page, at, bytes)),
            (0..2u64, small, any::<u32>(), 0..5u16)
                .prop_map(|(slot, id, len, index)| Step::Used(slot, id, len, index)),
        ],
        1..60,
    )
}

proptest! {
    /// Whatever the device writes and whatever the driver does meanwhile: no panic, no wait, and not a byte
    /// outside the memory that was given to the device.
    #[test]
    fn no_device_does_harm(steps in steps()) {
        let (mut channel, device) = opened();
        harm(&mut channel, &device, &steps)?;
        let (mut duplex, [_, outgoing]) = duplex();
        harm_duplex(&mut duplex, &outgoing, &steps)?;
    }
}

/// What the device does in a step; false for the driver's.
fn device_acts(device: &Device, step: &Step) -> bool {
    match step {
        Step::Scribble(page, at, junk) => {
            let (start, len) = SHARED.with_borrow(|shared| shared[page % shared.len()]);
            let junk = &junk[..junk.len().min(len - at)];
            device.write((start + at) as u64, junk);
        }
        Step::Used(slot, id, len, index) => {
            device.used(*slot, *id, *len);
            device.set_index(*index);
        }
        _ => return false,
    }
    true
}

fn harm(
    channel: &mut Channel<HostHal, FakeTransport>,
    device: &Device,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut bytes = vec![0; 2 * PAGE_SIZE];
    for step in steps {
        match step {
            Step::Request(len) | Step::Send(len) => drop(channel.request(*len)),
            Step::Poll => {
                if let Ok(Progress::Done { offered, claimed }) = channel.poll() {
                    prop_assert!(written(offered, claimed) <= PAGE_SIZE);
                }
            }
            Step::Take(len) => {
                let taken = channel.take(&mut bytes[..*len]);
                prop_assert!(taken.is_err() || *len <= PAGE_SIZE);
            }
            step => prop_assert!(device_acts(device, step)),
        }
    }
    guards_are_whole();
    Ok(())
}

fn harm_duplex(
    duplex: &mut Ports<HostHal, FakeTransport>,
    device: &Device,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut bytes = vec![0; 2 * PAGE_SIZE];
    for step in steps {
        match step {
            Step::Request(_) => drop(duplex.request(0)),
            Step::Send(len) => drop(duplex.send(0, &bytes[..*len])),
            Step::Poll => {
                for polled in [duplex.poll_incoming(0), duplex.poll_outgoing(0)] {
                    if let Ok(Progress::Done { offered, claimed }) = polled {
                        prop_assert!(written(offered, claimed) <= duplex.capacity());
                    }
                }
            }
            Step::Take(len) => {
                let taken = duplex.take(0, &mut bytes[..*len]);
                prop_assert!(taken.is_err() || *len <= duplex.capacity());
            }
            step => prop_assert!(device_acts(device, step)),
        }
    }
    guards_are_whole();
    Ok(())
}
