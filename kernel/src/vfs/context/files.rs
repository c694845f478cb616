//! [`Files`]: a task's part in a table of descriptors.
//!
//! Tasks that share a table (`CLONE_FILES`) have a part each. Who looks at the table of another task (/proc/PID/fd,
//! `pidfd_getfd`) refers to it without a part: so it is for the tasks alone to say whether a table is shared, which exec
//! asks, and the last part closes all descriptors, whoever still looks. Owns the count of the parts. Never gives a part away
//! with a reference. Locks: none.
#![forbid(unsafe_code)]

use super::fdtable::FdTable;
use crate::mm::fallible::try_arc;
use abi::Result;
use alloc::sync::Arc;
use core::ops::Deref;
use core::sync::atomic::Ordering;

/// One task's part.
pub struct Files(Arc<FdTable>);

impl Files {
    /// The only part in a table that nobody else has.
    pub fn new(table: FdTable) -> Result<Self> {
        try_arc(table).map(Self)
    }

    /// A part for one more task.
    pub fn share(&self) -> Self {
        // Relaxed: as with any count of references, one is there.
        self.0.parts.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }

    /// Whether another task has a part. One that is just leaving may count.
    pub fn is_shared(&self) -> bool {
        // Relaxed: only who has a part can make another.
        self.0.parts.load(Ordering::Relaxed) != 1
    }

    /// The table, to look at.
    pub fn table(&self) -> &Arc<FdTable> {
        &self.0
    }
}

impl Deref for Files {
    type Target = FdTable;
    #[inline]
    fn deref(&self) -> &FdTable {
        &self.0
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // AcqRel: the last one sees what the others did.
        if self.0.parts.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.close_all();
        }
    }
}
