//! Which flaws a CPU has: the tables of models, and what the CPU says of itself.
//!
//! Owns the rules of Linux 6.12's `cpu_set_bug_bits` (`arch/x86/kernel/cpu/common.c`). Never reads a register: the facts are given.

use crate::models::{Model, Vendor, free, free_of, has, known_for};

/// What the CPU says of itself: words of CPUID, and two registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Leaf 0: ebx, ecx, edx.
    pub vendor: [u32; 3],
    /// Leaf 1: eax and ecx.
    pub signature: u32,
    pub leaf_1_ecx: u32,
    /// Leaf 7: ebx and edx, and edx of its part 2.
    pub leaf_7_ebx: u32,
    pub leaf_7_edx: u32,
    pub leaf_7_2_edx: u32,
    /// Leaf 8000_0008 ebx; leaf 8000_0021 eax and ecx.
    pub leaf_8000_0008_ebx: u32,
    pub leaf_8000_0021_eax: u32,
    pub leaf_8000_0021_ecx: u32,
    /// IA32_ARCH_CAPABILITIES, and IA32_MCU_OPT_CTRL; 0 on a CPU without the register.
    pub capabilities: u64,
    pub microcode_options: u64,
    /// Whether two CPUs in use are threads of one core.
    pub siblings: bool,
    /// Whether they could be.
    pub threads: bool,
}

impl Facts {
    pub fn model(&self) -> Model {
        Model::of(Vendor::of(self.vendor), self.signature)
    }

    pub fn in_guest(&self) -> bool {
        self.leaf_1_ecx >> 31 != 0
    }

    /// IA32_ARCH_CAPABILITIES is there.
    pub fn has_capabilities(&self) -> bool {
        self.leaf_7_edx >> 29 & 1 != 0
    }

    /// IA32_MCU_OPT_CTRL is there.
    pub fn has_microcode_options(&self) -> bool {
        self.leaf_7_edx >> 9 & 1 != 0 || self.can(capability::GDS_CTRL)
    }

    /// The indirect branch predictor barrier: with IBRS on Intel's, by itself on AMD's.
    pub fn has_ibpb(&self) -> bool {
        self.leaf_7_edx >> 26 & 1 != 0 || self.leaf_8000_0008_ebx >> 12 & 1 != 0
    }

    /// IBRS that is switched on once and holds for good: Intel's enhanced one.
    pub fn has_enhanced_ibrs(&self) -> bool {
        self.can(capability::IBRS_ALL)
    }

    /// The same of AMD's, by a bit of EFER.
    pub fn has_automatic_ibrs(&self) -> bool {
        self.leaf_8000_0021_eax >> 8 & 1 != 0
    }

    pub(crate) fn can(&self, bit: u64) -> bool {
        self.capabilities & bit != 0
    }
}

/// Bits of IA32_ARCH_CAPABILITIES.
pub(crate) mod capability {
    pub const RDCL_NO: u64 = 1 << 0;
    pub const IBRS_ALL: u64 = 1 << 1;
    pub const RSBA: u64 = 1 << 2;
    pub const SSB_NO: u64 = 1 << 4;
    pub const MDS_NO: u64 = 1 << 5;
    pub const PSCHANGE_MC_NO: u64 = 1 << 6;
    pub const TSX_CTRL: u64 = 1 << 7;
    pub const TAA_NO: u64 = 1 << 8;
    pub const MMIO_NO: u64 = 1 << 13 | 1 << 14 | 1 << 15;
    pub const BHI_NO: u64 = 1 << 20;
    pub const FBSDP_NO: u64 = 1 << 14;
    pub const FB_CLEAR: u64 = 1 << 17;
    pub const PBRSB_NO: u64 = 1 << 24;
    pub const GDS_CTRL: u64 = 1 << 25;
    pub const GDS_NO: u64 = 1 << 26;
    pub const RFDS_NO: u64 = 1 << 27;
    pub const RFDS_CLEAR: u64 = 1 << 28;
    pub const ITS_NO: u64 = 1 << 62;
}

/// The flaws of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flaws {
    pub itlb_multihit: bool,
    pub spectre_v1: bool,
    pub spectre_v2: bool,
    pub ssb: bool,
    pub pbrsb: bool,
    pub mds: bool,
    /// Of MDS only the part of the store buffer.
    pub msbds_only: bool,
    /// A mispredicted branch past SWAPGS loads through the wrong base.
    pub swapgs: bool,
    pub taa: bool,
    pub srbds: bool,
    pub mmio: bool,
    /// Nobody says whether it has it.
    pub mmio_unknown: bool,
    pub retbleed: bool,
    pub gds: bool,
    pub srso: bool,
    pub rfds: bool,
    pub bhi: bool,
    pub its: bool,
    pub tsa: bool,
    pub vmscape: bool,
    pub meltdown: bool,
    pub l1tf: bool,
}

