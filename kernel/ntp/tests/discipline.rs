//! The discipline by known numbers of Linux 6.12, and what holds for any request.

use abi::Errno;
use abi::time::{Timex, timex::*};
use alea_ntp::request::check;
use alea_ntp::{Discipline, Permission};
use proptest::prelude::*;

const NANOS: i128 = 1_000_000_000;

fn asked(modes: u32) -> Timex {
    Timex { modes, ..Timex::default() }
}

/// How many nanoseconds the clock gains in this second.
fn gain(ntp: &Discipline) -> i128 {
    let rate = ntp.rate();
    i128::from(rate.clock) * NANOS / i128::from(rate.counter) - NANOS
}

/// Lets seconds pass one by one; what the clock gained in them.
fn gain_of(ntp: &mut Discipline, from: i64, seconds: i64) -> i128 {
    let each = (1..=seconds).map(|n| {
        assert_eq!(ntp.pass(from + n), 0);
        gain(ntp)
    });
    each.sum()
}

/// A discipline whose clock was set to `second` without error, with these status bits.
fn at(second: i64, status: i32) -> Discipline {
    let mut ntp = Discipline::new();
    ntp.clock_was_set(second);
    ntp.apply(&mut Timex { status, ..asked(ADJ_STATUS | ADJ_MAXERROR) }, second);
    ntp
}

#[test]
fn a_clock_begins_unsynchronised_and_exact() {
    let mut told = asked(0);
    assert_eq!(Discipline::new().apply(&mut told, 0), TIME_ERROR);
    let want = Timex {
        status: STA_UNSYNC,
        maxerror: 16_000_000,
        esterror: 16_000_000,
        constant: 2,
        precision: 1,
        tolerance: 32_768_000,
        tick: 10_000,
        ..asked(0)
    };
    assert_eq!(told, want);
    assert_eq!(gain(&Discipline::new()), 0);
    assert!(!Discipline::new().is_busy());
}

#[test]
fn frequency_and_tick_act_at_once_and_for_good() {
    let mut ntp = at(1000, 0);
    let mut told = Timex { freq: 100 << 16, ..asked(ADJ_FREQUENCY) };
    assert_eq!(ntp.apply(&mut told, 1000), TIME_OK);
    assert_eq!((told.freq, gain(&ntp)), (100 << 16, 100_000));
    ntp.apply(&mut Timex { tick: 10_001, ..asked(ADJ_TICK) }, 1000);
    assert_eq!(gain_of(&mut ntp, 1000, 10), 10 * 200_000);
    assert!(!ntp.is_busy(), "nothing changes any more");
    told = Timex { freq: i64::MIN / 65_536_000, ..asked(ADJ_FREQUENCY) };
    ntp.apply(&mut told, 1000);
    assert_eq!(told.freq, -32_768_000, "no more than 500 parts of a million");
}

#[test]
fn adjtime_moves_the_clock_by_just_so_much() {
    for micros in [1700, -1700, 500, -3] {
        let mut ntp = at(0, 0);
        let mut told = Timex { offset: micros, ..asked(ADJ_ADJTIME | ADJ_OFFSET_SINGLESHOT) };
        ntp.apply(&mut told, 0);
        assert_eq!((told.offset, gain(&ntp)), (0, 0), "from the next second on");
        assert_eq!(gain_of(&mut ntp, 0, 1), i128::from(micros.clamp(-500, 500)) * 1000);
        let read = ADJ_ADJTIME | ADJ_OFFSET_SINGLESHOT | ADJ_OFFSET_READONLY;
        let mut told = Timex { offset: 7, ..asked(read) };
        ntp.apply(&mut told, 1);
        let left = micros - micros.clamp(-500, 500);
        assert_eq!(told.offset, left);
        assert_eq!(gain_of(&mut ntp, 1, 10), i128::from(left) * 1000);
        assert!(!ntp.is_busy());
    }
}

#[test]
fn the_phase_is_corrected_by_a_part_of_it_each_second() {
    let mut ntp = at(0, STA_PLL | STA_NANO);
    let mut told = Timex { offset: -64_000_000, ..asked(ADJ_OFFSET | ADJ_NANO) };
    ntp.apply(&mut told, 0);
    assert_eq!(told.offset as u64 >> 32, u64::MAX >> 32, "nanoseconds have their sign");
    assert_eq!(told.freq, 0, "no second has passed since the loop began");
    // The constant is 2: a sixteenth each second.
    assert_eq!(gain_of(&mut ntp, 0, 1), -4_000_000);
    assert_eq!(gain_of(&mut ntp, 1, 1), -3_750_000);
    let rest = gain_of(&mut ntp, 2, 600);
    assert!((-56_250_000 - rest).abs() < 1000, "{rest}");
    assert!(!ntp.is_busy());
    // Told again after 16 seconds: the frequency is found wrong, by offset * seconds / 2^(2 * (4 + 2)).
    let mut ntp = at(0, STA_PLL);
    ntp.apply(&mut Timex { offset: 1000, ..asked(ADJ_OFFSET) }, 16);
    ntp.apply(&mut told, 16);
    assert_eq!(gain(&ntp), 1_000_000 * 16 / 4096);
}

#[test]
fn at_long_intervals_the_frequency_is_locked() {
    let mut ntp = at(0, STA_PLL | STA_FLL);
    let mut told = Timex { offset: 4000, ..asked(ADJ_OFFSET) };
    ntp.apply(&mut told, 1000);
    assert_eq!(told.status & STA_MODE, STA_MODE);
    // A quarter of 4 ms in 1000 s, and the phase's part: 4 ms * 32 / 4096.
    assert_eq!(gain(&ntp), 1000 + 4_000_000 * 32 / 4096);
}

