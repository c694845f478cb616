//! One machine that goes back to a snapshot as often as one likes, in one QEMU process.
//!
//! QEMU keeps the snapshots in a file that no device of the machine uses. The machine has nothing that differs from one
//! run to the next: time is counted instructions from the first one on, there is no source of entropy, and the program brings
//! a fixed seed and waits for nothing outside. So each start stands at the same place with the same memory, however busy the
//! host is, and has the same instructions before it ([`Rig::state`] is for the test of that). The
//! VM generation id is written where the hypervisor writes it, before any CPU runs again.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use xtask_guest::gdb::{Breakpoint, Gdb, Registers, Stepping, Stop};
use xtask_guest::guest::Guest;
use xtask_guest::initramfs::Tree;
use xtask_guest::monitor::Monitor;
use xtask_guest::qemu::{FAIR_CPU, Machine};
use xtask_guest::symbolize;
use xtask_host::paths;

/// Only a hang takes as long, on a busy host too.
const PATIENCE: Duration = Duration::from_secs(240);

/// Instructions after which a CPU that runs alone counts as waiting for another. A reseed takes 14,000.
const ALONE: u64 = 1_000_000;

/// How long a CPU runs, of the host's time, before its instructions are counted.
const SLICE: Duration = Duration::from_millis(10);

/// Slices without one instruction after which it counts as waiting, too: it is halted.
const HALTED: u32 = 300;

/// The kernel's pointer to the id.
const ID_POINTER: &str = "alea_kernel::machine::vm_id::PLACE";

/// Where the operation begins, by its symbol in the program: known before the machine runs, so that nothing has to wait there
/// for the host, whose time would get into the guest.
const BEGIN: &str = "begin";

/// Programs see the page with the id, then the page of data, then the image of the vDSO.
const PAGES_BEFORE_VDSO: u64 = 2 * PAGE;
const PAGE: u64 = 4096;

/// What the machine has, in MiB.
const MEMORY: u64 = 24;

/// IF in EFLAGS.
const INTERRUPT_FLAG: u64 = 1 << 9;

/// The program's marks and its log, as it prints them.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    end: u64,
    done: u64,
    other_end: u64,
    other_done: u64,
    logs: u64,
    log_size: u64,
    entry_size: u64,
    go: u64,
    vdso: u64,
}

/// A VM generation id.
pub type Id = [u8; 16];

/// What the calls of one thread gave, in order.
pub type Log = Vec<Vec<u8>>;

/// Where a machine came to.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    /// What each thread was given.
    pub logs: Vec<Log>,
    /// The instructions that were executed until then, of all CPUs, since the machine began.
    pub instructions: u64,
}

impl End {
    /// In what two ends differ, in words.
    pub fn differs_from(&self, other: &Self) -> String {
        let mut text = format!("{} instructions, then {}\n", self.instructions, other.instructions);
        for (thread, (one, two)) in self.logs.iter().zip(&other.logs).enumerate() {
            text.push_str(&format!("thread {thread}: {} calls, then {}\n", one.len(), two.len()));
            for (call, (one, two)) in one.iter().zip(two).enumerate().filter(|(_, (a, b))| a != b) {
                let at = one.iter().zip(two).take_while(|(a, b)| a == b).count();
                text.push_str(&format!("  call {call}: from byte {at} of {} on\n", one.len()));
            }
        }
        text
    }
}

/// What programs of two machines could tell them apart by.
#[derive(PartialEq, Eq)]
pub struct State {
    pub registers: Vec<Registers>,
    /// All of it, from address 0 on.
    pub memory: Vec<u8>,
    /// The instructions that were executed, and what QEMU shows of each CPU's timer, which tells the time.
    pub clocks: Vec<String>,
}

impl State {
    /// The SHA-256 of all of it.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for (name, bytes) in self.registers.iter().flat_map(Registers::all) {
            hash.update(name);
            hash.update(bytes);
        }
        for clock in &self.clocks {
            hash.update(clock);
        }
        let hash = hash.chain_update(&self.memory).finalize();
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What an instruction did.
pub struct Step {
    /// Where the next one is; `None` at the end of the operation.
    pub next: Option<u64>,
    /// It read some of the id.
    pub read_id: bool,
}

