//! Tasks, scheduling, signals, exec.
