//! Spectre v2 and speculative store bypass: what is switched on for good, and what for a task that asks.
//!
//! Owns Linux 6.12's choices (`spectre_v2_select_mitigation`, `spectre_v2_user_select_mitigation`, `ssb_select_mitigation` in
//! `arch/x86/kernel/cpu/bugs.c`) as far as this kernel can carry them out: it has no retpolines, so whoever asks for them gets
//! what the CPU does by itself. Never writes a register: it gives the value.

use crate::choose::Asked;
use crate::flaws::{Facts, Flaws};

/// Bits of IA32_SPEC_CTRL.
pub mod spec_ctrl {
    pub const IBRS: u64 = 1 << 0;
    pub const STIBP: u64 = 1 << 1;
    pub const SSBD: u64 = 1 << 2;
    pub const BHI_DIS_S: u64 = 1 << 10;
}

/// Indirect branches of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kernel {
    /// Predicted by whatever programs have taught the CPU.
    #[default]
    Open,
    /// By IBRS, which the CPU holds for good once it is on: Intel's, by SPEC_CTRL.
    Enhanced,
    /// The same of AMD's, by EFER.
    Automatic,
}

/// For whom something is done in user mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Users {
    #[default]
    Nobody,
    /// All.
    All,
    /// All, since the CPU likes it better so.
    AllPreferred,
    /// Who asks by prctl.
    Asking,
    /// And who has a filter of system calls.
    AskingOrFiltered,
}

impl Users {
    fn is_for_all(self) -> bool {
        matches!(self, Self::All | Self::AllPreferred)
    }

    pub(crate) fn is_for_asking(self) -> bool {
        matches!(self, Self::Asking | Self::AskingOrFiltered)
    }
}

/// What is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predictors {
    pub kernel: Kernel,
    /// A barrier on a switch between address spaces.
    pub barrier: Users,
    /// The other thread of a core has no say.
    pub single: Users,
    /// Stores are not bypassed.
    pub in_order: Users,
    /// Whether there is a register by which that is had.
    pub has_register: bool,
    /// Branches of the kernel do not depend on the history of programs'.
    pub no_history: bool,
    /// The same by filling the history, on the way into each system call.
    pub clears_history: bool,
    /// What IA32_SPEC_CTRL is for every task.
    pub base: u64,
}

impl Predictors {
    pub(crate) fn choose(cpu: &Facts, flaws: &Flaws, asked: &Asked<'_>) -> Self {
        let mut found = Self { has_register: cpu.has_spec_ctrl(), ..Self::default() };
        let off = asked.spectre_v2_is_off();
        let forced = !off && asked.spectre_v2 == Some("on");
        if !off && (flaws.spectre_v2 || forced) {
            found.choose_kernel(cpu, flaws, asked);
        }
        found.choose_users(cpu, off, forced, asked);
        found.choose_stores(cpu, flaws, asked);
        found
    }

    fn choose_kernel(&mut self, cpu: &Facts, flaws: &Flaws, asked: &Asked<'_>) {
        if cpu.has_automatic_ibrs() {
            self.kernel = Kernel::Automatic;
        } else if cpu.has_enhanced_ibrs() {
            self.kernel = Kernel::Enhanced;
            self.base |= spec_ctrl::IBRS;
        }
        // `vmexit`: only where guests leave, of which there are none.
        let only_guests = matches!(asked.spectre_bhi, Some("off" | "vmexit"));
        if flaws.bhi && cpu.has_bhi_control() && !only_guests {
            self.no_history = true;
            self.base |= spec_ctrl::BHI_DIS_S;
        } else {
            // Of use only where branches are not open anyway.
            self.clears_history = flaws.bhi && !only_guests && self.kernel != Kernel::Open;
        }
    }

    fn choose_users(&mut self, cpu: &Facts, off: bool, forced: bool, asked: &Asked<'_>) {
        // What is asked for, and whether the barrier is for all whatever that is.
        let (mode, always) = match asked.spectre_v2_user {
            _ if off => return,
            _ if forced => (Users::All, true),
            Some("off") => return,
            Some("on") => (Users::All, true),
            Some("prctl,ibpb") => (Users::Asking, true),
            Some("seccomp") => (Users::AskingOrFiltered, false),
            Some("seccomp,ibpb") => (Users::AskingOrFiltered, true),
            _ => (Users::Asking, false),
        };
        if cpu.has_ibpb() {
            self.barrier = if always { Users::All } else { mode };
        }
        if !cpu.has_stibp() || !cpu.threads || self.kernel == Kernel::Enhanced {
            return;
        }
        self.single = match mode {
            Users::All => Users::All,
            _ if cpu.prefers_stibp_always() => Users::AllPreferred,
            mode => mode,
        };
        if self.single.is_for_all() {
            self.base |= spec_ctrl::STIBP;
        }
    }

