//! System V IPC: shared memory, semaphores, message queues.

pub mod msg;
pub mod sem;
pub mod shm;
