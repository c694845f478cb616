//! Draws, streams and their parts: `cargo bench -p alea-random`.
//!
//! All of it on `Portable`, in integer registers: what a kernel gets that has no vector code of its own.

use std::sync::Mutex;

use alea_random::block::{BlockGenerator, Key, Portable};
use alea_random::crng::{Base, CpuCrng, Crng, Exclusive, Stream};
use alea_random::pool::Pool;
use alea_random::splitmix64::AtomicSplitMix64;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

struct Lock(Mutex<Base>);

impl Exclusive<Base> for Lock {
    fn with<R>(&self, f: impl FnOnce(&mut Base) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

fn seeded() -> Crng<Lock> {
    let crng = Crng::new(Lock(Mutex::new(Base::vacant())));
    crng.reseed(&mut Key::new([1; 32]));
    crng
}

#[divan::bench(args = [4, 16, 32, 64, 256, 1024])]
fn draw(bencher: Bencher, len: usize) {
    let crng = seeded();
    let mut cpu = CpuCrng::vacant();
    let mut out = vec![0; len];
    bencher
        .counter(BytesCount::new(len))
        .bench_local(|| crng.draw(&mut cpu, &Portable, black_box(&mut out)));
}

#[divan::bench]
fn stream_4096(bencher: Bencher) {
    let crng = seeded();
    let mut cpu = CpuCrng::vacant();
    let mut stream = Stream::vacant();
    crng.start(&mut stream, &mut cpu, &Portable).unwrap();
    let mut out = [[0; 64]; 64];
    bencher
        .counter(BytesCount::new(4096usize))
        .bench_local(|| crng.stream_piece(&mut stream, &mut cpu, &Portable, black_box(&mut out)));
}

#[divan::bench(args = [1, 8])]
fn portable_blocks(bencher: Bencher, blocks: usize) {
    let key = Key::new([1; 32]);
    let mut out = vec![[0; 64]; blocks];
    bencher
        .counter(BytesCount::new(blocks * 64))
        .bench_local(|| Portable.fill(black_box(&key), 0, black_box(&mut out)));
}

#[divan::bench(args = [16, 4096])]
fn splitmix64_shared(bencher: Bencher, len: usize) {
    let generator = AtomicSplitMix64::unseeded();
    let generator = generator.seed(1).unwrap();
    let mut out = vec![0; len];
    bencher.counter(BytesCount::new(len)).bench_local(|| generator.fill(black_box(&mut out)));
}

#[divan::bench]
fn rekey_after_reseed(bencher: Bencher) {
    let crng = seeded();
    let mut cpu = CpuCrng::vacant();
    bencher.bench_local(|| {
        crng.reseed(&mut Key::new([2; 32]));
        crng.draw(&mut cpu, &Portable, black_box(&mut [0; 8]))
    });
}

#[divan::bench]
fn pool_mix_64_and_extract(bencher: Bencher) {
    let (mut pool, mut key) = (Pool::new(), Key::vacant());
    bencher.bench_local(|| {
        pool.mix(black_box(&[1; 64]));
        pool.extract(black_box(&[1, 2, 3, 4]), &mut key)
    });
}
