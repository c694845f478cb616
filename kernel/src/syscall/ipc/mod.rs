//! System V IPC: shared memory and semaphores.

pub mod sem;
pub mod shm;
