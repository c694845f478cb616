//! [`Phase`]: what of an exec is measured, and what beside it, with the names that /proc shows.

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    CloseCloexecCmdline,
    AddressSpace,
    ElfLoad,
    Random,
    Prefault,
    Stack,
    Switch,
    Other,
    Fork,
    Exit,
    Wait,
}

pub(super) const PHASES: usize = 11;
/// Those before this are parts of an exec.
pub(super) const EXEC_PHASES: usize = Phase::Fork as usize;
pub(super) const NAMES: [&str; PHASES] = [
    "close_cloexec_cmdline",
    "address_space",
    "elf_load",
    "random",
    "prefault",
    "stack",
    "switch",
    "other",
    "fork",
    "exit",
    "wait",
];
impl Phase {
    /// The name of the phase with this number.
    pub(super) fn name(number: u8) -> Option<&'static str> {
        NAMES.get(usize::from(number)).copied()
    }
}
