//! Exec phases and counters.
