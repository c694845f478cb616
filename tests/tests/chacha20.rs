//! The kernel's vector ChaCha20, assembled into a host program, against the portable generator.
//!
//! Also checks what the kernel relies on, after a fault on the place to write to as well: the caller's registers
//! survive whole, and the stack below keeps no secret.
#![cfg(target_arch = "x86_64")]

use std::arch::global_asm;

use alea_random::block::{BlockGenerator, GROUP_BLOCKS, Key, Portable};

global_asm!(
    include_str!("../../kernel/vdso/src/keystream.s"),
    include_str!("../../kernel/src/arch/x86_64/copy/chacha20.s"),
);

type Routine = unsafe extern "sysv64" fn(*const u8, u32, *mut u8, usize) -> u32;

unsafe extern "sysv64" {
    fn alea_chacha20_sse2(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    fn alea_chacha20_avx2_shift(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    fn alea_chacha20_avx2_shuffle(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    fn alea_chacha20_avx512(_: *const u8, _: u32, _: *mut u8, _: usize) -> u32;
    static alea_chacha20_ranges: [[i32; 2]; 4];
}

/// Name, routine and blocks per register; only what this host can run.
fn routines() -> Vec<(&'static str, Routine, usize)> {
    let mut all: Vec<(&str, Routine, usize)> = vec![("sse2", alea_chacha20_sse2, 4)];
    if is_x86_feature_detected!("avx2") {
        all.push(("avx2 shift", alea_chacha20_avx2_shift, 8));
        all.push(("avx2 shuffle", alea_chacha20_avx2_shuffle, 8));
    }
    if is_x86_feature_detected!("avx512vl") {
        all.push(("avx512", alea_chacha20_avx512, 8));
    }
    all
}

fn run(routine: Routine, key: &[u8; 32], counter: u32, groups: usize) -> Vec<u8> {
    let mut out = vec![0xaa; groups * 512 + 64];
    // SAFETY: key and out are whole; `routines` checked the instructions.
    let done = unsafe { routine(key.as_ptr(), counter, out.as_mut_ptr(), groups) };
    assert_eq!(done, 1);
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
    result: u64,
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
    "mov [rbx + 56], rax",
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
    fn alea_test_256(routine: Routine, call: *mut Call);
    fn alea_test_512(routine: Routine, call: *mut Call);
}

const KEY: [u8; 32] = [7; 32];
const KEY_WORD: u32 = u32::from_le_bytes([7; 4]);
/// Whose keystream has no word in common with the other's.
const OTHER_KEY: [u8; 32] = [0xc3; 32];

/// Has `routine` make two groups of `key` at `out`, with values in all registers, which it must restore, on a stack of its own.
/// What it returned, and the words that it left on the stack, without the key among them.
///
/// # Safety
/// `out` has room for two groups, or a fault on it is taken to the end of the range.
unsafe fn observe(name: &str, routine: Routine, key: &[u8; 32], out: *mut u8) -> (u64, Vec<u32>) {
    // The SSE2 and AVX2 routines run where nothing wider is in use.
    let wide = name == "avx512";
    let before: Vec<u8> = (0..1024u32).map(|n| n as u8 ^ (n >> 8) as u8 ^ 0x5a).collect();
    let mut after = vec![0u8; 1024];
    let mut stack = vec![0u128; 512];
    let mut call = Call {
        key: key.as_ptr(),
        counter: 5,
        out,
        groups: 2,
        stack_top: stack.as_mut_ptr_range().end.cast(),
        before: before.as_ptr(),
        after: after.as_mut_ptr(),
        result: u64::MAX,
    };
    // SAFETY: all pointers are whole and the stack is aligned to 16 bytes; the instructions were
    // checked.
    unsafe {
        if wide { alea_test_512(routine, &mut call) } else { alea_test_256(routine, &mut call) }
    };
    let len = if wide { 1024 } else { 512 };
    assert!(before[..len] == after[..len], "{name} loses the caller's registers");
    let cells = stack.iter().flat_map(|cell| cell.to_le_bytes()).collect::<Vec<u8>>();
    let words = cells.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let left: Vec<u32> = words.collect();
    assert!(left.iter().any(|&word| word != 0), "the routine did not run on this stack");
    assert!(!left.contains(&KEY_WORD), "{name} leaves the key");
    let (of_caller, _) = before[..len].as_chunks::<4>();
    let mut of_caller = of_caller.iter().map(|word| u32::from_le_bytes(*word));
    assert!(!of_caller.any(|word| left.contains(&word)), "{name} leaves the caller's registers");
    (call.result, left)
}

/// What is left is the same whatever the key was: nothing follows from it, not from a single word of a round either.
///
/// # Safety
/// As of [`observe`].
unsafe fn leaves_the_same(name: &str, routine: Routine, out: *mut u8) -> (u64, Vec<u32>) {
    // SAFETY: the caller's.
    let [of_one, of_other] =
        [KEY, OTHER_KEY].map(|key| unsafe { observe(name, routine, &key, out) });
    assert!(of_one == of_other, "{name}: what is left depends on the key");
    of_one
}

fn keeps_nothing_of(keystream: &[u8], left: &[u32], name: &str) {
    for word in keystream.chunks_exact(4) {
        let word = u32::from_le_bytes(word.try_into().unwrap());
        let secrets = [word, word.wrapping_sub(KEY_WORD)];
        assert!(!secrets.iter().any(|s| left.contains(s)), "{name} leaves keystream");
    }
}

#[test]
fn registers_survive_and_the_stack_keeps_no_secret() {
    if !is_x86_feature_detected!("avx2") {
        return;
    }
    for (name, routine, lanes) in routines() {
        let mut out = vec![0u8; 1024];
        // SAFETY: there is room for two groups.
        let (result, left) = unsafe { leaves_the_same(name, routine, out.as_mut_ptr()) };
        assert_eq!(result, 1);
        keeps_nothing_of(&in_order(&run(routine, &KEY, 5, 2), lanes), &left, name);
    }
}

/// Which parts of the vector state differ from how they are at first, if the CPU can tell.
fn in_use() -> Option<u32> {
    const UPPER_HALVES: u32 = 1 << 2 | 1 << 6;
    if !is_x86_feature_detected!("xsave") || std::arch::x86_64::__cpuid_count(0xd, 1).eax & 4 == 0 {
        return None;
    }
    let used: u32;
    // SAFETY: the CPU has XGETBV with this argument, which reads only.
    unsafe {
        std::arch::asm!("xgetbv", in("ecx") 1, out("eax") used, out("edx") _, options(nomem, nostack));
    }
    Some(used & UPPER_HALVES)
}

#[test]
fn unused_upper_halves_stay_unused() {
    for (name, routine, _) in routines() {
        let (key, mut out) = ([7u8; 32], vec![0u8; 512]);
        if is_x86_feature_detected!("avx") {
            // SAFETY: nobody has values there across this instruction.
            unsafe { std::arch::asm!("vzeroupper", out("xmm0") _, options(nomem, nostack)) };
        }
        // SAFETY: key and out are whole; `routines` checked the instructions.
        unsafe { routine(key.as_ptr(), 0, out.as_mut_ptr(), 1) };
        let used = in_use();
        assert!(used.unwrap_or(0) == 0, "{name} marks {used:x?} as in use");
    }
}

/// As the kernel's page-fault handler: goes on at the end of the range; any other fault is fatal.
extern "C" fn on_fault(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the signal frame is this handler's; chacha20.s makes four pairs.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let rip = &mut registers[libc::REG_RIP as usize];
        let table = &raw const alea_chacha20_ranges;
        let place = |distance| table as i64 + i64::from(distance);
        let mut ranges = (*table).iter().map(|range| range.map(place));
        match ranges.find(|[from, to]| (*from..*to).contains(rip)) {
            Some([_, to]) => *rip = to,
            None => libc::abort(),
        }
    }
}

#[test]
fn so_it_is_after_a_fault() {
    const PAGE: usize = 4096;
    if !is_x86_feature_detected!("avx2") {
        return;
    }
    let mut alternate = vec![0u8; 64 * 1024];
    // SAFETY: the mapping is new; the handler runs on a stack that outlives it, since the frame of a signal has the
    // registers in it, and only for this thread's faults.
    let (pages, old) = unsafe {
        let anywhere = std::ptr::null_mut();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        let pages = libc::mmap(anywhere, 2 * PAGE, writable, flags, -1, 0).cast::<u8>();
        assert_ne!(pages.cast(), libc::MAP_FAILED);
        assert_eq!(libc::mprotect(pages.add(PAGE).cast(), PAGE, libc::PROT_READ), 0);
        let stack = libc::stack_t {
            ss_sp: alternate.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: alternate.len(),
        };
        let mut old: libc::stack_t = std::mem::zeroed();
        assert_eq!(libc::sigaltstack(&stack, &mut old), 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, anywhere.cast()), 0);
        (pages, old)
    };
    for (name, routine, lanes) in routines() {
        for room in [0, 1, 31, 64, 500, 512, 700, 1023] {
            // SAFETY: a fault on the second page ends in `on_fault`.
            let (result, left) = unsafe { leaves_the_same(name, routine, pages.add(PAGE - room)) };
            assert_eq!(result, 0, "{name}, {room} bytes");
            keeps_nothing_of(&in_order(&run(routine, &KEY, 5, 2), lanes), &left, name);
        }
    }
    // SAFETY: the thread's own stack for signals, as it was.
    assert_eq!(unsafe { libc::sigaltstack(&old, std::ptr::null_mut()) }, 0);
}
