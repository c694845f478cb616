//! Filling pages in: when they are touched (`fault`), shortly before (`ahead`), by large pages (`large`), or in their place later (`collapse`), and before anybody can touch them (`direct`, for exec).

mod ahead;
pub mod collapse;
mod direct;
pub(super) mod fault;
mod large;
