//! System V IPC: shared memory, semaphores, message queues; POSIX message queues.

pub mod mqueue;
pub mod msg;
pub mod sem;
pub mod shm;
