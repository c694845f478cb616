//! The list of the places whose code is chosen at boot.
//!
//! Owns how a place is told, and what each may hold. Never writes: `boot::sites` does. Locks: none.

/// What a CPU may need at a place. The numbers are those of `site`'s macros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::arch) enum Need {
    /// The window to user memory, opened and closed.
    Smap,
    /// A fence behind SWAPGS, on the way from user mode.
    FenceUser,
    /// A fence where there is no SWAPGS.
    FenceKernel,
    /// The CPU's buffers cleared on the way to user mode.
    Clear,
    /// The return stack filled on a switch between tasks.
    Fill,
    /// The history of branches cleared on the way into a system call.
    History,
    /// Another table on the way into the kernel and out of it.
    Isolation,
}

impl Need {
    pub(in crate::arch) const COUNT: usize = 7;

    fn of(number: u8) -> Self {
        match number {
            0 => Self::Smap,
            1 => Self::FenceUser,
            2 => Self::FenceKernel,
            3 => Self::Clear,
            4 => Self::Fill,
            5 => Self::History,
            6 => Self::Isolation,
            _ => panic!("a place of code names need {number}"),
        }
    }
}

/// A place, as the assembler lists it.
#[repr(C)]
pub(in crate::arch) struct Site {
    /// How far from this word the code begins.
    at: i32,
    /// How far from this word the code is to which the place may jump; 0: it may become no-ops.
    to: i32,
    need: u8,
    len: u8,
    _pad: u16,
}

/// The longest place.
const LONGEST: usize = 16;

/// No-ops of each length, those that Intel recommends.
const NOPS: [&[u8]; 9] = [
    &[],
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

unsafe extern "C" {
    static __code_sites_start: Site;
    static __code_sites_end: Site;
}

/// All places.
pub(in crate::arch) fn all() -> &'static [Site] {
    // SAFETY: the linker script puts both symbols around an array of `Site` in read-only data.
    unsafe {
        let start = &raw const __code_sites_start;
        let len = (&raw const __code_sites_end as usize - start as usize) / size_of::<Site>();
        core::slice::from_raw_parts(start, len)
    }
}

impl Site {
    pub(in crate::arch) fn need(&self) -> Need {
        Need::of(self.need)
    }

    pub(in crate::arch) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Where the code begins.
    pub(in crate::arch) fn address(&self) -> u64 {
        (&raw const self.at as u64).wrapping_add_signed(self.at.into())
    }

    /// Whether it holds what the CPU that needs it runs, and not what the others do.
    fn holds_needed(&self) -> bool {
        self.to == 0
    }

    /// What is to be written there; `None` if what the assembler left is right.
    pub(in crate::arch) fn change(&self, needed: bool) -> Option<[u8; LONGEST]> {
        if needed == self.holds_needed() {
            return None;
        }
        let mut code = [0xcc; LONGEST];
        let (mut rest, _) = code.split_at_mut(self.len());
        if needed {
            let to = (&raw const self.to as u64).wrapping_add_signed(self.to.into());
            let distance = to.wrapping_sub(self.address() + 5) as u32;
            rest[0] = 0xe9;
            rest[1..5].copy_from_slice(&distance.to_le_bytes());
            return Some(code);
        }
        while !rest.is_empty() {
            let no_op = NOPS[rest.len().min(NOPS.len() - 1)];
            let (head, tail) = rest.split_at_mut(no_op.len());
            head.copy_from_slice(no_op);
            rest = tail;
        }
        Some(code)
    }
}
