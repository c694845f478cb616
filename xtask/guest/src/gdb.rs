//! QEMU's gdb stub: stopping the CPUs of a guest where one likes, stepping one of them, and looking into registers
//! and memory.
//!
//! Speaks GDB's remote serial protocol, all-stop, over a Unix socket that [`Guest::gdb`](crate::guest::Guest::gdb)
//! has QEMU open. The machine is stopped from the connection on, and runs only within [`Gdb::resume`] and
//! [`Gdb::step`]. CPUs are numbered from 0; the protocol counts them from 1. What the stub does not show (the upper
//! halves of YMM registers) is in the monitor's `info registers`.

mod packet;

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use packet::{Line, is_silence, show, unhex};

/// How long the stub may take for an answer while the machine stands.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of an answer that every version of QEMU can send, if it does not say.
const SMALLEST_PACKET: usize = 4096;

/// What the stub is sent, outside any packet, to stop a machine that runs.
const INTERRUPT: u8 = 3;

/// A connection to the stub.
pub struct Gdb {
    line: Line,
    layout: Vec<Register>,
    /// The longest packet that the stub takes and sends, in bytes.
    packet: usize,
    /// The CPU that registers and virtual memory are read of.
    selected: Option<u32>,
    physical: bool,
}

/// One register as the stub describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Register {
    name: String,
    bytes: usize,
}

/// Why the machine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A breakpoint, the end of a step, or an interruption (signal 2), noticed by this CPU.
    Signal { signal: u8, cpu: u32 },
    /// This CPU has just read what [`Gdb::watch_reads`] watches.
    Read { cpu: u32 },
    /// QEMU ended with this status.
    Exited(u8),
}

/// How the CPU is to notice a breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakpoint {
    /// QEMU's own mark, for all CPUs. Under TCG the guest's memory stays as it is.
    Software = 0,
    /// Of the CPU's debug registers, where KVM runs the guest; under TCG as the other.
    Hardware = 1,
}

/// What may interrupt a single step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepping {
    /// One instruction of the program, whatever is pending: interrupts wait and the clock stands.
    Undisturbed,
    /// As the machine runs: the step may end at the first instruction of an interrupt's handler.
    WithInterrupts,
}

impl Stepping {
    /// QEMU's `SSTEP_ENABLE`, `SSTEP_NOIRQ` and `SSTEP_NOTIMER`.
    fn bits(self) -> u8 {
        match self {
            Self::Undisturbed => 1 | 2 | 4,
            Self::WithInterrupts => 1,
        }
    }
}

/// All registers of one CPU that the stub shows, each as in memory: the lowest byte first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers(Vec<(String, Vec<u8>)>);

impl Registers {
    /// Name and bytes of each, in the stub's order.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// The bytes of one, by GDB's name for it: `rax`, `eflags`, `xmm0`.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.all().find(|(known, _)| *known == name).map(|(_, bytes)| bytes)
    }

    /// The value of one of up to 64 bits.
    pub fn value(&self, name: &str) -> Result<u64> {
        let bytes = self.bytes(name).with_context(|| format!("QEMU shows no register {name}"))?;
        ensure!(bytes.len() <= 8, "{name} has {} bytes", bytes.len());
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// The instruction pointer.
    pub fn rip(&self) -> Result<u64> {
        self.value("rip")
    }
}

