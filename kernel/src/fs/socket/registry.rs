//! All AF_UNIX sockets there are: for /proc/net/unix, and for the search for forgotten ones.
//!
//! Owns a table of weak references. Lock level: `Leaf`; no socket is looked at while it is held.

use super::{Address, Kind, Role, Socket};
use crate::sync::{SpinLock, level};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

static SOCKETS: SpinLock<BTreeMap<usize, Weak<Socket>>, level::Leaf> =
    SpinLock::new(BTreeMap::new());

/// What a socket is told apart by.
pub(super) fn key(socket: &Socket) -> usize {
    core::ptr::from_ref(socket) as usize
}

/// Enters a new socket.
pub(super) fn add(socket: &Arc<Socket>) {
    SOCKETS.lock().insert(key(socket), Arc::downgrade(socket));
}

/// A socket is no more.
pub(super) fn remove(socket: &Socket) {
    let gone = SOCKETS.lock().remove(&key(socket));
    drop(gone);
}

/// All sockets.
pub(super) fn all() -> Vec<Arc<Socket>> {
    SOCKETS.lock().values().filter_map(Weak::upgrade).collect()
}

/// /proc/net/unix.
pub fn table() -> String {
    let mut out = String::from("Num       RefCount Protocol Flags    Type St Inode Path\n");
    for socket in all() {
        out.push_str(&line(&socket));
    }
    out
}

fn line(socket: &Socket) -> String {
    const ACCEPTS: u32 = 0x1_0000;
    const UNCONNECTED: u32 = 1;
    const CONNECTED: u32 = 3;
    let state = socket.state.lock();
    let (flags, phase) = match state.role {
        Role::Single => (0, UNCONNECTED),
        Role::Listener { .. } => (ACCEPTS, UNCONNECTED),
        Role::Connected(_) => (0, CONNECTED),
    };
    let name = state.name.clone();
    drop(state);
    let references = if phase == CONNECTED && socket.kind != Kind::Datagram { 3 } else { 2 };
    let name = match &name {
        Address::Unnamed => String::new(),
        Address::Path(path) => format!(" {}", String::from_utf8_lossy(path)),
        Address::Abstract(name) => {
            format!(" @{}", String::from_utf8_lossy(name).replace('\0', "@"))
        }
    };
    let (kind, inode) = (socket.kind.number(), socket.inode());
    format!(
        "{:016x}: {references:08X} 00000000 {flags:08X} {kind:04X} {phase:02X} {inode:5}{name}\n",
        0
    )
}
