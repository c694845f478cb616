//! What the entropy service, three floors down, may ask about the running task.

use super::current::current;
use crate::process::sched::cond_resched;
use crate::process::signal;
use crate::random::Caller;
use crate::vfs::Capability;

/// Answers for whichever task runs.
pub(in crate::process) struct RunningTask;

impl Caller for RunningTask {
    fn is_admin(&self) -> bool {
        current().cred().capable(Capability::SYS_ADMIN)
    }

    fn name(&self) -> [u8; 16] {
        current().comm()
    }

    fn pause(&self) -> bool {
        cond_resched();
        signal::pending(&current())
    }
}
