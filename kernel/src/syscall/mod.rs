//! The system-call table and its handlers.
