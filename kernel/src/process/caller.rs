//! What the entropy service, three floors down, may ask about the running task.

use super::{cond_resched, current, signal};
use crate::fs::Capability;
use crate::random::Caller;

/// Answers for whichever task runs.
pub(super) struct RunningTask;

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
