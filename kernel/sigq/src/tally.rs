//! How many queued signals each user has, for RLIMIT_SIGPENDING.
//!
//! Linux counts per real user of the receiver, over all its processes. [`Tally`] holds the users that have any, and so
//! is as long as there are such users; nothing is searched for but the user. Whoever has it locked uses it.

use alloc::vec::Vec;

/// Why a signal is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The user has as many as it may.
    Limit,
    /// There is no memory to count in.
    NoMemory,
}

#[derive(Clone, Copy)]
struct User {
    uid: u32,
    /// Never 0.
    signals: u64,
}

/// The users with queued signals, and how many they have.
#[derive(Default)]
pub struct Tally {
    users: Vec<User>,
}

impl Tally {
    /// Nobody has any.
    pub const fn new() -> Self {
        Self { users: Vec::new() }
    }

    /// How many a user has.
    pub fn count(&self, uid: u32) -> u64 {
        self.users.iter().find(|user| user.uid == uid).map_or(0, |user| user.signals)
    }

    /// Counts one more for a user that may have `most`.
    ///
    /// # Errors
    /// The user has as many already, or there is no memory; nothing is counted then.
    #[inline]
    pub fn charge(&mut self, uid: u32, most: u64) -> Result<(), Refused> {
        let user = self.users.iter_mut().find(|user| user.uid == uid);
        let signals = user.as_ref().map_or(0, |user| user.signals);
        if signals >= most {
            return Err(Refused::Limit);
        }
        match user {
            Some(user) => user.signals = signals.saturating_add(1),
            None => {
                if self.users.len() == self.users.capacity() {
                    self.make_room()?;
                }
                self.users.push(User { uid, signals: 1 });
            }
        }
        Ok(())
    }

    #[cold]
    fn make_room(&mut self) -> Result<(), Refused> {
        self.users.try_reserve(1).map_err(|_| Refused::NoMemory)
    }

    /// Counts one less; a user of whom nothing is counted stays so.
    pub fn release(&mut self, uid: u32) {
        let Some(at) = self.users.iter().position(|user| user.uid == uid) else { return };
        match self.users.get_mut(at) {
            Some(user) if user.signals > 1 => user.signals -= 1,
            _ => drop(self.users.swap_remove(at)),
        }
    }
}
