//! /proc/sysrq-trigger: root has the machine do at once what a letter stands for (Linux's drivers/tty/sysrq.c).
//!
//! There is no such key, so `kernel.sysrq`, which says what the key may do, is pinned; Linux's file obeys it neither. A
//! letter that stands for nothing here prints those that do. Owns the table of them. Never undoes what a letter did.
//! Locks: a mutex for the line that says what comes, which is shown whatever the console's level.

use super::misc;
use crate::diag::{klog, panic};
use crate::drivers;
use crate::fs::procfs;
use crate::machine::power;
use crate::mm::fallible::try_arc;
use crate::mm::{Sink, Source, frames};
use crate::process::memory::kill_on_demand;
use crate::process::signal;
use crate::sync::{Mutex, Pace};
use crate::vfs::{FileOps, OpenFile, Whence};
use crate::{base, process};
use abi::signal::{SigInfo, Signal, code};
use abi::{Errno, Result};
use core::any::Any;

/// What a letter does.
struct Letter {
    letters: &'static [u8],
    /// How the help names it.
    help: &'static str,
    /// What the log says before it is done.
    said: &'static str,
    act: fn(u8),
}

/// In the order in which Linux's help names them.
static LETTERS: [Letter; 13] = [
    letter(b"0123456789", "loglevel(0-9)", "Changing Loglevel", set_level),
    letter(b"b", "reboot(b)", "Resetting", |_| {
        drivers::drain_consoles();
        power::reboot()
    }),
    letter(b"c", "crash(c)", "Trigger a crash", |_| panic!("sysrq triggered crash")),
    letter(b"e", "terminate-all-tasks(e)", "Terminate All Tasks", |_| to_all(Signal::SIGTERM)),
    letter(b"f", "memory-full-oom-kill(f)", "Manual OOM execution", |_| {
        if !kill_on_demand() {
            log::info!("sysrq: OOM request ignored. No task eligible");
        }
    }),
    letter(b"i", "kill-all-tasks(i)", "Kill All Tasks", |_| to_all(Signal::SIGKILL)),
    letter(b"l", "show-backtrace-all-active-cpus(l)", "Show backtrace of all active CPUs", |_| {
        panic::log_this_cpu();
        panic::log_all_cpus();
    }),
    letter(b"m", "show-memory-usage(m)", "Show Memory", |_| show_memory()),
    letter(b"o", "poweroff(o)", "Power Off", |_| misc::power_down()),
    // `s` and `u` are for file systems on devices, of which there are none: the others Linux too leaves as they are.
    letter(b"s", "sync(s)", "Emergency Sync", |_| log::warn!("Emergency Sync complete")),
    letter(b"t", "show-task-states(t)", "Show State", |_| process::log_tasks(false)),
    letter(b"u", "unmount(u)", "Emergency Remount R/O", |_| {
        log::warn!("Emergency Remount complete");
    }),
    letter(b"w", "show-blocked-tasks(w)", "Show Blocked State", |_| process::log_tasks(true)),
];

const fn letter(
    letters: &'static [u8],
    help: &'static str,
    said: &'static str,
    act: fn(u8),
) -> Letter {
    Letter { letters, help, said, act }
}

/// Puts the file into /proc.
pub fn register() -> Result<()> {
    procfs::register_stream("sysrq-trigger", 0o200, None, || Ok(try_arc(Trigger)?))
}

struct Trigger;

impl FileOps for Trigger {
    fn read(&self, _: &OpenFile, _: &mut Sink<'_>, _: &mut u64) -> Result<usize> {
        Err(Errno::EIO)
    }

    /// The first letter is done and the rest is taken for nothing, unless the first is an underscore: then all are done.
    fn write(&self, _: &OpenFile, src: &mut Source<'_>, _: &mut u64) -> Result<usize> {
        let count = src.remaining();
        let mut is_bulk = false;
        for _ in (0..count).killable() {
            let mut letter = [0];
            src.take(&mut letter)?;
            match letter[0] {
                b'_' => is_bulk = true,
                letter => obey(letter),
            }
            if !is_bulk {
                break;
            }
        }
        Ok(count)
    }

    fn lseek(&self, _: &OpenFile, pos: u64, _: i64, _: Whence) -> Result<u64> {
        Ok(pos)
    }

    fn uses_position(&self) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn obey(key: u8) {
    let Some(letter) = LETTERS.iter().find(|letter| letter.letters.contains(&key)) else {
        return loudly(|| {
            log::info!("sysrq: HELP : {}", Help);
        });
    };
    loudly(|| log::info!("sysrq: {}", letter.said));
    (letter.act)(key);
}

/// The names of all letters.
struct Help;

impl core::fmt::Display for Help {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        LETTERS.iter().try_for_each(|letter| write!(to, "{} ", letter.help))
    }
}

/// What is logged meanwhile goes to the console if it would at the level that boot sets.
fn loudly(say: impl FnOnce()) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock();
    let level = klog::console_level();
    klog::set_console_level(klog::BOOT_CONSOLE_LEVEL);
    say();
    klog::set_console_level(level);
}

fn set_level(letter: u8) {
    let level = i32::from(letter - b'0');
    klog::set_console_level(klog::BOOT_CONSOLE_LEVEL);
    log::info!("sysrq: Loglevel set to {level}");
    klog::set_console_level(level);
}

/// To every process but the first and the kernel's own: the writer gets it too.
fn to_all(signal: Signal) {
    let info = SigInfo::new(signal, code::SI_KERNEL);
    process::for_each_process(&mut |process| {
        if !process.is_init() && process.has_memory() {
            // One that is gone meanwhile, or whose queue is full, is no reason to spare the rest, as on Linux.
            let _ = signal::send_to_process(process, signal, info);
        }
    });
}

fn show_memory() {
    let stats = frames::stats();
    log::warn!("Mem-Info:");
    log::warn!(
        "anon:{} shmem:{} slab:{} pagetables:{} kernel_stacks:{} kernel:{}",
        stats.anon,
        stats.page_cache,
        stats.slab,
        stats.page_tables,
        stats.kernel_stacks,
        stats.kernel
    );
    let kib = |pages: u64| pages * (base::PAGE_SIZE as u64 / 1024);
    log::warn!("free:{}kB total:{}kB", kib(stats.free), kib(stats.total));
    log::warn!("{} pages RAM", stats.total);
}
