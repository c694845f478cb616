//! System V IPC: shared memory.

pub mod shm;
