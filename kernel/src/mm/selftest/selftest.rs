//! Tests of the live memory code, run at boot when the command line has `alea.selftest`.
//!
//! They use the allocators as everyone does, check what they must promise, and compare the frame counts
//! before and after. A failed check panics; debug builds check the allocators' own invariants besides.

use super::{figures, isolated, secret, spaces, wipes};
use crate::mm::frames::frame::Frame;
use crate::mm::frames::{self, For};
use crate::mm::kernel::stack::{self, KernelStack};
use alea_frames::Owner;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Runs every test.
pub fn run() {
    if crate::cmdline::value(crate::cmdline::words::SELFTEST) == Some("figures") {
        return figures::run();
    }
    for (name, test) in TESTS {
        leak_checked(name, *test);
    }
    log::info!("mm: {} self tests passed", TESTS.len());
}

const TESTS: &[(&str, fn())] = &[
    ("frames are distinct and zeroed on demand", frames_distinct),
    ("heap objects do not overlap", heap_objects),
    ("big heap objects", heap_big),
    ("kernel stacks", kernel_stacks),
    ("zeroed when taken and when given back", wipes::zeroed_as_asked),
    ("map and unmap", spaces::map_and_unmap),
    ("anonymous memory", spaces::anonymous),
    ("fork copies", spaces::fork_copies),
    ("an entry used after the look", spaces::used_after_look),
    ("file mappings", spaces::file_mappings),
    ("sparse files", spaces::sparse_files),
    ("stack and heap", spaces::stack_and_heap),
    ("what programs' tables show", isolated::shows_what_it_must),
    ("programs' tables follow the kernel's", isolated::follows),
    ("secret pages", secret::hidden_and_shown),
];

/// Runs a test twice, for caches to fill, then once more and compares the frames in use.
fn leak_checked(name: &str, test: fn()) {
    test();
    test();
    let before = frames::stats();
    test();
    let after = frames::stats();
    let uses =
        |s: frames::FrameStats| (s.anon, s.page_cache, s.page_tables, s.kernel_stacks, s.kernel);
    assert_eq!(uses(before), uses(after), "{name}: frames leaked");
    // One slab of a class may stay behind.
    assert!(after.slab <= before.slab + 2, "{name}: the heap grew by {}", after.slab - before.slab);
}

fn frames_distinct() {
    let mut held: Vec<Frame> = (0..600).filter_map(|_| Frame::alloc().ok()).collect();
    assert_eq!(held.len(), 600);
    for (n, frame) in held.iter().enumerate() {
        frame.write(8, &n.to_le_bytes());
    }
    for (n, frame) in held.iter().enumerate() {
        let mut found = [0; 8];
        frame.read(8, &mut found);
        assert_eq!(usize::from_le_bytes(found), n);
        assert_eq!(frame.refcount(), 1);
    }
    let copy = held[0].clone();
    assert_eq!((held[0].refcount(), copy.phys()), (2, held[0].phys()));
    held.clear();
    assert_eq!(copy.refcount(), 1);
    drop(copy);
    for _ in 0..3 {
        frames::zero_one();
    }
    for _ in 0..200 {
        let frame = Frame::alloc_zeroed().expect("memory");
        let mut bytes = [1; 4096];
        frame.read(0, &mut bytes);
        assert!(bytes.iter().all(|&b| b == 0));
        frame.write(0, &[0xff; 64]);
    }
    let table = frames::alloc_table().expect("memory");
    assert_eq!((table.meta().word(), table.meta().owner()), (0, Owner::PageTable));
    frames::free_table(table);
    let user = frames::alloc(Owner::Anon, For::User).expect("memory");
    frames::put(user);
}

fn heap_objects() {
    let mut held: Vec<Box<[u8]>> = Vec::new();
    for round in 0..2000usize {
        let len = (round * 37) % 2049;
        held.push(alloc::vec![round as u8; len].into_boxed_slice());
        if round % 3 == 0 {
            held.swap_remove(round * 7 % held.len());
        }
    }
    for object in &held {
        assert!(object.iter().all(|&byte| byte == object[0]), "heap objects overlap");
    }
}

fn heap_big() {
    let mut grows = Vec::new();
    for n in 0..100_000u64 {
        grows.push(n);
    }
    assert!(grows.iter().enumerate().all(|(i, &n)| i as u64 == n));
    let mut impossible: Vec<u8> = Vec::new();
    assert!(impossible.try_reserve(1 << 46).is_err());
    assert!(impossible.try_reserve(1 << 36).is_err());
}

fn kernel_stacks() {
    let stacks: Vec<KernelStack> = (0..20).filter_map(|_| KernelStack::alloc().ok()).collect();
    assert_eq!(stacks.len(), 20);
    for (n, stack) in stacks.iter().enumerate() {
        for other in &stacks[..n] {
            assert!(other.top() != stack.top());
        }
    }
    // Eight wait for this CPU's own tasks, the others give their frames back when memory has run out.
    let used = frames::stats().kernel_stacks;
    drop(stacks);
    stack::shrink();
    let left = frames::stats().kernel_stacks;
    assert!(left + 12 * 4 <= used, "{used} pages of stacks, of which {left} are left");
}
