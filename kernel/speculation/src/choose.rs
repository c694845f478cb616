//! What is done against the flaws of a CPU, by what the command line asks for.
//!
//! Owns Linux 6.12's choices (`cpu_select_mitigations` in `arch/x86/kernel/cpu/bugs.c`) as far as this kernel can carry them out.
//! Never switches anything: who asks does.

use crate::flaws::{Facts, Flaws, capability};
use crate::predictors::{Kernel, Predictors};

/// The words of the command line that choose: the value of each, the last one of a name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    pub mitigations: Option<&'a str>,
    pub nospectre_v1: bool,
    /// `on`, `off` or `auto`; `nopti` says `off`.
    pub pti: Option<&'a str>,
    pub mds: Option<&'a str>,
    pub tsx_async_abort: Option<&'a str>,
    pub mmio_stale_data: Option<&'a str>,
    pub reg_file_data_sampling: Option<&'a str>,
    pub tsa: Option<&'a str>,
    pub nospectre_v2: bool,
    pub spectre_v2: Option<&'a str>,
    pub spectre_v2_user: Option<&'a str>,
    pub spectre_bhi: Option<&'a str>,
    pub nospec_store_bypass_disable: bool,
    pub spec_store_bypass_disable: Option<&'a str>,
}

const OFF: Option<&str> = Some("off");

impl Asked<'_> {
    /// Nothing is to be done.
    pub fn nothing(&self) -> bool {
        self.mitigations == OFF
    }

    /// Nothing is to be done against Spectre v2.
    pub(crate) fn spectre_v2_is_off(&self) -> bool {
        self.nothing() || self.nospectre_v2 || self.spectre_v2 == OFF
    }
}

/// What is done against a flaw that leaves data in the CPU's buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffers {
    #[default]
    Kept,
    /// Cleared before user mode.
    Cleared,
    /// The same is done, or for some would be, on a CPU whose microcode does not say that it helps.
    Attempted,
}

/// What the kernel does against the flaws of the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub mds: Buffers,
    pub taa: Buffers,
    pub mmio: Buffers,
    pub rfds: Buffers,
    pub tsa: Tsa,
    /// VERW before each return to user mode.
    pub clears: bool,
    /// And before each halt.
    pub clears_when_idle: bool,
    /// Meltdown: programs run on tables of their own, which map next to nothing of the kernel.
    pub isolates: bool,
    /// Spectre v1: the barriers after SWAPGS are there, where the two below say that the CPU wants them.
    pub spectre_v1: bool,
    /// LFENCE on the way from user mode, after SWAPGS.
    pub fences_user: bool,
    /// LFENCE on the way without SWAPGS.
    pub fences_kernel: bool,
    pub predictors: Predictors,
    /// The return stack is filled on a switch between tasks.
    pub fills: bool,
}

/// Against transient scheduler attacks there is more to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tsa {
    #[default]
    Nothing,
    /// Nothing helps: the microcode is too old.
    NoMicrocode,
    Full,
    /// `tsa=user`.
    User,
    /// `tsa=vm`: of a kernel that runs guests.
    Vm,
}

impl Done {
    /// As Linux 6.12 chooses.
    pub fn choose(cpu: &Facts, asked: &Asked<'_>) -> Self {
        if asked.nothing() {
            return Self::default();
        }
        let flaws = &Flaws::of(cpu);
        let mut done = Self::default();
        done.choose_buffers(cpu, flaws, asked);
        done.choose_tsa(cpu, flaws, asked);
        done.isolates = match asked.pti {
            Some("on") => true,
            Some("off") => false,
            _ => flaws.meltdown,
        };
        done.choose_fences(cpu, flaws, asked);
        done.predictors = Predictors::choose(cpu, flaws, asked);
        // Linux fills on every CPU whose kernel it guards by retpolines. Here it is for programs alone, and of use to them only
        // where the barrier is to be had, too.
        done.fills = done.predictors.kernel == Kernel::Open
            && flaws.spectre_v2
            && cpu.has_ibpb()
            && !asked.spectre_v2_is_off();
        done
    }

    /// MDS, TAA, MMIO and RFDS: one instruction works against all of them, so who asks for one has them all.
    fn choose_buffers(&mut self, cpu: &Facts, flaws: &Flaws, asked: &Asked<'_>) {
        let has_taa = flaws.taa && cpu.has_rtm();
        let mds = flaws.mds && asked.mds != OFF;
        let taa = has_taa && (asked.tsx_async_abort != OFF || mds);
        let mmio = flaws.mmio && asked.mmio_stale_data != OFF;
        let rfds_helps = cpu.can(capability::RFDS_CLEAR);
        let rfds = flaws.rfds && asked.reg_file_data_sampling != OFF;
        self.clears = mds || taa || mmio && (flaws.mds || has_taa) || rfds && rfds_helps;
        let all = self.clears;
        let choose = |does: bool, helps: bool| match (does, helps) {
            (false, _) => Buffers::Kept,
            (true, true) => Buffers::Cleared,
            (true, false) => Buffers::Attempted,
        };
        let mds_no = cpu.can(capability::MDS_NO);
        let verw = cpu.has_md_clear();
        self.mds = choose(mds || all && flaws.mds, verw);
        // With MDS_NO it is newer microcode that clears for TAA too, which brings TSX_CTRL with it.
        self.taa =
            choose(taa || all && has_taa, verw && (!mds_no || cpu.can(capability::TSX_CTRL)));
        let fill_helps = cpu.can(capability::FB_CLEAR) || verw && cpu.has_flush_l1d() && !mds_no;
        let mmio = mmio || all && flaws.mmio;
        self.mmio = choose(mmio, fill_helps);
        self.rfds = choose(rfds || all && flaws.rfds, rfds_helps);
        let of_halts = self.mds != Buffers::Kept && flaws.msbds_only && cpu.threads;
        self.clears_when_idle = of_halts || mmio && !cpu.can(capability::FBSDP_NO);
    }

    fn choose_tsa(&mut self, cpu: &Facts, flaws: &Flaws, asked: &Asked<'_>) {
        self.tsa = match asked.tsa {
            _ if !flaws.tsa => Tsa::Nothing,
            Some("off") => Tsa::Nothing,
            _ if !cpu.has_verw_clear() => Tsa::NoMicrocode,
            Some("user") => Tsa::User,
            Some("vm") => Tsa::Vm,
            _ => Tsa::Full,
        };
        self.clears |= matches!(self.tsa, Tsa::Full | Tsa::User);
        self.clears_when_idle |= self.tsa != Tsa::Nothing && cpu.threads;
    }

    /// A program that sets its GS base itself, or a kernel that may read memory of programs, can be led past SWAPGS. Where tables are
    /// isolated, entries from programs pass a write of CR3 instead; but the kernel's own traps can be led to the other's SWAPGS there too.
    fn choose_fences(&mut self, cpu: &Facts, flaws: &Flaws, asked: &Asked<'_>) {
        self.spectre_v1 = flaws.spectre_v1 && !asked.nospectre_v1;
        let smap_holds = cpu.has_smap() && !flaws.meltdown;
        if self.spectre_v1 && (cpu.has_fsgsbase() || !smap_holds) {
            self.fences_user = flaws.swapgs;
            self.fences_kernel = true;
        }
    }
}
