//! [`Port`]: a socket's hold on its entry.
//!
//! Never drops a `Port` under the table's lock, which the drop takes: a `Port` is made when nothing can fail any more. Where one is
//! dropped under that lock, or under another `Leaf`, the checking kernel panics: two `Leaf`s at once are out of order.

use super::cover::Cover;
use super::table::{Entry, Holder, Place, TABLE, unless_taken};
use crate::mm::fallible::try_box;
use abi::{Errno, Result};
use core::net::{IpAddr, SocketAddr};

/// A hold on a port; dropping it frees the port.
pub struct Port(pub(super) Place);

impl Port {
    /// Its number.
    pub fn number(&self) -> u16 {
        self.0.number
    }

    fn change(&self, act: impl FnOnce(&mut Entry)) {
        TABLE.lock().get(self.0).map(act);
    }

    /// By which [`listen`] finds it.
    pub fn place(&self) -> Place {
        self.0
    }

    /// The socket does not listen any more.
    pub fn stop_listening(&self) {
        stop_listening(self.0);
    }

    /// The socket is connected, or not any more; its own address may have changed with that.
    pub fn set_peer(&self, cover: Cover, local: IpAddr, peer: Option<SocketAddr>) {
        self.change(|entry| {
            entry.claim.cover = cover;
            entry.local = local;
            entry.peer = peer;
        });
    }

    /// SO_REUSEADDR and SO_REUSEPORT were set after the binding.
    pub fn set_reuse(&self, addr: bool, port: bool) {
        self.change(|entry| {
            entry.claim.reuse_addr = addr;
            entry.claim.reuse_port = port;
        });
    }

    /// A hold on the same port for a connection that a listener has made.
    pub fn share(
        &self,
        holder: Holder,
        cover: Cover,
        local: IpAddr,
        peer: SocketAddr,
    ) -> Result<Port> {
        let mut table = TABLE.lock();
        let mut claim = table.get(self.0).ok_or(Errno::EINVAL)?.claim.clone();
        claim.holder = holder;
        claim.cover = cover;
        let mut entry = Entry::new(claim, local, Some(peer));
        entry.shared = false;
        table.insert(self.number(), try_box(entry)?).map(Port)
    }

    /// This end closed the connection first: its port stays taken for a minute, in TIME_WAIT. Without memory for that
    /// it is free at once.
    pub fn wait_out(self) {
        let waits = TABLE.lock().wait_out(self.0);
        if let Ok(gone) = waits {
            drop(gone);
            core::mem::forget(self);
        }
    }
}

/// The socket that has the port there begins to listen: EADDRINUSE if it cannot share it with another socket, EINVAL if it has it no
/// more. To be called without locks: many may have the port.
pub fn listen(place: Place) -> Result<()> {
    let claim = TABLE.lock().get(place).ok_or(Errno::EINVAL)?.claim.clone();
    unless_taken(&claim, place.number, place.id, |table| table.listen(place))
}

/// It does not listen any more.
pub fn stop_listening(place: Place) {
    TABLE.lock().stop_listening(place);
}

impl Drop for Port {
    fn drop(&mut self) {
        let gone = TABLE.lock().remove(self.0);
        drop(gone);
    }
}
