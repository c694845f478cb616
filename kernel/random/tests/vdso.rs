//! The protocol of getrandom in user space: arguments, forks, dropped memory, reseeds, signals.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use alea_random::block::{Block, BlockGenerator, Key, Portable};
use alea_random::request::GetrandomFlags;
use alea_random::splitmix64::SplitMix64;
use alea_random::vdso::{Decision, Params, QUERY, Shared, State, UseSystemCall, decide};

const SIZE: usize = size_of::<State>();

/// A kernel that hands out keys, never the same twice.
struct Kernel {
    shared: Shared,
    keys: Cell<u64>,
}

impl Kernel {
    fn ready() -> Self {
        let kernel = Self { shared: Shared::not_ready(), keys: Cell::new(0) };
        kernel.shared.publish(1);
        kernel
    }

    fn key(&self, key: &mut [u8; 32]) -> bool {
        self.keys.set(self.keys.get() + 1);
        SplitMix64::new(self.keys.get()).fill(key);
        true
    }

    fn draw(&self, state: &mut State, len: usize) -> Result<Vec<u8>, UseSystemCall> {
        let mut out = vec![0; len];
        state.draw(&self.shared, &Portable, |key| self.key(key), &mut out)?;
        Ok(out)
    }
}

#[test]
fn the_layout_suits_a_libc() {
    assert_eq!(size_of::<Params>(), 64);
    assert_eq!(Params::ANSWER.size_of_opaque_state as usize, SIZE);
    assert_eq!((Params::ANSWER.mmap_prot, Params::ANSWER.mmap_flags), (3, 0x28));
    const { assert!(SIZE <= 4096 / 4, "several states share a page") };
    // Zeroed memory is a valid state without a key.
    assert_eq!(SIZE % align_of::<State>(), 0);
}

#[test]
fn decisions_follow_the_arguments() {
    let state = 0x10_0000;
    assert_eq!(decide(0, 0, 0, state, QUERY), Decision::Answer);
    assert_eq!(decide(1, 0, 0, state, QUERY), Decision::SystemCall, "no query");
    assert_eq!(decide(1, 5, 0, state, SIZE - 1), Decision::SystemCall);
    assert_eq!(decide(1, 5, 0, state + 1, SIZE), Decision::SystemCall, "crooked");
    assert_eq!(decide(1, 0, 0, state, SIZE), Decision::Nothing);
    assert_eq!(decide(1, 5, 0, state + 4096 - SIZE, SIZE), Decision::Draw);
    assert_eq!(decide(1, 5, 0, state + 4096 - SIZE + 64, SIZE), Decision::Fault);
}

#[test]
fn flags_are_refused_exactly_as_by_the_system_call() {
    for flags in (0..64).chain([1 << 8, 1 << 31, u32::MAX]) {
        let served = decide(1, 5, flags, 0, SIZE) == Decision::Draw;
        assert_eq!(served, GetrandomFlags::decode(flags.into()).is_ok(), "flags {flags:#x}");
    }
}

#[test]
fn nothing_is_drawn_before_the_kernel_is_ready() {
    let kernel = Kernel { shared: Shared::not_ready(), keys: Cell::new(0) };
    assert_eq!(kernel.draw(&mut State::zeroed(), 16), Err(UseSystemCall));
    assert_eq!(kernel.keys.get(), 0);
}

#[test]
fn a_refused_key_leaves_no_state_that_looks_good() {
    let kernel = Kernel::ready();
    let mut state = State::zeroed();
    let mut out = [0; 16];
    let result = state.draw(&kernel.shared, &Portable, |_| false, &mut out);
    assert_eq!(result, Err(UseSystemCall));
    assert!(kernel.draw(&mut state, 16).is_ok());
    assert_eq!(kernel.keys.get(), 1, "the next draw asked again");
}

#[test]
fn no_word_comes_twice_over_threads_forks_and_reseeds() {
    let kernel = Kernel::ready();
    let mut seen = HashSet::new();
    let mut states = [const { State::zeroed() }; 3];
    for round in 0..if cfg!(miri) { 2 } else { 12 } {
        for state in &mut states {
            for len in [8, 16, 32, 480, 1024] {
                for word in kernel.draw(state, len).unwrap().chunks_exact(8) {
                    assert!(seen.insert(word.to_vec()), "a word came twice");
                }
            }
        }
        match round % 3 {
            0 => kernel.shared.publish(2 + round),
            // A fork's child, or memory that the kernel took away.
            1 => states[1] = State::zeroed(),
            _ => {}
        }
    }
}

