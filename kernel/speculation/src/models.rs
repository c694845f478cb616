//! The two tables of CPU models: of which flaws a model is free, and which it has.
//!
//! Owns the tables: Linux 6.12's knowledge (`cpu_vuln_whitelist` and `cpu_vuln_blacklist` in `arch/x86/kernel/cpu/common.c`),
//! which is that of the vendors' lists. The first row that fits decides, as there. Models of 32 bits are left out. Never knows what a
//! CPU says of itself: that is `flaws`.

/// Who made the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    Intel,
    Amd,
    Hygon,
    Centaur,
    Zhaoxin,
    Other,
}

impl Vendor {
    /// By ebx, ecx and edx of CPUID leaf 0.
    pub fn of([ebx, ecx, edx]: [u32; 3]) -> Self {
        let mut name = [0; 12];
        for (place, word) in name.chunks_exact_mut(4).zip([ebx, edx, ecx]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        match &name {
            b"GenuineIntel" => Self::Intel,
            b"AuthenticAMD" => Self::Amd,
            b"HygonGenuine" => Self::Hygon,
            b"CentaurHauls" => Self::Centaur,
            b"  Shanghai  " => Self::Zhaoxin,
            _ => Self::Other,
        }
    }
}

/// Vendor, family, model, stepping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    pub vendor: Vendor,
    pub family: u32,
    pub model: u32,
    pub stepping: u32,
}

impl Model {
    /// By eax of CPUID leaf 1.
    pub fn of(vendor: Vendor, signature: u32) -> Self {
        let (low_family, low_model) = (signature >> 8 & 0xf, signature >> 4 & 0xf);
        let family = if low_family == 0xf { 0xf + (signature >> 20 & 0xff) } else { low_family };
        let model = if family >= 6 { (signature >> 16 & 0xf) << 4 | low_model } else { low_model };
        Self { vendor, family, model, stepping: signature & 0xf }
    }
}

/// Of what a model is free (the first table).
pub mod free {
    pub const SPECULATION: u32 = 1 << 0;
    pub const MELTDOWN: u32 = 1 << 1;
    pub const SSB: u32 = 1 << 2;
    pub const L1TF: u32 = 1 << 3;
    pub const MDS: u32 = 1 << 4;
    /// Not free of MDS, but of all of it save the store buffer's part.
    pub const MSBDS_ONLY: u32 = 1 << 5;
    pub const SWAPGS: u32 = 1 << 6;
    pub const ITLB_MULTIHIT: u32 = 1 << 7;
    pub const SPECTRE_V2: u32 = 1 << 8;
    pub const MMIO: u32 = 1 << 9;
    pub const PBRSB: u32 = 1 << 10;
    pub const BHI: u32 = 1 << 11;
}

/// What a model has (the second table).
pub mod has {
    pub const SRBDS: u32 = 1 << 0;
    pub const MMIO: u32 = 1 << 1;
    pub const MMIO_SBDS: u32 = 1 << 2;
    pub const RETBLEED: u32 = 1 << 3;
    pub const SRSO: u32 = 1 << 4;
    pub const GDS: u32 = 1 << 5;
    pub const RFDS: u32 = 1 << 6;
    pub const ITS: u32 = 1 << 7;
    pub const TSA: u32 = 1 << 8;
    pub const VMSCAPE: u32 = 1 << 9;
}