#[test]
fn errors_grow_until_the_clock_counts_as_unsynchronised() {
    let mut ntp = at(0, 0);
    ntp.apply(&mut asked(ADJ_MAXERROR), 0);
    assert_eq!(ntp.pass(32_000), 0);
    let mut told = asked(0);
    assert_eq!(ntp.apply(&mut told, 32_000), TIME_OK);
    assert_eq!(told.maxerror, 16_000_000);
    assert_eq!(ntp.pass(32_001), 0);
    assert_eq!(ntp.apply(&mut told, 32_001), TIME_ERROR);
    assert_eq!((told.maxerror, told.status), (16_000_000, STA_UNSYNC));
}

#[test]
fn leap_seconds_are_inserted_and_left_out_at_midnight() {
    const MIDNIGHT: i64 = 20 * 86_400;
    for (status, leap, states) in [
        (STA_INS, -1, [TIME_OK, TIME_INS, TIME_OOP, TIME_WAIT]),
        (STA_DEL, 1, [TIME_OK, TIME_DEL, TIME_WAIT, TIME_WAIT]),
    ] {
        let mut ntp = at(MIDNIGHT - 10, status);
        let mut told = asked(0);
        let mut seen = vec![ntp.apply(&mut told, 0)];
        assert_eq!(ntp.pass(MIDNIGHT - 2), 0);
        seen.push(ntp.apply(&mut told, 0));
        let when = if leap < 0 { MIDNIGHT } else { MIDNIGHT - 1 };
        assert_eq!(ntp.pass(when), leap);
        seen.push(ntp.apply(&mut told, 0));
        assert_eq!(ntp.pass(when + leap + 1), 0);
        seen.push(ntp.apply(&mut told, 0));
        assert_eq!(seen, states);
        assert_eq!(i64::from(told.tai), -leap);
        ntp.apply(&mut asked(ADJ_STATUS), 0);
        assert_eq!(ntp.pass(MIDNIGHT + 5), 0);
        assert_eq!(ntp.apply(&mut told, 0), TIME_OK);
    }
}

#[test]
fn what_is_refused() {
    use Permission::{Denied, Granted};
    let tick = |tick| Timex { tick, ..asked(ADJ_TICK) };
    let step = |modes, part| Timex { time: [-1, part], ..asked(ADJ_SETOFFSET | modes) };
    let freq = |freq| Timex { freq, ..asked(ADJ_FREQUENCY) };
    for (request, permission, want) in [
        (asked(0), Denied, Ok(None)),
        (asked(ADJ_OFFSET), Denied, Err(Errno::EPERM)),
        (asked(ADJ_ADJTIME), Granted, Err(Errno::EINVAL)),
        (asked(ADJ_ADJTIME | ADJ_OFFSET_SINGLESHOT), Denied, Err(Errno::EPERM)),
        (asked(ADJ_ADJTIME | ADJ_OFFSET_SINGLESHOT | ADJ_OFFSET_READONLY), Denied, Ok(None)),
        (tick(8_999), Granted, Err(Errno::EINVAL)),
        (tick(9_000), Granted, Ok(None)),
        (tick(11_000), Granted, Ok(None)),
        (tick(11_001), Granted, Err(Errno::EINVAL)),
        (step(0, 1_000_000), Granted, Err(Errno::EINVAL)),
        (step(0, 999_999), Granted, Ok(Some(-1000))),
        (step(ADJ_NANO, 999_999), Granted, Ok(Some(-999_000_001))),
        (step(ADJ_NANO, -1), Granted, Err(Errno::EINVAL)),
        (step(0, 0), Denied, Err(Errno::EPERM)),
        (freq(i64::MAX / 65_536_000), Granted, Ok(None)),
        (freq(i64::MAX / 65_536_000 + 1), Granted, Err(Errno::EINVAL)),
    ] {
        assert_eq!(check(&request, permission), want, "{request:?}");
    }
}

fn any_request() -> impl Strategy<Value = Timex> {
    let number = || prop_oneof![-1_000_000i64..1_000_000, any::<i64>()];
    (any::<u16>(), number(), number(), any::<i32>(), number(), number(), number()).prop_map(
        |(modes, offset, freq, status, constant, error, tick)| Timex {
            modes: u32::from(modes),
            offset,
            freq,
            status,
            constant,
            maxerror: error,
            esterror: error,
            tick: if tick % 2 == 0 { tick } else { tick.rem_euclid(2000) + 9_000 },
            ..Timex::default()
        },
    )
}

proptest! {
    /// Whatever is asked, the clock runs between 0.8 and 1.2 of its speed, leaps by a second at most, and at most once a day.
    #[test]
    fn the_clock_always_runs(calls in prop::collection::vec((any_request(), 0i64..5000), 1..40)) {
        let mut ntp = Discipline::new();
        let mut now = 86_400 * 300 - 7_000;
        ntp.clock_was_set(now);
        let mut leaps = 0;
        for (mut request, seconds) in calls {
            now += seconds;
            let moved = ntp.pass(now);
            leaps += moved.abs();
            now += moved;
            if check(&request, Permission::Granted).is_ok() {
                let state = ntp.apply(&mut request, now);
                prop_assert!((TIME_OK..=TIME_ERROR).contains(&state));
            }
            prop_assert!(gain(&ntp).abs() < NANOS / 5, "{ntp:?}");
        }
        prop_assert!(leaps <= 4);
    }
}
