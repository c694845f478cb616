//! Credentials: who a task is and what it may do.
//!
//! A [`Cred`] never changes; a task that changes identity gets a new one. Only the rules of setting
//! identities live here; checks against files are in `namei::perm`. No locks.
#![forbid(unsafe_code)]

use alloc::sync::Arc;

/// Linux's capabilities, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    Chown = 0,
    DacOverride = 1,
    DacReadSearch = 2,
    Fowner = 3,
    Fsetid = 4,
    Kill = 5,
    Setgid = 6,
    Setuid = 7,
    Setpcap = 8,
    LinuxImmutable = 9,
    NetBindService = 10,
    NetBroadcast = 11,
    NetAdmin = 12,
    NetRaw = 13,
    IpcLock = 14,
    IpcOwner = 15,
    SysModule = 16,
    SysRawio = 17,
    SysChroot = 18,
    SysPtrace = 19,
    SysPacct = 20,
    SysAdmin = 21,
    SysBoot = 22,
    SysNice = 23,
    SysResource = 24,
    SysTime = 25,
    SysTtyConfig = 26,
    Mknod = 27,
    Lease = 28,
    AuditWrite = 29,
    AuditControl = 30,
    Setfcap = 31,
    MacOverride = 32,
    MacAdmin = 33,
    Syslog = 34,
    WakeAlarm = 35,
    BlockSuspend = 36,
    AuditRead = 37,
    Perfmon = 38,
    Bpf = 39,
    CheckpointRestore = 40,
}

/// Highest capability number.
pub const LAST_CAP: u8 = Capability::CheckpointRestore as u8;

/// A set of capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CapSet(u64);

impl CapSet {
    /// No capability.
    pub const EMPTY: Self = Self(0);
    /// Every capability that exists.
    pub const FULL: Self = Self((1 << (LAST_CAP + 1)) - 1);
    /// Those that the file-system uid carries.
    const FS: Self = Self(
        1 << Capability::Chown as u8
            | 1 << Capability::DacOverride as u8
            | 1 << Capability::DacReadSearch as u8
            | 1 << Capability::Fowner as u8
            | 1 << Capability::Fsetid as u8
            | 1 << Capability::LinuxImmutable as u8
            | 1 << Capability::Mknod as u8
            | 1 << Capability::MacOverride as u8,
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
        self.0 & (1 << cap as u8) != 0
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
    pub groups: Arc<[u32]>,
    pub permitted: CapSet,
    pub effective: CapSet,
    pub inheritable: CapSet,
    pub bounding: CapSet,
    pub ambient: CapSet,
    pub securebits: u32,
}

impl Cred {
    /// Root with every capability: what the first process starts with.
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
            groups: Arc::from([]),
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

    /// What capabilities become when uids changed from `old`'s to this one's.
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

    /// What capabilities become when only the file-system uid changed.
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