    fn choose_stores(&mut self, cpu: &Facts, flaws: &Flaws, asked: &Asked<'_>) {
        let off = asked.nothing() || asked.nospec_store_bypass_disable;
        let wanted = if off { Some("off") } else { asked.spec_store_bypass_disable };
        let wanted = match wanted {
            Some("on") => Users::All,
            Some("off") => return,
            Some("prctl") => Users::Asking,
            Some("seccomp") => Users::AskingOrFiltered,
            _ if !flaws.ssb => return,
            _ => Users::Asking,
        };
        if cpu.has_ssbd() {
            self.in_order = wanted;
        }
        if self.in_order == Users::All {
            self.base |= spec_ctrl::SSBD;
        }
    }

    /// What the register is while a task runs that has chosen so.
    pub fn value(&self, choice: Choice) -> u64 {
        let mut value = self.base;
        if self.in_order.is_for_asking() && choice.has(Choice::STORES) {
            value |= spec_ctrl::SSBD;
        }
        if self.single.is_for_asking() && choice.has(Choice::BRANCHES) {
            value |= spec_ctrl::STIBP;
        }
        value
    }

    /// Whether the register changes with tasks.
    pub fn changes_with_tasks(&self) -> bool {
        self.in_order.is_for_asking() || self.single.is_for_asking()
    }

    /// Whether a switch between address spaces may want a barrier.
    pub fn may_part(&self) -> bool {
        self.barrier != Users::Nobody
    }

    /// Whether a switch from the address space of one who has chosen so to that of the other wants a barrier.
    pub fn parts(&self, one: Choice, other: Choice) -> bool {
        match self.barrier {
            Users::Nobody => false,
            Users::All | Users::AllPreferred => true,
            _ => one.has(Choice::BRANCHES) || other.has(Choice::BRANCHES),
        }
    }

    fn branches_are_asked_for(&self) -> bool {
        self.barrier.is_for_asking() || self.single.is_for_asking()
    }

    fn branches_are_nobodys(&self) -> bool {
        self.barrier == Users::Nobody && self.single == Users::Nobody
    }

    /// Whether a task that changes its choice so is parted from what its CPU has predicted so far.
    pub fn wants_barrier_at_once(&self, old: Choice, new: Choice) -> bool {
        self.may_part() && new.has(Choice::BRANCHES) && !old.has(Choice::BRANCHES)
    }

    /// `PR_GET_SPECULATION_CTRL`: the answer for a task that has chosen so.
    ///
    /// # Errors
    /// [`Refusal::Unknown`].
    pub fn get(&self, flaws: &Flaws, choice: Choice, which: u64) -> Result<u64, Refusal> {
        match which {
            which::STORE_BYPASS => Ok(match self.in_order {
                Users::Nobody if flaws.ssb => answer::ENABLE,
                Users::Nobody => answer::NOT_AFFECTED,
                mode if mode.is_for_all() => answer::DISABLE,
                _ if choice.has(Choice::STORES_FORCED) => answer::PRCTL | answer::FORCE_DISABLE,
                _ if choice.has(Choice::STORES_NOEXEC) => answer::PRCTL | answer::DISABLE_NOEXEC,
                _ if choice.has(Choice::STORES) => answer::PRCTL | answer::DISABLE,
                _ => answer::PRCTL | answer::ENABLE,
            }),
            which::INDIRECT_BRANCH => Ok(if !flaws.spectre_v2 {
                answer::NOT_AFFECTED
            } else if self.branches_are_nobodys() {
                answer::ENABLE
            } else if !self.branches_are_asked_for() {
                answer::DISABLE
            } else if choice.has(Choice::BRANCHES_FORCED) {
                answer::PRCTL | answer::FORCE_DISABLE
            } else if choice.has(Choice::BRANCHES) {
                answer::PRCTL | answer::DISABLE
            } else {
                answer::PRCTL | answer::ENABLE
            }),
            // A flush of the first cache on switches: never offered, as on Linux without `l1d_flush=on`.
            which::L1D_FLUSH => Ok(answer::FORCE_DISABLE),
            _ => Err(Refusal::Unknown),
        }
    }

