//! Draws, each of which is compared with the machine that it is for: see [`twins`](crate::crng::twins).
//!
//! Owns nothing. No draw returns before the machine's id was compared, after the bytes were drawn. Lock rules: those of
//! [`super`]; a draw takes none, unless a reseed came between.

use core::fmt;
use core::ops::Range;

use super::{CpuCrng, Event, Exclusive, Platform, Service};
use crate::block::wipe::wipe;
use crate::block::{BLOCK_LEN, Block, BlockGenerator, Key, Portable};
use crate::crng::twins::{Machine, MachineId};
use crate::crng::{Generation, NotSeeded, Stream};
use crate::pool::FRESH_WORDS;
use crate::reseed::Cause;

impl<P: Platform> Service<P> {
    /// Fills `out`, of any length; meant for up to [`BATCH_DRAW_MAX`](crate::crng::BATCH_DRAW_MAX) bytes. An error means
    /// that there is no key yet, and that nothing was written.
    #[inline]
    pub fn fill(&self, out: &mut [u8]) -> Result<(), NotSeeded> {
        loop {
            let draw = |cpu: &mut CpuCrng| self.crng.draw(cpu, &self.blocks(), out);
            let Some(drawn) = self.platform.with_cpu(draw) else {
                return self.fill_apart(out);
            };
            if self.crng.is_for(&Live(self), drawn?) {
                return Ok(());
            }
        }
    }

    /// Fills whole words: the shortest way for a number of them that is known when it is called.
    #[inline]
    pub fn fill_words(&self, out: &mut [[u8; 8]]) -> Result<(), NotSeeded> {
        loop {
            let draw = |cpu: &mut CpuCrng| self.crng.draw_words(cpu, &self.blocks(), out);
            let Some(drawn) = self.platform.with_cpu(draw) else {
                return self.fill_apart(out.as_flattened_mut());
            };
            if self.crng.is_for(&Live(self), drawn?) {
                return Ok(());
            }
        }
    }

    /// Words from this CPU's batch, if it has them ready and the machine is the one that it was: the shortest way of all,
    /// beside [`fill`](Self::fill) for when it gives nothing. Not in a handler of interrupts.
    #[inline]
    pub fn ready<const N: usize>(&self) -> Option<[u64; N]> {
        let take = |cpu: &mut CpuCrng| self.crng.ready(cpu).map(|words| (words, cpu.made_for()));
        // Compared outside: in there it keeps the compiler from knowing that the borrow is the only one.
        let (words, made_for) = self.platform.with_cpu_in_task(take)??;
        (self.platform.id() == made_for).then(|| words.map(u64::from_le_bytes))
    }

    /// Makes a new batch for [`ready`](Self::ready) where the old one has come to its end; whether it did. Not in a handler.
    #[cold]
    pub fn top_up<const N: usize>(&self) -> bool {
        let top_up = |cpu: &mut CpuCrng| self.crng.top_up(cpu, &self.blocks(), N);
        self.platform.with_cpu_in_task(top_up).unwrap_or(false)
    }

    /// As [`fill`](Self::fill), under a key of its own that is gone afterwards: no batch, and no vector registers.
    #[cold]
    pub fn fill_apart(&self, out: &mut [u8]) -> Result<(), NotSeeded> {
        self.crng.unshared(&Live(self), || self.crng.draw(&mut CpuCrng::vacant(), &Portable, out))
    }

    /// Fills `out` before there is a key, and never fails. Only for who accepts predictable bytes: see
    /// [`Crng::fill_unseeded`](crate::crng::Crng::fill_unseeded).
    pub fn fill_unseeded(&self, out: &mut [u8]) {
        let mut rest = out;
        self.unseeded_to(rest.len(), |bytes| {
            let place = rest.split_off_mut(..bytes.len()).unwrap_or_default();
            place.copy_from_slice(bytes);
            bytes.len()
        });
    }

