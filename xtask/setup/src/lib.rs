//! What has to be there: packages (`setup`, `apt`), Linux to compare with (`linux`), and what is built (`build`).
//!
//! Nothing here may write outside `target/`, except the packages that `setup` installs through apt.
#![forbid(unsafe_code)]

pub mod apt;
pub mod build;
pub mod commands;
pub mod linux;
pub mod setup;
pub mod tools;
