//! Every word of the command line that this kernel obeys. The functions that look a word up take one of these constants, so a
//! word that is not here cannot be obeyed; `docs/using.md` has the table, made from this file by `cargo xtask tidy --write`.
#![forbid(unsafe_code)]

use core::fmt;

/// The name of a word.
#[derive(Clone, Copy)]
pub struct Word(pub(super) &'static str);

impl Word {
    /// Whether these bytes are the bare word: for boot, which looks before the line is kept.
    pub fn is(self, bytes: &[u8]) -> bool {
        self.0.as_bytes() == bytes
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// `CONSTANT = "name", "how it is written", "what it does";`
macro_rules! words {
    ($( $id:ident = $name:literal, $form:literal, $what:literal; )*) => {
        $(
            #[doc = concat!("`", $form, "`: ", $what)]
            pub const $id: Word = Word($name);
        )*
    };
}

words! {
    CONSOLE = "console", "console=ttyS0[,SPEED]|hvc0", "a console: the first serial port, or the console port of a virtio console (`-device virtio-serial -device virtconsole,chardev=...`). The log is shown at each, and the last one is /dev/console; without such words that is ttyS0, or on a machine without it hvc0. SPEED is what the port's settings show: 9600, 38400 or 115200, of several such words the first one's. A word for any other console gets a line in the log";
    QUIET = "quiet", "quiet", "only lines of level 3 (errors) and below are printed, as with loglevel=4";
    DEBUG = "debug", "debug", "all lines are printed, as with loglevel=8";
    LOGLEVEL = "loglevel", "loglevel=N", "lines below level N are printed, 1 to 8; 7 if nothing is said";
    PANIC = "panic", "panic=N", "after a panic the machine restarts in N seconds, at once if N is negative, never if it is 0 or nothing is said";
    RDINIT = "rdinit", "rdinit=PATH", "process 1; a panic if it cannot be run. Without it `/init`";
    INIT = "init", "init=PATH", "process 1 if there is no `/init`. Without it `/sbin/init`, `/etc/init`, `/bin/init`, `/bin/sh`";
    INITRDMEM = "initrdmem", "initrdmem=START,SIZE", "where in memory the initramfs lies, if the boot loader says nothing of one; numbers as `0x2000000` or `32M`";
    INITRAMFS_OPTIONS = "initramfs_options", "initramfs_options=OPTIONS", "options of tmpfs for the root, as `size=75%`";
    ROOTFLAGS = "rootflags", "rootflags=OPTIONS", "the same, if there is no initramfs_options";
    MAXCPUS = "maxcpus", "maxcpus=N", "at most N CPUs are started";
    NR_CPUS = "nr_cpus", "nr_cpus=N", "the same, if there is no maxcpus";
    NOSMP = "nosmp", "nosmp", "one CPU";
    RANDOMIZE_KSTACK_OFFSET = "randomize_kstack_offset", "randomize_kstack_offset=on", "each system call begins at another place of its task's kernel stack, one of 64, as on Linux";
    INIT_ON_ALLOC = "init_on_alloc", "init_on_alloc=0|1", "1: memory that the kernel takes for itself is zeroed first; what programs get always is";
    INIT_ON_FREE = "init_on_free", "init_on_free=0|1", "1: memory is zeroed when it is given back. Both cost: each CPU then takes every object and every frame from what all share";
    TRANSPARENT_HUGEPAGE = "transparent_hugepage", "transparent_hugepage=always|madvise|never", "for which mappings large pages are wanted, until /sys/kernel/mm/transparent_hugepage/enabled says otherwise; if nothing is said always, and never with less than 512 MiB of memory";
    VIRTIO_MMIO = "virtio_mmio.device", "virtio_mmio.device=SIZE@BASE:IRQ", "a virtio device whose registers lie in memory, where ACPI names none; QEMU's microvm adds these words itself";
    NOKASLR = "nokaslr", "nokaslr", "the kernel stays at the address where it was linked, as a debugger wants it that has its file";
    MITIGATIONS = "mitigations", "mitigations=auto|off", "off: nothing is done against the CPU's own leaks; auto, as if nothing is said: what docs/security.md lists, where the CPU needs it";
    NOSPECTRE_V1 = "nospectre_v1", "nospectre_v1", "no fences where the kernel may or may not have swapped its GS base (Spectre v1)";
    PTI = "pti", "pti=auto|on|off", "on: programs run on page tables that map next to nothing of the kernel; auto, as if nothing is said: on CPUs with Meltdown. `mitigations=off` wins";
    NOPTI = "nopti", "nopti", "as pti=off; of several of these the last counts";
    MDS = "mds", "mds=off|full", "off: the CPU's buffers are not cleared for MDS before user mode; one of these five clears them for all";
    TSX_ASYNC_ABORT = "tsx_async_abort", "tsx_async_abort=off|full", "the same for TAA";
    MMIO_STALE_DATA = "mmio_stale_data", "mmio_stale_data=off|full", "the same for stale data of MMIO";
    REG_FILE_DATA_SAMPLING = "reg_file_data_sampling", "reg_file_data_sampling=off|on", "the same for RFDS";
    TSA = "tsa", "tsa=off|on|user|vm", "the same for TSA; vm: only before guests run, of which there are none";
    NOSPECTRE_V2 = "nospectre_v2", "nospectre_v2", "as spectre_v2=off";
    SPECTRE_V2 = "spectre_v2", "spectre_v2=auto|on|off", "off: nothing is done against Spectre v2, for programs either; on: all programs are kept apart. Words that ask for retpolines mean auto, as there are none";
    SPECTRE_V2_USER = "spectre_v2_user", "spectre_v2_user=auto|on|off|prctl|prctl,ibpb|seccomp|seccomp,ibpb", "which programs are kept apart from others' predictions: those that ask by prctl (auto), those with a filter of system calls too, all; `,ibpb`: by a barrier, all";
    SPECTRE_BHI = "spectre_bhi", "spectre_bhi=on|off", "off: the kernel's branches may depend on the history of programs'";
    NOSPEC_STORE_BYPASS_DISABLE = "nospec_store_bypass_disable", "nospec_store_bypass_disable", "as spec_store_bypass_disable=off";
    SPEC_STORE_BYPASS_DISABLE = "spec_store_bypass_disable", "spec_store_bypass_disable=auto|on|off|prctl|seccomp", "whose loads do not overtake stores: of programs that ask by prctl (auto), of those with a filter of system calls too, all, none";
    VDSO = "vdso", "vdso=0", "programs get no vDSO";
    GENERATOR = "random.generator", "random.generator=NAME", "what secrets are drawn from: `chacha20`; or, to be measured against, with a warning, `splitmix64`, `rdrand`";
    TRUST_CPU = "random.trust_cpu", "random.trust_cpu=0|1", "0: RDRAND and RDSEED are mixed in and not credited";
    TRUST_BOOTLOADER = "random.trust_bootloader", "random.trust_bootloader=0|1", "0: the same for seeds of the boot loader and the firmware";
    TRUST_TPM = "alea.trust_tpm", "alea.trust_tpm=0|1", "0: the same for a TPM";
    TRUST_VIRTIO_RNG = "alea.trust_virtio_rng", "alea.trust_virtio_rng=0|1", "0: the same for virtio-rng";
    CONFIDENTIAL = "alea.confidential", "alea.confidential=1", "the host is not trusted: what it gives is mixed in and not credited";
    RDSEED = "alea.rdseed", "alea.rdseed=HOW[@N]", "for tests: after N words RDSEED is broken: `zeros`, `ones`, `repeat`, `cycle`, `half`, `silent`";
    RDRAND = "alea.rdrand", "alea.rdrand=HOW[@N]", "for tests: the same of RDRAND";
    RDRAND_COST = "alea.rdrand_cost", "alea.rdrand_cost=CYCLES", "to be measured: with `random.generator=rdrand` each RDRAND takes so many cycles of the TSC more, as where it leaves the virtual machine; at most 1,000,000";
    KNOWN_ANSWERS = "alea.known_answers", "alea.known_answers=PART", "for tests: one known answer of that part is wrong";
    JITTER_SAMPLES = "alea.jitter_samples", "alea.jitter_samples=N", "prints N raw samples of jitter, and powers off";
    INTERRUPT_SAMPLES = "alea.interrupt_samples", "alea.interrupt_samples=N", "waits until the times of so many interrupts of devices count, prints the first N, and powers off";
    SELFTEST = "alea.selftest", "alea.selftest[=only|figures]", "runs the kernel's self tests at boot; `only`: and powers off; `figures`: measures what memory costs instead of testing it";
    CRASH = "alea.crash", "alea.crash=KIND", "for tests: the kernel commits that fault: `panic`, `ud2`, `null`, `write-text`, `stack`, `nx`, `lock-order`, `block-locked`, `block-pinned`, `file-locked`, `freed-twice`, `freed-foreign`, `freed-write`, `sysret`";
    PREDICTORS = "alea.predictors", "alea.predictors=1|held", "for tests: the CPU is taken for one that has IBRS, IBPB, STIBP and SSBD, whose registers an emulator lets be written; held: and enhanced IBRS";
    FAIL_ALLOC = "alea.fail_alloc", "alea.fail_alloc=N[,SEED[,GENERATION]]", "for tests: one in N allocations fails, of processes that at least GENERATION forks (1) lie between process 1 and; 0: those that a thread names in `/proc/thread-self/alea/fail_nth`";
}
