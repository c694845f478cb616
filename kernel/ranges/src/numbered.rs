//! [`Numbered`]: values in the order of their numbers, in pieces.
//!
//! So a list of thousands asks nobody for more than one page at a time, and a value in its middle goes without a move of those behind it.
//!
//! Invariants: the numbers ascend within and across pieces; each piece has a value, and `here` says how many; the room of each is [`Numbered::PIECE`].
//! Two neighbours have more than half a piece of values together when one of them has just lost one. Owns the values and their room. Never
//! allocates but in [`Numbered::insert`]. Takes no locks.

use crate::OutOfMemory;
use alloc::vec::Vec;

/// Most bytes of a piece: a page.
const PIECE_BYTES: usize = 4096;

#[derive(Debug)]
struct Piece<T> {
    /// Without a value where one was taken out.
    values: Vec<(u64, Option<T>)>,
    here: usize,
}

impl<T> Piece<T> {
    fn new() -> Result<Self, OutOfMemory> {
        let mut values = Vec::new();
        values.try_reserve_exact(Numbered::<T>::PIECE).map_err(|_| OutOfMemory)?;
        Ok(Self { values, here: 0 })
    }

    fn first(&self) -> u64 {
        self.values.first().map_or(u64::MAX, |(number, _)| *number)
    }

    fn last(&self) -> u64 {
        self.values.last().map_or(0, |(number, _)| *number)
    }

    fn is_full(&self) -> bool {
        self.values.len() >= Numbered::<T>::PIECE
    }

    /// Forgets where values were taken out.
    fn pack(&mut self) {
        self.values.retain(|(_, value)| value.is_some());
    }
}

/// Values by ascending number.
#[derive(Debug)]
pub struct Numbered<T> {
    pieces: Vec<Piece<T>>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Numbered<T> {
    /// Most values of a piece.
    const PIECE: usize = {
        let most = PIECE_BYTES / size_of::<(u64, Option<T>)>();
        assert!(most > 1, "too large: box the values");
        most
    };

    /// No values.
    pub const fn new() -> Self {
        Self { pieces: Vec::new() }
    }

    /// Adds a value under a number that no other ever had. Most often it is the greatest.
    ///
    /// # Errors
    /// There is no memory; the value is gone.
    pub fn insert(&mut self, number: u64, value: T) -> Result<(), OutOfMemory> {
        if let Some(piece) = self.pieces.last_mut()
            && piece.last() < number
            && !piece.is_full()
        {
            piece.values.push((number, Some(value)));
            piece.here += 1;
            return Ok(());
        }
        let at = self.make_room(number)?;
        let piece = &mut self.pieces[at];
        let index = match piece.values.last() {
            Some((last, _)) if *last > number => {
                piece.values.partition_point(|(other, _)| *other < number)
            }
            _ => piece.values.len(),
        };
        piece.values.insert(index, (number, Some(value)));
        piece.here += 1;
        Ok(())
    }

    /// The piece that the number belongs to, which has room.
    fn make_room(&mut self, number: u64) -> Result<usize, OutOfMemory> {
        let at = self.pieces.partition_point(|piece| piece.first() < number).saturating_sub(1);
        let Some(piece) = self.pieces.get_mut(at) else { return self.add(at, Piece::new()?) };
        if !piece.is_full() {
            return Ok(at);
        }
        if piece.last() < number {
            return self.add(at + 1, Piece::new()?);
        }
        piece.pack();
        if !piece.is_full() {
            return Ok(at);
        }
        let mut upper = Piece::new()?;
        self.pieces.try_reserve(1).map_err(|_| OutOfMemory)?;
        let piece = &mut self.pieces[at];
        upper.values.extend(piece.values.drain(Self::PIECE / 2..));
        (piece.here, upper.here) = (piece.values.len(), upper.values.len());
        let is_above = upper.first() < number;
        self.add(at + 1, upper)?;
        Ok(at + usize::from(is_above))
    }

    fn add(&mut self, at: usize, piece: Piece<T>) -> Result<usize, OutOfMemory> {
        self.pieces.try_reserve(1).map_err(|_| OutOfMemory)?;
        self.pieces.insert(at, piece);
        Ok(at)
    }

    /// Where a number is, or was.
    fn find(&self, number: u64) -> Option<(usize, usize)> {
        if let Some(newest) = self.pieces.last()
            && newest.last() == number
        {
            return Some((self.pieces.len() - 1, newest.values.len().checked_sub(1)?));
        }
        let behind = self.pieces.partition_point(|piece| piece.first() <= number);
        let at = behind.checked_sub(1)?;
        let values = &self.pieces.get(at)?.values;
        let index = values.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some((at, index))
    }

    /// The value with this number.
    pub fn get(&self, number: u64) -> Option<&T> {
        let (at, index) = self.find(number)?;
        self.pieces.get(at)?.values.get(index)?.1.as_ref()
    }

    /// Takes a value out.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let (at, index) = self.find(number)?;
        let piece = self.pieces.get_mut(at)?;
        let value = piece.values.get_mut(index)?.1.take()?;
        piece.here -= 1;
        while let Some((_, None)) = piece.values.last() {
            piece.values.pop();
        }
        if piece.here == 0 {
            self.pieces.remove(at);
        } else {
            self.join(at);
        }
        Some(value)
    }

    /// Makes one piece of this one and a neighbour if they have few values.
    fn join(&mut self, at: usize) {
        for first in [Some(at), at.checked_sub(1)].into_iter().flatten() {
            let Some([a, b]) = self.pieces.get_mut(first..).and_then(|all| all.first_chunk_mut())
            else {
                continue;
            };
            if a.here + b.here <= Self::PIECE / 2 {
                a.pack();
                b.pack();
                a.values.append(&mut b.values);
                a.here += b.here;
                self.pieces.remove(first + 1);
                return;
            }
        }
    }

    /// The values whose numbers are no less than `number`, in order.
    pub fn from(&self, number: u64) -> impl Iterator<Item = &T> {
        let at = self.pieces.partition_point(|piece| piece.last() < number);
        let rest = self.pieces.get(at..).unwrap_or_default();
        let below = |piece: &Piece<T>| piece.values.partition_point(|(other, _)| *other < number);
        let skipped = rest.first().map_or(0, below);
        let entries = rest.iter().flat_map(|piece| &piece.values).skip(skipped);
        entries.filter_map(|(_, value)| value.as_ref())
    }

    /// How many bytes each of the list's pieces of memory has.
    pub fn rooms(&self) -> impl Iterator<Item = usize> {
        let pieces = self.pieces.iter().map(|_| Self::PIECE * size_of::<(u64, Option<T>)>());
        pieces.chain([self.pieces.capacity() * size_of::<Piece<T>>()])
    }
}
