//! Pipes and fifos: `pipe` has the object and its ends, `ring` the bytes in it, `pass` what splices do with them, `fifo` the opening by name, `limits` what a
//! user may have of them, `tee` what is copied or moved from pipe to pipe.
#![forbid(unsafe_code)]

mod fifo;
mod limits;
mod pass;
mod pipe;
mod ring;
mod tee;

pub use fifo::init;
pub use limits::register;
pub use pass::{await_readers, pass_on, wait_for_room, write_all};
pub use pipe::{is_pipe, new_pair, read_with, set_size, size, write_with};
pub use tee::{splice, tee};
