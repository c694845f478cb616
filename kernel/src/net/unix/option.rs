//! Socket options and time limits.

use super::unix::{Role, Socket};
use crate::net::filter::Slot;
use crate::net::limit::{TimeLimit, Timeouts};
use crate::net::sysctl;
use abi::Errno;
use abi::socket::Ucred;
use core::sync::atomic::Ordering;

impl Socket {
    pub(super) fn receive_limit(&self) -> TimeLimit {
        self.timeouts().begin_receive()
    }

    pub(super) fn send_limit(&self) -> TimeLimit {
        self.timeouts().begin_send()
    }

    /// Its filter.
    pub fn filter(&self) -> &Slot {
        &self.filter
    }

    /// Time limits.
    pub fn timeouts(&self) -> Timeouts {
        self.state.lock().timeouts
    }

    /// Sets the time limits.
    pub fn set_timeouts(&self, timeouts: Timeouts) {
        self.state.lock().timeouts = timeouts;
    }

    /// SO_ERROR: reports an error once.
    pub fn take_error(&self) -> Option<Errno> {
        self.state.lock().error.take()
    }

    /// SO_PEERCRED.
    pub fn peer_cred(&self) -> Ucred {
        self.state.lock().peer_cred
    }

    /// SO_RCVLOWAT: fewer bytes do not end a read of a stream that has room for them. Polls are not concerned.
    pub fn low_water(&self) -> u32 {
        self.low_water.load(Ordering::Relaxed)
    }

    /// Sets SO_RCVLOWAT: at least 1.
    pub fn set_low_water(&self, asked: i32) {
        let bytes = u32::try_from(asked).unwrap_or(i32::MAX.cast_unsigned()).max(1);
        self.low_water.store(bytes, Ordering::Relaxed);
    }

    /// SO_PASSCRED.
    pub fn passes_cred(&self) -> bool {
        self.state.lock().pass_cred
    }

    /// Sets SO_PASSCRED.
    pub fn set_pass_cred(&self, on: bool) {
        self.state.lock().pass_cred = on;
    }

    /// SO_OOBINLINE.
    pub fn reads_oob_inline(&self) -> bool {
        self.state.lock().oob_inline
    }

    /// Sets SO_OOBINLINE.
    pub fn set_oob_inline(&self, on: bool) {
        self.state.lock().oob_inline = on;
    }

    /// SO_PASSSEC. No message has a label, as on a Linux without security modules.
    pub fn passes_sec(&self) -> bool {
        self.state.lock().pass_sec
    }

    /// Sets SO_PASSSEC.
    pub fn set_pass_sec(&self, on: bool) {
        self.state.lock().pass_sec = on;
    }

    /// Which of SO_TIMESTAMP, SO_TIMESTAMPNS and their new forms is on. A stream reports no times.
    pub fn stamps(&self) -> Option<i32> {
        self.state.lock().stamps
    }

    /// Sets one of them; whichever was on is off.
    pub fn set_stamps(&self, option: i32, on: bool) {
        self.state.lock().stamps = on.then_some(option);
    }

    /// SO_SNDBUF: how much of what this socket sends may wait to be received.
    pub fn buffer(&self) -> usize {
        self.state.lock().buffer
    }

    /// Sets it as Linux does: doubled, within bounds.
    pub fn set_buffer(&self, asked: u32) {
        self.state.lock().buffer = sysctl::send_buffer(asked as usize);
    }

    /// SO_RCVBUF, which limits nothing: what is sent counts for its sender.
    pub fn receive_buffer(&self) -> usize {
        self.state.lock().receive_buffer
    }

    /// Sets it as Linux does: doubled, within bounds.
    pub fn set_receive_buffer(&self, asked: u32) {
        self.state.lock().receive_buffer = sysctl::receive_buffer(asked as usize);
    }

    /// SO_ACCEPTCONN.
    pub fn accepts(&self) -> bool {
        matches!(self.state.lock().role, Role::Listener { .. })
    }
}
