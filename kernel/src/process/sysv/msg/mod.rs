//! Message queues: from msgget to IPC_RMID (`queue`), msgsnd and msgrcv (`transfer`), msgctl (`control`).

mod control;
mod queue;
mod transfer;

pub use control::{info, limits, remove, set, stat};
pub use queue::{Message, for_each, get};
pub use transfer::{Receive, most_bytes, receive, send};