impl Gdb {
    /// Connects to the socket that the stub listens on, which stops the machine.
    pub fn connect(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).context("cannot reach QEMU's gdb stub")?;
        let line = Line::new(stream);
        let (layout, packet) = (Vec::new(), SMALLEST_PACKET);
        let mut gdb = Self { line, layout, packet, selected: None, physical: false };
        let features = gdb.ask_text("qSupported:qXfer:features:read+;vContSupported+")?;
        if let Some(size) = features.split(';').find_map(|part| part.strip_prefix("PacketSize=")) {
            gdb.packet = usize::from_str_radix(size, 16)?.max(64);
        }
        gdb.layout = gdb.describe("target.xml")?;
        ensure!(gdb.layout.iter().any(|register| register.name == "rip"), "no x86_64 machine");
        Ok(gdb)
    }

    /// The registers that a description and those it includes name.
    fn describe(&mut self, file: &str) -> Result<Vec<Register>> {
        let mut text = Vec::new();
        loop {
            let length = self.packet - 16;
            let ask = format!("qXfer:features:read:{file}:{:x},{length:x}", text.len());
            let part = self.ask(&ask)?;
            let (kind, bytes) = part.split_first().context("the stub describes no registers")?;
            text.extend_from_slice(bytes);
            match kind {
                b'm' => {}
                b'l' => break,
                _ => bail!("the stub does not describe its registers: {}", show(&part)),
            }
        }
        let text = String::from_utf8(text)?;
        let mut layout = Vec::new();
        for element in uncommented(&text).split('<') {
            if element.starts_with("xi:include ") {
                let file = attribute(element, "href").context("an include of nothing")?;
                layout.extend(self.describe(file)?);
            } else if element.starts_with("reg ") {
                layout.push(register(element)?);
            }
        }
        Ok(layout)
    }

    /// The number of CPUs.
    pub fn cpus(&mut self) -> Result<u32> {
        let (mut count, mut ask) = (0, "qfThreadInfo");
        loop {
            let answer = self.ask_text(ask)?;
            let Some(threads) = answer.strip_prefix('m') else { return Ok(count) };
            count += threads.split(',').count() as u32;
            ask = "qsThreadInfo";
        }
    }

    /// All registers of a CPU.
    pub fn registers(&mut self, cpu: u32) -> Result<Registers> {
        self.select(cpu)?;
        let answer = self.ask("g")?;
        let mut bytes = unhex(&answer)?;
        let mut registers = Vec::new();
        for Register { name, bytes: size } in &self.layout {
            ensure!(bytes.len() >= *size, "the stub sends too few registers: no {name}");
            let rest = bytes.split_off(*size);
            registers.push((name.clone(), std::mem::replace(&mut bytes, rest)));
        }
        Ok(Registers(registers))
    }

    /// `length` bytes at a virtual address, as a CPU sees it now.
    pub fn read(&mut self, cpu: u32, address: u64, length: usize) -> Result<Vec<u8>> {
        self.select(cpu)?;
        self.look_at_physical(false)?;
        self.read_here(address, length)
    }

    /// `length` bytes of physical memory.
    pub fn read_physical(&mut self, address: u64, length: usize) -> Result<Vec<u8>> {
        self.look_at_physical(true)?;
        self.read_here(address, length)
    }

    /// Writes to a virtual address, as a CPU sees it now; pages that it could not write, too.
    pub fn write(&mut self, cpu: u32, address: u64, bytes: &[u8]) -> Result<()> {
        self.select(cpu)?;
        self.look_at_physical(false)?;
        for (n, part) in bytes.chunks(self.packet / 2 - 32).enumerate() {
            let at = address.wrapping_add((n * (self.packet / 2 - 32)) as u64);
            let hex: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
            self.order(&format!("M{at:x},{:x}:{hex}", part.len()))
                .with_context(|| format!("memory at {at:#x}"))?;
        }
        Ok(())
    }

    /// Has every CPU stop before it executes the instruction at `address`.
    pub fn set_breakpoint(&mut self, kind: Breakpoint, address: u64) -> Result<()> {
        self.order(&format!("Z{},{address:x},1", kind as u8))
    }

    /// Takes a breakpoint away.
    pub fn clear_breakpoint(&mut self, kind: Breakpoint, address: u64) -> Result<()> {
        self.order(&format!("z{},{address:x},1", kind as u8))
    }

    /// Has every CPU stop after it has read some of these bytes, at a virtual address.
    pub fn watch_reads(&mut self, address: u64, length: usize) -> Result<()> {
        self.order(&format!("Z3,{address:x},{length:x}"))
    }

    /// Ends [`watch_reads`](Self::watch_reads) of the same bytes.
    pub fn unwatch_reads(&mut self, address: u64, length: usize) -> Result<()> {
        self.order(&format!("z3,{address:x},{length:x}"))
    }

    /// Lets all CPUs run until something stops them. When `limit` has passed it is an error, and the machine stands.
    pub fn resume(&mut self, limit: Duration) -> Result<Stop> {
        self.run("vCont;c", limit)
    }

    /// Lets one CPU run until something stops it, while the others stand. `None` if nothing has in that time, as when it
    /// waits for one of them; the machine stands then.
    pub fn resume_one(&mut self, cpu: u32, limit: Duration) -> Result<Option<Stop>> {
        self.run_for(&format!("vCont;c:{:x}", cpu + 1), limit)
    }

    /// Lets one CPU execute one instruction while the others stand. One that is halted waits for an
    /// interrupt: when `limit` has passed it is an error.
    pub fn step(&mut self, cpu: u32, limit: Duration) -> Result<Stop> {
        self.run(&format!("vCont;s:{:x}", cpu + 1), limit)
    }

    /// What may disturb a step from now on; at first nothing may.
    pub fn set_stepping(&mut self, stepping: Stepping) -> Result<()> {
        self.order(&format!("Qqemu.sstep={:x}", stepping.bits()))
    }

    /// Takes all breakpoints away and lets the machine run on without this connection.
    pub fn detach(mut self) -> Result<()> {
        self.order("D")
    }

    fn run(&mut self, how: &str, limit: Duration) -> Result<Stop> {
        let stopped = self.run_for(how, limit)?;
        stopped.with_context(|| format!("nothing stopped the machine within {limit:?}"))
    }

    fn run_for(&mut self, how: &str, limit: Duration) -> Result<Option<Stop>> {
        self.line.send(how)?;
        match self.line.receive(limit) {
            Ok(answer) => return stop(&answer).map(Some),
            Err(error) if !is_silence(&error) => return Err(error),
            Err(_) => self.line.send_byte(INTERRUPT)?,
        }
        // What stopped it in this very moment is lost to the caller, who has given up anyway.
        stop(&self.line.receive(ANSWER_PATIENCE)?)?;
        Ok(None)
    }

    fn select(&mut self, cpu: u32) -> Result<()> {
        if self.selected != Some(cpu) {
            self.selected = None;
            self.order(&format!("Hg{:x}", cpu + 1)).with_context(|| format!("CPU {cpu}"))?;
            self.selected = Some(cpu);
        }
        Ok(())
    }

    fn look_at_physical(&mut self, physical: bool) -> Result<()> {
        if self.physical != physical {
            self.order(&format!("Qqemu.PhyMemMode:{}", u8::from(physical)))?;
            self.physical = physical;
        }
        Ok(())
    }

    fn read_here(&mut self, address: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = address.wrapping_add(bytes.len() as u64);
            let part = (length - bytes.len()).min(self.packet / 2 - 16);
            let answer = self.ask(&format!("m{at:x},{part:x}"))?;
            let read = unhex(&answer).with_context(|| format!("memory at {at:#x}"))?;
            ensure!(read.len() == part, "the stub reads {} bytes of {part} at {at:#x}", read.len());
            bytes.extend(read);
        }
        Ok(bytes)
    }

    fn order(&mut self, what: &str) -> Result<()> {
        let answer = self.ask(what)?;
        ensure!(answer == b"OK", "the stub refuses {what:.40}: {:?}", show(&answer));
        Ok(())
    }

    fn ask_text(&mut self, what: &str) -> Result<String> {
        Ok(String::from_utf8(self.ask(what)?)?)
    }

    fn ask(&mut self, what: &str) -> Result<Vec<u8>> {
        self.line.send(what)?;
        self.line.receive(ANSWER_PATIENCE)
    }
}

