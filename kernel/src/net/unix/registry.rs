//! All AF_UNIX sockets there are: for /proc/net/unix, and for the room that the garbage collector keeps for each.
//!
//! Owns their list. Never locks a socket while it is locked. Locks: the list's.

use super::address::Address;
use super::garbage;
use super::unix::{Kind, Role, Socket};
use crate::fs::procfs::TextBuf;
use crate::mm::fallible::TryString;
use crate::net::list::List;
use crate::sync::Pace;
use crate::try_write;
use abi::Result;
use alloc::sync::Arc;

static SOCKETS: List<Socket> = List::new();

/// The key of a socket: its address in memory.
fn key(socket: &Socket) -> u64 {
    core::ptr::from_ref(socket) as u64
}

/// Enters a new socket.
pub(super) fn add(socket: &Arc<Socket>) -> Result<()> {
    garbage::make_room(SOCKETS.add(key(socket), socket)?)
}

/// A socket is no more.
pub(super) fn remove(socket: &Socket) {
    SOCKETS.remove(key(socket));
}

/// A piece of /proc/net/unix: the sockets whose keys are behind `from`.
pub fn table(from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
    if from == 0 {
        text.try_push_str("Num       RefCount Protocol Flags    Type St Inode Path\n")?;
    }
    let (sockets, last) = SOCKETS.window(from)?;
    for socket in sockets.into_iter().paced() {
        line(text, &socket)?;
    }
    Ok(last)
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
