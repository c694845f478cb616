//! QEMU's machine monitor (QMP): where a guest that hangs is hanging, and saving a machine to a file.
//!
//! Kernel frames are walked by their frame pointers, so it works only for kernels built with them,
//! as Alea is. Everything is read through the monitor; the guest notices nothing.

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// More frames than any sound kernel stack has.
const DEEPEST: usize = 48;

/// The start of the kernel's half of the address space.
pub const KERNEL_HALF: u64 = 0xffff_8000_0000_0000;

/// A connection to a running QEMU.
pub struct Monitor {
    stream: BufReader<UnixStream>,
}

/// Where one CPU is: the innermost address first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTrace {
    pub cpu: u32,
    pub addresses: Vec<u64>,
    /// Where the CPU's table of interrupts is: of this kernel, that tells how far its image was moved.
    pub idt: Option<u64>,
}

impl Monitor {
    /// Connects to the socket that QEMU listens on.
    pub fn connect(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).context("cannot reach QEMU's monitor")?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut monitor = Self { stream: BufReader::new(stream) };
        monitor.receive()?;
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Stops all CPUs and walks their stacks.
    pub fn backtraces(&mut self, cpus: u32) -> Result<Vec<CpuTrace>> {
        self.execute("stop", json!({}))?;
        (0..cpus).map(|cpu| self.backtrace(cpu)).collect()
    }

    /// Stops the machine and writes all of its state to `file`, for `-incoming file:...`.
    pub fn save(&mut self, file: &Path, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        self.execute("stop", json!({}))?;
        self.execute("migrate", json!({ "uri": format!("file:{}", file.display()) }))?;
        while Instant::now() < deadline {
            let answer = self.execute("query-migrate", json!({}))?;
            match answer.get("status").and_then(Value::as_str) {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => bail!("QEMU cannot save the machine: {answer}"),
                _ => std::thread::sleep(Duration::from_millis(50)),
            }
        }
        bail!("QEMU does not finish saving the machine")
    }

    /// Writes the physical memory of `range` to `file`.
    pub fn save_memory(&mut self, range: Range<u64>, file: &Path) -> Result<()> {
        let (start, size) = (range.start, range.end - range.start);
        let arguments = json!({ "val": start, "size": size, "filename": file });
        self.execute("pmemsave", arguments).map(drop)
    }

    /// Waits until QEMU has restored a saved machine, which is stopped then.
    pub fn restored(&mut self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        while self.execute("query-status", json!({}))?["status"] == "inmigrate" {
            if Instant::now() > deadline {
                bail!("QEMU does not finish restoring the machine");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Lets a stopped machine run.
    pub fn resume(&mut self) -> Result<()> {
        self.execute("cont", json!({})).map(drop)
    }

    /// Has QEMU's gdb stub listen on `socket`.
    pub fn open_gdb_stub(&mut self, socket: &Path) -> Result<()> {
        let line = format!("gdbserver unix:{},server=on,wait=off", socket.display());
        let answer = self.human(0, &line)?;
        if !socket.exists() {
            bail!("QEMU opens no gdb stub: {answer}");
        }
        Ok(())
    }

    /// Where one CPU is, innermost first; the guest goes on.
    pub fn sample(&mut self, cpu: u32) -> Result<Vec<u64>> {
        self.execute("stop", json!({}))?;
        let trace = self.backtrace(cpu);
        self.execute("cont", json!({}))?;
        Ok(trace?.addresses)
    }

    /// Where one CPU of a machine that is stopped is.
    pub fn backtrace(&mut self, cpu: u32) -> Result<CpuTrace> {
        let registers = self.human(cpu, "info registers")?;
        // A CPU outside long mode has only the lower half of each register.
        let either = |long: &str, short: &str| {
            register(&registers, long).or_else(|| register(&registers, short))
        };
        let rip = either("RIP", "EIP").context("QEMU shows no instruction pointer")?;
        let mut frame = either("RBP", "EBP").context("QEMU shows no frame pointer")?;
        let mut addresses = vec![rip];
        while rip >= KERNEL_HALF && frame >= KERNEL_HALF && addresses.len() < DEEPEST {
            let words = self.human(cpu, &format!("x/2gx {frame:#x}"))?;
            let Some((next, back)) = two_words(&words) else { break };
            if back < KERNEL_HALF {
                break;
            }
            addresses.push(back);
            // Stacks grow down, so callers' frames lie above: anything else is no frame.
            if next <= frame {
                break;
            }
            frame = next;
        }
        Ok(CpuTrace { cpu, addresses, idt: register(&registers, "IDT") })
    }

    /// The physical address of a virtual one, as a CPU sees it now; nothing if none is mapped.
    pub fn physical(&mut self, cpu: u32, address: u64) -> Result<Option<u64>> {
        let answer = self.human(cpu, &format!("gva2gpa {address:#x}"))?;
        let digits = answer.trim().strip_prefix("gpa: 0x");
        Ok(digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()))
    }

    /// What the monitor for people answers to `line`, of a CPU.
    pub fn human(&mut self, cpu: u32, line: &str) -> Result<String> {
        let arguments = json!({ "command-line": line, "cpu-index": cpu });
        let answer = self.execute("human-monitor-command", arguments)?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }

    /// Carries out a command of QEMU's machine protocol and returns its answer.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let request = json!({ "execute": command, "arguments": arguments });
        writeln!(self.stream.get_mut(), "{request}")?;
        loop {
            let mut answer = self.receive()?;
            if let Some(error) = answer.get("error") {
                bail!("QEMU's monitor: {error}");
            }
            // Events may come between a request and its answer.
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    fn receive(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).context("QEMU's monitor is silent")? == 0 {
            bail!("QEMU's monitor is closed");
        }
        Ok(serde_json::from_str(&line)?)
    }
}

/// The value of `name=` in the output of `info registers`.
fn register(text: &str, name: &str) -> Option<u64> {
    let rest = text.split(&format!("{name}=")).nth(1)?;
    u64::from_str_radix(rest.split_whitespace().next()?, 16).ok()
}

/// The two words of `ffffffff80001000: 0x0000000000000001 0x0000000000000002`.
fn two_words(text: &str) -> Option<(u64, u64)> {
    let words = text.split_once(": ")?.1;
    let mut words = words.split_whitespace().map(|word| {
        let digits = word.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    });
    Some((words.next()??, words.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_and_memory_are_read() {
        let text = "CPU#0\nRAX=0000000000000000 RBX=0000000000000001\n\
            RSI=00 RDI=00 RBP=ffffc90000003fa0 RSP=ffffc90000003f80\n\
            RIP=ffffffff80212345 RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\n\
            IDT=     ffffffff80570000 00000fff\n";
        assert_eq!(register(text, "RIP"), Some(0xffff_ffff_8021_2345));
        assert_eq!(register(text, "RBP"), Some(0xffff_c900_0000_3fa0));
        assert_eq!(register(text, "IDT"), Some(0xffff_ffff_8057_0000));
        assert_eq!(register(text, "XMM"), None);
        let words = "ffffc90000003fa0: 0xffffc90000003fc0 0xffffffff80200001\r\n";
        assert_eq!(two_words(words), Some((0xffff_c900_0000_3fc0, 0xffff_ffff_8020_0001)));
        assert_eq!(two_words("Cannot access memory\n"), None);
    }
}
