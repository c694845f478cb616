//! sysfs: the few directories and files that programs look for. Made of the same fixed entries as proc.
//!
//! Owns the one instance. Never looks for devices itself: what is here is registered, by `devfs` or by the subsystem that it
//! is about. Locks: none of its own.
#![forbid(unsafe_code)]

use super::procfs::{Made, ProcFile, fixed};
use super::uevent::{SequenceNumber, Uevent};
use crate::base::{percpu, speculation};
use crate::mm::fallible::{TryString, try_arc, try_string};
use crate::sync::Once;
use crate::try_format;
use crate::vfs::object::filesystem::anonymous_dev;
use crate::vfs::{Dentry, DevId, Inode, InodeAttr, Owner, Super, Timestamp};
use abi::Result;
use abi::fs::S_IFDIR;
use alea_speculation::{FILES, File, Line};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

const MAGIC: i64 = 0x6265_6572;

static SYSFS: Once<Arc<Super>> = Once::new();

pub(super) struct Root {
    pub attr: InodeAttr,
}

impl Inode for Root {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }
}

/// A list of CPUs, like `0-3`.
struct CpuList;

impl ProcFile for CpuList {
    fn read(&self) -> Result<Vec<u8>> {
        let last = percpu::cpus_online().saturating_sub(1);
        let text = if last == 0 { try_string("0\n")? } else { try_format!("0-{last}\n")? };
        Ok(text.into_bytes())
    }
}

/// What a file in `vulnerabilities` says of one flaw of the CPU.
struct Flaw(File);

impl ProcFile for Flaw {
    fn read(&self) -> Result<Vec<u8>> {
        let (cpu, done) = (&speculation::facts(), &speculation::done());
        let text = try_format!("{}\n", Line { file: self.0, cpu, done })?;
        Ok(text.into_bytes())
    }
}

/// The one instance.
pub fn super_block() -> Result<Arc<Super>> {
    if let Some(sb) = SYSFS.get() {
        return Ok(sb.clone());
    }
    let number = anonymous_dev()?;
    let dev = number.id();
    let (owner, mode) = (Owner::default(), S_IFDIR | 0o555);
    let attr = InodeAttr::new(dev, 1, mode, owner, DevId::NONE, Timestamp::now());
    let root = Dentry::new_root(try_arc(Root { attr })?, b"/")?;
    let fs = try_arc(fixed::KernelFs { name: "sysfs", magic: MAGIC })?;
    let sb = Super::new(fs, root, number, true)?;
    Ok(SYSFS.call_once(|| sb).clone())
}

/// Adds a file, `path` below /sys.
pub fn register_file(path: &str, mode: u32, file: Arc<dyn ProcFile>) -> Result<()> {
    fixed::add_file(&super_block()?, path, mode, file)
}

/// Adds a symbolic link, `path` below /sys.
pub fn register_link(path: &str, target: &str) -> Result<()> {
    fixed::add_link(&super_block()?, path, target)
}

/// Shows a character device: its directory, and the links to that by class and by number.
pub fn register_device(dev: DevId, name: &str, mode: u32) -> Result<()> {
    let (major, minor) = (dev.major(), dev.minor());
    let (class, parent) = match major {
        1 => ("mem", "virtual"),
        4 => ("tty", "platform/serial8250"),
        5 => ("tty", "virtual"),
        250 => ("rtc", "platform/rtc_cmos"),
        _ => ("misc", "virtual"),
    };
    let folder = try_format!("devices/{parent}/{class}/{name}")?;
    // Linux gives DEVMODE only where the driver chooses the mode; for these two it has the default, 0600.
    let mode = match mode {
        0o600 | 0o660 => String::new(),
        mode => try_format!("DEVMODE=0{mode:03o}\n")?,
    };
    let event = try_format!("MAJOR={major}\nMINOR={minor}\nDEVNAME={name}\n{mode}")?;
    register_file(
        &try_format!("{folder}/dev")?,
        0o444,
        try_arc(Made(try_format!("{major}:{minor}\n")?))?,
    )?;
    let events = Uevent::new(try_string(&folder)?, class, event)?;
    register_file(&try_format!("{folder}/uevent")?, 0o644, events)?;
    let mut up = String::new();
    folder.split('/').try_for_each(|_| up.try_push_str("../"))?;
    register_link(&try_format!("{folder}/subsystem")?, &try_format!("{up}class/{class}")?)?;
    register_link(&try_format!("class/{class}/{name}")?, &try_format!("../../{folder}")?)?;
    register_link(&try_format!("dev/char/{major}:{minor}")?, &try_format!("../../{folder}")?)
}

/// Registers sysfs and makes its directories.
pub fn init() -> Result<()> {
    crate::vfs::registry::register("sysfs", |options| {
        crate::vfs::registry::refuse_options(options)?;
        super_block()
    });
    let sb = super_block()?;
    for path in [
        "block",
        "bus",
        "class/tty",
        "class/mem",
        "class/net",
        "class/block",
        "dev/block",
        "dev/char",
        "devices/virtual",
        "firmware",
        "fs",
        "kernel/mm",
        "kernel/tracing",
        "module",
        "power",
    ] {
        fixed::directory(&sb, path)?;
    }
    for file in ["online", "possible", "present"] {
        register_file(&try_format!("devices/system/cpu/{file}")?, 0o444, try_arc(CpuList)?)?;
    }
    for (name, file) in FILES {
        let path = try_format!("devices/system/cpu/vulnerabilities/{name}")?;
        register_file(&path, 0o444, try_arc(Flaw(file))?)?;
    }
    for cpu in 0..percpu::cpus_online() {
        // All count as cores of one package, with one thread each.
        for (file, text) in [
            ("core_id", try_format!("{cpu}\n")?),
            ("physical_package_id", try_string("0\n")?),
            ("thread_siblings_list", try_format!("{cpu}\n")?),
        ] {
            let path = try_format!("devices/system/cpu/cpu{cpu}/topology/{file}")?;
            register_file(&path, 0o444, try_arc(Made(text))?)?;
        }
    }
    register_file("kernel/uevent_seqnum", 0o444, try_arc(SequenceNumber)?)?;
    let most = try_format!("{}\n", percpu::MAX_CPUS - 1)?;
    register_file("devices/system/cpu/kernel_max", 0o444, try_arc(Made(most))?)?;
    register_file("devices/system/node/online", 0o444, try_arc(Made(try_string("0\n")?))?)?;
    Ok(())
}
