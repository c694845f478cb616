//! Boot order of the Alea kernel.
//!
//! The modules below are floors: each imports strictly lower ones only. What a lower floor needs from
//! above it declares as a trait or a slot, and the boot order registers it.
//!
//! Owns the order and the hooks of traps. Never has logic of its own. Locks: none.
#![deny(clippy::disallowed_methods, clippy::disallowed_macros)]
#![no_std]
#![no_main]

extern crate alloc;

mod arch; // [4] x86_64: traps, switch, user copy, interrupts, boot entries
mod base; // [1] x86_64: instructions, registers, ports, pages, per-CPU data
mod cmdline; // [2] the kernel command line
mod diag; // [5] log, panic, exec phases
mod drivers; // [9] uart, tty, the random devices
mod fs; // [9] tmpfs, devfs, procfs, sysfs, initramfs, pipes, epoll
mod machine; // [3] ACPI, PCI, SMBIOS, the clock chip, network cards, power
mod mm; // [6] frames, heap, address spaces, page cache, user copy
mod net; // [9] AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK over a loopback
mod process; // [10] tasks, scheduler, signals, exec, exit and wait, futex
mod random; // [7] the live entropy service
mod seams; // every slot between the floors
mod sync; // [2] locks, wait queues
mod syscall; // [11] the system-call table and its handlers
mod time; // [5] clocksource, timers
mod trace; // [1] tracepoints: who is told of what happens
mod version; // [1] what uname says
mod vfs; // [8] open files, inodes, dentries, mounts, path walk
mod virtio; // [7] devices that share memory with the machine

use alloc::string::String;
use arch::entry::trap::TrapHooks;
use base::boot_info::BootInfo;

kernel_entry!(kernel_main);

/// The boot order. Called once, on the boot CPU's stack, with the kernel's own page tables and
/// interrupts off.
fn kernel_main(mut info: BootInfo) -> ! {
    arch::entry::trap::set_fatal(diag::panic::trap); // faults of the kernel are reported from here on
    diag::klog::init(); // the log's macros work from here on
    diag::klog::configure(); // quiet, loglevel=
    diag::panic::set_timeout(cmdline::number(cmdline::words::PANIC).unwrap_or(0));
    log::info!("Alea {} ({}): {}", env!("CARGO_PKG_VERSION"), info.protocol, info.cmdline);
    arch::boot::log_memory_map(&info);
    machine::acpi::init(info.rsdp); // power-off, interrupt routing, timers
    arch::irq::init(); // local APIC, I/O APICs; interrupts stay off
    time::init(info.entry_tsc); // TSC scale, wall clock, timer interrupt
    mm::init(&info); // frames and the heap: allocation works from here on
    wipe_memory(); // init_on_alloc=, init_on_free=
    time::prepare_cpu(0).expect("no memory for timers"); // timers can be armed from here on
    random::init(&info); // sources, pool, generator: secrets can be drawn from here on
    shift_stacks(); // randomize_kstack_offset=
    want_large_pages(); // transparent_hugepage=
    show_to_programs(); // the vDSO
    vfs::NameHash::set_keys(random::secret_words()); // names can be looked up from here on
    drivers::uart::init(); // the serial port by interrupts
    diag::klog::set_console(drivers::uart::write_log);
    diag::panic::set_second(drivers::hvc::write_last);
    drivers::tty::init().expect("no memory for the terminals"); // ttyS0, tty, ptmx, console
    process::init(); // this code becomes the idle task; threads may sleep from here on
    process::start_cpus(info.startup); // the other CPUs, which idle from here on
    fs::pipe::init(); // fifos
    let unpacked = unpack_initramfs(&mut info); // the root file system
    syscall::system::misc::register_files().expect("no memory for the host name's files");
    drivers::init().expect("no memory for the devices"); // random, rtc0, and their files in /proc and /sys
    drivers::tty::init_devpts().expect("no memory for devpts");
    drivers::vport::init(&info).expect("no memory for the channel to the host");
    drivers::tty::choose_consoles().expect("no memory for the consoles"); // hvc0, and what /dev/console is
    machine::unclaimed::log(&info); // which devices no driver has taken
    net::init().expect("no memory for the files of networks"); // /proc/net
    let only = cmdline::value(cmdline::words::SELFTEST) == Some("only");
    if cmdline::value(cmdline::words::SELFTEST).is_some() || cmdline::flag(cmdline::words::SELFTEST)
    {
        arch::selftest::run();
        time::selftest::run();
        mm::selftest::run();
        random::selftest::run();
        log::info!("selftest: all passed");
    }
    if let Some(kind) = cmdline::value(cmdline::words::CRASH) {
        arch::stop::crash::commit(kind, FAULTS);
    }
    if only {
        machine::power::power_off();
    }
    syscall::init().expect("no memory for the counters of calls"); // and their file in /proc
    arch::entry::trap::register(&HOOKS); // system calls, faults, preemption
    random::show_interrupts_if_asked(drivers::uart::discard_input); // alea.interrupt_samples=
    process::start_init(unpacked); // process 1
    if let Some(setting) = cmdline::value(cmdline::words::FAIL_ALLOC)
        && !mm::fail_allocations(setting, process::task::current::fate_of_allocation)
    {
        log::warn!("alea.fail_alloc: `{setting}` is not EVERY_N[,SEED[,GENERATION]]");
    }
    start_threads();
    process::run_idle()
}

