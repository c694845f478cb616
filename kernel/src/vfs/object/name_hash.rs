//! [`NameHash`]: by which a directory's table finds a name.
//!
//! Owns the keys of the hash, which user space never sees. Locks: none.
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

/// The hash of a name, under random keys of this boot: so nobody can choose names with the same hash to make lookups in a
/// directory as slow as in a list. Nothing but the time of a lookup depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NameHash(u32);

/// Set by [`NameHash::set_keys`].
static KEYS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

impl NameHash {
    /// Chooses the keys. Before the first name, on the boot CPU.
    pub fn set_keys(keys: [u64; 2]) {
        // Relaxed: before another CPU runs.
        KEYS.iter().zip(keys).for_each(|(to, key)| to.store(key, Ordering::Relaxed));
    }

    /// Hashes sixteen bytes at a time, with one multiplication to 128 bits. A key is mixed into each factor, so that
    /// nobody can choose a name that makes one zero.
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        // Relaxed: see `set_keys`.
        let [first, second] = KEYS.each_ref().map(|key| key.load(Ordering::Relaxed));
        debug_assert!(first | second != 0, "a name before the keys");
        let (mut rest, mut h) = (name, second.wrapping_add(name.len() as u64));
        while rest.len() > 16
            && let Some((pair, more)) = rest.split_first_chunk::<16>()
        {
            let (low, high) = ends(pair);
            h = fold(low ^ first, high ^ h);
            rest = more;
        }
        let (low, high) = ends(rest);
        let h = fold(low ^ first, high ^ h);
        Self((h >> 32) as u32 ^ h as u32)
    }

    /// For the table; user space never sees it.
    pub const fn value(self) -> u32 {
        self.0
    }
}

/// The two halves of the 128-bit product, XORed.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// Up to sixteen bytes as two numbers, which together with the length determine the bytes.
#[inline]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)));
    }
    match bytes {
        [] => (0, 0),
        [first, .., last] => {
            let middle = bytes[bytes.len() / 2];
            (u64::from(*first) | u64::from(middle) << 8, u64::from(*last))
        }
        [only] => (u64::from(*only), 0),
    }
}
