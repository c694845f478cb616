//! How a tracee goes on: what PTRACE_CONT and its kin ask for.

/// How it goes on until its next stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    Run = 0,
    /// To the next entry to a system call, or to the end of the one it is in.
    Call,
    /// To the next instruction.
    Step,
    /// To the next entry to a system call, which is then not made.
    Emulate,
    EmulateStep,
    /// To the next branch that is taken, where the CPU can tell.
    Block,
}

impl Mode {
    pub(super) const fn of(raw: u8) -> Self {
        match raw {
            1 => Self::Call,
            2 => Self::Step,
            3 => Self::Emulate,
            4 => Self::EmulateStep,
            5 => Self::Block,
            _ => Self::Run,
        }
    }

    /// Whether its system calls have to be watched.
    pub(super) const fn watches_calls(self) -> bool {
        !matches!(self, Self::Run)
    }

    /// Whether an entry to a system call stops it.
    pub(super) const fn stops_at_entry(self) -> bool {
        matches!(self, Self::Call | Self::Emulate | Self::EmulateStep)
    }

    pub(super) const fn emulates(self) -> bool {
        matches!(self, Self::Emulate | Self::EmulateStep)
    }

    pub(super) const fn steps(self) -> bool {
        matches!(self, Self::Step | Self::EmulateStep | Self::Block)
    }
}

/// A tracer's word that its tracee goes on.
#[derive(Clone, Copy, Debug)]
pub struct Resume {
    pub mode: Mode,
    /// The signal that it gets, by number; 0 for none.
    pub signal: i32,
}

impl Resume {
    /// What becomes of who has no tracer any more.
    pub(super) const FREE: Self = Self { mode: Mode::Run, signal: 0 };
}