/// A guest that stands between `begin` and `end` of its program.
pub struct Rig {
    // Before the folder, which it uses.
    guest: Guest,
    gdb: Gdb,
    monitor: Monitor,
    marks: Marks,
    /// Where the kernel sees the id, and where programs do.
    id_at: [u64; 2],
    watching: bool,
    cpus: u32,
    /// The CPU that the operation runs on: the last.
    cpu: u32,
    folder: TempDir,
}

impl Rig {
    /// Boots `kernel` with the program's `arguments`, and runs it to the mark `begin`.
    pub fn start(kernel: &Path, arguments: &str, cpus: u32) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("alea-").tempdir()?;
        let initrd = folder.path().join("initramfs.cpio");
        let mut tree = Tree::skeleton();
        let program = paths::program("snapshots");
        tree.host_file("init", 0o755, &program)?;
        fs::write(&initrd, tree.archive())?;
        let machine = Machine::new(kernel)
            .direct(kernel, Some(initrd), &format!("console=ttyS0 quiet -- {arguments}"))
            .cpu(&format!("{FAIR_CPU},rdrand=off,rdseed=off"))
            .memory(&format!("{MEMORY}M"))
            .smp(cpus)
            .icount(true)
            .standing()
            .args(["-device", "vmgenid,guid=01234567-89ab-cdef-0123-456789abcdef"])
            .args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
        let mut guest = Guest::start(&machine)?;
        let mut gdb = guest.gdb()?;
        let monitor = guest.monitor()?;
        gdb.set_stepping(Stepping::Undisturbed)?;
        let begin = symbolize::address_of(&program, BEGIN)?;
        gdb.set_breakpoint(Breakpoint::Hardware, begin)?;
        let stopped = gdb.resume(PATIENCE)?;
        guest.wait_for(" vdso 0x", PATIENCE)?;
        guest.wait_for("\n", PATIENCE)?;
        let text = guest.output();
        let marks = Marks::read(&text).with_context(|| format!("no marks in:\n{text}"))?;
        let mut rig = Self {
            guest,
            gdb,
            monitor,
            marks,
            id_at: [0; 2],
            watching: false,
            cpus,
            cpu: cpus - 1,
            folder,
        };
        rig.make_room_for_snapshots()?;
        let pointer = symbolize::address_of(kernel, ID_POINTER)?;
        let id_at = rig.word(pointer)?;
        rig.id_at = [id_at, marks.vdso - PAGES_BEFORE_VDSO + id_at % PAGE];
        let [kernels, programs] = rig.id_at.map(|at| rig.word(at));
        ensure!(kernels? == programs?, "the id is not where programs should see it");
        ensure!(rig.rip()? == begin, "no operation begins: {stopped:?}");
        rig.gdb.clear_breakpoint(Breakpoint::Hardware, begin)?;
        for mark in [marks.done, marks.other_end, marks.other_done] {
            rig.gdb.set_breakpoint(Breakpoint::Hardware, mark)?;
        }
        Ok(rig)
    }

    fn make_room_for_snapshots(&mut self) -> Result<()> {
        let file = self.folder.path().join("snapshots.qcow2");
        fs::File::create(&file)?;
        let cache = json!({ "no-flush": true });
        let raw = json!({
            "driver": "file", "node-name": "raw", "filename": file, "cache": cache
        });
        self.monitor.execute("blockdev-add", raw)?;
        let options = json!({ "driver": "qcow2", "file": "raw", "size": 1 << 20 });
        self.monitor.execute("blockdev-create", json!({ "job-id": "make", "options": options }))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let jobs = self.monitor.execute("query-jobs", json!({}))?;
            let job = &jobs[0];
            if job["status"] == "concluded" {
                ensure!(job["error"].is_null(), "no room for snapshots: {job}");
                break;
            }
            ensure!(Instant::now() < deadline, "QEMU does not make room for snapshots: {job}");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.monitor.execute("job-dismiss", json!({ "id": "make" }))?;
        let qcow2 = json!({
            "driver": "qcow2", "node-name": "snapshots", "file": "raw", "cache": cache
        });
        self.monitor.execute("blockdev-add", qcow2).map(drop)
    }

    /// Keeps the machine as it stands, in the place of what was kept before.
    pub fn save(&mut self) -> Result<()> {
        self.order("savevm here")
    }

    /// Goes back to what was kept, as a machine with this id; without one, with the device's, which QEMU writes there.
    pub fn restore(&mut self, id: Option<Id>) -> Result<()> {
        self.order("loadvm here")?;
        id.map_or(Ok(()), |id| self.set_id(id))
    }

    /// Writes the id as the hypervisor does.
    pub fn set_id(&mut self, id: Id) -> Result<()> {
        self.gdb.write(self.cpu, self.id_at[0], &id)
    }

    fn order(&mut self, line: &str) -> Result<()> {
        let answer = self.monitor.human(0, line)?;
        ensure!(answer.trim().is_empty(), "{line}: {answer}");
        Ok(())
    }

    /// Executes one instruction of the operation.
    pub fn step(&mut self) -> Result<Step> {
        self.watch(true)?;
        let stopped = self.gdb.step(self.cpu, PATIENCE)?;
        ensure!(!matches!(stopped, Stop::Exited(_)), "the machine ended in a step");
        let rip = self.rip()?;
        if matches!(stopped, Stop::Read { .. }) {
            // QEMU tells of a read in a step twice, and the second time executes nothing.
            self.gdb.step(self.cpu, PATIENCE)?;
            ensure!(self.rip()? == rip, "an instruction was passed over at {rip:#x}");
        }
        let next = (rip != self.marks.end).then_some(rip);
        Ok(Step { next, read_id: matches!(stopped, Stop::Read { .. }) })
    }

    /// Registers of all CPUs and the whole memory: all that two machines could differ in for a program.
    pub fn state(&mut self) -> Result<State> {
        let registers = (0..self.cpus).map(|cpu| self.gdb.registers(cpu)).collect::<Result<_>>()?;
        let file = self.folder.path().join("memory");
        self.monitor.save_memory(0..MEMORY << 20, &file)?;
        let mut clocks = vec![self.instructions()?.to_string()];
        for cpu in 0..self.cpus {
            clocks.push(self.monitor.human(cpu, &format!("info lapic {cpu}"))?);
        }
        Ok(State { registers, memory: fs::read(file)?, clocks })
    }

    /// Where the operation stands.
    pub fn rip(&mut self) -> Result<u64> {
        self.gdb.registers(self.cpu)?.rip()
    }

    /// Whether the CPU of the operation takes interrupts; while it holds a lock of the generator it does not.
    pub fn interrupts_on(&mut self) -> Result<bool> {
        Ok(self.gdb.registers(self.cpu)?.value("eflags")? & INTERRUPT_FLAG != 0)
    }

    /// How many calls of each thread have returned.
    pub fn returned(&mut self) -> Result<Vec<usize>> {
        (0..self.cpus).map(|n| Ok(self.word(self.log_at(n))? as usize)).collect()
    }

    /// Steps stop where the id is read; nothing else does.
    fn watch(&mut self, on: bool) -> Result<()> {
        if self.watching != on {
            for at in self.id_at {
                match on {
                    true => self.gdb.watch_reads(at, size_of::<Id>())?,
                    false => self.gdb.unwatch_reads(at, size_of::<Id>())?,
                }
            }
            self.watching = on;
        }
        Ok(())
    }

    /// Lets the operation come to its end, the other CPU's after it or before the rest of it, and reads what each thread was
    /// given. Only one CPU runs at a time and only marks stop it, so that nothing depends on the host.
    pub fn finish(&mut self, other_first: bool) -> Result<End> {
        self.watch(false)?;
        let Marks { done, other_end, other_done, .. } = self.marks;
        if self.cpus == 1 {
            self.run_to(0, done)?;
        } else {
            self.let_other_go()?;
            let (first, second) = ((self.cpu, done), (0, other_end));
            let order = if other_first { [second, first] } else { [first, second] };
            for (cpu, mark) in order {
                self.run_to(cpu, mark)?;
            }
            // From a breakpoint only a step leads on.
            self.gdb.step(0, PATIENCE)?;
            self.run_to(0, other_done)?;
        }
        let logs = (0..self.cpus).map(|n| self.log(n)).collect::<Result<_>>()?;
        Ok(End { logs, instructions: self.instructions()? })
    }

    /// Whether the other CPU comes to the end of its part while that of the operation stands; else it waits for it, which is
    /// decided by instructions. The host looks now and then how many there were, and each time it stops the machine for that the
    /// guest's next interrupt may come at another instruction: where the machine has come to then is good for nothing else.
    pub fn other_may_go_first(&mut self) -> Result<bool> {
        self.watch(false)?;
        self.let_other_go()?;
        let mut now = self.instructions()?;
        let end = now + ALONE;
        let mut halted = 0;
        while now < end && halted < HALTED {
            if let Some(stopped) = self.gdb.resume_one(0, SLICE)? {
                return self.stands_at(0, self.marks.other_end, &stopped).map(|()| true);
            }
            let before = std::mem::replace(&mut now, self.instructions()?);
            halted = if now == before { halted + 1 } else { 0 };
        }
        Ok(false)
    }

    fn let_other_go(&mut self) -> Result<()> {
        self.gdb.write(self.cpu, self.marks.go, &1u32.to_le_bytes())
    }

    /// Runs one CPU until it comes to `mark`.
    fn run_to(&mut self, cpu: u32, mark: u64) -> Result<()> {
        let stopped = self.gdb.resume_one(cpu, PATIENCE)?;
        self.stands_at(cpu, mark, &stopped.context("a CPU does not come to its mark")?)
    }

    fn stands_at(&mut self, cpu: u32, mark: u64, stopped: &Stop) -> Result<()> {
        let rip = self.gdb.registers(cpu)?.rip()?;
        ensure!(rip == mark, "CPU {cpu} stands at {rip:#x}: {stopped:?}\n{}", self.guest.output());
        Ok(())
    }

    /// How many have been executed since the machine began.
    fn instructions(&mut self) -> Result<u64> {
        let count = &self.monitor.execute("query-replay", json!({}))?["icount"];
        count.as_u64().with_context(|| format!("{count} is no count of instructions"))
    }

    fn log_at(&self, thread: u32) -> u64 {
        self.marks.logs + u64::from(thread) * self.marks.log_size
    }

    fn log(&mut self, thread: u32) -> Result<Log> {
        let at = self.log_at(thread);
        let count = self.word(at)?;
        let entry = |rig: &mut Self, n: u64| {
            let at = at + 8 + n * rig.marks.entry_size;
            let len = rig.word(at)?;
            ensure!(len < rig.marks.entry_size, "a draw failed with {:#x}", len);
            rig.gdb.read(rig.cpu, at + 8, len as usize)
        };
        (0..count).map(|n| entry(self, n)).collect()
    }

    fn word(&mut self, at: u64) -> Result<u64> {
        let bytes = self.gdb.read(self.cpu, at, 8)?;
        Ok(u64::from_le_bytes(bytes.try_into().ok().context("eight bytes are eight")?))
    }
}

