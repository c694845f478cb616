//! Virtqueues with one buffer of its own each: how bytes are asked of a device, or given to it. A [`Channel`] is a device
//! with one queue; `ports` has a device with many.
//!
//! Owns the buffers, which are never freed: a device that keeps one for ever can write to nothing else. What
//! the device says (which buffer, how many bytes, when, if at all) is believed of nothing: a wrong buffer
//! makes the queue [`Broken`], the length is passed on as a claim beside what was asked for, and nothing
//! here ever waits. No locks; whoever shares a channel puts one around it.
//!
//! Knows nothing of this kernel, so that the host tests it against hostile devices
//! (`tests/tests/virtio/`).

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::slice;

use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::{DeviceStatus, Transport};
use virtio_drivers::{BufferDirection, Error, Hal, PAGE_SIZE};

/// Descriptors in the queue; one is used at a time.
const SLOTS: usize = 2;

bitflags::bitflags! {
    /// What is asked of a device: the present interface, which it must have on a bus, and of a console that it says which ports
    /// it has.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Features: u64 {
        const MULTIPORT = 1 << 1;
        const VERSION_1 = 1 << 32;
    }
}

/// The device broke the protocol, or could not be set up; it is not to be talked to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl From<Error> for Broken {
    fn from(_: Error) -> Self {
        Self
    }
}

/// What became of the last transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is none.
    Idle,
    /// The device has the buffer.
    Pending,
    /// The buffer is back: how many bytes were offered, and how many the device claims to have written.
    Done { offered: usize, claimed: u32 },
}

/// A transfer under way.
#[derive(Clone, Copy)]
struct Transfer {
    token: u16,
    len: usize,
    to_device: bool,
}

/// A queue and its buffer.
pub(super) struct Line<H: Hal> {
    // Never dropped: the device knows its memory.
    queue: ManuallyDrop<VirtQueue<H, SLOTS>>,
    index: u16,
    buffer: NonNull<u8>,
    capacity: usize,
    transfer: Option<Transfer>,
    broken: bool,
}

// SAFETY: the buffer belongs to this value alone, wherever it is.
unsafe impl<H: Hal> Send for Line<H> {}

impl<H: Hal> Line<H> {
    /// The device's queue number `index`, with a buffer of `pages`. While the device is being set up.
    pub(super) fn new<T: Transport>(
        transport: &mut T,
        index: u16,
        pages: usize,
    ) -> Result<Self, Broken> {
        let mut line = Self::without_buffer(transport, index)?;
        line.give_buffer(pages)?;
        Ok(line)
    }

    /// The same without a buffer: no transfer is possible until [`give_buffer`](Self::give_buffer).
    pub(super) fn without_buffer<T: Transport>(
        transport: &mut T,
        index: u16,
    ) -> Result<Self, Broken> {
        let queue = VirtQueue::new(transport, index, false, false)?;
        let mut queue = ManuallyDrop::new(queue);
        // It is asked, it never calls.
        queue.set_dev_notify(false);
        let buffer = NonNull::dangling();
        Ok(Self { queue, index, buffer, capacity: 0, transfer: None, broken: false })
    }

    /// Gives the queue its buffer, which it keeps for ever; it has none yet.
    pub(super) fn give_buffer(&mut self, pages: usize) -> Result<(), Broken> {
        let (phys, buffer) = H::dma_alloc(pages, BufferDirection::Both);
        if phys == 0 || self.capacity != 0 {
            return Err(Broken);
        }
        (self.buffer, self.capacity) = (buffer, pages * PAGE_SIZE);
        Ok(())
    }

    /// How many bytes fit into one transfer.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Lets the device fill the whole buffer.
    pub(super) fn request<T: Transport>(&mut self, transport: &mut T) -> Result<(), Broken> {
        self.offer(transport, self.capacity, false)
    }

