//! How many queues there may be, and how large: the files of /proc/sys/fs/mqueue, and RLIMIT_MSGQUEUE of each user.
//!
//! Owns the settings, the number of queues and the users' counts. Never keeps what stands already to a limit that has been
//! lowered since. Locks: a mutex, over the count of a user and the look at his limit; inside it that of `PerUser`.

use crate::base::setting::Setting;
use crate::fs::procfs::register_setting;
use crate::process::current;
use crate::process::task::limits::Resource;
use crate::sync::Mutex;
use crate::vfs::per_user::{Charge, PerUser};
use crate::vfs::{Capability, Cred};
use abi::{Errno, Result};
use core::sync::atomic::{AtomicU32, Ordering};

/// What a queue may have of whoever has CAP_SYS_RESOURCE.
const HARD_MSGMAX: i32 = 65536;
const HARD_MSGSIZEMAX: i32 = 16 << 20;

crate::setting! {
    static QUEUES_MAX = 256, i32::MIN..=i32::MAX;
    /// Messages of a queue, bytes of a message; what a queue has of which nothing is said.
    static MSG_MAX = 10, 1..=HARD_MSGMAX;
    static MSGSIZE_MAX = 8192, 128..=HARD_MSGSIZEMAX;
    static MSG_DEFAULT = 10, 1..=HARD_MSGMAX;
    static MSGSIZE_DEFAULT = 8192, 128..=HARD_MSGSIZEMAX;
}

/// How many there are. Relaxed: a number of its own.
static QUEUES: AtomicU32 = AtomicU32::new(0);

/// Bytes of each user.
static BYTES: PerUser = PerUser::new();

/// Adds the settings to /proc.
pub fn register() -> Result<()> {
    let files: [(&str, &'static dyn Setting); 5] = [
        ("fs/mqueue/queues_max", &QUEUES_MAX),
        ("fs/mqueue/msg_max", &MSG_MAX),
        ("fs/mqueue/msgsize_max", &MSGSIZE_MAX),
        ("fs/mqueue/msg_default", &MSG_DEFAULT),
        ("fs/mqueue/msgsize_default", &MSGSIZE_DEFAULT),
    ];
    files.into_iter().try_for_each(|(path, file)| register_setting(path, file))
}

/// A queue, counted while this lives.
pub struct Number(());

impl Number {
    /// Counts one more: ENOSPC beyond the limit.
    pub fn take(cred: &Cred) -> Result<Self> {
        // Without a sign, as on Linux.
        let most = QUEUES_MAX.get().cast_unsigned();
        let more =
            |now: u32| (now < most || cred.capable(Capability::SYS_RESOURCE)).then(|| now + 1);
        let taken = QUEUES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(|_| Self(())).map_err(|_| Errno::ENOSPC)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        QUEUES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a queue has that was not told: messages, and bytes of each.
pub fn defaults() -> (i64, i64) {
    let most = MSG_MAX.get().min(MSG_DEFAULT.get());
    let size = MSGSIZE_MAX.get().min(MSGSIZE_DEFAULT.get());
    (most.into(), size.into())
}

/// A queue's messages and the bytes of each, as lengths: EINVAL for what the caller may not have.
pub fn check(most: i64, size: i64, cred: &Cred) -> Result<(usize, usize)> {
    let (highest, longest) = match cred.capable(Capability::SYS_RESOURCE) {
        true => (HARD_MSGMAX, HARD_MSGSIZEMAX),
        false => (MSG_MAX.get(), MSGSIZE_MAX.get()),
    };
    if !(1..=highest.into()).contains(&most) || !(1..=longest.into()).contains(&size) {
        return Err(Errno::EINVAL);
    }
    Ok((most as usize, size as usize))
}

/// Charges the user for a queue by Linux's measure, whatever is in it: EMFILE beyond RLIMIT_MSGQUEUE.
pub fn charge(most: usize, size: usize, cred: &Cred) -> Result<Charge> {
    /// What Linux takes for a message beside its bytes, and for each priority that is in use.
    const MESSAGE: u64 = 48;
    const PRIORITY: u64 = 48;
    const PRIORITIES: u64 = 32768;
    static LOOKING: Mutex<()> = Mutex::new(());
    let (most, size) = (most as u64, size as u64);
    // At most 2^16 messages of 2^24 bytes.
    let bytes = most * (MESSAGE + size) + most.min(PRIORITIES) * PRIORITY;
    let limit = current().process().limits().soft(Resource::MsgQueue);
    let mut charge = Charge::new(&BYTES, cred.uid);
    let _looking = LOOKING.lock();
    if charge.set(bytes)? > limit {
        return Err(Errno::EMFILE);
    }
    Ok(charge)
}
