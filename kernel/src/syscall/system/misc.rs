//! The machine as a whole: uname, sysinfo, host name, kernel log, reboot.
//!
//! Owns nothing. Never waits. Locks: none of its own.

use crate::base::{self, cpu};
use crate::drivers;
use crate::fs::procfs::{self, ProcFile};
use crate::machine::power;
use crate::mm::fallible::{TryGrow, TrySlice, try_arc};
use crate::mm::frames;
use crate::mm::user::{self, UserPtr};
use crate::process::node::{self, NAME_MAX, Name, domainname, hostname};
use crate::syscall::file::memfd::MEMFD_NOEXEC;
use crate::vfs::Capability;
use crate::{process, time};
use abi::misc::{NewUtsname, Sysinfo};
use abi::{Errno, Result};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// One of the two names, as a file.
struct NameFile {
    shown: fn() -> Name,
    set: fn(Name),
}

impl ProcFile for NameFile {
    fn read(&self) -> Result<Vec<u8>> {
        let mut text = (self.shown)().try_owned()?;
        text.try_push(b'\n')?;
        Ok(text)
    }
    #[expect(clippy::disallowed_methods, reason = "collects into an array of that size")]
    fn write(&self, data: &[u8]) -> Result<usize> {
        let line = data.split(|&b| b == b'\n' || b == 0).next().unwrap_or_default();
        (self.set)(line.iter().copied().take(NAME_MAX).collect());
        Ok(data.len())
    }
}

/// Registers sys/kernel/{hostname,domainname} and what system calls obey in /proc; once, at boot.
pub fn register_files() -> Result<()> {
    let host = NameFile { shown: hostname, set: node::set_hostname };
    let domain = NameFile { shown: domainname, set: node::set_domainname };
    procfs::register_setting("vm/memfd_noexec", &MEMFD_NOEXEC)?;
    procfs::register_line("kernel/hostname", 0o644, try_arc(host)?)?;
    procfs::register_line("kernel/domainname", 0o644, try_arc(domain)?)
}

/// The low byte of a personality is the system that the program is made for; this one is 32-bit Linux.
const PER_MASK: u32 = 0xff;
const PER_LINUX32: u32 = 8;

pub fn uname(buf: UserPtr<NewUtsname>) -> Result<()> {
    let mut out = NewUtsname::default();
    out.set_sysname(b"Linux");
    out.set_nodename(&hostname());
    out.set_release(crate::version::RELEASE.as_bytes());
    out.set_version(crate::version::VERSION.as_bytes());
    // Relaxed: a setting of the running task.
    let personality = process::current().settings.personality.load(Ordering::Relaxed);
    out.set_machine(if personality & PER_MASK == PER_LINUX32 { b"i686" } else { b"x86_64" });
    out.set_domainname(&domainname());
    buf.write(&out)
}

#[expect(clippy::disallowed_methods, reason = "collects into an array of that size")]
fn read_name(name: u64, len: i32) -> Result<Name> {
    if !process::current().cred().capable(Capability::SYS_ADMIN) {
        return Err(Errno::EPERM);
    }
    let len = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
    if len > NAME_MAX {
        return Err(Errno::EINVAL);
    }
    let mut bytes = [0; NAME_MAX];
    user::read_bytes(name, &mut bytes[..len])?;
    Ok(bytes[..len].iter().copied().collect())
}

pub fn sethostname(name: u64, len: i32) -> Result<()> {
    let name = read_name(name, len)?;
    node::set_hostname(name);
    Ok(())
}

pub fn setdomainname(name: u64, len: i32) -> Result<()> {
    let name = read_name(name, len)?;
    node::set_domainname(name);
    Ok(())
}

pub fn sysinfo(buf: UserPtr<Sysinfo>) -> Result<()> {
    let memory = frames::stats();
    let page = base::PAGE_SIZE as u64;
    buf.write(&Sysinfo {
        uptime: (time::since_boot_ns() / abi::time::NSEC_PER_SEC) as i64,
        loads: process::load_average(),
        totalram: memory.total * page,
        freeram: memory.free * page,
        sharedram: 0,
        bufferram: 0,
        procs: u16::try_from(process::count()).unwrap_or(u16::MAX),
        mem_unit: 1,
        ..Sysinfo::default()
    })
}

const LINUX_REBOOT_MAGIC1: u32 = 0xfee1_dead;
const LINUX_REBOOT_MAGIC2: [u32; 4] = [672_274_793, 85_072_278, 369_367_448, 537_993_216];
const CMD_CAD_OFF: u32 = 0;
const CMD_RESTART: u32 = 0x0123_4567;
const CMD_CAD_ON: u32 = 0x89ab_cdef;
const CMD_POWER_OFF: u32 = 0x4321_fedc;
const CMD_HALT: u32 = 0xcdef_0123;

pub fn reboot(magic1: u32, magic2: u32, command: u32) -> Result<()> {
    if !process::current().cred().capable(Capability::SYS_BOOT) {
        return Err(Errno::EPERM);
    }
    if magic1 != LINUX_REBOOT_MAGIC1 || !LINUX_REBOOT_MAGIC2.contains(&magic2) {
        return Err(Errno::EINVAL);
    }
    match command {
        // The console has no Ctrl-Alt-Del.
        CMD_CAD_OFF | CMD_CAD_ON => Ok(()),
        CMD_RESTART => {
            log::info!("reboot: Restarting system");
            drivers::drain_consoles();
            power::reboot()
        }
        CMD_POWER_OFF => power_down(),
        CMD_HALT => {
            log::info!("reboot: System halted");
            drivers::drain_consoles();
            cpu::halt_forever()
        }
        _ => Err(Errno::EINVAL),
    }
}

/// Switches the machine off, and says so.
pub(super) fn power_down() -> ! {
    log::info!("reboot: Power down");
    drivers::drain_consoles();
    power::power_off()
}
