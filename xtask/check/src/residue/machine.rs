//! A machine that runs `userland/random/residue.c` and stands after each draw, with all that can be seen of it then.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use xtask_guest::gdb::{Breakpoint, Gdb, Registers, Stop};
use xtask_guest::guest::Guest;
use xtask_guest::initramfs::Tree;
use xtask_guest::monitor::{KERNEL_HALF, Monitor};
use xtask_guest::qemu::Machine;
use xtask_guest::symbolize::address_of;
use xtask_host::paths;

use super::devices::Devices;
use super::fresh::Fresh;
use super::reading::Boot;

pub const PAGE: usize = 4096;

/// Enough for the kernel and one program.
const MEMORY: &str = "48M";
/// What stands before each word of a kernel that has switches (see [`super::wipes`]).
pub const MARKER: [u32; 3] = [0x5717_c4ed, 0x0ff0_a1ea, 0x3e5c_d21b];
/// Where the initramfs is put. QEMU's own place for it reaches into the ACPI tables of a machine with a TPM, whose log leaves less room
/// than it reckons with.
const ARCHIVE: u64 = 32 << 20;
/// Far more than anything between two draws takes.
const PATIENCE: Duration = Duration::from_secs(240);
/// Where the draws end, and where a program begins.
const PLACES: [&str; 3] = ["residue_after_syscall", "residue_after_call", "_start"];
/// `struct now` of the program.
const NOW: usize = 64;
/// The auxiliary vector's entry for 16 random bytes.
const AT_RANDOM: u64 = 25;
/// Where a program's auxiliary vector ends in its stack, in bytes, at most.
const STACK: usize = 2 * PAGE;

/// Statics of the kernel, with their names and sizes in bytes, at the least.
const SERVICE: &str = "alea_kernel::random::live::RANDOM";
const CPU: (&str, usize) = ("alea_kernel::random::live::CPU", 640);
/// Where the service begins with its base key, and has its pools then.
const BASE: Range<u64> = 0..96;
const POOLS: Range<u64> = 96..1216;
/// Pages of a stack of the kernel, at most.
const STACK_PAGES: u64 = 16;
const PER_CPU: &str = "__percpu_start";
/// Bytes of a state of the vDSO, and where its key begins.
const STATE: usize = 576;
const STATE_KEY: u64 = 512;

/// What the program did before it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Drew bytes.
    Drawn,
    /// Wrote bytes to be mixed in.
    Written,
    /// Had the generator take a new key.
    Reseeded,
    /// Nothing more.
    End,
    /// Held bytes in registers while the kernel worked.
    Held,
}

/// Name, length asked for, kind, place and length of the bytes, and the state of the vDSO.
type Told = (String, usize, Kind, (u64, usize), u64);

