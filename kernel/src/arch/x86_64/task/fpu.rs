//! The floating-point and vector state of tasks.
//!
//! Owns the choice of instructions and layout (XSAVE's standard format with x87, SSE, AVX and
//! AVX-512; FXSAVE without XSAVE) and the per-CPU note of whose state the registers hold. The kernel
//! itself uses no such registers outside a `KernelFpu` bracket. All functions that move registers
//! run with interrupts off or in code that no interrupt handler shares (handlers never use them).
//!
//! Never loads an image that was neither saved here nor checked, but from user memory, where the fault is caught.
//! Locks: none.

use crate::arch::copy::usercopy::MAGIC2;
use core::alloc::Layout;
use core::arch::asm;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::arch::copy::usercopy;
use crate::base::page::USER_END;
use crate::base::{cpu, percpu};

/// Room for all states that are switched on: x87, SSE, AVX, AVX-512.
const AREA_SIZE: usize = 2688;
/// x87, SSE, AVX, opmask, ZMM_Hi256, Hi16_ZMM.
const WANTED: u64 = 0b1110_0111;
const FX_SIZE: usize = 512;
const HEADER_END: usize = 576;
const AVX_END: usize = 832;

const MAGIC1: u32 = 0x4650_5853;

/// Where the software bytes of a signal frame lie within the FXSAVE image.
const SW_BYTES: usize = 464;

/// The mask in XCR0; zero without XSAVE. Written once by `init`.
static XCR0: AtomicU64 = AtomicU64::new(0);
/// The bytes of an area in use. Written once by `init`.
static SIZE: AtomicU32 = AtomicU32::new(FX_SIZE as u32);
/// The MXCSR bits that exist. Written once by `init`.
static MXCSR_MASK: AtomicU32 = AtomicU32::new(0xffbf);

/// No CPU holds the state.
const NO_CPU: u32 = u32::MAX;

/// The saved state of one task. At most one CPU's registers hold a newer copy.
///
/// The area is as large as this CPU's states need, so that fork copies no more than that.
pub struct FpuState {
    /// `size()` bytes, and four more for a signal frame's end mark.
    area: Cell<NonNull<u8>>,
    /// The CPU that loaded the state last.
    cpu: Cell<u32>,
}

// SAFETY: the state belongs to one task; it is touched by the CPU that runs the task or, while the
// task does not run, by whoever holds the task (fork, signal delivery), never by both.
unsafe impl Send for FpuState {}
// SAFETY: as above.
unsafe impl Sync for FpuState {}

/// A signal frame's image that no program of Linux could have been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadImage;

crate::per_cpu! {
    /// Whose state the registers of this CPU hold.
    static OWNER: Cell<*mut u8> = Cell::new(core::ptr::null_mut());
}

impl FpuState {
    /// The state that a new program starts with; nothing when memory is out.
    pub fn try_new() -> Option<Self> {
        let state = Self::try_uninit()?;
        state.clear();
        Some(state)
    }

    /// A copy of the running task's state, for its child; nothing when memory is out.
    pub fn try_copy(from: &Self) -> Option<Self> {
        let state = Self::try_uninit()?;
        state.copy_from(from);
        Some(state)
    }

    /// A state whose header is valid and whose registers are undefined.
    fn try_uninit() -> Option<Self> {
        // SAFETY: the layout is not empty; XSAVE leaves the reserved bytes of its header and the
        // software bytes alone, so they are written here.
        let area = unsafe {
            let area = NonNull::new(alloc::alloc::alloc(layout()))?;
            area.add(FX_SIZE - 96).write_bytes(0, 96);
            if xcr0() != 0 {
                area.add(FX_SIZE).write_bytes(0, HEADER_END - FX_SIZE);
                // The states behind AVX have gaps before them, which XSAVE leaves alone and a
                // signal frame would show.
                if size() > AVX_END {
                    area.add(AVX_END).write_bytes(0, size() - AVX_END);
                }
            }
            area
        };
        let state = Self { area: Cell::new(area), cpu: Cell::new(NO_CPU) };
        state.mark();
        Some(state)
    }

    fn area(&self) -> *mut u8 {
        self.area.get().as_ptr()
    }

    /// Writes what makes the area the image of a signal frame, as Linux lays it out; the CPU leaves
    /// these bytes alone.
    fn mark(&self) {
        let (mask, size) = (xcr0(), size());
        if mask == 0 {
            return;
        }
        // SAFETY: the area is ours; the software bytes are 48, aligned to 16.
        unsafe {
            let software = self.area().add(SW_BYTES).cast::<u32>();
            software.write(MAGIC1);
            software.add(1).write((size + 4) as u32);
            software.add(2).cast::<u64>().write(mask);
            software.add(4).write(size as u32);
            self.area().add(size).cast::<u32>().write(MAGIC2);
        }
    }

