//! What filters do, told to the kernel log in the form of Linux's audit, and the files of /proc/sys/kernel/seccomp.
//!
//! Owns which actions are logged, and how many lines were shown. Never waits, and loses a line rather than failing. Locks: none.
//! A program can make as many lines as calls: ten in five seconds are shown, as Linux shows them without an auditd.

use crate::arch::entry::frame::TrapFrame;
use crate::fs::procfs::{ProcFile, is_capable, register_line};
use crate::mm::fallible::{TrySlice, try_arc};
use crate::process::task::current::current;
use crate::vfs::Capability;
use crate::{time, try_format, try_write};
use abi::seccomp::{ARCH_X86_64, ret};
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The actions and their names, the strictest first.
pub(super) const ACTIONS: [(&str, u32); 8] = [
    ("kill_process", ret::KILL_PROCESS),
    ("kill_thread", ret::KILL_THREAD),
    ("trap", ret::TRAP),
    ("errno", ret::ERRNO),
    ("user_notif", ret::USER_NOTIF),
    ("trace", ret::TRACE),
    ("log", ret::LOG),
    ("allow", ret::ALLOW),
];
/// The last one is never logged.
const ALLOW: u32 = 1 << 7;

/// Which actions are logged, one bit each. Relaxed: a setting.
static LOGGED: AtomicU32 = AtomicU32::new(ALLOW - 1);

/// Tells of an action, if it is one that is logged: those that end a task and `log` always, others where the filter
/// `asks` for it.
pub(super) fn tell(frame: &TrapFrame, signal: i32, action: u32, asks: bool) {
    // One that nobody knows counts as the first.
    let at = ACTIONS.iter().position(|(_, known)| *known == action).unwrap_or(0);
    let always = matches!(action, ret::LOG | ret::KILL_THREAD) || at == 0;
    // Relaxed: see the field.
    if (asks || always) && LOGGED.load(Ordering::Relaxed) >> at & 1 != 0 && may_tell() {
        // A line for which there is no memory is lost.
        if let Ok(line) = line(frame, signal, action) {
            log::info!("{line}");
        }
    }
}

fn line(frame: &TrapFrame, signal: i32, action: u32) -> Result<String> {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    let task = current();
    let (cred, login) = (task.cred(), &task.settings.login);
    let now = time::realtime().0;
    let (seconds, ms) = (now / 1_000_000_000, now / 1_000_000 % 1000);
    // Relaxed: a number that only has to differ; the thread's own settings.
    let order = Ordering::Relaxed;
    let serial = SERIAL.fetch_add(1, order);
    let (auid, ses) = (login.uid.load(order), login.session.load(order));
    let mut text = try_format!("audit: type=1326 audit({seconds}.{ms:03}:{serial}): auid={auid}")?;
    try_write!(text, " uid={} gid={} ses={ses} subj=unconfined", cred.uid, cred.gid)?;
    try_write!(text, " pid={} comm=", task.tid())?;
    let comm = task.comm();
    let len = comm.iter().position(|&byte| byte == 0).unwrap_or(comm.len());
    quote(&mut text, &comm[..len])?;
    let exe = match task.process().exe() {
        Some(path) => path.to_absolute(&task.fs().root())?,
        None => b"(null)".try_owned()?,
    };
    try_write!(text, " exe=")?;
    quote(&mut text, &exe)?;
    let (number, ip) = (frame.orig_rax as i32, frame.rip);
    try_write!(text, " sig={signal} arch={ARCH_X86_64:x} syscall={number} compat=0")?;
    try_write!(text, " ip={ip:#x} code={action:#x}")?;
    Ok(text)
}

/// As audit writes what a user may have made up: quoted, or in hexadecimal digits.
fn quote(text: &mut String, bytes: &[u8]) -> Result<()> {
    let plain = |&byte: &u8| byte != b'"' && (0x21..=0x7e).contains(&byte);
    match core::str::from_utf8(bytes) {
        Ok(name) if bytes.iter().all(plain) => try_write!(text, "\"{name}\""),
        _ => bytes.iter().try_for_each(|byte| try_write!(text, "{byte:02X}")),
    }
}

/// Whether a line may be shown now.
fn may_tell() -> bool {
    const WINDOW: u64 = 5_000_000_000;
    const BURST: u32 = 10;
    static SINCE: AtomicU64 = AtomicU64::new(0);
    static SHOWN: AtomicU32 = AtomicU32::new(0);
    let now = time::monotonic().0;
    // Relaxed: two CPUs at the edge of a window may show a few more.
    let order = Ordering::Relaxed;
    if now.saturating_sub(SINCE.load(order)) >= WINDOW {
        SINCE.store(now, order);
        SHOWN.store(0, order);
    }
    SHOWN.fetch_add(1, order) < BURST
}

struct Available;

impl ProcFile for Available {
    fn read(&self) -> Result<Vec<u8>> {
        names(ALLOW | (ALLOW - 1))
    }
}

struct Logged;

impl ProcFile for Logged {
    fn read(&self) -> Result<Vec<u8>> {
        // Relaxed: see the field.
        names(LOGGED.load(Ordering::Relaxed))
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        if !is_capable(Capability::SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        let mut logged = 0;
        let line = data.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or_default();
        // As on Linux: what stands behind two blanks is not looked at.
        for word in line.split(|byte| *byte == b' ').take_while(|word| !word.is_empty()) {
            let at = ACTIONS.iter().position(|(name, _)| name.as_bytes() == word);
            logged |= 1 << at.ok_or(Errno::EINVAL)?;
        }
        if logged & ALLOW != 0 {
            return Err(Errno::EINVAL);
        }
        // Relaxed: see the field.
        LOGGED.store(logged, Ordering::Relaxed);
        Ok(data.len())
    }
}

fn names(of: u32) -> Result<Vec<u8>> {
    let mut text = String::new();
    for (_, (name, _)) in ACTIONS.iter().enumerate().filter(|(at, _)| of >> at & 1 != 0) {
        try_write!(text, "{}{name}", if text.is_empty() { "" } else { " " })?;
    }
    try_write!(text, "\n")?;
    Ok(text.into_bytes())
}

/// Adds the files to /proc.
pub fn register() -> Result<()> {
    register_line("kernel/seccomp/actions_avail", 0o444, try_arc(Available)?)?;
    register_line("kernel/seccomp/actions_logged", 0o644, try_arc(Logged)?)
}
