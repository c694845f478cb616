//! Pipes and fifos: `pipe` is the object and its ends, `ring` the bytes in it, `fifo` how a name leads to one.
#![forbid(unsafe_code)]

mod fifo;
mod pipe;
mod ring;
mod tee;

pub use fifo::init;
pub use pipe::{
    discard, is_pipe, new_pair, peek, read_with, set_size, size, wait_for_room, write_with,
};
pub use tee::tee;
