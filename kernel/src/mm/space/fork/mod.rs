//! The copy of an address space (`fork`), and what earlier runs of a program teach about it (`known`).
//!
//! docs/memory.md says what is remembered, when it is noted, used and forgotten.

mod fork;
mod known;