impl Flaws {
    /// As Linux 6.12 decides.
    pub fn of(cpu: &Facts) -> Self {
        let model = cpu.model();
        let (free, known) = (free_of(model), known_for(model));
        let (is_free, is_known) = (|flags| free & flags != 0, |flags| known & flags != 0);
        let can = |bits| cpu.can(bits);
        let mut found = Self {
            itlb_multihit: !is_free(free::ITLB_MULTIHIT) && !can(capability::PSCHANGE_MC_NO),
            ..Self::default()
        };
        if is_free(free::SPECULATION) {
            return found;
        }
        let holds_ibrs = cpu.has_enhanced_ibrs() || cpu.has_automatic_ibrs();
        let ssb_no = can(capability::SSB_NO) || cpu.leaf_8000_0008_ebx >> 26 & 1 != 0;
        let mmio_no = cpu.capabilities & capability::MMIO_NO == capability::MMIO_NO;
        let meltdown = !is_free(free::MELTDOWN) && !can(capability::RDCL_NO);
        found.spectre_v1 = true;
        found.spectre_v2 = !is_free(free::SPECTRE_V2);
        found.ssb = !is_free(free::SSB) && !ssb_no;
        found.pbrsb = holds_ibrs && !is_free(free::PBRSB) && !can(capability::PBRSB_NO);
        found.mds = !is_free(free::MDS) && !can(capability::MDS_NO);
        found.msbds_only = found.mds && is_free(free::MSBDS_ONLY);
        found.swapgs = !is_free(free::SWAPGS);
        found.taa = !can(capability::TAA_NO) && (cpu.has_rtm() || can(capability::TSX_CTRL));
        found.srbds = cpu.has_hardware_random() && is_known(has::SRBDS | has::MMIO_SBDS);
        found.mmio = !mmio_no && is_known(has::MMIO);
        found.mmio_unknown = !mmio_no && !is_known(has::MMIO) && !is_free(free::MMIO);
        let btc_no = cpu.leaf_8000_0008_ebx >> 29 & 1 != 0;
        found.retbleed = !btc_no && (is_known(has::RETBLEED) || can(capability::RSBA));
        found.gds = is_known(has::GDS) && !can(capability::GDS_NO) && cpu.has_avx();
        found.srso = cpu.leaf_8000_0021_eax >> 29 & 1 == 0 && is_known(has::SRSO);
        found.rfds =
            !can(capability::RFDS_NO) && (can(capability::RFDS_CLEAR) || is_known(has::RFDS));
        found.bhi =
            !can(capability::BHI_NO) && !is_free(free::BHI) && (holds_ibrs || cpu.in_guest());
        // A guest may be on any machine: it is safe only where it is told so.
        found.its = model.vendor == Vendor::Intel
            && !can(capability::ITS_NO)
            && !cpu.has_bhi_control()
            && (cpu.in_guest() || is_known(has::ITS));
        found.tsa = is_known(has::TSA) && cpu.leaf_8000_0021_ecx & TSA_NO != TSA_NO;
        found.vmscape = is_known(has::VMSCAPE) && !cpu.in_guest();
        found.meltdown = meltdown;
        found.l1tf = meltdown && !is_free(free::L1TF);
        found
    }
}

/// TSA_SQ_NO and TSA_L1_NO of leaf 8000_0021 ecx.
const TSA_NO: u32 = 1 << 1 | 1 << 2;

impl Facts {
    /// IA32_SPEC_CTRL is there: with IBRS and IBPB on Intel's, or by bits of their own.
    pub(crate) fn has_spec_ctrl(&self) -> bool {
        self.leaf_7_edx & (1 << 26 | 1 << 27) != 0
            || self.leaf_8000_0008_ebx & (1 << 14 | 1 << 15 | 1 << 24) != 0
    }

    pub(crate) fn has_stibp(&self) -> bool {
        self.leaf_7_edx >> 27 & 1 != 0 || self.leaf_8000_0008_ebx >> 15 & 1 != 0
    }

    pub(crate) fn prefers_stibp_always(&self) -> bool {
        self.leaf_8000_0008_ebx >> 17 & 1 != 0
    }

    /// By IA32_SPEC_CTRL; older ones of AMD's have other registers for it, which nobody writes here.
    pub(crate) fn has_ssbd(&self) -> bool {
        self.leaf_7_edx >> 31 & 1 != 0 || self.leaf_8000_0008_ebx >> 24 & 1 != 0
    }

    pub(crate) fn has_bhi_control(&self) -> bool {
        self.leaf_7_2_edx >> 4 & 1 != 0
    }

    /// VERW clears the buffers that MDS leaks.
    pub(crate) fn has_md_clear(&self) -> bool {
        self.leaf_7_edx >> 10 & 1 != 0
    }

    pub(crate) fn has_flush_l1d(&self) -> bool {
        self.leaf_7_edx >> 28 & 1 != 0
    }

    /// VERW clears what TSA leaks. Linux knows some revisions of microcode that do without saying so.
    pub(crate) fn has_verw_clear(&self) -> bool {
        self.leaf_8000_0021_eax >> 5 & 1 != 0
    }

    pub(crate) fn has_smap(&self) -> bool {
        self.leaf_7_ebx >> 20 & 1 != 0
    }

    pub(crate) fn has_fsgsbase(&self) -> bool {
        self.leaf_7_ebx & 1 != 0
    }

    pub(crate) fn has_rtm(&self) -> bool {
        self.leaf_7_ebx >> 11 & 1 != 0
    }

    fn has_avx(&self) -> bool {
        self.leaf_1_ecx >> 28 & 1 != 0
    }

    fn has_hardware_random(&self) -> bool {
        self.leaf_1_ecx >> 30 & 1 != 0 || self.leaf_7_ebx >> 18 & 1 != 0
    }
}
