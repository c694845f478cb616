//! How much System V IPC there may be: the files of /proc/sys/kernel.
//!
//! Owns the settings. Never keeps what stands already to a limit that has been lowered since. Locks: none.

use crate::base::setting::Setting;
use crate::fs::procfs::{
    ProcFile, Several, by_prefix, register_numbers, register_setting, register_settings,
    register_wide,
};
use crate::mm::fallible::try_arc;
use crate::try_format;
use crate::vfs::{Capability, Cred};
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;

/// Most objects of a kind that an identifier's index allows.
const MOST: i32 = alea_sysv::numbers::MOST as i32;

crate::setting! {
    wide:
    /// Bytes of a segment, and pages of all.
    pub static SHM_MAX = u64::MAX - (1 << 24), 0..=u64::MAX;
    pub static SHM_ALL = u64::MAX - (1 << 24), 0..=u64::MAX;
}

crate::setting! {
    pub static SHM_MNI = 4096, 0..=MOST;
    /// Whether a segment that is not attached goes with the thread that made it.
    pub static SHM_RMID_FORCED = 0, 0..=1;
    pub static SHM_NEXT_ID = -1, -1..=i32::MAX;
    /// Semaphores of a set, semaphores of all sets, operations of a call.
    pub static SEM_MSL = 32000, i32::MIN..=i32::MAX;
    pub static SEM_MNS = 1_024_000_000, i32::MIN..=i32::MAX;
    pub static SEM_OPM = 500, i32::MIN..=i32::MAX;
    pub static SEM_MNI = 32000, 0..=MOST;
    pub static SEM_NEXT_ID = -1, -1..=i32::MAX;
    /// Bytes of a message, bytes of a new queue, queues.
    pub static MSG_MAX = 8192, 0..=i32::MAX;
    pub static MSG_MNB = 16384, 0..=i32::MAX;
    pub static MSG_MNI = 32000, 0..=MOST;
    pub static MSG_NEXT_ID = -1, -1..=i32::MAX;
}

/// Adds the files to /proc; `forced` is called when segments without a maker are to go.
pub fn register(forced: fn()) -> Result<()> {
    register_wide("kernel/shmmax", &SHM_MAX)?;
    register_wide("kernel/shmall", &SHM_ALL)?;
    register_numbers("kernel/shm_rmid_forced", 0o644, try_arc(Forced(forced))?)?;
    register_settings(
        "kernel/sem",
        Several([&SEM_MSL, &SEM_MNS, &SEM_OPM, &SEM_MNI], Errno::ERANGE),
    )?;
    let next: [(&str, &'static dyn Setting); 3] = [
        ("kernel/shm_next_id", &SHM_NEXT_ID),
        ("kernel/sem_next_id", &SEM_NEXT_ID),
        ("kernel/msg_next_id", &MSG_NEXT_ID),
    ];
    for (path, setting) in next {
        let file = NextId(Several([setting], Errno::EINVAL));
        register_numbers(path, 0o444, try_arc(file)?)?;
    }
    let numbers: [(&str, &'static dyn Setting); 4] = [
        ("kernel/shmmni", &SHM_MNI),
        ("kernel/msgmax", &MSG_MAX),
        ("kernel/msgmnb", &MSG_MNB),
        ("kernel/msgmni", &MSG_MNI),
    ];
    numbers.into_iter().try_for_each(|(path, setting)| register_setting(path, setting))
}

/// A number without a sign, decimal or with 0x or 0 in front.
fn unsigned(text: &str) -> Result<u64> {
    let (digits, base) = by_prefix(text);
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return Err(Errno::EINVAL);
    }
    u64::from_str_radix(digits, base).map_err(|_| Errno::EINVAL)
}

/// `shm_rmid_forced`: once it is set, what nobody has goes at once.
struct Forced(fn());

impl ProcFile for Forced {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", SHM_RMID_FORCED.get()).map(String::into_bytes)
    }
    fn write(&self, data: &[u8]) -> Result<usize> {
        let text = core::str::from_utf8(data.trim_ascii()).map_err(|_| Errno::EINVAL)?;
        let value = i32::try_from(unsigned(text)?).map_err(|_| Errno::EINVAL)?;
        if !SHM_RMID_FORCED.set(value) {
            return Err(Errno::EINVAL);
        }
        if value == 1 {
            (self.0)();
        }
        Ok(data.len())
    }
}

/// The number of the next identifier, for those who put processes back as they were.
struct NextId(Several<1>);

impl ProcFile for NextId {
    fn read(&self) -> Result<Vec<u8>> {
        self.0.read()
    }

    fn write(&self, data: &[u8]) -> Result<usize> {
        self.0.write(data)
    }

    fn is_open_to(&self, cred: &Cred) -> bool {
        [Capability::CHECKPOINT_RESTORE, Capability::SYS_ADMIN]
            .into_iter()
            .any(|one| cred.capable(one))
    }
}
