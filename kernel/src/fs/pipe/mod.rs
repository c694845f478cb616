//! Pipes and fifos: `pipe` has the object and its ends, `ring` the bytes in it, `fifo` the opening by name, `limits` what a
//! user may have of them, `tee` what is copied or moved from pipe to pipe.
#![forbid(unsafe_code)]

mod fifo;
mod limits;
mod pipe;
mod ring;
mod tee;

pub use fifo::init;
pub use limits::register;
pub use pipe::{
    await_readers, is_pipe, new_pair, pass_on, read_with, set_size, size, wait_for_room, write_all,
    write_with,
};
pub use tee::{splice, tee};