/// One stop: what was done, and everything that the machine holds.
pub struct Standing {
    pub interface: String,
    pub asked: usize,
    pub kind: Kind,
    /// Who stopped.
    pub cpu: u32,
    /// The bytes that were drawn or written, and where in memory they rightly are.
    pub bytes: Vec<u8>,
    pub place: Vec<Range<usize>>,
    /// Where the generator keeps its keys, the base's, each CPU's and this thread's of the vDSO; and the pool.
    pub homes: Vec<Range<usize>>,
    pub pool: Vec<Range<usize>>,
    /// Live frames of the other CPUs in the kernel: they may be in the middle of making a key.
    pub busy: Vec<Range<usize>>,
    /// What RDSEED gave this CPU for a new key since the last stop.
    pub fresh: Vec<u8>,
    /// What devices gave since the last stop, by name; nothing yet while another CPU may be in the middle of taking it.
    pub given: Vec<(&'static str, Vec<u8>)>,
    /// The key of this thread's state of the vDSO.
    pub key: Vec<u8>,
    pub memory: Vec<u8>,
    /// Every register of every CPU.
    pub registers: Vec<(String, Vec<u8>)>,
}

/// The machine and both connections to QEMU.
pub struct Residue {
    gdb: Gdb,
    monitor: Monitor,
    guest: Guest,
    folder: TempDir,
    devices: Devices,
    cpus: u32,
    places: [u64; 3],
    now: u64,
    kernel: PathBuf,
    statics: Statics,
    /// From the first instruction of the program on.
    fresh: Option<Fresh>,
}

struct Statics {
    service: u64,
    /// Of a CPU's generator, in its own part of memory.
    cpu: u64,
}

/// The program that draws.
pub fn program() -> std::path::PathBuf {
    paths::alea().join("userland/residue")
}

impl Residue {
    /// Boots to before the first instruction.
    pub fn boot(boot: &Boot<'_>, seed: &[u8]) -> Result<Self> {
        let &Boot { kernel, cpus, interfaces, cpu, switch } = boot;
        paths::require(&[kernel.to_owned(), program()])?;
        let folder = tempfile::Builder::new().prefix("alea-").tempdir_in(memory_folder())?;
        let archive = folder.path().join("initrd");
        let mut tree = Tree::skeleton();
        tree.host_file("residue", 0o755, &program())?;
        std::fs::write(&archive, tree.archive())?;
        let seed_file = folder.path().join("seed");
        std::fs::write(&seed_file, seed)?;
        let (devices, arguments) = Devices::start(folder.path())?;
        let length = std::fs::metadata(&archive)?.len();
        let line = format!(
            "console=ttyS0 quiet initrdmem={ARCHIVE},{length} rdinit=/residue -- {}",
            interfaces.join(" ")
        );
        let mut machine = Machine::new(kernel).append(&line).smp(cpus);
        if let Some(cpu) = cpu {
            machine = machine.cpu(cpu);
        }
        let loader = format!("loader,file={},addr={ARCHIVE},force-raw=on", archive.display());
        let machine = machine
            .memory(MEMORY)
            .memory_in(&folder.path().join("memory"))
            .standing()
            .args(arguments)
            .args(["-device", &loader])
            .args(["-fw_cfg", &format!("name=opt/org.alea/seed,file={}", seed_file.display())]);
        let guest = Guest::start(&machine)?;
        let mut gdb = guest.gdb()?;
        let monitor = guest.monitor()?;
        if let Some(number) = switch {
            set_switches(&folder.path().join("memory"), number)?;
        }
        let symbol = |name: &str| address_of(&program(), name);
        let places = [symbol(PLACES[0])?, symbol(PLACES[1])?, symbol(PLACES[2])?];
        for place in places {
            gdb.set_breakpoint(Breakpoint::Software, place)?;
        }
        let statics = Statics {
            service: address_of(kernel, SERVICE)?,
            cpu: address_of(kernel, CPU.0)? - address_of(kernel, PER_CPU)?,
        };
        let (now, kernel, fresh) = (symbol("now")?, kernel.to_owned(), None);
        Ok(Self { gdb, monitor, guest, folder, devices, cpus, places, now, kernel, statics, fresh })
    }

    /// Runs to the first instruction of the program and returns memory as it is then.
    pub fn start(&mut self) -> Result<Vec<u8>> {
        ensure!(self.fresh.is_none(), "started twice");
        let cpu = self.run()?;
        self.fresh = Some(Fresh::watch(&mut self.gdb, cpu, &self.kernel)?);
        self.memory()
    }

    /// Runs to the end of the next draw.
    pub fn next_stop(&mut self) -> Result<Standing> {
        let cpu = self.run()?;
        let registers = self.gdb.registers(cpu)?;
        let (interface, asked, kind, range, state) = match registers.rip()? == self.places[2] {
            true => self.at_random(cpu, &registers)?,
            false => self.drawn(cpu, &registers)?,
        };
        let memory = self.memory()?;
        let place = self.physical(cpu, range.0, range.1)?;
        let bytes = place.iter().flat_map(|range| &memory[range.clone()]).copied().collect();
        let mut homes = self.in_service(cpu, BASE)?;
        for cpu in 0..self.cpus {
            let own = self.per_cpu(cpu)?;
            homes.extend(self.physical(cpu, own + self.statics.cpu, CPU.1)?);
        }
        let mut key = Vec::new();
        if state != 0 {
            homes.extend(self.physical(cpu, state, STATE)?);
            for range in self.physical(cpu, state + STATE_KEY, 32)? {
                key.extend_from_slice(&memory[range]);
            }
        }
        let pool = self.in_service(cpu, POOLS)?;
        let registers = self.registers()?;
        let busy = self.live_frames(cpu)?;
        let fresh = self.fresh.as_mut().map_or(Vec::new(), |fresh| fresh.take(cpu));
        let given = if self.others_reseed(cpu)? { Vec::new() } else { self.devices.given() };
        Ok(Standing {
            interface,
            asked,
            kind,
            cpu,
            bytes,
            place,
            homes,
            pool,
            busy,
            fresh,
            given,
            key,
            memory,
            registers,
        })
    }

