//! [`Abilities`]: what only some open files can do, which is refused of the others as Linux refuses it.
//!
//! Owns nothing. Locks: none.

use bitflags::bitflags;

bitflags! {
    /// What a kind of open file can do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Abilities: u32 {
        /// It may be opened with O_DIRECT, or get it later.
        const DIRECT = 1;
        /// Its owner can be told of what happens to it: O_ASYNC.
        const TELLS = 2;
        /// Its contents go into pipes: splice, sendfile.
        const SPLICES = 4;
    }
}