    fn is_live(&self) -> bool {
        OWNER.get() == self.area() && self.cpu.get() == percpu::cpu_id() as u32
    }

    /// Makes the saved copy as new as the registers. The task runs on this CPU or nowhere.
    pub fn sync(&self) {
        if self.is_live() {
            // SAFETY: the registers hold this state and the area is ours.
            unsafe { save(self.area(), true) };
        }
    }

    /// Loads the registers unless they hold this state already.
    pub fn load(&self) {
        if !self.is_live() {
            // SAFETY: the area holds a valid image: it was saved, copied or checked.
            unsafe { restore(self.area()) };
            OWNER.set(self.area());
            self.cpu.set(percpu::cpu_id() as u32);
        }
    }

    /// The registers no longer count: the saved copy was changed, or the task is gone.
    pub fn discard_live(&self) {
        if self.is_live() {
            OWNER.set(core::ptr::null_mut());
        }
        self.cpu.set(NO_CPU);
    }

    /// Becomes the state of a new program (exec); the task is the running one.
    pub fn reset(&self) {
        self.discard_live();
        self.clear();
        self.load();
    }

    fn clear(&self) {
        // SAFETY: the task's own area, which is not live; the image is FCW 0x37f, MXCSR 0x1f80 and
        // everything else in its initial state.
        unsafe {
            let area = self.area();
            area.write_bytes(0, size());
            area.cast::<u16>().write(0x37f);
            area.add(24).cast::<u32>().write(0x1f80);
        }
        self.mark();
    }

    /// The running task starts a signal handler: the registers take their initial state.
    pub fn start_handler(&self) {
        // SAFETY: the image is valid; the registers hold the task's newest state from here on.
        unsafe { restore(INITIAL.0.as_ptr()) };
        OWNER.set(self.area());
        self.cpu.set(percpu::cpu_id() as u32);
    }

    /// Becomes a copy of `from`, which belongs to the running task (fork).
    pub fn copy_from(&self, from: &Self) {
        self.discard_live();
        // SAFETY: both areas are whole; ours belongs to a task that does not run yet. XSAVE into a
        // foreign area must not use the modified optimisation.
        unsafe {
            if from.is_live() {
                save(self.area(), false);
            } else {
                let (src, dst) = (from.area(), self.area());
                core::ptr::copy_nonoverlapping(src, dst, size());
            }
        }
    }

    /// The `si_code` (FPE_*) of a floating-point exception of the running task: vector 16 reads the
    /// x87 status, vector 19 MXCSR.
    pub fn exception_code(&self, vector: u8) -> i32 {
        self.sync();
        // SAFETY: the task's own area; the words lie in the FXSAVE image.
        let raised = unsafe {
            let area = self.area();
            if vector == 16 {
                let control = area.cast::<u16>().read();
                let status = area.add(2).cast::<u16>().read();
                u32::from(status & !control)
            } else {
                let mxcsr = area.add(24).cast::<u32>().read();
                mxcsr & !(mxcsr >> 7)
            }
        };
        match raised & 0x3f {
            raised if raised & 0x01 != 0 => 7, // FPE_FLTINV
            raised if raised & 0x04 != 0 => 3, // FPE_FLTDIV
            raised if raised & 0x08 != 0 => 4, // FPE_FLTOVF
            raised if raised & 0x12 != 0 => 5, // FPE_FLTUND
            raised if raised & 0x20 != 0 => 6, // FPE_FLTRES
            _ => 0,
        }
    }

    /// Writes the running task's state to a signal frame at `addr`, a multiple of 64, if the CPU can do so itself;
    /// afterwards the task calls `start_handler`. `None` if it cannot, `Some(false)` on a fault.
    pub fn save_to_user(&self, addr: u64) -> Option<bool> {
        let (mask, size) = (xcr0(), size());
        if mask == 0 || !addr.is_multiple_of(64) || !is_user(addr, size + 4) {
            return None;
        }
        self.load();
        let mark = (size as u64 + 4) << 32 | u64::from(MAGIC1);
        // SAFETY: the registers hold this state, and hold it again whenever the task is interrupted or sleeps for a
        // fault meanwhile; the mask is what is switched on; the range was checked.
        Some(unsafe { usercopy::xsave(addr, mask, mark, size) })
    }