    /// What the program tells of its last draw.
    fn drawn(&mut self, cpu: u32, registers: &Registers) -> Result<Told> {
        let now = self.gdb.read(cpu, self.now, NOW)?;
        let name = now[..32].split(|byte| *byte == 0).next().unwrap_or_default();
        let word = |n: usize| now[32..].as_chunks::<8>().0[n];
        let [asked, buffer, state, kind] = [0, 1, 2, 3].map(|n| u64::from_le_bytes(word(n)));
        let name = String::from_utf8(name.to_vec())?;
        let result = registers.value("rax")? as i64;
        let kind = match kind {
            0 => Kind::Drawn,
            1 => Kind::Written,
            2 => Kind::Reseeded,
            3 => Kind::End,
            4 => Kind::Held,
            _ => bail!("the program says nonsense"),
        };
        let count =
            usize::try_from(result).with_context(|| format!("{name} of {asked} gives {result}"))?;
        ensure!(kind != Kind::Drawn || count > 0, "{name} of {asked} gives nothing");
        let count = match kind {
            Kind::Drawn | Kind::Written => count,
            Kind::Held => asked as usize,
            Kind::Reseeded | Kind::End => 0,
        };
        Ok((name, asked as usize, kind, (buffer, count), state))
    }

    fn at_random(&mut self, cpu: u32, registers: &Registers) -> Result<Told> {
        let rsp = registers.value("rsp")?;
        // A page at a time: what follows the vector's last page may not be there.
        let (mut stack, mut end) = (Vec::new(), rsp);
        while stack.len() < STACK {
            let there = PAGE - end as usize % PAGE;
            stack.extend(self.gdb.read(cpu, end, there)?);
            end += there as u64;
            if let Some(value) = entry(&stack, AT_RANDOM) {
                return Ok(("at_random".into(), 16, Kind::Drawn, (value, 16), 0));
            }
        }
        bail!("a program without AT_RANDOM")
    }

    /// Lets all CPUs run to the next of the places; the CPU that is there.
    fn run(&mut self) -> Result<u32> {
        loop {
            for cpu in 0..self.cpus {
                self.leave(cpu)?;
            }
            let cpu = match self.gdb.resume(PATIENCE).with_context(|| self.guest.output())? {
                Stop::Signal { cpu, .. } | Stop::Read { cpu } => cpu,
                Stop::Exited(status) => bail!("QEMU ended ({status}):\n{}", self.guest.output()),
            };
            let registers = self.gdb.registers(cpu)?;
            let rip = registers.rip()?;
            match &mut self.fresh {
                Some(fresh) if fresh.after == rip => {
                    fresh.stopped(&mut self.monitor, cpu, &registers)?;
                }
                _ if self.places.contains(&rip) => return Ok(cpu),
                _ => bail!("stopped at {rip:#x}:\n{}", self.guest.output()),
            }
        }
    }

    /// Steps over the breakpoint at which a CPU stands, if it does.
    fn leave(&mut self, cpu: u32) -> Result<()> {
        let rip = self.gdb.registers(cpu)?.rip()?;
        if self.places.contains(&rip) || self.fresh.as_ref().is_some_and(|fresh| fresh.after == rip)
        {
            self.gdb.clear_breakpoint(Breakpoint::Software, rip)?;
            self.gdb.step(cpu, PATIENCE)?;
            self.gdb.set_breakpoint(Breakpoint::Software, rip)?;
        }
        Ok(())
    }

    /// What lies on the stack of each CPU but this one that is in the kernel.
    fn live_frames(&mut self, cpu: u32) -> Result<Vec<Range<usize>>> {
        let mut frames = Vec::new();
        for other in (0..self.cpus).filter(|other| *other != cpu) {
            let rsp = self.gdb.registers(other)?.value("rsp")?;
            if rsp < KERNEL_HALF {
                continue;
            }
            let page = rsp / PAGE as u64;
            // No stack reaches into the next: no page is mapped between them.
            for at in (page..page + STACK_PAGES).map(|page| rsp.max(page * PAGE as u64)) {
                match self.physical(other, at, PAGE - at as usize % PAGE)? {
                    found if found.is_empty() => break,
                    found => frames.extend(found),
                }
            }
        }
        Ok(frames)
    }

