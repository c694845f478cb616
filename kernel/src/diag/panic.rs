//! The end of the kernel: panics and traps that nothing can resolve.
//!
//! Owns the `panic=` setting and the panic text, which goes straight to the serial port. Never
//! allocates, and survives a second panic inside itself.
//!
//! Locks: none, since whoever holds one may be the one who ends.
#![expect(clippy::disallowed_methods, reason = "to the port, at once")]
#![forbid(unsafe_code)]

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};

use crate::arch::entry::frame::TrapFrame;
use crate::arch::entry::trap;
use crate::arch::stop::{self, backtrace};
use crate::base::console::EarlyWriter;
use crate::base::{areas, cpu, image, percpu};
use crate::machine::power;
use crate::time;

/// Seconds until reboot: 0 never, negative at once.
static TIMEOUT: AtomicI64 = AtomicI64::new(0);
static DEPTH: AtomicU32 = AtomicU32::new(0);
/// The CPU that ends the kernel.
static ENDING_CPU: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Says which task runs; the process floor fills it in.
static DESCRIBE: crate::sync::Once<fn(&mut dyn Write) -> fmt::Result> = crate::sync::Once::new();

/// Writes to a second console.
type Second = fn(&dyn Fn(&mut dyn Write) -> fmt::Result);
static SECOND: crate::sync::Once<Second> = crate::sync::Once::new();

/// Registers what has a panic's text written to a second console, if there is one. It must not wait for locks or allocate.
pub fn set_second(second: Second) {
    SECOND.call_once(|| second);
}

/// Sets what `panic=` said.
pub fn set_timeout(seconds: i64) {
    // Relaxed: a plain setting.
    TIMEOUT.store(seconds, Ordering::Relaxed);
}

/// Registers what names the running task in a panic. It must not lock or allocate.
pub fn set_describe(describe: fn(&mut dyn Write) -> fmt::Result) {
    DESCRIBE.call_once(|| describe);
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    cpu::irq_disable();
    let rbp = backtrace::frame_pointer();
    match info.location() {
        Some(at) => {
            die(format_args!("{} ({}:{})", info.message(), at.file(), at.line()), None, rbp)
        }
        None => die(format_args!("{}", info.message()), None, rbp),
    }
}

/// A trap in kernel mode that nothing resolved.
pub fn trap(frame: &TrapFrame, vector: u8, error: u64, addr: Option<u64>) -> ! {
    let name = trap::vector_name(vector);
    let mode = if frame.user_mode() { "user" } else { "kernel" };
    let rip = frame.rip;
    let is_overflow = trap::is_stack_overflow(frame, vector);
    match addr {
        None if is_overflow => die(
            format_args!("kernel stack overflow at {rip:#x} (stack pointer {:#x})", frame.rsp),
            Some(frame),
            frame.rbp,
        ),
        Some(addr) if (addr as usize) < 4096 && !frame.user_mode() => die(
            format_args!("null pointer access at {addr:#x} by {rip:#x} (error {error:#x})"),
            Some(frame),
            frame.rbp,
        ),
        Some(addr) => die(
            format_args!("{name} in {mode} mode at {addr:#x} by {rip:#x} (error {error:#x})"),
            Some(frame),
            frame.rbp,
        ),
        None => die(
            format_args!("{name} in {mode} mode at {rip:#x} (error {error:#x})"),
            Some(frame),
            frame.rbp,
        ),
    }
}

fn die(message: fmt::Arguments, frame: Option<&TrapFrame>, rbp: u64) -> ! {
    cpu::irq_disable();
    // Relaxed: the exchange decides who ends the kernel; nothing else is ordered by it.
    let order = Ordering::Relaxed;
    let me = percpu::cpu_id();
    if ENDING_CPU.compare_exchange(usize::MAX, me, order, order).is_err_and(|other| other != me) {
        // Its report will show this stack.
        cpu::halt_forever();
    }
    match DEPTH.fetch_add(1, order) {
        0 => {
            let _ = report(message, frame, rbp);
            if let Some(second) = SECOND.get() {
                second(&|out| {
                    report_this_cpu(out, message, frame, rbp)?;
                    writeln!(out, "{END}")
                });
            }
        }
        1 => {
            let _ = writeln!(EarlyWriter, "\nKernel panic inside a panic: {message}");
        }
        _ => {}
    }
    power::debug_exit(0x10);
    // Relaxed: a plain setting.
    let timeout = TIMEOUT.load(Ordering::Relaxed);
    if timeout != 0 {
        time::busy_wait_seconds(timeout.max(0).unsigned_abs());
        power::reboot();
    }
    cpu::halt_forever()
}

/// The last line.
const END: &str = "---[ end Kernel panic - not syncing ]---";

fn report(message: fmt::Arguments, frame: Option<&TrapFrame>, rbp: u64) -> fmt::Result {
    let mut out = EarlyWriter;
    report_this_cpu(&mut out, message, frame, rbp)?;
    if percpu::cpus_online() > 1 {
        stop::stop_when_seen();
        other_cpus(&mut out)?;
    }
    writeln!(out, "{END}")
}