/// Rules of upper floors that `alea.crash=` breaks.
const FAULTS: arch::stop::crash::Others<'_> = &[
    ("freed-twice", mm::faults::free_twice),
    ("freed-foreign", mm::faults::free_foreign),
    ("file-locked", fs::eventfd::close_locked),
];

/// Has memory zeroed when it is taken or given back, if the command line asks for it.
fn wipe_memory() {
    let is_on = |word| cmdline::switch(word) == Some(true);
    mm::wipe_memory(is_on(cmdline::words::INIT_ON_ALLOC), is_on(cmdline::words::INIT_ON_FREE));
}

/// Says for which mappings large pages are wanted, if the command line does.
fn want_large_pages() {
    if let Some(word) = cmdline::value(cmdline::words::TRANSPARENT_HUGEPAGE) {
        match fs::huge_pages::parse(word) {
            Some(wanted) => mm::huge::set_wanted(wanted),
            None => {
                log::warn!("transparent_hugepage={word} is not known: always, madvise or never")
            }
        }
    }
}

/// Has system calls begin at different places of the stack, if the command line asks for it; before the table of calls is set.
fn shift_stacks() {
    if cmdline::switch(cmdline::words::RANDOMIZE_KSTACK_OFFSET) == Some(true) {
        let [secret] = random::secret_words();
        arch::entry::shift::begin(secret);
    }
}

/// The kernel's own threads.
fn start_threads() {
    process::spawn_kernel_thread("tty", drivers::tty::run_input).expect("no memory for a thread");
    if drivers::hvc::device().is_some() {
        process::spawn_kernel_thread("hvc0", drivers::hvc::run).expect("no memory for a thread");
        let input = drivers::tty::run_hvc_input;
        process::spawn_kernel_thread("hvc0-input", input).expect("no memory for a thread");
    }
    let body = process::start::khugepaged::run;
    process::spawn_kernel_thread("khugepaged", body).expect("no memory for a thread");
    process::spawn_kernel_thread("timers", time::run_deferred).expect("no memory for a thread");
    if base::percpu::cpus_online() > 1 {
        let body = process::start::watchdog::run;
        process::spawn_kernel_thread("watchdog", body).expect("no memory for a thread");
    }
}

/// Makes the vDSO, unless `vdso=0`, and has the clocks and the generator keep its page of data up to date.
fn show_to_programs() {
    if cmdline::value(cmdline::words::VDSO) == Some("0") {
        return;
    }
    let page = mm::space::vdso::init(machine::vm_id::place()).expect("no memory for the vDSO");
    time::show_to_programs(&page.clock);
    random::show_to_programs(&page.random);
}

/// Makes the root file system and gives the memory of the archive back; says how it went.
fn unpack_initramfs(info: &mut BootInfo) -> String {
    let archive = mm::BootModule::take(info);
    if let (None, Some(place)) = (&archive, cmdline::value(cmdline::words::INITRDMEM)) {
        log::error!("initrdmem={place}: START,SIZE in usable memory is wanted");
    }
    let result = match fs::init(archive.as_ref().map_or(&[], mm::BootModule::bytes)) {
        Ok(0) => mm::fallible::try_string("initramfs: there is none").unwrap_or_default(),
        Ok(entries) => try_format!("initramfs: {entries} entries").unwrap_or_default(),
        // As on Linux, what was unpacked is used; without an init the panic names both.
        Err(error) => {
            let text = try_format!("initramfs: unpacking failed: {error}").unwrap_or_default();
            log::error!("{text}");
            return text;
        }
    };
    log::info!("{result}");
    result
}

/// What the upper floors do with traps.
static HOOKS: TrapHooks = TrapHooks {
    syscalls: &syscall::HANDLERS,
    watched: |frame| process::watch::watched(frame, &syscall::HANDLERS),
    page_fault: process::memory::fault::page_fault,
    user_exception: process::memory::fault::user_exception,
    exit_to_user: process::exit_to_user,
    timer: process::sched::slice_ended,
    sample: process::sched::sampled,
};
