//! Core files: what is left of a process that a signal ended, for a debugger.
//!
//! [`mod@dump`] is the way: it ends the other threads, which leave their registers behind ([`threads`]), finds out where the
//! core goes ([`name`], from the pattern in [`settings`]; [`target`], a new file or a program's input by [`helper`]), and writes it
//! ([`elf`]: headers, [`notes`], and the memory that [`segments`] chooses) through [`output`], which leaves holes where there is
//! nothing.
//!
//! All runs in the thread that took the signal, with no lock held, and ends when that is told to die. A process that dumps no
//! core pays for none of it.

mod dump;
mod elf;
mod helper;
mod name;
mod notes;
mod output;
mod segments;
mod settings;
mod target;
mod threads;

pub(super) use dump::dump;
pub use settings::SUID_DUMPABLE;
pub(super) use settings::register;
pub(super) use threads::join;
