//! The image's getrandom on the host, against the model of `alea_random::vdso`: the same bytes for the same
//! keys, lengths, reseeds and losses, and the same decision for the same arguments.

use std::cell::{Cell, RefCell};

use alea_random::block::{Block, BlockGenerator, Key};
use alea_random::splitmix64::SplitMix64;
use alea_random::vdso::{Decision, Params, QUERY, Shared, State as Model, decide};
use alea_vdso::chacha20;
use alea_vdso::data::Data;
use alea_vdso::getrandom::{self, Kernel, STATE, State};

/// What the system call returned when it was not asked for a key.
const CALLED: isize = -999;

/// A page with one state at its start, or anywhere.
#[repr(C, align(4096))]
struct Page([u8; 8192]);

/// Hands out numbered keys, and lets something happen while it does.
struct Keys {
    drawn: Cell<u64>,
    during: RefCell<Box<dyn FnMut()>>,
}

impl Keys {
    fn new() -> Self {
        Self { drawn: Cell::new(0), during: RefCell::new(Box::new(|| ())) }
    }

    fn next(&self) -> [u8; 32] {
        self.drawn.set(self.drawn.get() + 1);
        let mut key = [0; 32];
        SplitMix64::new(self.drawn.get()).fill(&mut key);
        key
    }
}

impl Kernel for Keys {
    fn getrandom(&self, buffer: *mut u8, len: usize, flags: u32) -> isize {
        // A caller's request carries a mark; what is left is for a key.
        if len != 32 || flags != 0 || self.drawn.get() == u64::MAX {
            return CALLED;
        }
        // SAFETY: the code under test asked for 32 bytes there.
        unsafe { buffer.cast::<[u8; 32]>().write(self.next()) };
        (self.during.borrow_mut())();
        32
    }
}

/// The image's own routines, for the model.
struct Routine(bool);

impl BlockGenerator for Routine {
    fn fill(&self, key: &Key, counter: u32, out: &mut [Block]) {
        let mut scratch = Page([0; 8192]);
        let groups = out.len() / 8;
        assert_eq!(out.len() % 8, 0);
        if groups > 0 {
            let (key, out) = (key.as_bytes().as_ptr(), out.as_mut_ptr().cast());
            // SAFETY: all ranges are whole; `widths` asked for the instructions.
            unsafe {
                chacha20::keystream(self.0, key, counter, out, groups, scratch.0.as_mut_ptr())
            };
        }
    }
}

fn widths() -> Vec<bool> {
    if is_x86_feature_detected!("avx2") { vec![false, true] } else { vec![false] }
}

fn call(data: &Data, kernel: &Keys, page: &mut Page, out: &mut [u8]) -> isize {
    let state = page.0.as_mut_ptr().cast::<State>();
    // SAFETY: the page holds a state, which is this thread's own.
    unsafe { getrandom::getrandom(data, kernel, out.as_mut_ptr(), out.len(), 0, state, STATE) }
}

#[test]
fn the_bytes_are_the_models() {
    for wide in widths() {
        let data = Data::default();
        data.random.set_wide(wide);
        data.random.publish(1);
        let shared = Shared::not_ready();
        shared.publish(1);
        let (ours, theirs) = (Keys::new(), Keys::new());
        let mut page = Page([0; 8192]);
        let mut model = Model::zeroed();
        let mut lengths = SplitMix64::new(7);
        for round in 0..4000u64 {
            let len = match lengths.next_u64() {
                n if n % 8 == 0 => n / 8 % 5000,
                n if n % 8 == 1 => 512 * (n / 8 % 4),
                n => n / 8 % 70,
            } as usize
                + 1;
            if len == 32 {
                continue;
            }
            let (mut a, mut b) = (vec![0xaa; len], vec![0x55; len]);
            assert_eq!(call(&data, &ours, &mut page, &mut a), len as isize);
            let key = |key: &mut [u8; 32]| {
                *key = theirs.next();
                true
            };
            model.draw(&shared, &Routine(wide), key, &mut b).unwrap();
            assert!(a == b, "round {round}, {len} bytes");
            match round % 97 {
                13 => {
                    data.random.publish(round + 2);
                    shared.publish(round + 2);
                }
                // A fork's child, or memory that the kernel took away.
                55 => {
                    page.0.fill(0);
                    model = Model::zeroed();
                }
                _ => {}
            }
        }
        assert!(ours.drawn.get() > 80 && ours.drawn.get() == theirs.drawn.get());
    }
}

/// Bytes, halves of words and words; the key's first place, too. What waits for the next call is still there.
#[test]
fn what_was_handed_out_is_gone_from_the_state() {
    for len in (1..=40).filter(|len| *len != 32) {
        let data = Data::default();
        data.random.publish(1);
        let (kernel, mut page) = (Keys::new(), Page([0; 8192]));
        assert_eq!(call(&data, &kernel, &mut page, &mut vec![0; len]), len as isize);
        let (gone, kept) = page.0[..512].split_at(32 + len);
        assert!(gone.iter().all(|byte| *byte == 0), "{len} bytes: {gone:x?}");
        assert!(kept.windows(8).all(|word| word != [0; 8]), "{len} bytes");
    }
}

/// The kernel is asked for a new key when nothing of the old one's batch is left.
#[test]
fn a_batch_of_an_old_key_is_gone_before_the_new_key_comes() {
    let data = Data::default();
    data.random.publish(1);
    let (kernel, page) = (Keys::new(), Box::leak(Box::new(Page([0; 8192]))));
    let group = page.0.as_ptr().cast::<[u8; 512]>();
    let call = |page: &mut Page| call(&data, &kernel, page, &mut [0; 16]);
    assert_eq!(call(page), 16);
    let asked = std::rc::Rc::new(Cell::new(false));
    let seen = asked.clone();
    *kernel.during.borrow_mut() = Box::new(move || {
        // SAFETY: the page is leaked; the code under test has it as memory that others read.
        assert!(unsafe { group.read() } == [0; 512]);
        seen.set(true);
    });
    data.random.publish(2);
    assert_eq!(call(page), 16);
    assert!(asked.get());
}

