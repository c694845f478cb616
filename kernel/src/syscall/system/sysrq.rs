//! /proc/sysrq-trigger, and the key of the serial line, a break and a letter: the machine does at once what the letter stands for
//! (Linux's drivers/tty/sysrq.c).
//!
//! `kernel.sysrq` says what the key may do; the file, which is root's, obeys it not, as on Linux. A
//! letter that stands for nothing here prints those that do. Owns the table of them. Never undoes what a letter did.
//! Locks: a mutex for the line that says what comes, which is shown whatever the console's level.

use super::misc;
use crate::diag::{klog, panic};
use crate::drivers;
use crate::drivers::tty::register_attention;
use crate::fs::procfs;
use crate::machine::power;
use crate::mm::fallible::try_arc;
use crate::mm::{Sink, Source, frames};
use crate::process::memory::kill_on_demand;
use crate::process::signal;
use crate::sync::{Mutex, Pace};
use crate::vfs::{FileOps, OpenFile, Position, Whence};
use crate::{base, process, setting};
use abi::signal::{SigInfo, Signal, code};
use abi::{Errno, Result};

setting! {
    /// `kernel.sysrq`: 0 switches the key off, 1 allows all, and other values have a bit for each kind. Linux's default of Debian.
    pub static SYSRQ = 0x1b6, i32::MIN..=i32::MAX;
}

/// Which bit of `kernel.sysrq` a letter wants.
#[derive(Clone, Copy)]
enum Kind {
    Log = 0x2,
    Dump = 0x8,
    Sync = 0x10,
    Remount = 0x20,
    Signal = 0x40,
    Boot = 0x80,
}

impl Kind {
    fn is_allowed(self) -> bool {
        SYSRQ.get() == 1 || SYSRQ.get() & self as i32 != 0
    }
}

/// What a letter does.
struct Letter {
    letters: &'static [u8],
    kind: Kind,
    /// How the help names it.
    help: &'static str,
    /// What the log says before it is done.
    said: &'static str,
    act: fn(u8),
}

/// In the order in which Linux's help names them.
static LETTERS: [Letter; 13] = [
    letter(b"0123456789", Kind::Log, "loglevel(0-9)", "Changing Loglevel", set_level),
    letter(b"b", Kind::Boot, "reboot(b)", "Resetting", |_| {
        drivers::drain_consoles();
        power::reboot()
    }),
    letter(b"c", Kind::Dump, "crash(c)", "Trigger a crash", |_| panic!("sysrq triggered crash")),
    letter(b"e", Kind::Signal, "terminate-all-tasks(e)", "Terminate All Tasks", |_| {
        to_all(Signal::SIGTERM)
    }),
    letter(b"f", Kind::Signal, "memory-full-oom-kill(f)", "Manual OOM execution", |_| {
        if !kill_on_demand() {
            log::info!("sysrq: OOM request ignored. No task eligible");
        }
    }),
    letter(b"i", Kind::Signal, "kill-all-tasks(i)", "Kill All Tasks", |_| to_all(Signal::SIGKILL)),
    letter(
        b"l",
        Kind::Dump,
        "show-backtrace-all-active-cpus(l)",
        "Show backtrace of all active CPUs",
        |_| {
            panic::log_this_cpu();
            panic::log_all_cpus();
        },
    ),
    letter(b"m", Kind::Dump, "show-memory-usage(m)", "Show Memory", |_| show_memory()),
    letter(b"o", Kind::Boot, "poweroff(o)", "Power Off", |_| misc::power_down()),
    // `s` and `u` are for file systems on devices, of which there are none: the others Linux too leaves as they are.
    letter(b"s", Kind::Sync, "sync(s)", "Emergency Sync", |_| {
        log::warn!("Emergency Sync complete")
    }),
    letter(b"t", Kind::Dump, "show-task-states(t)", "Show State", |_| process::log_tasks(false)),
    letter(b"u", Kind::Remount, "unmount(u)", "Emergency Remount R/O", |_| {
        log::warn!("Emergency Remount complete");
    }),
    letter(b"w", Kind::Dump, "show-blocked-tasks(w)", "Show Blocked State", |_| {
        process::log_tasks(true)
    }),
];

const fn letter(
    letters: &'static [u8],
    kind: Kind,
    help: &'static str,
    said: &'static str,
    act: fn(u8),
) -> Letter {
    Letter { letters, kind, help, said, act }
}

/// Puts the files into /proc, and listens to the key.
pub fn register() -> Result<()> {
    procfs::register_setting("kernel/sysrq", &SYSRQ)?;
    register_attention(|letter| {
        let is_on = SYSRQ.get() != 0;
        if is_on {
            obey(letter, Kind::is_allowed);
        }
        is_on
    });
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
                letter => obey(letter, |_| true),
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

    fn position(&self) -> Position {
        Position::Ignored
    }
}

fn obey(key: u8, may: fn(Kind) -> bool) {
    let Some(letter) = LETTERS.iter().find(|letter| letter.letters.contains(&key)) else {
        return loudly(|| {
            log::info!("sysrq: HELP : {}", Help);
        });
    };
    if !may(letter.kind) {
        return loudly(|| log::info!("sysrq: This sysrq operation is disabled."));
    }
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
