//! Pipes and fifos: `pipe` is the object and its ends, `ring` the bytes in it, `fifo` how a name leads to one,
//! `limits` what a user may have of them.
#![forbid(unsafe_code)]

mod fifo;
mod limits;
mod pipe;
mod ring;
mod tee;

pub use fifo::init;
pub use limits::register;
pub use pipe::{
    await_readers, discard, is_pipe, new_pair, peek, read_with, set_size, size, wait_for_room,
    write_with,
};
pub use tee::tee;