#[test]
fn a_reseed_during_the_draw_is_noticed() {
    let kernel = Kernel::ready();
    let mut state = State::zeroed();
    let calls = Cell::new(0);
    let mut out = [0; 16];
    // The reseed comes after the generation was read: the first attempt has to be thrown away.
    let key = |key: &mut [u8; 32]| {
        calls.set(calls.get() + 1);
        if calls.get() == 1 {
            kernel.shared.publish(2);
        }
        kernel.key(key)
    };
    assert_eq!(state.draw(&kernel.shared, &Portable, key, &mut out), Ok(()));
    assert_eq!(calls.get(), 2);
    // A kernel that reseeds all the time is left to the system call, and nothing is handed out.
    let mut out = [0; 16];
    let key = |key: &mut [u8; 32]| {
        calls.set(calls.get() + 1);
        kernel.shared.publish(calls.get() + 10);
        kernel.key(key)
    };
    kernel.shared.publish(9);
    assert_eq!(state.draw(&kernel.shared, &Portable, key, &mut out), Err(UseSystemCall));
    assert_eq!(out, [0; 16]);
}

#[test]
fn a_signal_handler_does_not_get_the_state_it_interrupted() {
    let state = State::zeroed();
    assert!(state.claim());
    assert!(!state.claim(), "the handler");
    state.release();
    assert!(state.claim());
}

/// Notes what it is asked for: counter and blocks.
#[derive(Default)]
struct Asked(RefCell<Vec<(u32, usize)>>);

impl BlockGenerator for Asked {
    fn fill(&self, key: &Key, counter: u32, out: &mut [Block]) {
        self.0.borrow_mut().push((counter, out.len()));
        Portable.fill(key, counter, out);
    }
}

/// A batch is used to its end before another one is made, and whole groups of a long draw do not pass through it.
#[test]
fn a_batch_is_used_up_and_whole_groups_pass_it_by() {
    let (kernel, asked, mut state) = (Kernel::ready(), Asked::default(), State::zeroed());
    let mut draw = |len: usize| {
        let mut out = vec![0; len];
        state.draw(&kernel.shared, &asked, |key| kernel.key(key), &mut out).unwrap();
        (asked.0.take(), out)
    };
    assert_eq!(draw(16).0, [(0, 0), (0, 8)]);
    for _ in 1..30 {
        assert_eq!(draw(16).0, [], "480 bytes are thirty times sixteen");
    }
    assert_eq!(draw(16).0, [(0, 0), (0, 8)]);
    // 464 are left; four groups and 40 bytes more.
    assert_eq!(draw(464 + 4 * 512 + 40).0, [(0, 32), (32, 8)]);
    assert_eq!(draw(440).0, []);
    // The same bytes, however they are cut.
    let (_, long) = draw(3 * 16);
    let (again, mut other) = (Kernel::ready(), State::zeroed());
    again.draw(&mut other, 480).unwrap();
    again.draw(&mut other, 16).unwrap();
    again.draw(&mut other, 464 + 4 * 512 + 40).unwrap();
    again.draw(&mut other, 440).unwrap();
    let short: Vec<u8> = (0..3).flat_map(|_| again.draw(&mut other, 16).unwrap()).collect();
    assert_eq!(long, short);
}

/// A reseed ends the batch: what waits in it was made by the old key.
#[test]
fn a_reseed_drops_the_batch() {
    let (kernel, twin) = (Kernel::ready(), Kernel::ready());
    let (mut state, mut other) = (State::zeroed(), State::zeroed());
    assert_eq!(kernel.draw(&mut state, 16), twin.draw(&mut other, 16));
    kernel.shared.publish(2);
    assert_ne!(kernel.draw(&mut state, 16), twin.draw(&mut other, 16), "the old batch");
    assert_eq!(kernel.keys.get(), 2);
}
