//! The kernel command line, parsed on demand.
#![forbid(unsafe_code)]

mod cmdline;
mod known;
pub mod words;

pub use cmdline::{
    Parameter, flag, init, init_arguments, number, parameters, switch, text, value, values,
};
