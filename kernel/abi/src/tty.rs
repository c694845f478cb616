//! Terminals: ioctl numbers and the structures they pass. The termios layouts are in the tty crate.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const TCGETS: u32 = 0x5401;
pub const TCSETS: u32 = 0x5402;
pub const TCSETSW: u32 = 0x5403;
pub const TCSETSF: u32 = 0x5404;
pub const TCGETA: u32 = 0x5405;
pub const TCSETA: u32 = 0x5406;
pub const TCSETAW: u32 = 0x5407;
pub const TCSETAF: u32 = 0x5408;
pub const TCSBRK: u32 = 0x5409;
pub const TCXONC: u32 = 0x540a;
pub const TCFLSH: u32 = 0x540b;
pub const TIOCEXCL: u32 = 0x540c;
pub const TIOCNXCL: u32 = 0x540d;
pub const TIOCSCTTY: u32 = 0x540e;
pub const TIOCGPGRP: u32 = 0x540f;
pub const TIOCSPGRP: u32 = 0x5410;
pub const TIOCOUTQ: u32 = 0x5411;
pub const TIOCSTI: u32 = 0x5412;
pub const TIOCGWINSZ: u32 = 0x5413;
pub const TIOCSWINSZ: u32 = 0x5414;
pub const TIOCGSOFTCAR: u32 = 0x5419;
pub const TIOCSSOFTCAR: u32 = 0x541a;
pub const FIONREAD: u32 = 0x541b;
pub const TIOCPKT: u32 = 0x5420;
pub const TIOCNOTTY: u32 = 0x5422;
pub const TIOCSETD: u32 = 0x5423;
pub const TIOCGETD: u32 = 0x5424;
pub const TCSBRKP: u32 = 0x5425;
pub const TIOCSBRK: u32 = 0x5427;
pub const TIOCCBRK: u32 = 0x5428;
pub const TIOCGSID: u32 = 0x5429;
pub const TCGETS2: u32 = 0x802c_542a;
pub const TCSETS2: u32 = 0x402c_542b;
pub const TCSETSW2: u32 = 0x402c_542c;
pub const TCSETSF2: u32 = 0x402c_542d;
pub const TIOCGPTN: u32 = 0x8004_5430;
pub const TIOCSPTLCK: u32 = 0x4004_5431;
pub const TIOCGDEV: u32 = 0x8004_5432;
pub const TIOCSIG: u32 = 0x4004_5436;
pub const TIOCVHANGUP: u32 = 0x5437;
pub const TIOCGPKT: u32 = 0x8004_5438;
pub const TIOCGPTLCK: u32 = 0x8004_5439;
pub const TIOCGEXCL: u32 = 0x8004_5440;
pub const TIOCGPTPEER: u32 = 0x5441;

/// Arguments of TCFLSH.
pub const TCIFLUSH: u64 = 0;
pub const TCOFLUSH: u64 = 1;
pub const TCIOFLUSH: u64 = 2;
/// Arguments of TCXONC.
pub const TCOOFF: u64 = 0;
pub const TCOON: u64 = 1;
pub const TCIOFF: u64 = 2;
pub const TCION: u64 = 3;

/// First byte of a read from a pty master in packet mode.
pub const TIOCPKT_DATA: u8 = 0;
pub const TIOCPKT_FLUSHREAD: u8 = 1;
pub const TIOCPKT_FLUSHWRITE: u8 = 2;
pub const TIOCPKT_STOP: u8 = 4;
pub const TIOCPKT_START: u8 = 8;
pub const TIOCPKT_NOSTOP: u8 = 16;
pub const TIOCPKT_DOSTOP: u8 = 32;
pub const TIOCPKT_IOCTL: u8 = 64;

/// `struct winsize`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Winsize {
    pub rows: u16,
    pub cols: u16,
    pub xpixel: u16,
    pub ypixel: u16,
}
