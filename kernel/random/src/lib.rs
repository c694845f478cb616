//! The entropy core of the Alea kernel.
#![no_std]
#![forbid(unsafe_code)]
