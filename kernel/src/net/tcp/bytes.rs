//! Bytes that wait to be read: the receive queue of a connection.
//!
//! A plain queue of pieces; the connection's lock guards it, and [`Turn`] says who may take pieces out of it. Never copies to or from
//! user memory.

use crate::mm::fallible::{TryGrow, TryVec};
use abi::Result;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Small pieces are put together up to this size.
const JOIN: usize = 4096;

/// Some bytes, of which a reader may have taken a few.
pub struct Piece {
    bytes: Vec<u8>,
    taken: usize,
    /// How many of those were taken since it is out of the queue.
    used: usize,
}

impl Piece {
    /// What is left.
    pub fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// The reader has taken some more.
    pub fn take(&mut self, count: usize) {
        self.taken = self.taken.saturating_add(count);
        self.used = self.used.saturating_add(count);
    }
}

/// The turn of one reader: who holds it takes pieces out of a queue, puts them back, or empties it. So no queue is emptied, and no
/// other connection begun, while pieces of it are out.
pub struct Turn(());

impl Turn {
    /// Of a new socket.
    pub const fn new() -> Self {
        Self(())
    }
}

/// Bytes in order.
pub struct Bytes {
    pieces: VecDeque<Piece>,
    len: usize,
    /// Pieces that the holder of the turn has taken out: there is room for them.
    out: usize,
    /// How many bytes readers have taken since there is the queue.
    gone: u64,
}

/// What the filter of an end has not let through.
pub struct Unheard {
    pub bytes: Bytes,
    pub urgent: Option<Urgent>,
    /// More of it may pass: there was no memory, or the last call had taken enough.
    pub more: bool,
    /// The end of what the peer sends, behind those.
    pub fin: bool,
}

/// A byte out of band that the filter has not let through.
pub struct Urgent {
    /// So many of the bytes were sent before it.
    pub before: usize,
    /// `None` if it is among the others, for who wants that.
    pub byte: Option<u8>,
}

impl Unheard {
    /// Nothing.
    pub const fn new() -> Self {
        Self { bytes: Bytes::new(), urgent: None, more: false, fin: false }
    }

    /// Takes all of it: the connection is over.
    pub fn take_all(&mut self) -> Self {
        core::mem::replace(self, Self::new())
    }

    /// Whether nothing waits but the end.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == 0 && self.urgent.is_none()
    }

    /// Whether who reads may take more of it.
    pub fn has_more(&self) -> bool {
        self.more && !self.is_empty()
    }

    /// How many of the next bytes are a segment of their own: those before a byte out of band.
    pub fn segment(&self, len: usize) -> usize {
        self.urgent.as_ref().map_or(len, |urgent| urgent.before.min(len))
    }

    /// So many bytes have been let through.
    pub fn pass(&mut self, count: usize) {
        if let Some(urgent) = &mut self.urgent {
            urgent.before = urgent.before.saturating_sub(count);
        }
    }
}

impl Bytes {
    /// None.
    pub const fn new() -> Self {
        Self { pieces: VecDeque::new(), len: 0, out: 0, gone: 0 }
    }

    /// Takes all of them: the connection is over.
    pub fn take_all(&mut self, _turn: &mut Turn) -> Self {
        core::mem::replace(self, Self::new())
    }

    /// Number of bytes, with those of pieces that are out: nobody may sleep beside what is put back in a moment.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many bytes readers have taken so far.
    pub fn gone(&self) -> u64 {
        self.gone
    }

    /// Adds bytes at the end.
    pub fn push(&mut self, bytes: Vec<u8>) -> Result<()> {
        let count = bytes.len();
        let joined = match self.pieces.back_mut() {
            Some(last) if last.bytes.len() + count <= JOIN => {
                last.bytes.try_extend_from_slice(&bytes)?;
                true
            }
            _ => false,
        };
        if !joined {
            self.pieces.try_room(1 + self.out)?;
            self.pieces.try_push(Piece { bytes, taken: 0, used: 0 })?;
        }
        self.len += count;
        Ok(())
    }

    /// The first bytes.
    pub fn first(&self) -> Option<&[u8]> {
        self.pieces.front().map(Piece::rest)
    }

    /// Drops so many of the first bytes, which [`first`](Self::first) has shown.
    pub fn skip(&mut self, count: usize) {
        let Some(piece) = self.pieces.front_mut() else { return };
        piece.taken += count;
        self.len -= count;
        if piece.rest().is_empty() {
            self.pieces.pop_front();
        }
    }

    /// Takes the first piece, to be put back before the turn ends.
    pub fn pop(&mut self, _turn: &mut Turn) -> Option<Piece> {
        let piece = self.pieces.pop_front()?;
        self.out += 1;
        Some(piece)
    }

    /// Puts back what is left of a piece.
    #[expect(clippy::disallowed_methods, reason = "`push` keeps room for what is out")]
    pub fn put_back(&mut self, mut piece: Piece, _turn: &mut Turn) {
        self.out -= 1;
        let used = core::mem::take(&mut piece.used);
        self.len -= used;
        self.gone = self.gone.wrapping_add(used as u64);
        if !piece.rest().is_empty() {
            self.pieces.push_front(piece);
        }
    }
}
