//! [`ConsoleDevice`]: what a terminal needs of the device under it.
//!
//! Owns no state; `uart` and `hvc` are such devices. Never knows terminals. Locks: a device is called under the `Tty` lock and may
//! take `Uart` only; it wakes nobody while it is called that way.
#![forbid(unsafe_code)]

use crate::sync::WaitQueue;

/// A byte received, and how the line was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    pub byte: u8,
    pub error: Option<LineError>,
}

/// What was wrong with a received byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    Break,
    Parity,
    Frame,
}

/// A device that carries bytes to somebody's screen and from his keyboard.
pub trait ConsoleDevice: Sync {
    /// Whether [`poll`](Self::poll) must be called now and then, since received bytes do not announce themselves.
    fn needs_polling(&self) -> bool;
    /// Looks after the device: takes what was received, sends what waits, wakes who waits for either.
    fn poll(&self);
    /// Woken when bytes were received.
    fn for_input(&self) -> &WaitQueue;
    /// Whether received bytes wait.
    fn has_input(&self) -> bool;
    /// Takes received bytes, at most as many as fit: how many.
    fn take(&self, out: &mut [Received]) -> usize;
    /// Throws away what was received and not taken.
    fn flush_input(&self);
    /// Woken when there is room again for output.
    fn for_room(&self) -> &WaitQueue;
    /// How many bytes [`queue`](Self::queue) takes now.
    fn room(&self) -> usize;
    /// Queues output without sending it: [`send`](Self::send) does. Gives how many bytes were taken.
    fn queue(&self, bytes: &[u8]) -> usize;
    /// Sends queued output as long as the device takes it; the rest goes later.
    fn send(&self);
    /// Bytes queued and not sent.
    fn queued(&self) -> usize;
    /// Whether everything queued has left the device.
    fn is_idle(&self) -> bool;
    /// Throws away queued output.
    fn discard_output(&self);
    /// Stops or starts sending (flow control).
    fn set_stopped(&self, stopped: bool);
    /// Holds the line in the break condition, or lets it go; nothing on a device without a line.
    fn set_break(&self, on: bool);
}
