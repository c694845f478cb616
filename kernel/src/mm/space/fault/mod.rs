//! Filling pages in: when they are touched (`fault`), shortly before (`ahead`), and before anybody can touch them (`direct`, for exec).

mod ahead;
mod direct;
pub(super) mod fault;