    pub(super) fn send<T: Transport>(
        &mut self,
        transport: &mut T,
        bytes: &[u8],
    ) -> Result<usize, Broken> {
        if self.transfer.is_some() {
            return Err(Broken);
        }
        let len = bytes.len().min(self.capacity);
        // SAFETY: the buffer has `capacity` bytes, and while there is no transfer it is ours alone; a
        // device that reads it all the same reads bytes that it is given anyway.
        unsafe { self.buffer.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), len) };
        self.offer(transport, len, true).map(|()| len)
    }

    fn offer<T: Transport>(
        &mut self,
        transport: &mut T,
        len: usize,
        to_device: bool,
    ) -> Result<(), Broken> {
        let len = len.min(self.capacity);
        if self.broken || self.transfer.is_some() || len == 0 {
            return Err(Broken);
        }
        // SAFETY: the buffer is never freed, and not touched until `pop_used` has given it back.
        let token = unsafe {
            let buffer = slice::from_raw_parts_mut(self.buffer.as_ptr(), len);
            if to_device {
                self.queue.add(&[buffer], &mut [])
            } else {
                self.queue.add(&[], &mut [buffer])
            }
        }?;
        self.transfer = Some(Transfer { token, len, to_device });
        if self.queue.should_notify() {
            transport.notify(self.index);
        }
        Ok(())
    }

    pub(super) fn poll<T: Transport>(&mut self, transport: &mut T) -> Result<Progress, Broken> {
        if self.broken {
            return Err(Broken);
        }
        let Some(Transfer { token, len, to_device }) = self.transfer else {
            return Ok(Progress::Idle);
        };
        if !self.queue.can_pop() {
            return Ok(Progress::Pending);
        }
        // SAFETY: the same buffer that was added with this token.
        let claimed = unsafe {
            let buffer = slice::from_raw_parts_mut(self.buffer.as_ptr(), len);
            if to_device {
                self.queue.pop_used(token, &[buffer], &mut [])
            } else {
                self.queue.pop_used(token, &[], &mut [buffer])
            }
        };
        // Whatever the device meant, it may still have our buffer: it is never offered again.
        if claimed.is_err() {
            self.broken = true;
            transport.set_status(DeviceStatus::FAILED);
        }
        let claimed = claimed?;
        self.transfer = None;
        Ok(Progress::Done { offered: len, claimed })
    }

    pub(super) fn take(&mut self, out: &mut [u8]) -> Result<(), Broken> {
        if self.transfer.is_some() || out.len() > self.capacity {
            return Err(Broken);
        }
        // SAFETY: within the buffer, which is ours. A device that writes on after it gave the buffer back
        // changes what is copied and nothing else: no reference to the bytes exists.
        unsafe {
            out.as_mut_ptr().copy_from_nonoverlapping(self.buffer.as_ptr(), out.len());
            for at in 0..out.len() {
                self.buffer.as_ptr().add(at).write_volatile(0);
            }
        }
        Ok(())
    }
}

/// Begins to set a device up: it, and what it has of `wanted`. Never dropped: that would wait for the device to confirm a
/// reset.
pub(super) fn begin<T: Transport>(
    transport: T,
    wanted: Features,
) -> Result<(ManuallyDrop<T>, Features), Broken> {
    let mut transport = ManuallyDrop::new(transport);
    let both = transport.begin_init(wanted);
    // A device in memory may be of the time before that version, and is used by the rules of then.
    let is_known = both.contains(Features::VERSION_1) || transport.requires_legacy_layout();
    if is_known { Ok((transport, both)) } else { Err(Broken) }
}

/// A device and one of its queues.
pub struct Channel<H: Hal, T: Transport> {
    transport: ManuallyDrop<T>,
    line: Line<H>,
}

impl<H: Hal, T: Transport> Channel<H, T> {
    /// Sets the device up with its queue number `index` and a buffer of `pages`.
    pub fn new(transport: T, index: u16, pages: usize) -> Result<Self, Broken> {
        let (mut transport, _) = begin(transport, Features::VERSION_1)?;
        let line = Line::new(&mut *transport, index, pages)?;
        transport.finish_init();
        Ok(Self { transport, line })
    }

    /// Asks the device for up to `len` bytes.
    pub fn request(&mut self, len: usize) -> Result<(), Broken> {
        self.line.offer(&mut *self.transport, len, false)
    }

    /// Looks whether the device is done; never waits.
    pub fn poll(&mut self) -> Result<Progress, Broken> {
        self.line.poll(&mut *self.transport)
    }

    /// Copies the start of the buffer, and wipes it there. Not while a transfer is under way.
    pub fn take(&mut self, out: &mut [u8]) -> Result<(), Broken> {
        self.line.take(out)
    }
}
