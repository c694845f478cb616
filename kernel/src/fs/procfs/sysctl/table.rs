//! The files of /proc/sys that are not registered by the subsystem that they are about.
//!
//! Owns the list of them, and the values of those that control nothing ([`Kept`]). Never keeps the value of a setting that
//! some code obeys. Locks: none.
#![forbid(unsafe_code)]

use super::kept::{Kept, register_kept};
use super::numbers::{Several, register_setting, register_settings, register_wide};
use super::own;
use crate::base::setting::{Bounded, Setting, WideSetting};
use crate::diag::klog;
use crate::fs::procfs::file::{Fixed, Text};
use crate::fs::procfs::fixed::{register_line, register_numbers};
use crate::mm::fallible::try_arc;
use crate::mm::{MAX_MAP_COUNT, commit};
use crate::try_format;
use crate::version::{RELEASE, VERSION};
use crate::vfs::admission;
use crate::vfs::namei::protect;
use crate::vfs::object::mount;
use abi::{Errno, Result};
use alloc::string::String;

pub(in crate::fs::procfs) fn register() -> Result<()> {
    let texts: [(&str, fn() -> Result<String>); 2] = [
        ("kernel/osrelease", || try_format!("{RELEASE}\n")),
        ("kernel/version", || try_format!("{VERSION}\n")),
    ];
    for (path, text) in texts {
        register_line(path, 0o444, try_arc(Text(text))?)?;
    }
    for (path, text) in LINES {
        register_line(path, 0o444, try_arc(Fixed(text))?)?;
    }
    for (path, text) in NUMBERS {
        register_numbers(path, 0o444, try_arc(Fixed(text))?)?;
    }
    for (path, setting) in SETTINGS {
        register_setting(path, setting)?;
    }
    for (path, setting) in WIDE {
        register_wide(path, setting)?;
    }
    register_numbers("fs/file-nr", 0o444, try_arc(Text(open_files))?)?;
    register_settings("kernel/printk", Several(klog::LEVELS, Errno::EINVAL))?;
    register_kept(&KEPT)?;
    own::register()
}

/// `fs.file-nr`: how many files are open, how many are kept for nobody, how many may be.
fn open_files() -> Result<String> {
    try_format!("{}\t0\t{}\n", admission::open_files(), admission::FileMax.shown())
}

/// Settings of layers below the file systems, which cannot register files here themselves.
static SETTINGS: [(&str, &dyn Setting); 9] = [
    ("fs/mount-max", &mount::MOUNT_MAX),
    ("fs/protected_symlinks", &protect::PROTECTED_SYMLINKS),
    ("fs/protected_hardlinks", &protect::PROTECTED_HARDLINKS),
    ("fs/protected_fifos", &protect::PROTECTED_FIFOS),
    ("fs/protected_regular", &protect::PROTECTED_REGULAR),
    ("kernel/dmesg_restrict", &klog::DMESG_RESTRICT),
    ("vm/max_map_count", &MAX_MAP_COUNT),
    ("vm/overcommit_memory", &commit::OVERCOMMIT_MEMORY),
    ("vm/overcommit_ratio", &commit::OvercommitRatio),
];

static WIDE: [(&str, &dyn WideSetting); 4] = [
    ("fs/file-max", &admission::FileMax),
    ("vm/overcommit_kbytes", &commit::OvercommitKbytes),
    ("vm/admin_reserve_kbytes", &commit::ADMIN_RESERVE_KBYTES),
    ("vm/user_reserve_kbytes", &commit::USER_RESERVE_KBYTES),
];

/// Lines that nobody can write on Linux either, and numbers.
const LINES: [(&str, &str); 2] = [("kernel/ostype", "Linux\n"), ("kernel/arch", "x86_64\n")];
const NUMBERS: [(&str, &str); 2] =
    [("kernel/cap_last_cap", "40\n"), ("kernel/ngroups_max", "65536\n")];

const NO_ID_MAPS: &str = "user numbers are mapped nowhere";
const NO_SWAP: &str = "there is no swap";
const NO_DISK: &str = "there is no disk to write back to";
const NOT_CACHED: &str = "what is in memory is the only copy of it";

/// The range of the user or group ID that stands for those that cannot be represented.
const fn nobody() -> Bounded {
    Bounded::new(65534, 0..=65535)
}

static KEPT: [Kept; 9] = [
    Kept::new("kernel/modules_disabled", Bounded::new(0, 1..=1), "there are no modules"),
    Kept::new("kernel/overflowuid", nobody(), NO_ID_MAPS),
    Kept::new("kernel/overflowgid", nobody(), NO_ID_MAPS),
    Kept::new("fs/overflowuid", nobody(), NO_ID_MAPS),
    Kept::new("fs/overflowgid", nobody(), NO_ID_MAPS),
    Kept::new("vm/swappiness", Bounded::new(60, 0..=200), NO_SWAP),
    Kept::new("vm/dirty_ratio", Bounded::new(20, 0..=100), NO_DISK),
    Kept::new("vm/dirty_background_ratio", Bounded::new(10, 0..=100), NO_DISK),
    Kept::new("vm/vfs_cache_pressure", Bounded::new(100, 0..=i32::MAX), NOT_CACHED),
];
