//! User memory: one value or slice (`user`), and lists of buffers (`iov`).

pub mod iov;
mod user;

pub use user::{
    UserPtr, UserSlice, cmpxchg_u32, fault_in, in_range, load_u32, peek, read_bytes, read_cstr,
    read_cstr_into, read_extensible, read_partial, read_u32, write_bytes, write_keystream,
    write_partial,
};
