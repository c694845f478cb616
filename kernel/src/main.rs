//! Boot order of the Alea kernel.
//!
//! The modules below are floors: each imports strictly lower ones only. What a lower floor needs from
//! above it declares as a trait or a slot, and the boot order registers it.
#![no_std]
#![no_main]

extern crate alloc;

mod arch; // [1] x86_64: boot entries, traps, switch, paging, APIC, TSC
mod drivers; // [5] uart, tty, virtio, rtc, pci
mod fs; // [5] mounts, tmpfs, initramfs, devfs, procfs, pipes, sockets
mod mm; // [3] address spaces, page cache, heap, faults, user copy
mod process; // [6] tasks, scheduler, signals, exec, exit and wait, futex
mod random; // [4] the live entropy service
mod sync; // [2] locks, wait queues
mod syscall; // [7] the system-call table and its handlers
mod time; // [3] clocksource, timers
mod trace; // [2] exec phases, counters

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
