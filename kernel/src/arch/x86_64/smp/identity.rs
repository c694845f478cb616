//! Who the CPU is: the facts behind /proc/cpuinfo and the auxiliary vector.
//!
//! Owns nothing; reads CPUID when asked. Never asks another CPU: all are taken to be alike. Locks: none.
#![expect(clippy::disallowed_methods, reason = "what it writes to can fail")]

use core::fmt::{self, Write};

use arrayvec::ArrayString;

use crate::base::cpu::cpuid;
use crate::base::isolation;

/// The names that Linux uses for feature bits, by register; an empty name is not printed.
struct FlagWord {
    leaf: u32,
    sub_leaf: u32,
    register: usize,
    names: [&'static str; 32],
}

const N: &str = "";

static FLAGS: [FlagWord; 6] = [
    FlagWord {
        leaf: 1,
        sub_leaf: 0,
        register: 3,
        names: [
            "fpu", "vme", "de", "pse", "tsc", "msr", "pae", "mce", "cx8", "apic", N, "sep", "mtrr",
            "pge", "mca", "cmov", "pat", "pse36", "pn", "clflush", N, "dts", "acpi", "mmx", "fxsr",
            "sse", "sse2", "ss", "ht", "tm", "ia64", "pbe",
        ],
    },
    FlagWord {
        leaf: 0x8000_0001,
        sub_leaf: 0,
        register: 3,
        names: [
            N, N, N, N, N, N, N, N, N, N, N, "syscall", N, N, N, N, N, N, N, "mp", "nx", N,
            "mmxext", N, N, "fxsr_opt", "pdpe1gb", "rdtscp", N, "lm", "3dnowext", "3dnow",
        ],
    },
    FlagWord {
        leaf: 1,
        sub_leaf: 0,
        register: 2,
        names: [
            "pni",
            "pclmulqdq",
            "dtes64",
            "monitor",
            "ds_cpl",
            "vmx",
            "smx",
            "est",
            "tm2",
            "ssse3",
            "cid",
            "sdbg",
            "fma",
            "cx16",
            "xtpr",
            "pdcm",
            N,
            "pcid",
            "dca",
            "sse4_1",
            "sse4_2",
            "x2apic",
            "movbe",
            "popcnt",
            "tsc_deadline_timer",
            "aes",
            "xsave",
            N,
            "avx",
            "f16c",
            "rdrand",
            "hypervisor",
        ],
    },
    FlagWord {
        leaf: 0x8000_0001,
        sub_leaf: 0,
        register: 2,
        names: [
            "lahf_lm",
            "cmp_legacy",
            "svm",
            "extapic",
            "cr8_legacy",
            "abm",
            "sse4a",
            "misalignsse",
            "3dnowprefetch",
            "osvw",
            "ibs",
            "xop",
            "skinit",
            "wdt",
            N,
            "lwp",
            "fma4",
            "tce",
            N,
            "nodeid_msr",
            N,
            "tbm",
            "topoext",
            "perfctr_core",
            "perfctr_nb",
            N,
            "bpext",
            "ptsc",
            "perfctr_llc",
            "mwaitx",
            N,
            N,
        ],
    },
    FlagWord {
        leaf: 7,
        sub_leaf: 0,
        register: 1,
        names: [
            "fsgsbase",
            "tsc_adjust",
            N,
            "bmi1",
            "hle",
            "avx2",
            N,
            "smep",
            "bmi2",
            "erms",
            "invpcid",
            "rtm",
            "cqm",
            N,
            "mpx",
            "rdt_a",
            "avx512f",
            "avx512dq",
            "rdseed",
            "adx",
            "smap",
            "avx512ifma",
            N,
            "clflushopt",
            "clwb",
            "intel_pt",
            "avx512pf",
            "avx512er",
            "avx512cd",
            "sha_ni",
            "avx512bw",
            "avx512vl",
        ],
    },
    FlagWord {
        leaf: 7,
        sub_leaf: 0,
        register: 2,
        names: [
            N,
            "avx512vbmi",
            "umip",
            "pku",
            "ospke",
            "waitpkg",
            "avx512_vbmi2",
            N,
            "gfni",
            "vaes",
            "vpclmulqdq",
            "avx512_vnni",
            "avx512_bitalg",
            "tme",
            "avx512_vpopcntdq",
            N,
            "la57",
            N,
            N,
            N,
            N,
            N,
            "rdpid",
            N,
            "bus_lock_detect",
            "cldemote",
            N,
            "movdiri",
            "movdir64b",
            "enqcmd",
            N,
            N,
        ],
    },
];

/// The CPU's maker, as CPUID spells it.
pub fn vendor() -> ArrayString<12> {
    let [_, b, c, d] = cpuid(0, 0);
    text(&[b, d, c])
}

/// The marketing name, without blanks around it.
pub fn brand() -> ArrayString<48> {
    if cpuid(0x8000_0000, 0)[0] < 0x8000_0004 {
        return ArrayString::from("unknown").unwrap_or_default();
    }
    let [one, two, three] = [0x8000_0002, 0x8000_0003, 0x8000_0004].map(|leaf| cpuid(leaf, 0));
    let mut words = [0; 12];
    words[..4].copy_from_slice(&one);
    words[4..8].copy_from_slice(&two);
    words[8..].copy_from_slice(&three);
    let full: ArrayString<48> = text(&words);
    ArrayString::from(full.trim()).unwrap_or_default()
}

/// Registers as characters; what is no printable ASCII ends the text.
fn text<const N: usize>(words: &[u32]) -> ArrayString<N> {
    let mut text = ArrayString::new();
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    for byte in bytes.take_while(|byte| (b' '..=b'~').contains(byte)).take(N) {
        text.push(char::from(byte));
    }
    text
}

/// Family, model and stepping, with the extended fields added in.
pub fn signature() -> (u32, u32, u32) {
    let [eax, ..] = cpuid(1, 0);
    let (base, model) = (eax >> 8 & 15, eax >> 4 & 15);
    let family = if base == 15 { base + (eax >> 20 & 0xff) } else { base };
    let model = if base == 15 || base == 6 { model | eax >> 12 & 0xf0 } else { model };
    (family, model, eax & 15)
}

/// Writes the block of one CPU in /proc/cpuinfo. `khz` is the TSC's frequency.
pub fn write_cpuinfo(out: &mut dyn Write, cpu: usize, khz: u64) -> fmt::Result {
    let (family, model, stepping) = signature();
    writeln!(out, "processor\t: {cpu}")?;
    writeln!(out, "vendor_id\t: {}", vendor())?;
    writeln!(out, "cpu family\t: {family}")?;
    writeln!(out, "model\t\t: {model}")?;
    writeln!(out, "model name\t: {}", brand())?;
    writeln!(out, "stepping\t: {stepping}")?;
    writeln!(out, "cpu MHz\t\t: {}.{:03}", khz / 1000, khz % 1000)?;
    writeln!(out, "physical id\t: 0")?;
    writeln!(out, "siblings\t: {}", crate::base::percpu::cpus_online())?;
    writeln!(out, "core id\t\t: {cpu}")?;
    writeln!(out, "cpu cores\t: {}", crate::base::percpu::cpus_online())?;
    writeln!(out, "apicid\t\t: {}", super::ipi::apic_id(cpu))?;
    writeln!(out, "initial apicid\t: {}", super::ipi::apic_id(cpu))?;
    writeln!(out, "fpu\t\t: yes")?;
    writeln!(out, "fpu_exception\t: yes")?;
    writeln!(out, "cpuid level\t: {}", cpuid(0, 0)[0])?;
    writeln!(out, "wp\t\t: yes")?;
    write!(out, "flags\t\t:")?;
    for word in &FLAGS {
        // Linux has it behind those of leaf 0x8000_0001, in front of those of leaf 7.
        if (word.leaf, word.register) == (7, 1) && isolation::is_on() {
            write!(out, " pti")?;
        }
        let bits = cpuid(word.leaf, word.sub_leaf)[word.register];
        for (bit, name) in word.names.iter().enumerate() {
            if bits >> bit & 1 != 0 && !name.is_empty() {
                write!(out, " {name}")?;
            }
        }
    }
    writeln!(out, "\nbugs\t\t:")?;
    // In hundredths, as Linux rounds it: two loops a cycle.
    writeln!(out, "bogomips\t: {}.{:02}", khz / 500, khz / 5 % 100)?;
    let line = cpuid(1, 0)[1] >> 8 & 0xff;
    writeln!(out, "clflush size\t: {}", line * 8)?;
    writeln!(out, "cache_alignment\t: {}", line * 8)?;
    let sizes = cpuid(0x8000_0008, 0)[0];
    let (physical, virt) = if sizes == 0 { (36, 48) } else { (sizes & 0xff, sizes >> 8 & 0xff) };
    writeln!(out, "address sizes\t: {physical} bits physical, {virt} bits virtual")?;
    writeln!(out, "power management:\n")
}