fn report_this_cpu(
    out: &mut dyn Write,
    message: fmt::Arguments,
    frame: Option<&TrapFrame>,
    rbp: u64,
) -> fmt::Result {
    writeln!(out, "\nKernel panic - not syncing: {message}")?;
    write!(out, "CPU: {} Task: ", percpu::cpu_id())?;
    match DESCRIBE.get() {
        Some(describe) if !percpu::current().is_null() => describe(out)?,
        _ => out.write_str("none")?,
    }
    writeln!(out, " Stack: {:#x}", percpu::kernel_stack_top())?;
    if let Some(frame) = frame {
        registers(out, frame)?;
    }
    let faulted = frame.filter(|frame| !frame.user_mode()).map(|frame| image::linked(frame.rip));
    writeln!(out, "Call trace:")?;
    trace(faulted, rbp, |address, _| writeln!(out, " [<{address:016x}>]"))?;
    write!(out, "Kernel Offset: {:#x}, which these addresses are without; ", image::offset())?;
    writeln!(out, "stacks: {:#x}", areas::vmalloc())?;
    // A return address belongs to the call before it.
    out.write_str("Its functions and lines: addr2line -Cfipe kernel.elf")?;
    trace(faulted, rbp, |address, called| write!(out, " {:#x}", address - u64::from(called)))?;
    out.write_str("\n")
}

/// Shows where the kernel was: the instruction that `faulted`, then the chain of calls, whose return addresses are marked.
fn trace(
    faulted: Option<u64>,
    rbp: u64,
    mut show: impl FnMut(u64, bool) -> fmt::Result,
) -> fmt::Result {
    let mut result = faulted.map_or(Ok(()), |address| show(address, false));
    backtrace::walk(rbp, |address| result = result.and_then(|()| show(address, true)));
    result
}

/// Says in the log by which calls this CPU came here.
pub fn log_this_cpu() {
    log::warn!("CPU {} came here by", percpu::cpu_id());
    backtrace::walk(backtrace::frame_pointer(), |address| log::warn!(" [<{address:016x}>]"));
}

/// Says in the log where every other CPU is.
pub fn log_all_cpus() {
    struct ToLog;
    impl Write for ToLog {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            text.lines().for_each(|line| log::warn!("{line}"));
            Ok(())
        }
        /// A line in one piece: the default would hand over each part of it as a line.
        fn write_fmt(&mut self, line: fmt::Arguments<'_>) -> fmt::Result {
            log::warn!("{line}");
            Ok(())
        }
    }
    let _ = other_cpus(&mut ToLog);
}

/// The stack of every CPU but this one.
fn other_cpus(out: &mut dyn Write) -> fmt::Result {
    for cpu in (0..percpu::cpus_online()).filter(|&cpu| cpu != percpu::cpu_id()) {
        let Some(seen) = stop::look(cpu) else {
            out.write_fmt(format_args!("CPU {cpu} does not answer an NMI\n"))?;
            continue;
        };
        let mode = if seen.in_user { "user" } else { "kernel" };
        let rip = if seen.in_user { seen.rip } else { image::linked(seen.rip) };
        out.write_fmt(format_args!("CPU {cpu} in {mode} mode at [<{rip:016x}>]\n"))?;
        if !seen.in_user {
            let mut result = Ok(());
            backtrace::walk(seen.rbp, |address| {
                let line = format_args!(" [<{address:016x}>]\n");
                result = result.and_then(|()| out.write_fmt(line));
            });
            result?;
        }
    }
    Ok(())
}

fn registers(out: &mut dyn Write, frame: &TrapFrame) -> fmt::Result {
    let f = frame;
    writeln!(out, "RIP: {:04x}:{:016x} EFLAGS: {:08x}", f.cs, f.rip, f.rflags)?;
    writeln!(out, "RSP: {:04x}:{:016x} ORIG_RAX: {:016x}", f.ss, f.rsp, f.orig_rax)?;
    writeln!(out, "RAX: {:016x} RBX: {:016x} RCX: {:016x}", f.rax, f.rbx, f.rcx)?;
    writeln!(out, "RDX: {:016x} RSI: {:016x} RDI: {:016x}", f.rdx, f.rsi, f.rdi)?;
    writeln!(out, "RBP: {:016x} R08: {:016x} R09: {:016x}", f.rbp, f.r8, f.r9)?;
    writeln!(out, "R10: {:016x} R11: {:016x} R12: {:016x}", f.r10, f.r11, f.r12)?;
    writeln!(out, "R13: {:016x} R14: {:016x} R15: {:016x}", f.r13, f.r14, f.r15)?;
    let [cr0, cr2, cr3, cr4] = cpu::control_registers();
    writeln!(out, "CR0: {cr0:016x} CR2: {cr2:016x} CR3: {cr3:016x} CR4: {cr4:016x}")
}
