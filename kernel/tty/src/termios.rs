//! Terminal settings: flag words, control characters, and the three layouts user space knows.
//!
//! Owns the in-kernel form ([`Termios`]) and its conversions to `struct termio`, `struct termios`
//! and `struct termios2`. Unknown bits are kept as Linux keeps them. Holds no state of a terminal.

/// Bits of `c_iflag`.
pub mod iflag {
    pub const IGNBRK: u32 = 0x0001;
    pub const BRKINT: u32 = 0x0002;
    pub const IGNPAR: u32 = 0x0004;
    pub const PARMRK: u32 = 0x0008;
    pub const INPCK: u32 = 0x0010;
    pub const ISTRIP: u32 = 0x0020;
    pub const INLCR: u32 = 0x0040;
    pub const IGNCR: u32 = 0x0080;
    pub const ICRNL: u32 = 0x0100;
    pub const IUCLC: u32 = 0x0200;
    pub const IXON: u32 = 0x0400;
    pub const IXANY: u32 = 0x0800;
    pub const IXOFF: u32 = 0x1000;
    pub const IMAXBEL: u32 = 0x2000;
    pub const IUTF8: u32 = 0x4000;
}

/// Bits of `c_oflag`.
pub mod oflag {
    pub const OPOST: u32 = 0x0001;
    pub const OLCUC: u32 = 0x0002;
    pub const ONLCR: u32 = 0x0004;
    pub const OCRNL: u32 = 0x0008;
    pub const ONOCR: u32 = 0x0010;
    pub const ONLRET: u32 = 0x0020;
    pub const TABDLY: u32 = 0x1800;
    pub const XTABS: u32 = 0x1800;
}

/// Bits of `c_cflag`.
pub mod cflag {
    pub const CBAUD: u32 = 0x100f;
    pub const BOTHER: u32 = 0x1000;
    pub const CBAUDEX: u32 = 0x1000;
    pub const B0: u32 = 0;
    pub const B9600: u32 = 13;
    pub const B38400: u32 = 15;
    pub const B115200: u32 = 0x1002;
    pub const CSIZE: u32 = 0x0030;
    pub const CS8: u32 = 0x0030;
    pub const CSTOPB: u32 = 0x0040;
    pub const CREAD: u32 = 0x0080;
    pub const PARENB: u32 = 0x0100;
    pub const PARODD: u32 = 0x0200;
    pub const HUPCL: u32 = 0x0400;
    pub const CLOCAL: u32 = 0x0800;
    /// How far `c_cflag` holds the input speed.
    pub const IBSHIFT: u32 = 16;
}

/// Bits of `c_lflag`.
pub mod lflag {
    pub const ISIG: u32 = 0x0001;
    pub const ICANON: u32 = 0x0002;
    pub const ECHO: u32 = 0x0008;
    pub const ECHOE: u32 = 0x0010;
    pub const ECHOK: u32 = 0x0020;
    pub const ECHONL: u32 = 0x0040;
    pub const NOFLSH: u32 = 0x0080;
    pub const TOSTOP: u32 = 0x0100;
    pub const ECHOCTL: u32 = 0x0200;
    pub const ECHOPRT: u32 = 0x0400;
    pub const ECHOKE: u32 = 0x0800;
    pub const IEXTEN: u32 = 0x8000;
    pub const EXTPROC: u32 = 0x1_0000;
}

/// Indices into `c_cc`.
pub mod cc {
    pub const VINTR: usize = 0;
    pub const VQUIT: usize = 1;
    pub const VERASE: usize = 2;
    pub const VKILL: usize = 3;
    pub const VEOF: usize = 4;
    pub const VTIME: usize = 5;
    pub const VMIN: usize = 6;
    pub const VSTART: usize = 8;
    pub const VSTOP: usize = 9;
    pub const VSUSP: usize = 10;
    pub const VEOL: usize = 11;
    pub const VREPRINT: usize = 12;
    pub const VDISCARD: usize = 13;
    pub const VWERASE: usize = 14;
    pub const VLNEXT: usize = 15;
    pub const VEOL2: usize = 16;
}

/// How many control characters the kernel keeps.
pub const NCCS: usize = 19;

/// Speeds by their `Bnnn` number: the plain ones, then those with CBAUDEX.
const SPEEDS: [u32; 31] = [
    0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200, 38400, 57600,
    115_200, 230_400, 460_800, 500_000, 576_000, 921_600, 1_000_000, 1_152_000, 1_500_000,
    2_000_000, 2_500_000, 3_000_000, 3_500_000, 4_000_000,
];