    /// Takes the running task's state from a signal frame at `addr` if the CPU can do so itself: whether it did. What
    /// is not a whole valid image is left to [`read_signal_image`](Self::read_signal_image).
    pub fn load_from_user(&self, addr: u64) -> bool {
        let (mask, size) = (xcr0(), size());
        if mask == 0 || !addr.is_multiple_of(64) || !is_user(addr, size + 4) {
            return false;
        }
        let mark = (size as u64 + 4) << 32 | u64::from(MAGIC1);
        // SAFETY: words within the range that was checked.
        let marked = unsafe {
            let word = |at: usize| usercopy::get_u64(addr + at as u64);
            word(SW_BYTES) == Some(mark)
                && word(SW_BYTES + 16).is_some_and(|found| found as u32 == size as u32)
                && usercopy::get_u32(addr + size as u64) == Some(MAGIC2)
        };
        if !marked {
            return false;
        }
        self.load();
        // SAFETY: as in `save_to_user`; from here on they hold what the program gave, as if it had loaded them.
        unsafe { usercopy::xrstor(addr, mask) }
    }

    /// The image for a signal frame of the running task. Afterwards the task calls `start_handler`
    /// or `load`: until then the registers do not count.
    pub fn signal_image(&self) -> &[u8] {
        self.sync();
        self.discard_live();
        // SAFETY: all bytes are initialised: by XSAVE, or by `try_uninit` where that leaves gaps;
        // nothing writes them until the registers count again.
        unsafe { core::slice::from_raw_parts(self.area(), signal_size()) }
    }

    /// Takes the running task's state from a signal frame. `fill` is given room for an image and says
    /// how much of it there was (it may block); without the XSAVE marks only x87 and SSE are taken.
    pub fn read_signal_image(&self, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), BadImage> {
        let new = Self::try_uninit().ok_or(BadImage)?;
        // SAFETY: nobody else has the new area; a byte slice may hold anything that was written, and
        // what `fill` leaves out is overwritten or ends in an error.
        let image = unsafe {
            new.area().write_bytes(0, FX_SIZE);
            core::slice::from_raw_parts_mut(new.area(), signal_size())
        };
        let got = fill(image);
        new.check(got)?;
        self.discard_live();
        self.area.swap(&new.area);
        self.load();
        Ok(())
    }

    /// Writes the running task's state to `image`, [`debug_size`] bytes, as a debugger sees it: in the software bytes stands
    /// which states there are.
    pub fn write_debug_image(&self, image: &mut [u8]) {
        image.copy_from_slice(&self.signal_image()[..image.len()]);
        self.load();
        if xcr0() != 0 {
            image[SW_BYTES..FX_SIZE].fill(0);
            image[SW_BYTES..SW_BYTES + 8].copy_from_slice(&xcr0().to_le_bytes());
        }
    }

    /// Takes the running task's state from such an image.
    pub fn read_debug_image(&self, image: &[u8]) -> Result<(), BadImage> {
        self.read_signal_image(|room| {
            let len = image.len().min(room.len());
            room[..len].copy_from_slice(&image[..len]);
            if xcr0() == 0 || len < size() {
                return len;
            }
            room[SW_BYTES..SW_BYTES + 4].copy_from_slice(&MAGIC1.to_le_bytes());
            room[SW_BYTES + 16..SW_BYTES + 20].copy_from_slice(&(size() as u32).to_le_bytes());
            room[size()..].copy_from_slice(&MAGIC2.to_le_bytes());
            room.len()
        })
    }

    /// Makes an area with `len` bytes from user space valid for XRSTOR, or refuses it.
    fn check(&self, len: usize) -> Result<(), BadImage> {
        let size = size();
        // SAFETY: the area is ours alone, and all of it was written or is about to be.
        let word = |at: usize| unsafe { self.area().add(at).cast::<u32>().read_unaligned() };
        if len < FX_SIZE || word(24) & !mxcsr_mask() != 0 {
            return Err(BadImage);
        }
        if xcr0() == 0 {
            return Ok(());
        }
        let extended = len >= size + 4
            && word(SW_BYTES) == MAGIC1
            && word(SW_BYTES + 16) == size as u32
            && word(size) == MAGIC2;
        // SAFETY: as above; the header is 64 bytes at FX_SIZE.
        unsafe {
            let header = self.area().add(FX_SIZE).cast::<u64>();
            if !extended {
                self.area().add(FX_SIZE).write_bytes(0, size - FX_SIZE);
                header.write(0b11);
            } else if header.read() & !xcr0() != 0
                || (1..8).any(|index| header.add(index).read() != 0)
            {
                return Err(BadImage);
            }
        }
        self.mark();
        Ok(())
    }
}

/// Whether `len` bytes at `addr` lie in user space.
fn is_user(addr: u64, len: usize) -> bool {
    addr <= USER_END - len as u64
}

/// The registers' initial state; XRSTOR reads no further than the header.
#[repr(C, align(64))]
struct Initial([u8; HEADER_END]);
static INITIAL: Initial = {
    let mut image = [0; HEADER_END];
    image[0] = 0x7f;
    image[1] = 0x03;
    image[24] = 0x80;
    image[25] = 0x1f;
    Initial(image)
};

