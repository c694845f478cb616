//! Pipes and fifos: `pipe` is the object and its ends, `ring` the bytes in it, `fifo` how a name leads to one.
#![forbid(unsafe_code)]

mod fifo;
mod pipe;
mod ring;
mod tee;

pub use fifo::init;
pub use pipe::{
    await_readers, discard, is_pipe, max_size, new_pair, peek, read_with, set_max_size, set_size,
    size, wait_for_room, write_with,
};
pub use tee::tee;
