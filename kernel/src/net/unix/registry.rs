//! All AF_UNIX sockets there are: for /proc/net/unix, and for the room that the garbage collector keeps for each.
//!
//! Owns a table of weak references. Never locks a socket while the table is locked. Locks: `Leaf`.

use super::address::Address;
use super::garbage;
use super::unix::{Kind, Role, Socket};
use crate::fs::procfs::TextBuf;
use crate::mm::fallible::{TryGrow, TryMap, TryString, TryVec};
use crate::sync::{Pace, SpinLock, level};
use crate::try_write;
use abi::Result;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Bound;

static SOCKETS: SpinLock<BTreeMap<usize, Weak<Socket>>, level::Leaf> =
    SpinLock::new(BTreeMap::new());

/// The key of a socket: its address in memory.
pub(super) fn key(socket: &Socket) -> usize {
    core::ptr::from_ref(socket) as usize
}

/// Enters a new socket.
pub(super) fn add(socket: &Arc<Socket>) -> Result<()> {
    let mut sockets = SOCKETS.lock();
    let old = sockets.try_put(key(socket), Arc::downgrade(socket))?;
    let count = sockets.len();
    drop(sockets);
    drop(old);
    garbage::make_room(count)
}

/// A socket is no more.
pub(super) fn remove(socket: &Socket) {
    let gone = SOCKETS.lock().remove(&key(socket));
    drop(gone);
}

/// So many sockets are looked up before the table's lock is released for a moment.
const WINDOW: usize = 64;

/// The sockets whose keys are behind `last`, a window of them, and the last key of it, unless it has come to the end.
fn window(last: usize) -> Result<(Vec<Arc<Socket>>, Option<usize>)> {
    // No reference may be dropped under the lock, so the room for all is made first.
    let mut found = Vec::with_room(WINDOW)?;
    let sockets = SOCKETS.lock();
    let behind = sockets.range((Bound::Excluded(last), Bound::Unbounded));
    let mut reached = None;
    for (nth, (&key, socket)) in behind.take(WINDOW).enumerate() {
        if let Some(socket) = socket.upgrade() {
            found.try_push(socket)?;
        }
        reached = (nth + 1 == WINDOW).then_some(key);
    }
    drop(sockets);
    Ok((found, reached))
}

/// A piece of /proc/net/unix: the sockets whose keys are behind `from`.
pub fn table(from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
    if from == 0 {
        text.try_push_str("Num       RefCount Protocol Flags    Type St Inode Path\n")?;
    }
    let (sockets, last) = window(from as usize)?;
    for socket in sockets.into_iter().paced() {
        line(text, &socket)?;
    }
    Ok(last.map(|key| key as u64))
}

fn line(out: &mut TextBuf, socket: &Socket) -> Result<()> {
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
    let (kind, inode) = (socket.kind.number(), socket.inode());
    try_write!(
        out,
        "{:016x}: {references:08X} 00000000 {flags:08X} {kind:04X} {phase:02X} {inode:5}",
        0
    )?;
    match &name {
        Address::Unnamed => {}
        Address::Path(path) => shown(out, " ", path)?,
        Address::Abstract(name) => shown(out, " @", name)?,
    }
    out.try_push_char('\n')
}

/// Writes a name: what is not UTF-8 is replaced, a NUL is shown as `@`.
fn shown(out: &mut TextBuf, before: &str, name: &[u8]) -> Result<()> {
    out.try_push_str(before)?;
    for part in name.utf8_chunks() {
        for letter in part.valid().chars() {
            out.try_push_char(if letter == '\0' { '@' } else { letter })?;
        }
        if !part.invalid().is_empty() {
            out.try_push_char(char::REPLACEMENT_CHARACTER)?;
        }
    }
    Ok(())
}
