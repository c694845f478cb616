//! Credentials: who a task is and what it may do.
//!
//! A [`Cred`] never changes once a task has it; a task that changes identity gets a new one. Here are only the rules of
//! what a change of uid does to capabilities; checks against files are in `namei::perm`.
//!
//! Owns the slot through which this floor learns whose the running task is. No locks.
#![forbid(unsafe_code)]

use crate::sync::Once;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// One of Linux's capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability(u8);

#[expect(dead_code, reason = "Linux's list whole; the kernel asks for those whose calls it has")]
impl Capability {
    pub const CHOWN: Self = Self(0);
    pub const DAC_OVERRIDE: Self = Self(1);
    pub const DAC_READ_SEARCH: Self = Self(2);
    pub const FOWNER: Self = Self(3);
    pub const FSETID: Self = Self(4);
    pub const KILL: Self = Self(5);
    pub const SETGID: Self = Self(6);
    pub const SETUID: Self = Self(7);
    pub const SETPCAP: Self = Self(8);
    pub const LINUX_IMMUTABLE: Self = Self(9);
    pub const NET_BIND_SERVICE: Self = Self(10);
    pub const NET_BROADCAST: Self = Self(11);
    pub const NET_ADMIN: Self = Self(12);
    pub const NET_RAW: Self = Self(13);
    pub const IPC_LOCK: Self = Self(14);
    pub const IPC_OWNER: Self = Self(15);
    pub const SYS_MODULE: Self = Self(16);
    pub const SYS_RAWIO: Self = Self(17);
    pub const SYS_CHROOT: Self = Self(18);
    pub const SYS_PTRACE: Self = Self(19);
    pub const SYS_PACCT: Self = Self(20);
    pub const SYS_ADMIN: Self = Self(21);
    pub const SYS_BOOT: Self = Self(22);
    pub const SYS_NICE: Self = Self(23);
    pub const SYS_RESOURCE: Self = Self(24);
    pub const SYS_TIME: Self = Self(25);
    pub const SYS_TTY_CONFIG: Self = Self(26);
    pub const MKNOD: Self = Self(27);
    pub const LEASE: Self = Self(28);
    pub const AUDIT_WRITE: Self = Self(29);
    pub const AUDIT_CONTROL: Self = Self(30);
    pub const SETFCAP: Self = Self(31);
    pub const MAC_OVERRIDE: Self = Self(32);
    pub const MAC_ADMIN: Self = Self(33);
    pub const SYSLOG: Self = Self(34);
    pub const WAKE_ALARM: Self = Self(35);
    pub const BLOCK_SUSPEND: Self = Self(36);
    pub const AUDIT_READ: Self = Self(37);
    pub const PERFMON: Self = Self(38);
    pub const BPF: Self = Self(39);
    pub const CHECKPOINT_RESTORE: Self = Self(40);
}

/// Highest capability number.
pub const LAST_CAP: u8 = Capability::CHECKPOINT_RESTORE.0;

/// A set of capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CapSet(u64);

impl CapSet {
    /// No capability.
    pub const EMPTY: Self = Self(0);
    /// Every capability that exists.
    pub const FULL: Self = Self((1 << (LAST_CAP + 1)) - 1);
    /// Those that depend on the file-system uid (Linux's `CAP_FS_SET`).
    const FS: Self = Self(
        1 << Capability::CHOWN.0
            | 1 << Capability::DAC_OVERRIDE.0
            | 1 << Capability::DAC_READ_SEARCH.0
            | 1 << Capability::FOWNER.0
            | 1 << Capability::FSETID.0
            | 1 << Capability::LINUX_IMMUTABLE.0
            | 1 << Capability::MKNOD.0
            | 1 << Capability::MAC_OVERRIDE.0,
    );

    /// From the bits of a user structure; unknown bits are dropped, as Linux does.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & Self::FULL.0)
    }
    /// The bits.
    pub const fn bits(self) -> u64 {
        self.0
    }
    /// Whether `cap` is in the set.
    pub const fn has(self, cap: Capability) -> bool {
        self.0 & (1 << cap.0) != 0
    }
    /// Whether all of `other` is in the set.
    pub const fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }
    /// In both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
    /// In either.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// In this and not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// `PR_SET_SECUREBITS` bits that change how uids and capabilities interact.
