//! File systems and open files.
