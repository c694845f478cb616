//! The vDSO: what every process gets from the kernel, so that it need not ask it for the time or for
//! random bytes.
//!
//! Compiled twice. The kernel and the tests use it as a library: the layout of the page of data that the
//! kernel keeps up to date ([`data`]), and the finished image ([`IMAGE`]). The build script compiles it
//! once more with `--cfg alea_vdso_image` and links that to the image, a shared object without
//! relocations, which finds its data in the page before its own first page.
//!
//! The code runs in user mode, on the caller's stack, between any two of its instructions a signal, a
//! fork or another thread: it keeps no state of its own, and what it cannot do it leaves to the system
//! call. It never leaves key material on the stack or in registers. No locks: the page of data is read
//! under a sequence count.
#![no_std]
// Nothing may become a call of memcpy or memset: there is none in the image.
#![cfg_attr(alea_vdso_image, no_builtins)]

pub mod chacha20;
pub mod clock;
pub mod data;
pub mod getrandom;
#[cfg(alea_vdso_image)]
mod image;

/// The image: an ELF file that is mapped as it is, behind the page of data.
#[cfg(not(alea_vdso_image))]
pub static IMAGE: &[u8] = &BYTES.0;

/// Aligned as its vector constants want it. In the kernel it stands among the code, so that [`routines`] can be asked for
/// a known answer before any program uses them.
#[cfg(not(alea_vdso_image))]
#[repr(align(64))]
struct Aligned<const N: usize>([u8; N]);

#[cfg(not(alea_vdso_image))]
#[cfg_attr(target_os = "none", unsafe(link_section = ".text.alea_vdso"))]
static BYTES: Aligned<{ include_bytes!(concat!(env!("OUT_DIR"), "/linux-vdso.so.1")).len() }> =
    Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/linux-vdso.so.1")));

/// Where in the image the loops of keystream.s lie. They take their arguments as [`chacha20`] says.
#[cfg(not(alea_vdso_image))]
pub mod routines {
    include!(concat!(env!("OUT_DIR"), "/routines.rs"));
}