/// The settings of one terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Termios {
    pub iflag: u32,
    pub oflag: u32,
    pub cflag: u32,
    pub lflag: u32,
    pub line: u8,
    pub cc: [u8; NCCS],
    pub ispeed: u32,
    pub ospeed: u32,
}

impl Default for Termios {
    fn default() -> Self {
        Self::STANDARD
    }
}

impl Termios {
    /// What Linux gives a terminal nobody has configured (`stty sane`, nearly).
    pub const STANDARD: Self = Self {
        iflag: iflag::ICRNL | iflag::IXON,
        oflag: oflag::OPOST | oflag::ONLCR,
        cflag: cflag::B38400 | cflag::CS8 | cflag::CREAD | cflag::HUPCL,
        lflag: lflag::ISIG
            | lflag::ICANON
            | lflag::ECHO
            | lflag::ECHOE
            | lflag::ECHOK
            | lflag::ECHOCTL
            | lflag::ECHOKE
            | lflag::IEXTEN,
        line: 0,
        cc: [3, 0x1c, 0x7f, 0x15, 4, 0, 1, 0, 0x11, 0x13, 0x1a, 0, 0x12, 0x0f, 0x17, 0x16, 0, 0, 0],
        ispeed: 38400,
        ospeed: 38400,
    };

    /// Whether any of the bits is set in `c_iflag`.
    #[inline]
    pub const fn input(&self, bits: u32) -> bool {
        self.iflag & bits != 0
    }

    /// Whether any of the bits is set in `c_oflag`.
    #[inline]
    pub const fn output(&self, bits: u32) -> bool {
        self.oflag & bits != 0
    }

    /// Whether any of the bits is set in `c_lflag`.
    #[inline]
    pub const fn local(&self, bits: u32) -> bool {
        self.lflag & bits != 0
    }

    /// Replaces everything a `struct termios` holds; speeds follow `c_cflag`.
    pub fn set_from_termios(&mut self, user: &UserTermios) {
        self.set_words(user.iflag, user.oflag, user.cflag, user.lflag, user.line, &user.cc);
        self.settle_speeds();
    }

    /// Replaces everything, explicit speeds included (they count only with BOTHER).
    pub fn set_from_termios2(&mut self, user: &UserTermios2) {
        self.set_words(user.iflag, user.oflag, user.cflag, user.lflag, user.line, &user.cc);
        self.ispeed = user.ispeed;
        self.ospeed = user.ospeed;
        self.settle_speeds();
    }

    /// Replaces what the System V structure holds: the low halves and eight control characters.
    pub fn set_from_termio(&mut self, user: &Termio) {
        let low = |old: u32, new: u16| (old & 0xffff_0000) | u32::from(new);
        self.iflag = low(self.iflag, user.iflag);
        self.oflag = low(self.oflag, user.oflag);
        self.cflag = low(self.cflag, user.cflag);
        self.lflag = low(self.lflag, user.lflag);
        self.line = user.line;
        self.cc[..8].copy_from_slice(&user.cc);
        self.settle_speeds();
    }

    /// The settings as `struct termios`.
    pub fn to_termios(&self) -> UserTermios {
        UserTermios {
            iflag: self.iflag,
            oflag: self.oflag,
            cflag: self.cflag,
            lflag: self.lflag,
            line: self.line,
            cc: self.cc,
        }
    }

    /// The settings as `struct termios2`.
    pub fn to_termios2(&self) -> UserTermios2 {
        UserTermios2 {
            iflag: self.iflag,
            oflag: self.oflag,
            cflag: self.cflag,
            lflag: self.lflag,
            line: self.line,
            cc: self.cc,
            ispeed: self.ispeed,
            ospeed: self.ospeed,
        }
    }

    /// The settings as `struct termio`; high halves are lost, as on Linux.
    pub fn to_termio(&self) -> Termio {
        let mut cc = [0; 8];
        cc.copy_from_slice(&self.cc[..8]);
        Termio {
            iflag: (self.iflag & 0xffff) as u16,
            oflag: (self.oflag & 0xffff) as u16,
            cflag: (self.cflag & 0xffff) as u16,
            lflag: (self.lflag & 0xffff) as u16,
            line: self.line,
            cc,
        }
    }

    fn set_words(&mut self, i: u32, o: u32, c: u32, l: u32, line: u8, cc: &[u8; NCCS]) {
        (self.iflag, self.oflag, self.cflag, self.lflag) = (i, o, c, l);
        self.line = line;
        self.cc = *cc;
    }

