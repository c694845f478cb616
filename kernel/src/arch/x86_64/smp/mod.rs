//! Several CPUs: starting them (`smp`), reaching them (`ipi`), describing them (`identity`).

pub mod identity;
mod ipi;
mod smp;

pub use ipi::send;
pub(super) use ipi::send_nmi;
pub use smp::{Stacks, Starter, others};
