//! AF_UNIX addresses: unnamed, a path, or a name in the abstract namespace.
//!
//! Owns the abstract namespace. Never keeps a socket alive: its references are weak. Locks: `Leaf`.

use super::unix::Socket;
use crate::mm::fallible::{TryMap, try_arc};
use crate::net::name::SockName;
use crate::sync::{Pace, SpinLock, level};
use crate::try_format;
use abi::socket::{AF_UNIX, UNIX_PATH_MAX};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicU32, Ordering};

/// Size of the family in front of the name.
const FAMILY: usize = 2;
/// `sizeof(struct sockaddr_un)`.
pub const MAX_LEN: usize = FAMILY + UNIX_PATH_MAX;

/// What a name consists of beside its family and a NUL: no longer than names may be.
pub type Bytes = ArrayVec<u8, UNIX_PATH_MAX>;

fn kept(bytes: &[u8]) -> Result<Arc<Bytes>> {
    try_arc(Bytes::try_from(bytes).map_err(|_| Errno::EINVAL)?)
}

/// A name, as programs pass it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Unnamed,
    /// A path, without NUL.
    Path(Arc<Bytes>),
    /// The bytes after the leading NUL.
    Abstract(Arc<Bytes>),
}

static NAMES: SpinLock<BTreeMap<Arc<Bytes>, Weak<Socket>>, level::Leaf> =
    SpinLock::new(BTreeMap::new());
/// Relaxed: where to look for a free name; taken names are skipped.
static NEXT_AUTO: AtomicU32 = AtomicU32::new(0);

impl Address {
    /// From a `sockaddr`'s bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let Some((family, name)) = bytes.split_first_chunk::<FAMILY>() else {
            return Err(Errno::EINVAL);
        };
        if bytes.len() > MAX_LEN || u16::from_ne_bytes(*family) != AF_UNIX {
            return Err(Errno::EINVAL);
        }
        Ok(match name {
            [] => Self::Unnamed,
            [0, rest @ ..] => Self::Abstract(kept(rest)?),
            path => {
                let end = path.iter().position(|&b| b == 0).unwrap_or(path.len());
                Self::Path(kept(&path[..end])?)
            }
        })
    }

    /// As a `sockaddr`'s bytes.
    pub fn encode(&self) -> SockName {
        let family @ [low, high] = AF_UNIX.to_ne_bytes();
        match self {
            Self::Unnamed => SockName::of(&family, &Bytes::new(), &[]),
            Self::Path(path) => SockName::of(&family, path, &[0]),
            Self::Abstract(name) => SockName::of(&[low, high, 0], name, &[]),
        }
    }
}

/// Gives an abstract name to a socket: EADDRINUSE if it is taken.
pub fn claim(name: &Arc<Bytes>, socket: &Arc<Socket>) -> Result<()> {
    let mut names = NAMES.lock();
    if names.get(name).is_some_and(|owner| owner.strong_count() > 0) {
        return Err(Errno::EADDRINUSE);
    }
    let old = names.try_put(name.clone(), Arc::downgrade(socket))?;
    drop(names);
    drop(old);
    Ok(())
}

/// Gives a socket a free abstract name of five hexadecimal digits.
pub fn claim_any(socket: &Arc<Socket>) -> Result<Address> {
    for _ in (0..1 << 20).paced() {
        let number = NEXT_AUTO.fetch_add(1, Ordering::Relaxed) & 0xf_ffff;
        let name = kept(try_format!("{number:05x}")?.as_bytes())?;
        match claim(&name, socket) {
            Ok(()) => return Ok(Address::Abstract(name)),
            Err(Errno::EADDRINUSE) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::ENOSPC)
}

/// The socket with an abstract name.
pub fn find(name: &Bytes) -> Result<Arc<Socket>> {
    let found = NAMES.lock().get(name).and_then(Weak::upgrade);
    found.ok_or(Errno::ECONNREFUSED)
}

/// Frees an abstract name: its socket is closed.
pub fn release(name: &Bytes) {
    let gone = NAMES.lock().remove(name);
    drop(gone);
}