/// What stopped the machine: `T05thread:01;`, `S05` or `W00`.
fn stop(answer: &[u8]) -> Result<Stop> {
    let unknown = || format!("the stub tells an unknown stop: {:?}", show(answer));
    let text = std::str::from_utf8(answer).with_context(unknown)?;
    let number = |from: usize| {
        let digits = text.get(from..from + 2)?;
        u8::from_str_radix(digits, 16).ok()
    };
    match text.as_bytes().first() {
        Some(b'W' | b'X') => Ok(Stop::Exited(number(1).with_context(unknown)?)),
        Some(b'T' | b'S') => {
            let mut parts = text.get(3..).unwrap_or("").split(';');
            let thread = parts.find_map(|part| part.strip_prefix("thread:")).unwrap_or("1");
            let thread = u32::from_str_radix(thread, 16).with_context(unknown)?;
            let signal = number(1).with_context(unknown)?;
            let cpu = thread.saturating_sub(1);
            let read = text.contains(";rwatch:");
            Ok(if read { Stop::Read { cpu } } else { Stop::Signal { signal, cpu } })
        }
        _ => bail!(unknown()),
    }
}

/// QEMU's description has registers in comments.
fn uncommented(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or("");
    let rest = parts.filter_map(|part| part.split_once("-->").map(|(_, after)| after));
    std::iter::once(first).chain(rest).collect()
}

/// `<reg name="rax" bitsize="64" .../>` without its `<`.
fn register(element: &str) -> Result<Register> {
    let name = attribute(element, "name").context("a register without a name")?;
    let bits: usize =
        attribute(element, "bitsize").context("a register without a size")?.parse()?;
    Ok(Register { name: name.to_owned(), bytes: bits.div_ceil(8) })
}

fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    element.split(&format!(" {name}=\"")).nth(1)?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_read() {
        let at = |signal, cpu| Stop::Signal { signal, cpu };
        assert_eq!(stop(b"T05thread:02;").unwrap(), at(5, 1));
        assert_eq!(stop(b"T02swbreak:;thread:0a;").unwrap(), at(2, 9));
        assert_eq!(stop(b"S05").unwrap(), at(5, 0));
        assert_eq!(stop(b"T05thread:02;rwatch:ffff800000001000;").unwrap(), Stop::Read { cpu: 1 });
        assert_eq!(stop(b"W21").unwrap(), Stop::Exited(0x21));
        assert!(stop(b"E22").is_err() && stop(b"T").is_err());
    }

    #[test]
    fn a_register_has_a_name_a_size_and_a_value() {
        let rax =
            register("reg name=\"rax\" bitsize=\"64\" type=\"int64\" regnum=\"0\"/>").unwrap();
        assert_eq!(rax, Register { name: "rax".into(), bytes: 8 });
        assert!(register("reg name=\"rax\"/>").is_err());
        assert_eq!(uncommented("<a/><!-- <b/>\n<c/> --><d/><!-- e"), "<a/><d/>");
        let registers = Registers(vec![("rip".into(), vec![0x34, 0x12, 0, 0, 0, 0, 0, 0x80])]);
        assert_eq!(registers.rip().unwrap(), 0x8000_0000_0000_1234);
        assert!(registers.value("rbx").is_err());
    }
}