/// A row: of Intel's family 6 the models, up to a stepping; or of a vendor one family or all.
enum Row {
    Core(&'static [u32], u32, u32),
    Family(Vendor, Option<u32>, u32),
}

const ANY: u32 = 0xf;

impl Row {
    fn fits(&self, cpu: Model) -> Option<u32> {
        let (fits, flags) = match *self {
            Self::Core(models, last, flags) => {
                let is_core = cpu.vendor == Vendor::Intel && cpu.family == 6;
                (is_core && models.contains(&cpu.model) && cpu.stepping <= last, flags)
            }
            Self::Family(vendor, family, flags) => {
                (cpu.vendor == vendor && family.is_none_or(|family| cpu.family == family), flags)
            }
        };
        fits.then_some(flags)
    }
}

fn find(table: &[Row], cpu: Model) -> u32 {
    table.iter().find_map(|row| row.fits(cpu)).unwrap_or(0)
}

/// Of what the first table says that the model is free, of [`free`].
pub fn free_of(cpu: Model) -> u32 {
    find(FREE, cpu)
}

/// What the second table says that the model has, of [`has`].
pub fn known_for(cpu: Model) -> u32 {
    find(HAS, cpu)
}

const SILVERMONT: u32 =
    free::SSB | free::L1TF | free::MSBDS_ONLY | free::SWAPGS | free::ITLB_MULTIHIT;
const GOLDMONT: u32 = free::MDS | free::L1TF | free::SWAPGS | free::ITLB_MULTIHIT | free::MMIO;
const AMD: u32 = free::MELTDOWN
    | free::L1TF
    | free::MDS
    | free::SWAPGS
    | free::ITLB_MULTIHIT
    | free::MMIO
    | free::BHI;

#[rustfmt::skip]
const FREE: &[Row] = &[
    // Tiger Lake, Alder Lake
    Row::Core(&[0x8d, 0x8c, 0x97, 0x9a], ANY, free::MMIO),
    // Saltwell, Bonnell: in order
    Row::Core(&[0x36, 0x35, 0x27, 0x1c, 0x26], ANY, free::SPECULATION | free::ITLB_MULTIHIT),
    // Silvermont, Airmont, Knights Landing, Knights Mill
    Row::Core(&[0x37, 0x4d, 0x4a, 0x4c, 0x57, 0x85], ANY, SILVERMONT),
    // Yonah
    Row::Core(&[0x0e], ANY, free::SSB),
    // Airmont of tablets and of networks
    Row::Core(&[0x5a], ANY, free::L1TF | free::MSBDS_ONLY | free::SWAPGS | free::ITLB_MULTIHIT),
    Row::Core(&[0x75], ANY, free::L1TF | free::SWAPGS | free::ITLB_MULTIHIT),
    // Goldmont, Goldmont Plus
    Row::Core(&[0x5c, 0x5f], ANY, GOLDMONT),
    Row::Core(&[0x7a], ANY, GOLDMONT | free::PBRSB),
    // Tremont
    Row::Core(&[0x96, 0x9c], ANY, free::PBRSB),
    Row::Core(&[0x86], ANY, free::ITLB_MULTIHIT | free::PBRSB),
    // K8 to Llano, then all others
    Row::Family(Vendor::Amd, Some(0x0f), AMD | free::SSB),
    Row::Family(Vendor::Amd, Some(0x10), AMD | free::SSB),
    Row::Family(Vendor::Amd, Some(0x11), AMD | free::SSB),
    Row::Family(Vendor::Amd, Some(0x12), AMD | free::SSB),
    Row::Family(Vendor::Amd, None, AMD | free::PBRSB),
    Row::Family(Vendor::Hygon, None, AMD | free::PBRSB),
    Row::Family(Vendor::Centaur, Some(7), free::SPECTRE_V2 | free::SWAPGS | free::MMIO | free::BHI),
    Row::Family(Vendor::Zhaoxin, Some(7), free::SPECTRE_V2 | free::SWAPGS | free::MMIO | free::BHI),
];

const SKYLAKE: u32 = has::MMIO | has::RETBLEED | has::GDS | has::VMSCAPE;
const ICE: u32 = has::MMIO | has::GDS | has::ITS;

#[rustfmt::skip]
const HAS: &[Row] = &[
    // Sandy Bridge, Ivy Bridge
    Row::Core(&[0x2d, 0x2a, 0x3e], ANY, has::VMSCAPE),
    Row::Core(&[0x3a], ANY, has::SRBDS | has::VMSCAPE),
    // Haswell, Broadwell
    Row::Core(&[0x3c, 0x45, 0x46, 0x47, 0x3d], ANY, has::SRBDS | has::VMSCAPE),
    Row::Core(&[0x3f, 0x56, 0x4f], ANY, has::MMIO | has::VMSCAPE),
    // Skylake of servers, with Cascade Lake
    Row::Core(&[0x55], 5, SKYLAKE),
    Row::Core(&[0x55], ANY, SKYLAKE | has::ITS),
    // Skylake, Kaby Lake
    Row::Core(&[0x4e, 0x5e], ANY, SKYLAKE | has::SRBDS),
    Row::Core(&[0x8e], 0xb, SKYLAKE | has::SRBDS),
    Row::Core(&[0x9e], 0xc, SKYLAKE | has::SRBDS),
    Row::Core(&[0x8e, 0x9e], ANY, SKYLAKE | has::SRBDS | has::ITS),
    // Cannon Lake
    Row::Core(&[0x66], ANY, has::RETBLEED | has::VMSCAPE),
    // Ice Lake
    Row::Core(&[0x7e], ANY, ICE | has::MMIO_SBDS | has::RETBLEED),
    Row::Core(&[0x6c, 0x6a], ANY, ICE),
    // Comet Lake
    Row::Core(&[0xa6], 0, has::MMIO | has::RETBLEED | has::ITS | has::VMSCAPE),
    Row::Core(&[0xa5, 0xa6], ANY, SKYLAKE | has::MMIO_SBDS | has::ITS),
    // Tiger Lake, Lakefield, Rocket Lake
    Row::Core(&[0x8c, 0x8d], ANY, has::GDS | has::ITS),
    Row::Core(&[0x8a], ANY, has::MMIO | has::MMIO_SBDS | has::RETBLEED),
    Row::Core(&[0xa7], ANY, ICE | has::RETBLEED),
    // Alder Lake, Raptor Lake, Gracemont
    Row::Core(&[0x97, 0x9a, 0xb7, 0xba, 0xbf, 0xbe], ANY, has::RFDS | has::VMSCAPE),
    // Meteor Lake, Arrow Lake, Lunar Lake, Sapphire, Granite and Emerald Rapids, Crestmont of servers
    Row::Core(&[0xaa, 0xc5, 0xc6, 0xb5, 0xbd, 0x8f, 0xad, 0xcf, 0xaf], ANY, has::VMSCAPE),
    // Tremont, Goldmont
    Row::Core(&[0x96, 0x9c], ANY, has::MMIO | has::MMIO_SBDS | has::RFDS),
    Row::Core(&[0x86], ANY, has::MMIO | has::RFDS),
    Row::Core(&[0x5c, 0x5f, 0x7a], ANY, has::RFDS),
    // Bulldozer, Jaguar, Zen to Zen 5
    Row::Family(Vendor::Amd, Some(0x15), has::RETBLEED),
    Row::Family(Vendor::Amd, Some(0x16), has::RETBLEED),
    Row::Family(Vendor::Amd, Some(0x17), has::RETBLEED | has::SRSO | has::VMSCAPE),
    Row::Family(Vendor::Hygon, Some(0x18), has::RETBLEED | has::SRSO | has::VMSCAPE),
    Row::Family(Vendor::Amd, Some(0x19), has::SRSO | has::TSA | has::VMSCAPE),
    Row::Family(Vendor::Amd, Some(0x1a), has::SRSO | has::VMSCAPE),
];