    /// Loads the speed fields from the `Bnnn` codes, unless BOTHER says they are given directly.
    fn settle_speeds(&mut self) {
        let output = coded_speed(self.cflag).unwrap_or(self.ospeed);
        let input_code = (self.cflag >> cflag::IBSHIFT) & cflag::CBAUD;
        let input = match input_code {
            cflag::B0 => output,
            code => coded_speed(code).unwrap_or(self.ispeed),
        };
        (self.ispeed, self.ospeed) = (input, output);
    }
}

/// The speed a `Bnnn` code stands for; `None` when it is BOTHER.
fn coded_speed(flags: u32) -> Option<u32> {
    let code = flags & cflag::CBAUD;
    if code == cflag::BOTHER {
        return None;
    }
    let index = if code & cflag::CBAUDEX != 0 { (code & 0xf) + 15 } else { code };
    Some(SPEEDS.get(index as usize).copied().unwrap_or(0))
}

/// `struct termios` as TCGETS and TCSETS pass it: 36 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct UserTermios {
    pub iflag: u32,
    pub oflag: u32,
    pub cflag: u32,
    pub lflag: u32,
    pub line: u8,
    pub cc: [u8; NCCS],
}

/// `struct termios2` as TCGETS2 and TCSETS2 pass it: 44 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct UserTermios2 {
    pub iflag: u32,
    pub oflag: u32,
    pub cflag: u32,
    pub lflag: u32,
    pub line: u8,
    pub cc: [u8; NCCS],
    pub ispeed: u32,
    pub ospeed: u32,
}

/// `struct termio` as TCGETA and TCSETA pass it: 17 bytes and one of padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Termio {
    pub iflag: u16,
    pub oflag: u16,
    pub cflag: u16,
    pub lflag: u16,
    pub line: u8,
    pub cc: [u8; 8],
}

/// Reads little-endian words off a byte array, front to back.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.0 = rest;
                *head
            }
            None => [0; N],
        }
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.bytes())
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.bytes())
    }
}

impl UserTermios {
    /// Size in user memory.
    pub const SIZE: usize = 36;

    /// Decodes the user's bytes.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let mut w = Words(bytes);
        Self {
            iflag: w.u32(),
            oflag: w.u32(),
            cflag: w.u32(),
            lflag: w.u32(),
            line: w.bytes::<1>()[0],
            cc: w.bytes(),
        }
    }

    /// Encodes for the user.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut out = [0; Self::SIZE];
        encode_words(&mut out, &[self.iflag, self.oflag, self.cflag, self.lflag]);
        out[16] = self.line;
        out[17..].copy_from_slice(&self.cc);
        out
    }
}

impl UserTermios2 {
    /// Size in user memory.
    pub const SIZE: usize = 44;

    /// Decodes the user's bytes.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let mut w = Words(bytes);
        Self {
            iflag: w.u32(),
            oflag: w.u32(),
            cflag: w.u32(),
            lflag: w.u32(),
            line: w.bytes::<1>()[0],
            cc: w.bytes(),
            ispeed: w.u32(),
            ospeed: w.u32(),
        }
    }

    /// Encodes for the user.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut out = [0; Self::SIZE];
        encode_words(&mut out, &[self.iflag, self.oflag, self.cflag, self.lflag]);
        out[16] = self.line;
        out[17..36].copy_from_slice(&self.cc);
        encode_words(&mut out[36..], &[self.ispeed, self.ospeed]);
        out
    }
}

impl Termio {
    /// Size in user memory, padding included.
    pub const SIZE: usize = 18;

    /// Decodes the user's bytes.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let mut w = Words(bytes);
        Self {
            iflag: w.u16(),
            oflag: w.u16(),
            cflag: w.u16(),
            lflag: w.u16(),
            line: w.bytes::<1>()[0],
            cc: w.bytes(),
        }
    }

    /// Encodes for the user.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut out = [0; Self::SIZE];
        let words = [self.iflag, self.oflag, self.cflag, self.lflag];
        for (slot, word) in out.chunks_exact_mut(2).zip(words) {
            slot.copy_from_slice(&word.to_ne_bytes());
        }
        out[8] = self.line;
        out[9..17].copy_from_slice(&self.cc);
        out
    }
}

fn encode_words(out: &mut [u8], words: &[u32]) {
    for (slot, word) in out.chunks_exact_mut(4).zip(words) {
        slot.copy_from_slice(&word.to_ne_bytes());
    }
}
