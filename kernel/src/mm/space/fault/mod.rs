//! Filling pages in: when they are touched (`fault`), and before anybody can touch them (`direct`, for exec).

mod direct;
pub(super) mod fault;