#[test]
fn arguments_are_decided_on_as_by_the_model() {
    let data = Data::default();
    data.random.publish(1);
    let mut page = Page([0; 8192]);
    let mut out = [0u8; 16];
    for at in [0, 1, 32, 64, 4096 - STATE, 4096 - STATE + 64, 4032, 4095] {
        for len in [0, 16] {
            for state_len in [STATE, STATE - 1, 0, QUERY] {
                for flags in (0..9).chain([1 << 31, u32::MAX]) {
                    for buffer in [core::ptr::null_mut(), out.as_mut_ptr()] {
                        if buffer.is_null() && len > 0 {
                            continue;
                        }
                        page.0.fill(0);
                        let state = page.0[at..].as_mut_ptr();
                        // SAFETY: the state, if it is one, lies in the page, the buffer is whole.
                        let result = unsafe {
                            let (kernel, state) = (&Keys::new(), state.cast());
                            getrandom::getrandom(
                                &data, kernel, buffer, len, flags, state, state_len,
                            )
                        };
                        let expected =
                            match decide(buffer as usize, len, flags, state as usize, state_len) {
                                Decision::Answer | Decision::Nothing => 0,
                                Decision::Fault => -14,
                                Decision::SystemCall => CALLED,
                                Decision::Draw => len as isize,
                            };
                        let what = format!("at {at} len {len} of {state_len:#x}, flags {flags:#x}");
                        assert_eq!(result, expected, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_query_is_answered_as_by_the_model() {
    let data = Data::default();
    let mut params = Params { reserved: [9; 13], ..Params::ANSWER };
    params.size_of_opaque_state = 0;
    let (nothing, to) = (core::ptr::null_mut(), (&raw mut params).cast());
    // SAFETY: there is room for the answer.
    let result =
        unsafe { getrandom::getrandom(&data, &Keys::new(), nothing, 0, 0, to, getrandom::QUERY) };
    assert_eq!((result, params), (0, Params::ANSWER));
    assert_eq!(params.size_of_opaque_state as usize, STATE);
}

#[test]
fn the_system_call_serves_before_ready_and_inside_a_draw() {
    let data = Data::default();
    let mut page = Page([0; 8192]);
    let mut out = [0; 16];
    assert_eq!(call(&data, &Keys::new(), &mut page, &mut out), CALLED, "not ready");
    assert_eq!(call(&data, &Keys::new(), &mut page, &mut []), CALLED, "not even for nothing");
    data.random.publish(1);
    assert_eq!(call(&data, &Keys::new(), &mut page, &mut out), 16);
    // The last four bytes say that a draw is under way: this call is a signal handler's.
    page.0[STATE - 20..STATE].iter().for_each(|byte| assert_eq!(*byte, 0));
    let in_use = core::mem::size_of::<State>() - 64 + 12 + 32;
    page.0[in_use] = 1;
    assert_eq!(call(&data, &Keys::new(), &mut page, &mut out), CALLED);
    page.0[in_use] = 0;
    assert_eq!(call(&data, &Keys::new(), &mut page, &mut out), 16);
}

#[test]
fn a_reseed_or_a_loss_during_the_draw_is_noticed() {
    let data: &'static Data = Box::leak(Box::default());
    data.random.publish(1);
    let page: &'static mut Page = Box::leak(Box::new(Page([0; 8192])));
    let bytes = page.0.as_mut_ptr();
    let mut out = [0xaa; 16];
    // A reseed after the generation was read, once: the draw is made again.
    let kernel = Keys::new();
    let mut times = 0;
    *kernel.during.borrow_mut() = Box::new(move || {
        times += 1;
        if times == 1 {
            data.random.publish(2);
        }
    });
    assert_eq!(call(data, &kernel, page, &mut out), 16);
    assert_eq!(kernel.drawn.get(), 2);
    // The state is taken away with the key in it, every time: the kernel has to serve, and nothing that
    // the zeros made is handed out.
    page.0.fill(0);
    let kernel = Keys::new();
    *kernel.during.borrow_mut() = Box::new(move || {
        // SAFETY: the page is leaked; the code under test reads it as memory that others change.
        unsafe { bytes.write_bytes(0, STATE) };
    });
    out.fill(0xaa);
    assert_eq!(call(data, &kernel, page, &mut out), CALLED);
    assert_eq!(out, [0; 16]);
}

#[test]
fn a_twin_is_noticed_before_the_kernel_knows() {
    #[repr(C, align(4096))]
    struct Shown {
        id: [u8; 4096],
        data: Data,
    }
    let mut shown = Box::new(Shown { id: [0; 4096], data: Data::default() });
    shown.id[40..56].copy_from_slice(&[7; 16]);
    shown.data.random.set_id_place(40);
    shown.data.random.publish(1);
    shown.data.random.publish_id([0x0707_0707_0707_0707; 2]);
    let mut page = Page([0; 8192]);
    let mut out = [0; 16];
    assert_eq!(call(&shown.data, &Keys::new(), &mut page, &mut out), 16);
    for byte in [40, 55] {
        shown.id[byte] ^= 1;
        out.fill(0xaa);
        assert_eq!(call(&shown.data, &Keys::new(), &mut page, &mut out), CALLED);
        assert_eq!(out, [0; 16]);
        shown.id[byte] ^= 1;
    }
    assert_eq!(call(&shown.data, &Keys::new(), &mut page, &mut out), 16);
}
