//! Which identifiers of echo requests are taken: each socket that sends them has one, which is in its requests and in the answers to them.
//!
//! Owns the table of them. Never shows whose they are. Locks: a `Leaf` for the table; an [`Ident`] is not dropped under a lock.

use crate::mm::fallible::TryMap;
use crate::sync::{SpinLock, level};
use abi::{Errno, Result};
use alloc::collections::BTreeMap;

const WORDS: usize = 1024;

static TAKEN: SpinLock<Taken, level::Leaf> =
    SpinLock::new(Taken { bits: NOBODYS, several: BTreeMap::new(), last: 0, serial: 0 });

const NOBODYS: [u64; WORDS] = {
    let mut bits = [0; WORDS];
    bits[0] = 1;
    bits
};

struct Taken {
    /// A bit for each identifier that is taken. That of 0 is always set: no socket gets it.
    bits: [u64; WORDS],
    /// For an identifier that several sockets have, how many have it beside the first; 0 for one that its socket does not share.
    several: BTreeMap<u16, u32>,
    /// The identifier that was given last to a socket that asked for any.
    last: u16,
    /// How many identifiers were given so far.
    serial: u64,
}

/// A socket's hold on its identifier.
pub struct Ident {
    number: u16,
    serial: u64,
    /// By `bind`: a disconnected socket keeps it.
    pub chosen: bool,
}

impl Ident {
    /// Takes the identifier `wanted`, or for 0 any free one: `EADDRINUSE` if it is taken, unless all its sockets `share` it, which
    /// is the default (`SO_REUSEADDR`).
    pub fn take(wanted: u16, share: bool, chosen: bool) -> Result<Self> {
        let mut taken = TAKEN.lock();
        let number = if wanted == 0 { taken.free_one()? } else { wanted };
        let (word, bit) = place(number);
        if taken.bits[word] & bit != 0 {
            let more = taken.several.get(&number).copied();
            if !share || more == Some(0) {
                return Err(Errno::EADDRINUSE);
            }
            taken.several.try_put(number, more.unwrap_or(0).saturating_add(1))?;
        } else if !share {
            taken.several.try_put(number, 0)?;
        }
        taken.bits[word] |= bit;
        taken.serial += 1;
        Ok(Self { number, serial: taken.serial, chosen })
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    /// Of several sockets with one identifier, that with the greatest serial gets the answers.
    pub fn serial(&self) -> u64 {
        self.serial
    }
}

impl Drop for Ident {
    fn drop(&mut self) {
        let (word, bit) = place(self.number);
        let mut taken = TAKEN.lock();
        match taken.several.get_mut(&self.number) {
            Some(more) if *more > 1 => *more -= 1,
            Some(1) => drop(taken.several.remove(&self.number)),
            _ => {
                taken.several.remove(&self.number);
                taken.bits[word] &= !bit;
            }
        }
    }
}

fn place(number: u16) -> (usize, u64) {
    (usize::from(number / 64), 1 << (number % 64))
}

impl Taken {
    /// The next free identifier after the last one given.
    fn free_one(&mut self) -> Result<u16> {
        let (start, bit) = place(self.last.wrapping_add(1));
        // The first word is looked at again, whole, at the end.
        let found = (0..=WORDS).find_map(|step| {
            let word = (start + step) % WORDS;
            let passed = if step == 0 { bit - 1 } else { 0 };
            let free = !(self.bits[word] | passed);
            (free != 0).then(|| word as u16 * 64 + free.trailing_zeros() as u16)
        });
        self.last = found.ok_or(Errno::EADDRINUSE)?;
        Ok(self.last)
    }
}
