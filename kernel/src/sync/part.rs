//! [`Part`]: a holder's part in something that several share: descriptors, an address space, signal actions.
//!
//! Who looks at what others share (/proc, a signal that is sent) refers to it without a part: so it is for the holders alone to say
//! whether it is shared, and it ends for them with the last part, whoever still looks. Owns the count of the parts. Never gives a
//! part away with a reference. Locks: none.
#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::ops::Deref;
use core::sync::atomic::{AtomicU32, Ordering};

/// How many parts there are.
#[derive(Default)]
pub struct Parts(AtomicU32);

impl Parts {
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }
}

/// What is held in parts.
pub trait Parted {
    fn parts(&self) -> &Parts;

    /// The last part is gone; who still has a reference only looks.
    fn ended(self: &Arc<Self>, _: Ended) {}
}

/// That nobody has a part any more.
pub struct Ended(());

/// One holder's part.
pub struct Part<T: Parted>(Arc<T>);

impl<T: Parted> Part<T> {
    /// The first part, in what nobody holds yet.
    pub fn first(whole: Arc<T>) -> Self {
        // Relaxed: as with any count of references, of which one is there.
        let before = whole.parts().0.fetch_add(1, Ordering::Relaxed);
        assert_eq!(before, 0, "a first part is taken once");
        Self(whole)
    }

    /// A part for one more.
    pub fn share(&self) -> Self {
        // Relaxed: as above.
        self.0.parts().0.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }

    /// Whether another has a part. One that is just leaving may count.
    #[inline]
    pub fn is_shared(&self) -> bool {
        // Acquire: who is alone sees what those who had a part did. Only who has a part can make another.
        self.0.parts().0.load(Ordering::Acquire) != 1
    }

    /// The whole, to look at.
    pub fn whole(&self) -> &Arc<T> {
        &self.0
    }
}

impl<T: Parted> Deref for Part<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Parted> Drop for Part<T> {
    fn drop(&mut self) {
        // AcqRel: the last one sees what the others did.
        if self.0.parts().0.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.ended(Ended(()));
        }
    }
}