    fn others_reseed(&mut self, cpu: u32) -> Result<bool> {
        let Some(fresh) = &mut self.fresh else { return Ok(false) };
        for other in (0..self.cpus).filter(|other| *other != cpu) {
            if fresh.is_reseeding(&mut self.monitor, other)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn memory(&self) -> Result<Vec<u8>> {
        let mut memory = Vec::new();
        File::open(self.folder.path().join("memory"))?.read_to_end(&mut memory)?;
        Ok(memory)
    }

    /// Where a CPU keeps what is its own: its GS base in the kernel.
    fn per_cpu(&mut self, cpu: u32) -> Result<u64> {
        let registers = self.gdb.registers(cpu)?;
        let bases = [registers.value("gs_base")?, registers.value("k_gs_base")?];
        bases
            .into_iter()
            .find(|base| *base >= KERNEL_HALF)
            .context("a CPU without a part of its own")
    }

    /// Where a part of the service lies in physical memory.
    fn in_service(&mut self, cpu: u32, part: Range<u64>) -> Result<Vec<Range<usize>>> {
        let length = (part.end - part.start) as usize;
        self.physical(cpu, self.statics.service + part.start, length)
    }

    /// Where `length` bytes lie in physical memory, as far as they are there.
    fn physical(&mut self, cpu: u32, address: u64, length: usize) -> Result<Vec<Range<usize>>> {
        let (mut ranges, end) = (Vec::new(), address + length as u64);
        let mut at = address;
        while at < end {
            let next = (at + 1).next_multiple_of(PAGE as u64).min(end);
            // A state of the vDSO that was never used has no page.
            if let Some(start) = self.monitor.physical(cpu, at)? {
                ranges.push(start as usize..start as usize + (next - at) as usize);
            }
            at = next;
        }
        Ok(ranges)
    }

    /// What the stub shows, and the vector registers whole, which only the monitor has.
    fn registers(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut all = Vec::new();
        for cpu in 0..self.cpus {
            let shown = self.gdb.registers(cpu)?;
            all.extend(
                shown.all().map(|(name, bytes)| (format!("{name} of CPU {cpu}"), bytes.to_vec())),
            );
            let text = self.monitor.human(cpu, "info registers")?;
            let wide = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in wide.split("YMM").skip(1) {
                let Some((number, words)) = part.split_once('=') else { continue };
                let words = words.split(' ').take(4).map(|word| u64::from_str_radix(word, 16));
                let words = words.collect::<Result<Vec<_>, _>>()?;
                let bytes = words.iter().rev().flat_map(|word| word.to_le_bytes()).collect();
                all.push((format!("ymm{number} of CPU {cpu}"), bytes));
            }
        }
        Ok(all)
    }
}

/// Writes `number` into each switch of the kernel that was loaded, its own and that of the vDSO's image.
fn set_switches(memory: &Path, number: u32) -> Result<()> {
    let file = File::options().read(true).write(true).open(memory)?;
    let mut bytes = Vec::new();
    (&file).read_to_end(&mut bytes)?;
    let marker: Vec<u8> = MARKER.iter().flat_map(|word| word.to_le_bytes()).collect();
    let found = bytes.windows(marker.len()).step_by(4).enumerate();
    let found: Vec<usize> =
        found.filter(|(_, window)| **window == marker).map(|(n, _)| n * 4 + marker.len()).collect();
    ensure!(found.len() >= 2, "the kernel has {} switches in memory", found.len());
    found.iter().try_for_each(|at| Ok(file.write_all_at(&number.to_le_bytes(), *at as u64)?))
}

/// Where the machine's memory is kept: in memory, where there is such a folder.
fn memory_folder() -> std::path::PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() }
}

/// The value of an entry of the auxiliary vector, if it lies in what is here of a program's first stack.
fn entry(stack: &[u8], wanted: u64) -> Option<u64> {
    let (words, _) = stack.as_chunks::<8>();
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    let arguments = words.next()?;
    let environment = words.skip(arguments as usize + 1);
    let mut vector = environment.skip_while(|word| *word != 0).skip(1);
    while let (Some(name), Some(value)) = (vector.next(), vector.next()) {
        if name == wanted {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_in_stacks_cut_anywhere() {
        // Two arguments, one variable, three entries.
        let words = [2, 0x10, 0x18, 0, 0x20, 0, 6, 4096, AT_RANDOM, 0x7777, 0, 0];
        let stack: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        for cut in 0..=stack.len() {
            let whole = cut >= 10 * 8;
            assert_eq!(entry(&stack[..cut], AT_RANDOM), whole.then_some(0x7777), "{cut} bytes");
        }
        assert_eq!(entry(&stack, 51), None);
    }
}