pub mod securebits {
    pub const NOROOT: u32 = 1;
    pub const NO_SETUID_FIXUP: u32 = 1 << 2;
    pub const KEEP_CAPS: u32 = 1 << 4;
    pub const NO_CAP_AMBIENT_RAISE: u32 = 1 << 6;
}

/// The identity of a task.
#[derive(Clone, Debug)]
pub struct Cred {
    pub uid: u32,
    pub euid: u32,
    pub suid: u32,
    pub fsuid: u32,
    pub gid: u32,
    pub egid: u32,
    pub sgid: u32,
    pub fsgid: u32,
    /// Supplementary groups, sorted.
    pub groups: Arc<Vec<u32>>,
    pub permitted: CapSet,
    pub effective: CapSet,
    pub inheritable: CapSet,
    pub bounding: CapSet,
    pub ambient: CapSet,
    pub securebits: u32,
}

impl Cred {
    /// The real and the effective uid: whose signals it may send.
    pub fn uids(&self) -> (u32, u32) {
        (self.uid, self.euid)
    }

    /// Root with every capability: what the first process starts with.
    #[expect(clippy::disallowed_methods, reason = "boot: before any user")]
    pub fn root() -> Self {
        Self {
            uid: 0,
            euid: 0,
            suid: 0,
            fsuid: 0,
            gid: 0,
            egid: 0,
            sgid: 0,
            fsgid: 0,
            groups: Arc::new(Vec::new()),
            permitted: CapSet::FULL,
            effective: CapSet::FULL,
            inheritable: CapSet::EMPTY,
            bounding: CapSet::FULL,
            ambient: CapSet::EMPTY,
            securebits: 0,
        }
    }

    /// Whether the task may use `cap` now.
    #[inline]
    pub const fn capable(&self, cap: Capability) -> bool {
        self.effective.has(cap)
    }

    /// Whether the file-system group or a supplementary one is `gid`.
    #[inline]
    pub fn in_group(&self, gid: u32) -> bool {
        self.fsgid == gid || self.groups.binary_search(&gid).is_ok()
    }

    /// Whether the effective group or a supplementary one is `gid`.
    pub fn in_egroup(&self, gid: u32) -> bool {
        self.egid == gid || self.groups.binary_search(&gid).is_ok()
    }

    /// Adjusts the capabilities after uids changed from `old`'s to this one's.
    pub fn fix_caps_after_setuid(&mut self, old: &Cred) {
        if self.securebits & securebits::NO_SETUID_FIXUP != 0 {
            return;
        }
        let had_root = old.uid == 0 || old.euid == 0 || old.suid == 0;
        let has_root = self.uid == 0 || self.euid == 0 || self.suid == 0;
        if had_root && !has_root {
            if self.securebits & securebits::KEEP_CAPS == 0 {
                self.permitted = CapSet::EMPTY;
                self.effective = CapSet::EMPTY;
            }
            self.ambient = CapSet::EMPTY;
        }
        if old.euid == 0 && self.euid != 0 {
            self.effective = CapSet::EMPTY;
        }
        if old.euid != 0 && self.euid == 0 {
            self.effective = self.permitted;
        }
    }

    /// Adjusts the capabilities after only the file-system uid changed.
    pub fn fix_caps_after_setfsuid(&mut self, old: &Cred) {
        if self.securebits & securebits::NO_SETUID_FIXUP != 0 {
            return;
        }
        if old.fsuid == 0 && self.fsuid != 0 {
            self.effective = self.effective.without(CapSet::FS);
        }
        if old.fsuid != 0 && self.fsuid == 0 {
            self.effective = self.effective.or(self.permitted.and(CapSet::FS));
        }
    }
}

static RUNNING: Once<fn() -> Arc<Cred>> = Once::new();

/// Sets what tells the credentials of the running task; called once at boot by the process floor.
pub fn register_running(cred: fn() -> Arc<Cred>) {
    RUNNING.call_once(|| cred);
}

/// The credentials of the running task: where not those of who opened a file count, but of who acts on it now. `None` while
/// there are no tasks.
#[cold]
pub(in crate::vfs) fn running_cred() -> Option<Arc<Cred>> {
    RUNNING.get().map(|cred| cred())
}
