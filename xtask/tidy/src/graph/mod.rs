//! Which file uses which: read from the source of each (`uses`), then followed to files (`modules`).

mod modules;
mod uses;

pub use modules::{Edge, edges};
