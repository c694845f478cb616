//! Pipes and fifos: `pipe` is the object and its ends, `ring` the bytes in it, `fifo` how a name leads to one.
#![forbid(unsafe_code)]

mod fifo;
mod pipe;
mod ring;

pub use pipe::{
    discard, init, is_pipe, new_pair, peek, read_with, set_size, size, tee, wait_for_room,
    write_with,
};