impl Drop for FpuState {
    fn drop(&mut self) {
        self.discard_live();
        // SAFETY: allocated in `try_uninit` with the same layout.
        unsafe { alloc::alloc::dealloc(self.area(), layout()) };
    }
}

fn layout() -> Layout {
    // SAFETY: 64 is a power of two and the size is far below the limit.
    unsafe { Layout::from_size_align_unchecked(size() + 4, 64) }
}

/// Switches the registers from one task to the next; `None` is a kernel thread, which leaves them
/// alone, or a task that will never run again. Called by the scheduler with interrupts off, before
/// `switch`.
#[inline]
pub fn switch(from: Option<&FpuState>, to: Option<&FpuState>) {
    if let Some(from) = from {
        from.sync();
    }
    if let Some(to) = to {
        to.load();
    }
}

/// The bytes that a signal frame's image takes.
pub fn signal_size() -> usize {
    if xcr0() != 0 { size() + 4 } else { FX_SIZE }
}

/// The bytes of a debugger's image.
pub fn debug_size() -> usize {
    size()
}

/// Switches the extended states on and learns their sizes.
pub(in crate::arch) fn init() {
    if cpu::features().xsave {
        let [low, _, _, high] = cpu::cpuid(0xd, 0);
        let mut mask = (u64::from(high) << 32 | u64::from(low)) & WANTED;
        if mask & 0b1110_0000 != 0b1110_0000 {
            mask &= 0b111;
        }
        // Relaxed: written once, before any task exists.
        XCR0.store(mask, Ordering::Relaxed);
        init_cpu();
        let [_, size, _, _] = cpu::cpuid(0xd, 0);
        assert!(size as usize <= AREA_SIZE, "the XSAVE area needs {size} bytes");
        SIZE.store(size, Ordering::Relaxed);
    }
    let mut probe = FxImage([0; FX_SIZE]);
    // SAFETY: FXSAVE exists on every x86_64 CPU and the image is aligned to 16 bytes.
    unsafe { asm!("fninit", "fxsave64 [{}]", in(reg) &raw mut probe, options(nostack)) };
    let mask = u32::from_le_bytes([probe.0[28], probe.0[29], probe.0[30], probe.0[31]]);
    if mask != 0 {
        // Relaxed: as above.
        MXCSR_MASK.store(mask, Ordering::Relaxed);
    }
}

/// Switches the extended states that `init` chose on, on the calling CPU.
pub(in crate::arch) fn init_cpu() {
    let mask = xcr0();
    if mask != 0 {
        // SAFETY: OSXSAVE is set in CR4 and the CPU announces every bit of the mask.
        unsafe {
            asm!("xsetbv", in("ecx") 0, in("eax") mask as u32, in("edx") (mask >> 32) as u32,
                options(nostack, preserves_flags));
        }
    }
    // SAFETY: no task's state is in the registers yet.
    unsafe { asm!("fninit", options(nostack)) };
}

#[repr(C, align(64))]
struct FxImage([u8; FX_SIZE]);

/// The mask of extended states, as XGETBV reports it; zero without XSAVE.
#[inline]
pub fn xcr0() -> u64 {
    // Relaxed: written once at boot.
    XCR0.load(Ordering::Relaxed)
}

#[inline]
fn size() -> usize {
    // Relaxed: written once at boot.
    SIZE.load(Ordering::Relaxed) as usize
}

fn mxcsr_mask() -> u32 {
    // Relaxed: written once at boot.
    MXCSR_MASK.load(Ordering::Relaxed)
}

/// # Safety
/// `area` is a whole, 64-byte aligned area; with `own`, the registers were last loaded from it or
/// the area's contents do not matter to the optimisation (see the header).
#[inline]
unsafe fn save(area: *mut u8, own: bool) {
    let mask = xcr0();
    let (low, high) = (mask as u32, (mask >> 32) as u32);
    // SAFETY: the caller vouches for the area; the instructions are chosen by CPUID.
    unsafe {
        if mask == 0 {
            asm!("fxsave64 [{}]", in(reg) area, options(nostack, preserves_flags));
        } else if own && cpu::features().xsaveopt {
            asm!("xsaveopt64 [{}]", in(reg) area, in("eax") low, in("edx") high,
                options(nostack, preserves_flags));
        } else {
            asm!("xsave64 [{}]", in(reg) area, in("eax") low, in("edx") high,
                options(nostack, preserves_flags));
        }
    }
}

/// # Safety
/// `area` holds a valid image.
#[inline]
unsafe fn restore(area: *const u8) {
    let mask = xcr0();
    // SAFETY: the caller vouches for the area.
    unsafe {
        if mask == 0 {
            asm!("fxrstor64 [{}]", in(reg) area, options(nostack, preserves_flags, readonly));
        } else {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") mask as u32,
                in("edx") (mask >> 32) as u32, options(nostack, preserves_flags, readonly));
        }
    }
}
