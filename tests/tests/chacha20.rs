//! The kernel's vector ChaCha20, assembled into a host program, against the portable generator.
//!
//! Also checks what the kernel relies on: the caller's registers survive whole, and the stack below
//! keeps no secret.
#![cfg(target_arch = "x86_64")]

use std::arch::global_asm;

use alea_random::block::{BlockGenerator, GROUP_BLOCKS, Key, Portable};

global_asm!(
    include_str!("../../kernel/vdso/src/keystream.s"),
    include_str!("../../kernel/src/arch/x86_64/chacha20.s"),
);

type Routine = unsafe extern "sysv64" fn(*const u8, u32, *mut u8, usize);

unsafe extern "sysv64" {
    fn alea_chacha20_sse2(key: *const u8, counter: u32, out: *mut u8, groups: usize);
    fn alea_chacha20_avx2(key: *const u8, counter: u32, out: *mut u8, groups: usize);
    fn alea_chacha20_avx512_machine(key: *const u8, counter: u32, out: *mut u8, groups: usize);
}

/// Name, routine and blocks per register; only what this host can run.
fn routines() -> Vec<(&'static str, Routine, usize)> {
    let mut all: Vec<(&str, Routine, usize)> = vec![("sse2", alea_chacha20_sse2, 4)];
    if is_x86_feature_detected!("avx2") {
        all.push(("avx2", alea_chacha20_avx2, 8));
    }
    if is_x86_feature_detected!("avx512f") {
        all.push(("avx512 machine", alea_chacha20_avx512_machine, 8));
    }
    all
}

fn run(routine: Routine, key: &[u8; 32], counter: u32, groups: usize) -> Vec<u8> {
    let mut out = vec![0xaa; groups * 512 + 64];
    // SAFETY: key and out are whole; `routines` checked the instructions.
    unsafe { routine(key.as_ptr(), counter, out.as_mut_ptr(), groups) };
    assert!(out[groups * 512..].iter().all(|&byte| byte == 0xaa), "wrote too far");
    out.truncate(groups * 512);
    out
}

/// Puts the words of interleaved keystream back in order.
fn in_order(interleaved: &[u8], lanes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(interleaved.len());
    for part in interleaved.chunks(lanes * 64) {
        for lane in 0..lanes {
            for word in 0..16 {
                let at = (word * lanes + lane) * 4;
                out.extend(&part[at..at + 4]);
            }
        }
    }
    out
}

fn keys() -> impl Iterator<Item = [u8; 32]> {
    let mut words = alea_random::splitmix64::SplitMix64::new(1);
    let random = (0..200).map(move |_| {
        let mut key = [0; 32];
        words.fill(&mut key);
        key
    });
    [[0; 32], [0xff; 32]].into_iter().chain(random)
}

#[test]
fn every_routine_makes_the_portable_keystream() {
    for (name, routine, lanes) in routines() {
        for (n, key) in keys().enumerate() {
            let groups = 1 + n % 9;
            let counter = [0, 1, 512, 0xffff, 0xffff_ff00][n % 5];
            let mut expected = vec![[0; 64]; groups * GROUP_BLOCKS];
            Portable.fill(&Key::new(key), counter, &mut expected);
            let ours = in_order(&run(routine, &key, counter, groups), lanes);
            assert!(ours == expected.as_flattened(), "{name}, key {n}, counter {counter:#x}");
        }
    }
}

/// What `alea_test_*` run: on a stack of their own, with all vector registers loaded from `before`
/// and stored to `after` around the call.
#[repr(C)]
struct Call {
    key: *const u8,
    counter: u64,
    out: *mut u8,
    groups: usize,
    stack_top: *mut u8,
    before: *const u8,
    after: *mut u8,
}

global_asm!(
    ".macro ALEA_TEST name, move, width, size",
    ".globl \\name",
    "\\name:",
    "push rbp",
    "push rbx",
    "push r12",
    "mov rbp, rsp",
    "mov r12, rdi",
    "mov rbx, rsi",
    "mov rsp, [rbx + 32]",
    "mov rax, [rbx + 40]",
    ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "\\move \\width\\r, [rax + \\size * \\r]",
    ".endr",
    "mov rdi, [rbx]",
    "mov rsi, [rbx + 8]",
    "mov rdx, [rbx + 16]",
    "mov rcx, [rbx + 24]",
    "call r12",
    "mov rax, [rbx + 48]",
    ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "\\move [rax + \\size * \\r], \\width\\r",
    ".endr",
    "vzeroupper",
    "mov rsp, rbp",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".endm",
    "ALEA_TEST alea_test_256, vmovdqu, ymm, 32",
    "ALEA_TEST alea_test_512, vmovdqu64, zmm, 64",
);

unsafe extern "sysv64" {
    fn alea_test_256(routine: Routine, call: *const Call);
    fn alea_test_512(routine: Routine, call: *const Call);
}

#[test]
fn registers_survive_and_the_stack_keeps_no_secret() {
    for (name, routine, lanes) in routines() {
        // The SSE2 and AVX2 routines run where nothing wider is in use.
        let wide = name == "avx512 machine";
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        let before: Vec<u8> = (0..1024u32).map(|n| n as u8 ^ (n >> 8) as u8 ^ 0x5a).collect();
        let mut after = vec![0u8; 1024];
        let mut stack = vec![0u128; 512];
        let (key, mut out) = ([7u8; 32], vec![0u8; 1024]);
        let call = Call {
            key: key.as_ptr(),
            counter: 5,
            out: out.as_mut_ptr(),
            groups: 2,
            stack_top: stack.as_mut_ptr_range().end.cast(),
            before: before.as_ptr(),
            after: after.as_mut_ptr(),
        };
        // SAFETY: all pointers are whole and the stack is aligned to 16 bytes; the instructions were
        // checked.
        unsafe { if wide { alea_test_512(routine, &call) } else { alea_test_256(routine, &call) } };
        let len = if wide { 1024 } else { 512 };
        assert!(before[..len] == after[..len], "{name} loses the caller's registers");

        let left: Vec<u32> = stack
            .iter()
            .flat_map(|cell| cell.to_le_bytes())
            .collect::<Vec<u8>>()
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert!(left.iter().any(|&word| word != 0), "the routine did not run on this stack");
        let key_word = u32::from_le_bytes([7; 4]);
        assert!(!left.contains(&key_word), "{name} leaves the key");
        for word in in_order(&out, lanes).chunks_exact(4) {
            let word = u32::from_le_bytes(word.try_into().unwrap());
            let secrets = [word, word.wrapping_sub(key_word)];
            assert!(!secrets.iter().any(|s| left.contains(s)), "{name} leaves keystream");
        }
    }
}
