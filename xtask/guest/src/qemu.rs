//! Finds QEMU, checks its version, and turns a [`Machine`] into a command line.
//!
//! This is the only place that knows QEMU's options. `-nodefaults` always: no option ROM, no
//! network card, nothing that the caller did not name.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::accel;
use xtask_host::process;

/// Older ones miscompute flags under TCG and crash their guests.
pub const OLDEST: Version = Version(8, 2);

/// The model on which Linux is fastest under TCG, and so the fair one for every comparison.
pub const FAIR_CPU: &str = "max,erms=off,fsrm=off,la57=off";

/// Memory of a machine for which nobody says.
pub const MEMORY: &str = "512M";

/// QEMU's exit status after a guest wrote [`PANIC_BYTE`] to the debug-exit port.
pub const PANIC_STATUS: i32 = (PANIC_BYTE << 1) | 1;

/// What a panicking kernel writes to port [`DEBUG_EXIT_PORT`].
pub const PANIC_BYTE: i32 = 0x10;

/// I/O port of `isa-debug-exit`.
pub const DEBUG_EXIT_PORT: u16 = 0xf4;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version(pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Accel {
    /// KVM if a guest really runs on it, else TCG
    Auto,
    Tcg,
    Kvm,
}

/// The machine options that every command which boots something takes.
#[derive(Clone, Debug, Args)]
pub struct MachineArgs {
    /// Number of CPUs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub smp: u32,
    /// Memory, as QEMU's -m takes it [default: 512M; for a root of your own, by its size]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// CPU model
    #[arg(long, value_name = "MODEL", default_value = FAIR_CPU)]
    pub cpu: String,
    /// How the guest's instructions are run
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub accel: Accel,
    /// Count instructions: guest time is instructions executed (TCG only)
    #[arg(long)]
    pub icount: bool,
    /// More arguments for QEMU, split as a shell splits them; may be given several times
    #[arg(long = "qemu-arg", value_name = "ARGS", allow_hyphen_values = true)]
    pub qemu_args: Vec<String>,
}

impl Default for MachineArgs {
    fn default() -> Self {
        Self {
            smp: 1,
            memory: None,
            cpu: FAIR_CPU.into(),
            accel: Accel::Auto,
            icount: false,
            qemu_args: Vec::new(),
        }
    }
}

impl MachineArgs {
    /// The memory that the machine has.
    pub fn memory(&self) -> &str {
        self.memory.as_deref().unwrap_or(MEMORY)
    }

    /// The machine, without anything to boot yet. Settles `auto` (and says so when KVM is no use).
    pub fn machine(&self) -> Result<Machine> {
        self.machine_by(accel::choose)
    }

    /// The options that ask for this machine: those that are not as usual.
    pub fn words(&self) -> Vec<String> {
        let usual = Self::default();
        let mut words = Vec::new();
        let mut option = |name: &str, value: &str| words.extend([name.into(), value.into()]);
        if self.smp != usual.smp {
            option("--smp", &self.smp.to_string());
        }
        if let Some(memory) = &self.memory {
            option("--memory", memory);
        }
        if self.cpu != usual.cpu {
            option("--cpu", &self.cpu);
        }
        match self.accel {
            Accel::Auto => {}
            Accel::Tcg => option("--accel", "tcg"),
            Accel::Kvm => option("--accel", "kvm"),
        }
        self.qemu_args.iter().for_each(|args| option("--qemu-arg", args));
        words.extend(self.icount.then(|| "--icount".into()));
        words
    }

    /// The same without a word of KVM.
    pub fn quiet_machine(&self) -> Result<Machine> {
        self.machine_by(accel::choose_quietly)
    }

    fn machine_by(&self, choose: fn(&str) -> Result<Accel>) -> Result<Machine> {
        let accel = match self.accel {
            Accel::Auto if self.icount => Accel::Tcg,
            Accel::Kvm if self.icount => bail!("--icount counts under TCG only: leave --accel out"),
            Accel::Auto => choose(&self.cpu)?,
            named => named,
        };
        let mut extra = Vec::new();
        for args in &self.qemu_args {
            let words = shlex::split(args);
            let words = words.with_context(|| format!("--qemu-arg: a quote is open: {args}"))?;
            extra.extend(words.into_iter().map(OsString::from));
        }
        Ok(Machine {
            boot: Boot::Nothing,
            smp: self.smp,
            memory: self.memory().to_owned(),
            cpu: self.cpu.clone(),
            accel,
            icount: self.icount,
            serial: true,
            debug: false,
            in_place: false,
            terminal: None,
            extra,
        })
    }
}

/// What the machine boots.
#[derive(Clone, Debug)]
pub enum Boot {
    Nothing,
    /// QEMU's own loader: PVH or multiboot ELF, or Linux's bzImage.
    Direct {
        kernel: PathBuf,
        initrd: Option<PathBuf>,
        append: String,
    },
    /// A bootable ISO, under SeaBIOS or the UEFI firmware given.
    Iso {
        iso: PathBuf,
        firmware: Option<PathBuf>,
    },
    /// A disk with the files of `folder`, under the UEFI firmware given.
    Uefi {
        folder: PathBuf,
        firmware: PathBuf,
    },
}

/// One virtual machine.
#[derive(Clone, Debug)]
pub struct Machine {
    pub boot: Boot,
    pub smp: u32,
    pub memory: String,
    pub cpu: String,
    pub accel: Accel,
    pub icount: bool,
    /// The guest has a serial port, which is standard input and output.
    pub serial: bool,
    /// The machine stands at its first instruction until a debugger lets it run; its start says how gdb is attached.
    pub debug: bool,
    /// The kernel stays where it was linked, so that its file says where everything is.
    pub in_place: bool,
    /// The serial line has a terminal of its own, and this log.
    pub terminal: Option<PathBuf>,
    pub extra: Vec<OsString>,
}

impl Machine {
    /// A one-CPU TCG machine of 512 MiB and the fair CPU model that boots `kernel`.
    pub fn new(kernel: impl Into<PathBuf>) -> Self {
        let machine = Self {
            boot: Boot::Nothing,
            smp: 1,
            memory: MEMORY.into(),
            cpu: FAIR_CPU.into(),
            accel: Accel::Tcg,
            icount: false,
            serial: true,
            debug: false,
            in_place: false,
            terminal: None,
            extra: Vec::new(),
        };
        machine.direct(kernel, None, "console=ttyS0")
    }

    /// Boots `kernel` with QEMU's own loader.
    pub fn direct(
        mut self,
        kernel: impl Into<PathBuf>,
        initrd: Option<PathBuf>,
        append: &str,
    ) -> Self {
        self.boot = Boot::Direct { kernel: kernel.into(), initrd, append: append.to_owned() };
        self
    }

    pub fn initrd(mut self, path: impl Into<PathBuf>) -> Self {
        if let Boot::Direct { initrd, .. } = &mut self.boot {
            *initrd = Some(path.into());
        }
        self
    }

    /// Replaces the kernel command line.
    pub fn append(mut self, line: &str) -> Self {
        if let Boot::Direct { append, .. } = &mut self.boot {
            *append = line.to_owned();
        }
        self
    }

    pub fn smp(mut self, cpus: u32) -> Self {
        self.smp = cpus;
        self
    }

    pub fn memory(mut self, size: &str) -> Self {
        self.memory = size.to_owned();
        self
    }

    pub fn cpu(mut self, model: &str) -> Self {
        self.cpu = model.to_owned();
        self
    }

    pub fn icount(mut self, on: bool) -> Self {
        self.icount = on;
        self
    }

    /// Takes the serial port out: nothing answers at its addresses.
    pub fn without_serial(mut self) -> Self {
        self.serial = false;
        self
    }

    /// Has the machine stand until a debugger lets it run.
    pub fn debugged(mut self, on: bool) -> Self {
        self.debug = on;
        self.in_place |= on;
        self
    }

    /// Has the kernel stay where it was linked (`nokaslr`).
    pub fn in_place(mut self) -> Self {
        self.in_place = true;
        self
    }

    /// Adds arguments for QEMU, such as `-device virtio-rng-pci`.
    pub fn args<I: IntoIterator<Item = S>, S: Into<OsString>>(mut self, args: I) -> Self {
        self.extra.extend(args.into_iter().map(Into::into));
        self
    }

    /// Keeps the machine's memory in `file`, where it can be read while the machine runs or stands.
    pub fn memory_in(self, file: &Path) -> Self {
        let object = format!(
            "memory-backend-file,id=memory,share=on,size={},mem-path={}",
            self.memory,
            file.display()
        );
        self.args(["-object", &object, "-machine", "memory-backend=memory"])
    }

    /// Has the machine stand until the monitor or the gdb stub lets it run.
    pub fn standing(self) -> Self {
        self.in_place().args(["-S"])
    }

    /// The kernel that is booted, when it is a file of its own.
    pub fn kernel(&self) -> Option<&Path> {
        match &self.boot {
            Boot::Direct { kernel, .. } => Some(kernel),
            _ => None,
        }
    }

    /// Puts the serial line on a terminal of its own, which QEMU names on its standard output, and what comes out of it into `log`.
    pub fn on_a_terminal(mut self, log: &Path) -> Self {
        self.terminal = Some(log.to_owned());
        self
    }

    fn console(&self) -> String {
        match &self.terminal {
            Some(log) => format!("pty,id=console,logfile={}", log.display()),
            None => "stdio,id=console,signal=off".to_owned(),
        }
    }

    /// QEMU with this machine's arguments; the guest's serial line is standard input and output, unless it has a terminal.
    pub fn command(&self) -> Command {
        let mut qemu = Command::new(program());
        let accel = match self.accel {
            Accel::Kvm => "kvm",
            Accel::Tcg | Accel::Auto => "tcg",
        };
        qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"])
            .args(["-machine", &format!("pc,accel={accel}")])
            .args(["-cpu", &self.cpu, "-smp", &self.smp.to_string(), "-m", &self.memory])
            .args(["-chardev", &self.console()])
            .args(["-serial", if self.serial { "chardev:console" } else { "none" }])
            .args(["-device", &format!("isa-debug-exit,iobase={DEBUG_EXIT_PORT:#x},iosize=0x04")]);
        if self.icount {
            qemu.args(["-icount", "shift=0,sleep=off"]);
        }
        match &self.boot {
            Boot::Nothing => {}
            Boot::Direct { kernel, initrd, append } => {
                qemu.arg("-kernel").arg(kernel);
                if let Some(initrd) = initrd {
                    qemu.arg("-initrd").arg(initrd);
                }
                let word = if self.in_place { "nokaslr " } else { "" };
                qemu.args(["-append", &format!("{word}{append}")]);
            }
            Boot::Iso { iso, firmware } => {
                qemu.arg("-cdrom").arg(iso).args(["-boot", "d"]);
                if let Some(firmware) = firmware {
                    qemu.arg("-bios").arg(firmware);
                }
            }
            Boot::Uefi { folder, firmware } => {
                let disk =
                    format!("file=fat:{},format=raw,if=virtio,readonly=on", folder.display());
                qemu.args(["-drive", &disk]).arg("-bios").arg(firmware);
            }
        }
        qemu.args(&self.extra);
        qemu
    }
}

/// The QEMU to use: `$ALEA_QEMU`, else `qemu-system-x86_64` from `$PATH`.
pub fn program() -> OsString {
    std::env::var_os("ALEA_QEMU").unwrap_or_else(|| "qemu-system-x86_64".into())
}

/// The version of the QEMU that would be used.
pub fn version() -> Result<Version> {
    let text = process::output(Command::new(program()).arg("--version"))?;
    parse_version(&text).with_context(|| format!("QEMU's version is not readable: {text:?}"))
}

/// Fails unless QEMU is there and new enough.
pub fn check() -> Result<Version> {
    let found = version()?;
    if found < OLDEST {
        bail!("QEMU {found} is too old: it crashes guests under TCG; {OLDEST} or newer is needed");
    }
    Ok(found)
}

fn parse_version(text: &str) -> Option<Version> {
    let rest = text.split("version ").nth(1)?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some(Version(numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        let debian = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\nCopy";
        assert_eq!(parse_version(debian), Some(Version(10, 0)));
        assert_eq!(parse_version("QEMU emulator version 7.2.15"), Some(Version(7, 2)));
        assert_eq!(parse_version("QEMU emulator version 9.1"), Some(Version(9, 1)));
        assert_eq!(parse_version("something else"), None);
        assert!(Version(10, 0) > OLDEST && Version(8, 1) < OLDEST && Version(8, 2) >= OLDEST);
    }

    #[test]
    fn the_command_line_says_what_the_machine_is() {
        let machine = Machine::new("k.elf")
            .initrd("i.cpio")
            .append("console=ttyS0 quiet")
            .smp(4)
            .memory("64M")
            .cpu("qemu64")
            .icount(true)
            .args(["-device", "virtio-rng-pci"]);
        let line = process::show(&machine.command());
        for part in [
            "-machine pc,accel=tcg",
            "-cpu qemu64 -smp 4 -m 64M",
            "-icount shift=0,sleep=off",
            "-kernel k.elf -initrd i.cpio -append 'console=ttyS0 quiet'",
            "isa-debug-exit,iobase=0xf4",
            "-device virtio-rng-pci",
        ] {
            assert!(line.contains(part), "{part} is not in: {line}");
        }
    }

    #[test]
    fn who_looks_into_a_machine_finds_the_kernel_where_its_file_says() {
        let machine = Machine::new("k.elf").append("quiet");
        for machine in [machine.clone().standing(), machine.debugged(true)] {
            let line = process::show(&machine.command());
            assert!(line.contains("-append 'nokaslr quiet'"), "{line}");
        }
    }

    #[test]
    fn arguments_are_split_as_a_shell_splits_them() {
        let machine = |args: &[&str]| {
            let qemu_args = args.iter().map(ToString::to_string).collect();
            MachineArgs { qemu_args, accel: Accel::Tcg, ..MachineArgs::default() }.machine()
        };
        let extra = machine(&["-s -S", "-name 'two words'", "-device=x"]).unwrap().extra;
        assert_eq!(extra, ["-s", "-S", "-name", "two words", "-device=x"]);
        assert!(machine(&["-name 'open"]).is_err());
    }

    #[test]
    fn the_panic_status_is_the_one_qemu_makes() {
        assert_eq!(PANIC_STATUS, 33);
    }
}
