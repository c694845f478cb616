//! Credit, admission, lengths and splitting, enumerated: every case where there are few, every boundary where there are
//! too many. The arithmetic at all widths is in `proofs/*.smt2`.

use alea_random::credit::{Credit, EntropyBits, State, Transition};
use alea_random::device::written;
use alea_random::fast_pool::{DRAIN_COUNT, INTERRUPTS_PER_BIT};
use alea_random::request::{
    Admission, Device, GetrandomFlags, Ioctl, MAX_LEN, PIECE, Refusal, clamp_len,
    getrandom_admission, may_interrupt, serve,
};
use alea_random::reseed::{LONGEST, SHORTEST, interval};
use alea_random::vdso::{Decision, QUERY, State as VdsoState, decide};
use core::time::Duration;

const STATES: [State; 3] = [State::Empty, State::Early, State::Ready];

/// A counter that was credited with so many bits.
fn credited(bits: u32) -> Credit {
    let credit = Credit::none();
    credit.add(EntropyBits(bits));
    credit
}

/// Any credit on top of any other: the sum, cut at 256, and one step forward at most, told to who made it. What comes
/// after depends on the sum alone, so this is every sequence of credits.
#[test]
fn every_credit_on_top_of_every_other() {
    assert_eq!((EntropyBits::EARLY, EntropyBits::READY), (EntropyBits(128), EntropyBits(256)));
    let state = |bits| match bits {
        0..128 => State::Empty,
        128..256 => State::Early,
        _ => State::Ready,
    };
    let more = (0..=600).chain((0..40).map(|n| u32::MAX - n)).chain((0..32).map(|n| 1 << n));
    for more in more {
        for before in 0..=256u32 {
            let credit = credited(before);
            let after = (u64::from(before) + u64::from(more)).min(256);
            let (from, to) = (state(u64::from(before)), state(after));
            let told = (from != to).then_some(Transition { from, to });
            assert_eq!(credit.add(EntropyBits(more)), told, "{before} and {more}");
            assert_eq!(u64::from(credit.bits().0), after, "{before} and {more}");
            assert_eq!(credit.state(), to);
            assert!(from <= to);
        }
    }
}

#[test]
fn credits_are_added_without_wrapping() {
    let near = |n: u32| [n, u32::MAX - n, u32::MAX / 2 - n, u32::MAX / 2 + n];
    for a in (0..300).flat_map(near) {
        for b in (0..5).flat_map(near) {
            let sum = EntropyBits(a).saturating_add(EntropyBits(b));
            assert_eq!(u64::from(sum.0), (u64::from(a) + u64::from(b)).min(u32::MAX.into()));
        }
    }
}

/// Flags that say what they say, whatever else is in the register: three known bits, of which two exclude each other.
#[test]
fn every_pair_of_flags_is_decided() {
    let one = (0..64).map(|bit| 1u64 << bit);
    let two = (0..64).flat_map(|a| (0..64).map(move |b| 1u64 << a | 1 << b));
    for other in one.chain(two).chain([0, u64::MAX]) {
        for low in 0..16 {
            let register = other | low;
            let known = register as u32 & !7 == 0 && register as u32 & 6 != 6;
            let flags = GetrandomFlags::decode(register);
            assert_eq!(flags.is_ok(), known, "{register:#x}");
            let Ok(flags) = flags else { continue };
            for state in STATES {
                let expected = match (state == State::Ready, register & 4 != 0, register & 1 != 0) {
                    (true, _, _) => Ok(Admission::Serve),
                    (false, true, _) => Ok(Admission::ServeUnseeded),
                    (false, false, true) => Err(Refusal::WouldBlock),
                    (false, false, false) => Ok(Admission::Wait),
                };
                assert_eq!(getrandom_admission(state, flags), expected, "{register:#x} {state:?}");
            }
        }
    }
}

/// No state but Ready serves what has to be seeded, and Ready serves everything.
#[test]
fn only_ready_serves_what_is_promised() {
    for (state, nonblock) in STATES.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        let random = Device::Random.read_admission(state, nonblock);
        let urandom = Device::Urandom.read_admission(state, nonblock);
        let ready = state == State::Ready;
        assert_eq!(random == Ok(Admission::Serve), ready);
        assert_eq!(urandom == Ok(Admission::Serve), ready);
        assert!(ready || urandom == Ok(Admission::ServeUnseeded));
        let waits = if nonblock { Err(Refusal::WouldBlock) } else { Ok(Admission::Wait) };
        assert!(ready || random == waits);
        assert_eq!(Ioctl::reseed_admission(state).is_ok(), ready);
    }
}

#[test]
fn lengths_are_cut_at_every_boundary() {
    assert_eq!((MAX_LEN, PIECE), (0x7fff_f000, 4096));
    for len in (0..70).flat_map(|bit| [-1i128, 0, 1].map(|off| (1i128 << bit.min(64)) + off)) {
        let Ok(len) = usize::try_from(len) else { continue };
        assert_eq!(clamp_len(len), len.min(0x7fff_f000));
    }
    for len in [0x7fff_efff, 0x7fff_f000, 0x7fff_f001, usize::MAX] {
        assert_eq!(clamp_len(len), len.min(0x7fff_f000));
    }
}

