//! Linux's rules for getrandom(2) and the two devices, each as measured on Linux 6.18.

use alea_random::credit::{Credit, EntropyBits, State, Transition};
use alea_random::request::{
    Admission, Device, GetrandomFlags, Ioctl, MAX_LEN, Readiness, Refusal, clamp_len,
    getrandom_admission, may_interrupt, serve, uuid_text,
};
use proptest::prelude::*;

const STATES: [State; 3] = [State::Empty, State::Early, State::Ready];

/// Sixteen times four bits but six of them, which say what it is; the bytes are gone.
#[test]
fn a_uuid_keeps_no_bytes() {
    let mut bytes = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10";
    assert_eq!(&uuid_text(&mut bytes), b"01234567-89ab-4def-bedc-ba9876543210");
    assert_eq!(bytes, [0; 16]);
}

#[test]
fn exactly_these_flags_are_valid() {
    let valid: Vec<u64> = (0..64).filter(|&f| GetrandomFlags::decode(f).is_ok()).collect();
    assert_eq!(valid, [0, 1, 2, 3, 4, 5]);
    for bit in 3..32 {
        assert_eq!(GetrandomFlags::decode(1 << bit), Err(Refusal::InvalidArgument));
    }
    assert_eq!(GetrandomFlags::decode(0xffff_ffff_0000_0000), GetrandomFlags::decode(0));
}

#[test]
fn getrandom_waits_fails_or_serves() {
    let ask = |state, flags| getrandom_admission(state, GetrandomFlags::decode(flags).unwrap());
    for flags in 0..6 {
        assert_eq!(ask(State::Ready, flags), Ok(Admission::Serve));
    }
    for state in [State::Empty, State::Early] {
        assert_eq!(ask(state, 0), Ok(Admission::Wait));
        assert_eq!(ask(state, 2), Ok(Admission::Wait));
        assert_eq!(ask(state, 1), Err(Refusal::WouldBlock));
        assert_eq!(ask(state, 3), Err(Refusal::WouldBlock));
        assert_eq!(ask(state, 4), Ok(Admission::ServeUnseeded));
        assert_eq!(ask(state, 5), Ok(Admission::ServeUnseeded));
    }
}

#[test]
fn random_waits_and_urandom_does_not() {
    for nonblock in [false, true] {
        for device in [Device::Random, Device::Urandom] {
            assert_eq!(device.read_admission(State::Ready, nonblock), Ok(Admission::Serve));
        }
        let early = Device::Urandom.read_admission(State::Early, nonblock);
        assert_eq!(early, Ok(Admission::ServeUnseeded));
    }
    assert_eq!(Device::Random.read_admission(State::Early, false), Ok(Admission::Wait));
    assert_eq!(Device::Random.read_admission(State::Empty, true), Err(Refusal::WouldBlock));
    assert_eq!((Device::Random.minor(), Device::Urandom.minor()), (8, 9));
}

#[test]
fn poll_is_as_lopsided_as_on_linux() {
    for state in STATES {
        let both = Readiness { readable: true, writable: true };
        assert_eq!(Device::Urandom.poll(state), both);
        let ready = state == State::Ready;
        let one = Readiness { readable: ready, writable: !ready };
        assert_eq!(Device::Random.poll(state), one);
    }
}

#[test]
fn ioctls_check_the_right_before_the_pointer() {
    assert_eq!(Ioctl::decode(0x8004_5200, false), Ok(Ioctl::GetEntropyCount));
    for (command, ioctl) in [
        (0x4004_5201, Ioctl::AddToEntropyCount),
        (0x4008_5203, Ioctl::AddEntropy),
        (0x5204, Ioctl::ClearPool),
        (0x5206, Ioctl::ClearPool),
        (0x5207, Ioctl::Reseed),
    ] {
        assert_eq!(Ioctl::decode(command, false), Err(Refusal::NotPermitted));
        assert_eq!(Ioctl::decode(command, true), Ok(ioctl));
    }
    // RNDGETPOOL, FIONREAD, TCGETS.
    for unknown in [0x8008_5202, 0x541b, 0x5401] {
        assert_eq!(Ioctl::decode(unknown, true), Err(Refusal::InvalidArgument));
    }
    assert_eq!(Ioctl::credit(-1), Err(Refusal::InvalidArgument));
    assert_eq!(Ioctl::credit(i32::MAX), Ok(EntropyBits(0x7fff_ffff)));
    assert_eq!(Ioctl::reseed_admission(State::Early), Err(Refusal::NoData));
    assert_eq!(Ioctl::reseed_admission(State::Ready), Ok(()));
}

#[test]
fn lengths_are_clamped_to_whole_pages_of_an_int() {
    assert_eq!(clamp_len(usize::MAX), MAX_LEN);
    assert_eq!(MAX_LEN, i32::MAX as usize & !4095);
    assert_eq!(clamp_len(MAX_LEN - 1), MAX_LEN - 1);
}

#[test]
fn a_fault_returns_what_arrived() {
    let until =
        |wall: usize, len| serve(len, |at, piece| piece.min(wall.saturating_sub(at)), || false);
    assert_eq!(until(10, 100), Ok(10));
    assert_eq!(until(8192, 100_000), Ok(8192));
    assert_eq!(until(0, 100), Err(Refusal::Fault));
    assert_eq!(until(0, 0), Ok(0));
}

#[test]
fn a_signal_cuts_at_a_page_and_never_at_the_start() {
    let served = |len| serve(len, |_, piece| piece, || true);
    assert_eq!(served(4095), Ok(4095));
    assert_eq!(served(4096), Ok(4096));
    assert_eq!(served(4097), Ok(4096));
    assert_eq!(served(1 << 20), Ok(4096));
    assert!(!may_interrupt(0, 10));
}

#[test]
fn credit_goes_forward_and_saturates() {
    let credit = Credit::none();
    assert_eq!(credit.add(EntropyBits(127)), None);
    assert_eq!(credit.state(), State::Empty);
    let step = credit.add(EntropyBits(1));
    assert_eq!(step, Some(Transition { from: State::Empty, to: State::Early }));
    let step = credit.add(EntropyBits(u32::MAX));
    assert_eq!(step, Some(Transition { from: State::Early, to: State::Ready }));
    assert_eq!(credit.add(EntropyBits(256)), None);
    assert_eq!(credit.bits(), EntropyBits::READY);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn a_request_moves_a_prefix_in_order(
        len in 0usize..40_000,
        wall in 0usize..50_000,
        signal_after in 0usize..12,
    ) {
        let mut expected_at = 0;
        let mut asked = 0;
        let result = serve(
            len,
            |at, piece| {
                assert_eq!(at, expected_at);
                assert!(piece <= 4096 && at + piece <= len);
                let moved = piece.min(wall.saturating_sub(at));
                expected_at += moved;
                moved
            },
            || { asked += 1; asked > signal_after },
        );
        match result {
            Ok(done) => {
                prop_assert!(done <= len.min(wall));
                prop_assert!(done == len || done == wall || done == 4096 * (signal_after + 1));
            }
            Err(refusal) => {
                prop_assert_eq!(refusal, Refusal::Fault);
                prop_assert!(wall == 0 && len > 0);
            }
        }
    }
}
