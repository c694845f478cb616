//! A pool small and fast enough for interrupt handlers.
//!
//! Owns 32 bytes of state that each interrupt's time is stirred into, and the rule when they are worth
//! passing on. It must never hand out its whole state: [`FastPool::drain`] gives half, so that what
//! is passed on does not tell what stays. Lock rules: one owner (a CPU, with interrupts off).
//!
//! **Trust.** An attacker may cause interrupts and may see their number, but not to the cycle when
//! they are taken. **Credit**: one bit for 64 interrupts, as Linux gives. **Cost**: two rounds of
//! SipHash's permutation, about 30 instructions.

use crate::credit::EntropyBits;

/// Interrupts after which the pool is passed on, however fast they came.
pub const DRAIN_COUNT: u32 = 1024;

/// Interrupts that are worth one bit.
pub const INTERRUPTS_PER_BIT: u32 = 64;

/// The most that one [`FastPool::drain`] credits: what it passes on.
const MAX_CREDIT: u32 = 128;

/// The state of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct FastPool {
    state: [u64; 4],
    count: u32,
}

impl FastPool {
    /// A pool that saw nothing; SipHash's constants, with a zero key.
    pub const fn new() -> Self {
        Self {
            state: [
                0x736f_6d65_7073_6575,
                0x646f_7261_6e64_6f6d,
                0x6c79_6765_6e65_7261,
                0x7465_6462_7974_6573,
            ],
            count: 0,
        }
    }

    /// Stirs one interrupt in: when it came and which it was, or where it hit.
    pub fn stir(&mut self, time: u64, what: u64) {
        for word in [time, what] {
            self.state[3] ^= word;
            self.round();
            self.state[0] ^= word;
        }
        self.count = self.count.saturating_add(1);
    }

    /// How many interrupts were stirred in since the last drain.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Takes half of the state and what it is worth.
    ///
    /// ```
    /// use alea_random::{credit::EntropyBits, fast_pool::FastPool};
    /// let mut pool = FastPool::new();
    /// (0..1024).for_each(|n| pool.stir(n * 1000, 0x20));
    /// let (_, credit) = pool.drain();
    /// assert_eq!(credit, EntropyBits(16));
    /// assert_eq!(pool.drain().1, EntropyBits(0), "nothing new");
    /// ```
    pub fn drain(&mut self) -> ([u64; 2], EntropyBits) {
        let credit = (self.count / INTERRUPTS_PER_BIT).min(MAX_CREDIT);
        self.count = 0;
        let [first, second, ..] = self.state;
        // What was passed on must not be computable from what stays, nor the other way round.
        (0..3).for_each(|_| self.round());
        ([first, second], EntropyBits(credit))
    }

    /// SipHash's permutation (Aumasson and Bernstein, 2012).
    const fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.state;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.state = [a, b, c, d];
    }
}

impl Default for FastPool {
    fn default() -> Self {
        Self::new()
    }
}