impl Marks {
    /// Reads `snapshots: begin 0x1 end 0x2 ... logs 0x5 of 7 entries of 6 go 0x8`.
    fn read(output: &str) -> Option<Self> {
        let line = output.lines().rfind(|line| line.starts_with("snapshots: begin "))?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            u64::from_str_radix(words.get(at + 1)?.strip_prefix("0x")?, 16).ok()
        };
        let mut sizes = words.windows(2).filter(|pair| pair[0] == "of").map(|pair| pair[1].parse());
        Some(Self {
            end: after("end")?,
            done: after("done")?,
            other_end: after("other_end")?,
            other_done: after("other_done")?,
            logs: after("logs")?,
            log_size: sizes.next()?.ok()?,
            entry_size: sizes.next()?.ok()?,
            go: after("go")?,
            vdso: after("vdso")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read() {
        let line = "snapshots: begin 0x10 end 0x20 done 0x40 other_end 0x30 other_done 0x31 logs 0x50 of 60 entries of 7 go 0x80 vdso 0x90";
        let marks = Marks::read(line).unwrap();
        assert_eq!((marks.end, marks.log_size, marks.entry_size, marks.vdso), (0x20, 60, 7, 0x90));
        assert!(Marks::read("snapshots: begin 0x10").is_none());
    }
}
