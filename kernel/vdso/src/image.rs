//! The image's exports: where the page of data lies, how the kernel is called, and Linux's names.
//!
//! Only in the image. Signatures and results are Linux's: a negative errno, never the errno variable.

use core::arch::asm;

use crate::clock::{self, Timespec, Timeval};
use crate::data::Data;
use crate::getrandom::{self, Kernel, State};

const SYS_GETTIMEOFDAY: usize = 96;
const SYS_TIME: usize = 201;
const SYS_CLOCK_GETTIME: usize = 228;
const SYS_CLOCK_GETRES: usize = 229;
const SYS_GETCPU: usize = 309;
const SYS_GETRANDOM: usize = 318;

/// The selector whose segment limit tells CPU and node, Linux's.
const CPU_SELECTOR: u32 = 0x7b;
const CPU_BITS: u32 = 12;

/// The page before the image's first.
#[inline(always)]
fn data() -> &'static Data {
    let at: *const Data;
    // SAFETY: the kernel maps the page there; the linker knows where the image starts.
    unsafe {
        asm!(
            "lea {}, [rip + __ehdr_start - {size}]",
            out(reg) at,
            size = const size_of::<Data>(),
            options(pure, nomem, nostack, preserves_flags),
        );
        &*at
    }
}

/// The time-stamp counter, not before what stands before.
#[inline(always)]
fn tsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads a counter; the upper halves of both registers become zero. Not `nomem`: loads must stay
    // on their side of it.
    unsafe {
        asm!("lfence", "rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags))
    };
    high << 32 | low
}

/// # Safety
/// What the call's own rules ask of its arguments.
#[inline(always)]
unsafe fn system_call(number: usize, a: usize, b: usize, c: usize) -> isize {
    let result: isize;
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// The wall clock, for the calls that are made less often.
#[inline(never)]
fn wall() -> Option<Timespec> {
    clock::now(data(), clock::REALTIME, tsc)
}

struct Calls;

impl Kernel for Calls {
    #[inline(always)]
    fn getrandom(&self, buffer: *mut u8, len: usize, flags: u32) -> isize {
        // SAFETY: the kernel checks the buffer.
        unsafe { system_call(SYS_GETRANDOM, buffer as usize, len, flags as usize) }
    }
}

/// getrandom with a state.
///
/// # Safety
/// See [`getrandom::getrandom`].
#[unsafe(no_mangle)]
pub unsafe extern "sysv64" fn __vdso_getrandom(
    buffer: *mut u8,
    len: usize,
    flags: u32,
    state: *mut State,
    state_len: usize,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe { getrandom::getrandom(data(), &Calls, buffer, len, flags, state, state_len) }
}

/// clock_gettime(2).
///
/// # Safety
/// `to` can be written, or faults.
#[unsafe(no_mangle)]
pub unsafe extern "sysv64" fn __vdso_clock_gettime(id: i32, to: *mut Timespec) -> i32 {
    match clock::try_now(data(), id, tsc) {
        Some(now) => {
            // SAFETY: the caller's promise; programs may align it as they like.
            unsafe { to.write_unaligned(now) };
            0
        }
        // SAFETY: the caller's promise.
        None => unsafe { clock_gettime_slowly(id, to) },
    }
}

/// While the scale changes, and for the clocks that only the kernel knows. Apart, so that the usual way needs
/// no registers that have to be saved.
///
/// # Safety
/// `to` can be written, or faults.
#[cold]
#[inline(never)]
unsafe fn clock_gettime_slowly(id: i32, to: *mut Timespec) -> i32 {
    match clock::now(data(), id, tsc) {
        Some(now) => {
            // SAFETY: the caller's promise.
            unsafe { to.write_unaligned(now) };
            0
        }
        // SAFETY: the kernel checks.
        None => unsafe { system_call(SYS_CLOCK_GETTIME, id as usize, to as usize, 0) as i32 },
    }
}

/// clock_getres(2).
///
/// # Safety
/// `to` is null, can be written, or faults.
#[unsafe(no_mangle)]
pub unsafe extern "sysv64" fn __vdso_clock_getres(id: i32, to: *mut Timespec) -> i32 {
    match clock::resolution(id) {
        Some(resolution) => {
            if !to.is_null() {
                // SAFETY: the caller's promise.
                unsafe { to.write_unaligned(resolution) };
            }
            0
        }
        // SAFETY: the kernel checks.
        None => unsafe { system_call(SYS_CLOCK_GETRES, id as usize, to as usize, 0) as i32 },
    }
}

/// gettimeofday(2).
///
/// # Safety
/// `to` is null, can be written, or faults.
#[unsafe(no_mangle)]
pub unsafe extern "sysv64" fn __vdso_gettimeofday(to: *mut Timeval, zone: *mut u8) -> i32 {
    // The time zone is the kernel's to tell; nobody asks.
    if zone.is_null()
        && let Some(now) = wall().map(clock::micros)
    {
        if !to.is_null() {
            // SAFETY: the caller's promise.
            unsafe { to.write_unaligned(now) };
        }
        return 0;
    }
    // SAFETY: the kernel checks.
    unsafe { system_call(SYS_GETTIMEOFDAY, to as usize, zone as usize, 0) as i32 }
}

/// time(2).
///
/// # Safety
/// `to` is null, can be written, or faults.
#[unsafe(no_mangle)]
pub unsafe extern "sysv64" fn __vdso_time(to: *mut i64) -> i64 {
    match wall() {
        Some(Timespec { seconds, .. }) => {
            if !to.is_null() {
                // SAFETY: the caller's promise.
                unsafe { to.write_unaligned(seconds) };
            }
            seconds
        }
        // SAFETY: the kernel checks.
        None => unsafe { system_call(SYS_TIME, to as usize, 0, 0) as i64 },
    }
}

/// getcpu(2).
///
/// # Safety
/// `cpu` and `node` are null, can be written, or fault.
#[unsafe(no_mangle)]
pub unsafe extern "sysv64" fn __vdso_getcpu(cpu: *mut u32, node: *mut u32, _: *mut u8) -> i64 {
    let (mut limit, mut no) = (0u32, 0u32);
    // SAFETY: reads the limit of a segment; without such a segment nothing but a flag changes.
    unsafe {
        asm!(
            "lsl {limit:e}, {selector:e}",
            "setnz {no:l}",
            selector = in(reg) CPU_SELECTOR,
            limit = inout(reg) limit,
            no = inout(reg) no,
            options(nomem, nostack),
        );
    }
    if no != 0 {
        // SAFETY: the kernel checks.
        return unsafe { system_call(SYS_GETCPU, cpu as usize, node as usize, 0) as i64 };
    }
    // SAFETY: the caller's promise.
    unsafe {
        if !cpu.is_null() {
            cpu.write_unaligned(limit & ((1 << CPU_BITS) - 1));
        }
        if !node.is_null() {
            node.write_unaligned(limit >> CPU_BITS);
        }
    }
    0
}