/// A device can make nobody look beyond what it was given, whatever it claims.
#[test]
fn every_claim_is_cut_to_the_offer() {
    for offered in (0..=300).chain([4096, usize::MAX]) {
        for claimed in (0..=300).chain([4095, 4096, 4097, u32::MAX - 1, u32::MAX]) {
            assert_eq!(written(offered, claimed), offered.min(claimed as usize));
        }
    }
}

#[test]
fn every_ioctl_and_every_count() {
    for count in (-300..=300).chain([i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX]) {
        let expected = u32::try_from(count).map(EntropyBits).map_err(|_| Refusal::InvalidArgument);
        assert_eq!(Ioctl::credit(count), expected);
    }
    let known = [0x8004_5200, 0x4004_5201, 0x4008_5203, 0x5204, 0x5206, 0x5207];
    let near = known.into_iter().flat_map(|c: u32| (0..32).map(move |bit| c ^ 1 << bit));
    for command in near.chain(0x5200..0x5300).chain([0, u32::MAX]) {
        let unknown = !known.contains(&command);
        let invalid = Err(Refusal::InvalidArgument);
        assert_eq!(Ioctl::decode(command, true) == invalid, unknown, "{command:#x}");
        assert_eq!(Ioctl::decode(command, false) == invalid, unknown, "{command:#x}");
    }
}

/// The schedule, second by second: half of the uptime, at least a second and at most a minute.
#[test]
fn intervals_double_from_a_second_to_a_minute() {
    assert_eq!((SHORTEST, LONGEST), (Duration::from_secs(1), Duration::from_secs(60)));
    for second in (0..1000).chain([u64::MAX - 1, u64::MAX]) {
        for nanos in [0, 999_999_999] {
            let expected = Duration::from_secs((second / 2).clamp(1, 60));
            assert_eq!(interval(Duration::new(second, nanos)), expected, "{second} s");
        }
    }
}

/// How often a CPU's pool is passed on, and how many interrupts of devices a bit takes.
#[test]
fn interrupts_drain_and_count_by_these_numbers() {
    assert_eq!((DRAIN_COUNT, INTERRUPTS_PER_BIT), (1024, 64));
}

/// Every place of a state in a page, every size beside the right one, and every set of the low flags.
#[test]
fn every_call_of_the_vdso_is_decided() {
    let size = size_of::<VdsoState>();
    for place in 0..4096 {
        let state = 0x7000_0000 + place;
        for state_len in [0, size - 1, size, size + 1, QUERY] {
            for (buffer, len) in [(0, 0), (0, 1), (1, 0), (1, 16)] {
                for flags in 0..9 {
                    let allowed = flags < 6;
                    let query = state_len == QUERY && (buffer, len, flags) == (0, 0, 0);
                    let expected = match () {
                        () if query => Decision::Answer,
                        () if place + size > 4096 => Decision::Fault,
                        () if state_len != size || !place.is_multiple_of(64) || !allowed => {
                            Decision::SystemCall
                        }
                        () if len == 0 => Decision::Nothing,
                        () => Decision::Draw,
                    };
                    let decided = decide(buffer, len, flags, state, state_len);
                    assert_eq!(decided, expected, "{place} {state_len} {buffer} {len} {flags}");
                }
            }
        }
    }
}

/// A request at the real sizes: lengths around the first pages and around the longest, each moved in order, in pieces of
/// a page; and a fault or a signal at each page of the short ones.
#[test]
fn requests_move_every_byte_once_and_in_order() {
    let moved = |len: usize| {
        let mut at = 0;
        let mut asked = 0;
        let move_piece = |from, piece| {
            assert!(from == at && (1..=PIECE).contains(&piece), "{len}: {piece} at {from}");
            at += piece;
            piece
        };
        let result = serve(len, move_piece, || {
            asked += 1;
            false
        });
        (result, at, asked)
    };
    let short = (0..4).flat_map(|page| (0..4).map(move |off| page * PIECE + off));
    let before = (1..4).flat_map(|page| (1..4).map(move |off| page * PIECE - off));
    for len in short.chain(before) {
        // After each whole piece that is not the last.
        let asked = len.div_ceil(PIECE).saturating_sub(1);
        assert_eq!(moved(len), (Ok(len), len, asked), "{len}");
    }
    let longest =
        if cfg!(miri) { &[][..] } else { &[MAX_LEN - 1, MAX_LEN, MAX_LEN + 1, usize::MAX] };
    for &len in longest {
        assert_eq!(moved(len).0, Ok(len.min(MAX_LEN)));
    }
    assert!(may_interrupt(PIECE, 1) && !may_interrupt(PIECE, 0) && !may_interrupt(0, 1));
    assert!(!may_interrupt(PIECE + 1, 1) && !may_interrupt(PIECE - 1, 1));
}

#[test]
fn a_condemned_credit_counts_nothing() {
    for before in [0, 128, 256] {
        let credit = Credit::none();
        credit.add(EntropyBits(before));
        credit.condemn();
        assert_eq!(credit.add(EntropyBits(256)), None);
        assert_eq!(credit.state(), State::Empty);
    }
}