    /// As [`fill_unseeded`](Self::fill_unseeded), for a place that is no slice: `put` gets up to 256 bytes at a time, and says how many it took. How
    /// many those were in all; it ends where fewer are taken.
    pub fn unseeded_to(&self, len: usize, mut put: impl FnMut(&[u8]) -> usize) -> usize {
        let mut blocks = [[0; BLOCK_LEN]; 4];
        let mut done = 0;
        while done < len {
            self.crng.fill_unseeded(&Live(self), &Portable, &mut blocks);
            let whole = blocks.as_flattened();
            let piece = &whole[..whole.len().min(len - done)];
            let taken = put(piece);
            done += taken;
            if taken < piece.len() {
                break;
            }
        }
        wipe(&mut blocks);
        done
    }

    /// Makes `stream` the stream of one long request. `NotSeeded` in a handler, too, which has no time for it.
    pub fn start_stream(&self, stream: &mut Stream) -> Result<(), NotSeeded> {
        let start = |cpu: &mut CpuCrng| self.crng.start(stream, cpu, &self.blocks());
        self.platform.with_cpu(start).unwrap_or(Err(NotSeeded))
    }

    /// The next bytes of a stream. After a copy was made of the machine it takes a new key by itself: its generation is old.
    pub fn fill_from(&self, stream: &mut Stream, out: &mut [Block]) -> Result<(), NotSeeded> {
        let mut piece = || {
            let draw = |cpu: &mut CpuCrng| self.crng.stream_piece(stream, cpu, &self.blocks(), out);
            self.platform.with_cpu(draw).unwrap_or(Err(NotSeeded))
        };
        self.crng.unshared(&Live(self), &mut piece)
    }

    /// As [`fill_from`](Self::fill_from), for a place that is no slice: see [`Crng::stream_piece_by`](crate::crng::Crng::stream_piece_by). On another machine
    /// all of it is made anew before the call returns.
    pub fn make_from(
        &self,
        stream: &mut Stream,
        count: usize,
        mut make: impl FnMut(&Key, u32, Range<usize>) -> bool,
    ) -> Result<bool, NotSeeded> {
        let mut whole = false;
        let piece = || {
            let draw = |cpu: &mut CpuCrng| {
                self.crng.stream_piece_by(stream, cpu, &self.blocks(), count, &mut make)
            };
            let (done, made_for) = self.platform.with_cpu(draw).unwrap_or(Err(NotSeeded))?;
            whole = done;
            Ok(made_for)
        };
        self.crng.unshared(&Live(self), piece)?;
        Ok(whole)
    }

    #[inline]
    const fn blocks(&self) -> Blocks<'_, P> {
        Blocks(&self.platform)
    }
}

/// The platform's keystream.
struct Blocks<'a, P>(&'a P);

impl<P: Platform> BlockGenerator for Blocks<'_, P> {
    #[inline]
    fn fill(&self, key: &Key, counter: u32, out: &mut [Block]) {
        self.0.fill_blocks(key, counter, out);
    }
}

/// The machine as the generator asks for it: the platform's, with the service's pools.
pub(super) struct Live<'a, P: Platform>(pub(super) &'a Service<P>);

impl<P: Platform> Machine for Live<'_, P> {
    #[inline]
    fn id(&self) -> MachineId {
        self.0.platform.id()
    }

    fn extract(&self, id: MachineId, seed: &mut Key) {
        let mut fresh = [0; FRESH_WORDS];
        // With nothing held: the hardware may take its time.
        self.0.platform.fresh_words(&mut fresh);
        let new = self.0.pools.with(|mixing| {
            let new = mixing.id != id;
            if new {
                mixing.id = id;
                mixing.pools.mix(id.0.map(u64::to_le_bytes).as_flattened());
            }
            mixing.pools.extract(&fresh, seed);
            new
        });
        wipe(&mut fresh);
        if new {
            self.0.platform.told(Event::Identified(size_of_val(&id)));
        }
    }

    fn publish(&self, generation: Generation, made_for: MachineId) {
        self.0.platform.publish(generation, made_for);
    }

    fn copied(&self) {
        self.0.platform.told(Event::Copied);
        self.0.platform.told(Event::Reseeded(Cause::Clone));
    }
}

impl<P: Platform> fmt::Debug for Service<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("state", &self.state()).finish_non_exhaustive()
    }
}