    /// `PR_SET_SPECULATION_CTRL`: what a task has chosen then.
    ///
    /// # Errors
    /// As Linux: [`Refusal`].
    pub fn set(&self, choice: Choice, which: u64, wanted: u64) -> Result<Choice, Refusal> {
        match which {
            which::STORE_BYPASS => self.set_stores(choice, wanted),
            which::INDIRECT_BRANCH => self.set_branches(choice, wanted),
            which::L1D_FLUSH => Err(Refusal::Forbidden),
            _ => Err(Refusal::Unknown),
        }
    }

    fn set_stores(&self, choice: Choice, wanted: u64) -> Result<Choice, Refusal> {
        if !self.in_order.is_for_asking() {
            return Err(Refusal::NotHere);
        }
        let forced = choice.has(Choice::STORES_FORCED);
        let kept = choice.without(Choice::STORES_NOEXEC);
        match wanted {
            answer::ENABLE | answer::DISABLE_NOEXEC if forced => Err(Refusal::Forbidden),
            answer::ENABLE => Ok(kept.without(Choice::STORES)),
            answer::DISABLE => Ok(kept.with(Choice::STORES)),
            answer::FORCE_DISABLE => Ok(kept.with(Choice::STORES | Choice::STORES_FORCED)),
            answer::DISABLE_NOEXEC => Ok(kept.with(Choice::STORES | Choice::STORES_NOEXEC)),
            _ => Err(Refusal::OutOfRange),
        }
    }

    fn set_branches(&self, choice: Choice, wanted: u64) -> Result<Choice, Refusal> {
        match wanted {
            answer::ENABLE if self.branches_are_nobodys() => Ok(choice),
            answer::ENABLE
                if !self.branches_are_asked_for() || choice.has(Choice::BRANCHES_FORCED) =>
            {
                Err(Refusal::Forbidden)
            }
            answer::ENABLE => Ok(choice.without(Choice::BRANCHES)),
            answer::DISABLE | answer::FORCE_DISABLE if self.branches_are_nobodys() => {
                Err(Refusal::Forbidden)
            }
            answer::DISABLE | answer::FORCE_DISABLE if !self.branches_are_asked_for() => Ok(choice),
            answer::DISABLE => Ok(choice.with(Choice::BRANCHES)),
            answer::FORCE_DISABLE => Ok(choice.with(Choice::BRANCHES | Choice::BRANCHES_FORCED)),
            _ => Err(Refusal::OutOfRange),
        }
    }

    /// What a task has chosen that gets a filter of system calls.
    pub fn filtered(&self, mut choice: Choice) -> Choice {
        if self.in_order == Users::AskingOrFiltered {
            choice = choice.with(Choice::STORES | Choice::STORES_FORCED);
        }
        if self.barrier == Users::AskingOrFiltered || self.single == Users::AskingOrFiltered {
            choice = choice.with(Choice::BRANCHES | Choice::BRANCHES_FORCED);
        }
        choice
    }
}

/// What a task has chosen, by bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice(pub u8);

impl Choice {
    /// Its stores are not bypassed.
    pub const STORES: u8 = 1 << 0;
    /// And it cannot take that back.
    pub const STORES_FORCED: u8 = 1 << 1;
    /// And what it executes begins without.
    pub const STORES_NOEXEC: u8 = 1 << 2;
    /// Its indirect branches are its own.
    pub const BRANCHES: u8 = 1 << 3;
    /// And it cannot take that back.
    pub const BRANCHES_FORCED: u8 = 1 << 4;

    pub fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    fn with(self, bits: u8) -> Self {
        Self(self.0 | bits)
    }

    fn without(self, bits: u8) -> Self {
        Self(self.0 & !bits)
    }

    /// What is left of it in a new program.
    pub fn executed(self) -> Self {
        if self.has(Self::STORES_NOEXEC) {
            self.without(Self::STORES | Self::STORES_NOEXEC)
        } else {
            self
        }
    }
}

/// What the prctls are asked about.
pub mod which {
    pub const STORE_BYPASS: u64 = 0;
    pub const INDIRECT_BRANCH: u64 = 1;
    pub const L1D_FLUSH: u64 = 2;
}

/// What they say, and are told.
pub mod answer {
    pub const NOT_AFFECTED: u64 = 0;
    /// The task may choose.
    pub const PRCTL: u64 = 1 << 0;
    pub const ENABLE: u64 = 1 << 1;
    pub const DISABLE: u64 = 1 << 2;
    pub const FORCE_DISABLE: u64 = 1 << 3;
    pub const DISABLE_NOEXEC: u64 = 1 << 4;
}

/// Why nothing was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `ENODEV`: nothing of that name.
    Unknown,
    /// `ENXIO`: the CPU cannot, or the machine was told not to.
    NotHere,
    /// `ERANGE`
    OutOfRange,
    /// `EPERM`
    Forbidden,
}
