//! The page of data and the clocks that are read from it.

use std::sync::atomic::{AtomicBool, Ordering};

use alea_vdso::clock::{self, Timespec};
use alea_vdso::data::{Data, SHIFT, Scale};

const SECOND: u64 = 1_000_000_000;

fn two_ghz(wall_offset: u64) -> Scale {
    let multiplier = (1 << SHIFT) / 2;
    Scale { base: 1000, multiplier, is_raw: true, wall_offset, ..Scale::default() }
}

fn at(data: &Data, clock: i32, tsc: u64) -> Option<(i64, i64)> {
    let short = clock::try_now(data, clock, || tsc);
    let now = clock::now(data, clock, || tsc);
    assert!(short == now || short.is_none() && tsc < 1000, "the short way is the same");
    now.map(|Timespec { seconds, nanos }| (seconds, nanos))
}

#[test]
fn the_kernel_is_asked_without_a_usable_counter() {
    let data = Data::default();
    assert_eq!(at(&data, 1, 5000), None);
    data.clock.publish(Some(two_ghz(0)));
    assert_eq!(at(&data, 1, 5000), Some((0, 2000)));
    data.clock.publish(None);
    assert_eq!(at(&data, 1, 5000), None);
}

#[test]
fn clocks_follow_the_scale() {
    let data = Data::default();
    data.clock.publish(Some(two_ghz(5 * SECOND + 7)));
    let tsc = 1000 + 2 * (3 * SECOND + 42);
    for clock in [1, 4, 6, 7] {
        assert_eq!(at(&data, clock, tsc), Some((3, 42)), "clock {clock}");
    }
    for clock in [0, 5, 11] {
        assert_eq!(at(&data, clock, tsc), Some((8, 49)), "clock {clock}");
    }
    for clock in [2, 3, 8, 9, 10, 12, 31, 32, 33, -1, -6, i32::MIN, i32::MAX] {
        assert_eq!(at(&data, clock, tsc), None, "clock {clock}");
        assert_eq!(clock::resolution(clock), None, "clock {clock}");
    }
    assert_eq!(at(&data, 1, 0), Some((0, 0)), "another CPU's counter may be behind");
    assert_eq!(clock::resolution(1), Some(Timespec { seconds: 0, nanos: 1 }));
    assert_eq!(clock::resolution(5), Some(Timespec { seconds: 0, nanos: 4_000_000 }));
    let micros = clock::micros(Timespec { seconds: 1, nanos: 999_999_999 });
    assert_eq!((micros.seconds, micros.micros), (1, 999_999));
}

#[test]
fn a_clock_whose_speed_was_changed_goes_on_from_where_it_was() {
    let data = Data::default();
    let (monotonic, wall_offset, tai_offset) = (7 * SECOND, 100 * SECOND, 37 * SECOND);
    let changed = Scale { monotonic, is_raw: false, tai_offset, ..two_ghz(wall_offset) };
    data.clock.publish(Some(changed));
    let tsc = 1000 + 2 * 5;
    for (clocks, seconds) in [([1, 6, 7], 7), ([0, 5, 0], 107), ([11, 11, 11], 144)] {
        for clock in clocks {
            assert_eq!(at(&data, clock, tsc), Some((seconds, 5)), "clock {clock}");
        }
    }
    assert_eq!(at(&data, 4, tsc), None, "the kernel knows what it would be without the change");
}

/// Two writers and readers at once: whoever reads sees values that belong together.
#[test]
fn readers_never_see_half_a_change() {
    let data = Data::default();
    data.clock.publish(Some(Scale::default()));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2u64)
            .map(|writer| {
                let clock = &data.clock;
                scope.spawn(move || {
                    for n in 0..20_000u64 {
                        let n = n * 2 + writer;
                        let scale = Scale {
                            base: n,
                            multiplier: n << SHIFT,
                            wall_offset: n,
                            ..Scale::default()
                        };
                        clock.publish(Some(scale));
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut reads = 0u64;
            while !done.load(Ordering::Relaxed) || reads < 1000 {
                // (-1 - n) * n + n is -n * n, in 64 bits; no mixture of two scales gives minus a square.
                let nanos = match reads % 2 {
                    0 => data.clock.read(0, || u64::MAX),
                    _ => data.clock.try_read(0, || u64::MAX),
                };
                let square = nanos.map_or(0, u64::wrapping_neg);
                assert_eq!(square.isqrt().pow(2), square, "{nanos:?}");
                assert!(nanos.is_some() || reads % 2 == 1, "who waits gets an answer");
                reads += 1;
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn generations_never_go_back() {
    let data = Data::default();
    assert_eq!(data.random.generation(), 0);
    data.random.publish(6);
    data.random.publish(5);
    assert_eq!(data.random.generation(), 6);
}

#[test]
fn the_image_is_small_and_has_linux_names() {
    let image = alea_vdso::IMAGE;
    assert!(image.len() > 4096 && image.len() <= 8192, "{} bytes: two pages", image.len());
    assert!(image.starts_with(b"\x7fELF"));
    for name in [
        "linux-vdso.so.1",
        "LINUX_2.6",
        "__vdso_getrandom",
        "__vdso_clock_gettime",
        "__vdso_clock_getres",
        "__vdso_gettimeofday",
        "__vdso_time",
        "__vdso_getcpu",
    ] {
        let found =
            image.windows(name.len() + 1).any(|at| at.split_last() == Some((&0, name.as_bytes())));
        assert!(found, "{name}");
    }
}
