//! The words of RDSEED that go into keys: what the instruction gives is read at the instruction after it.
//!
//! Most of its words are for tests, which keep the last ones, and other tasks draw, too. So a word counts as one of a key if
//! the functions that wait for it say that: a system call that takes fresh words, and no test.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask_guest::gdb::{Breakpoint, Gdb, Registers};
use xtask_guest::monitor::Monitor;
use xtask_guest::symbolize::{address_of, lines};

const RDSEED: &str = "alea_kernel::base::cpu::rdseed64";
/// Bytes of that function, at most.
const RDSEED_CODE: usize = 64;
/// Functions on the way from a system call to a word of a key; and those that draw words for nothing but a test.
const OF_A_KEY: [&str; 2] = ["fresh_words", "alea_syscall_entry"];
const OF_A_TEST: [&str; 1] = ["test_words"];
/// The files of the functions that take the answers of devices.
const OF_A_RESEED: [&str; 2] = ["kernel/src/random/sources/", "kernel/random/src/service"];
/// Words that go into a key.
const FRESH: usize = 4;

/// What is known of RDSEED in a kernel.
pub struct Fresh {
    kernel: PathBuf,
    /// The instruction after it, and the register that it fills.
    pub after: u64,
    filled: &'static str,
    /// The functions at a return address, those that are inlined there among them.
    functions: HashMap<u64, String>,
    /// What went into keys since the last stop, by which CPU.
    words: Vec<(u32, u64)>,
}

impl Fresh {
    /// Has the machine stop after each RDSEED.
    pub fn watch(gdb: &mut Gdb, cpu: u32, kernel: &Path) -> Result<Self> {
        const FILLED: [&str; 8] = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
        let start = address_of(kernel, RDSEED)?;
        let code = gdb.read(cpu, start, RDSEED_CODE)?;
        let is_it = |bytes: &[u8]| matches!(bytes, [0x48, 0x0f, 0xc7, 0xf8..=0xff]);
        let at =
            code.windows(4).position(is_it).with_context(|| format!("no RDSEED in {RDSEED}"))?;
        let after = start + at as u64 + 4;
        gdb.set_breakpoint(Breakpoint::Software, after)?;
        let filled = FILLED[usize::from(code[at + 3] & 7)];
        let (kernel, functions, words) = (kernel.to_owned(), HashMap::new(), Vec::new());
        Ok(Self { kernel, after, filled, functions, words })
    }

    /// A CPU stands after the instruction.
    pub fn stopped(
        &mut self,
        monitor: &mut Monitor,
        cpu: u32,
        registers: &Registers,
    ) -> Result<()> {
        let word = registers.value(self.filled)?;
        // It gives zero where it has nothing.
        if word != 0 && self.is_of_a_key(&monitor.backtrace(cpu)?.addresses)? {
            self.words.push((cpu, word));
        }
        Ok(())
    }

    fn is_of_a_key(&mut self, addresses: &[u64]) -> Result<bool> {
        for name in OF_A_KEY {
            if !self.passed(addresses, &[name])? {
                return Ok(false);
            }
        }
        Ok(!self.passed(addresses, &OF_A_TEST)?)
    }

    /// Whether a CPU is in the middle of a reseed, and so perhaps of taking what devices have answered.
    pub fn is_reseeding(&mut self, monitor: &mut Monitor, cpu: u32) -> Result<bool> {
        let addresses = monitor.backtrace(cpu)?.addresses;
        self.passed(&addresses, &OF_A_RESEED)
    }

    /// Whether one of the addresses is in a function that has one of the names, or a file that has.
    fn passed(&mut self, addresses: &[u64], names: &[&str]) -> Result<bool> {
        for address in addresses {
            if !self.functions.contains_key(address) {
                self.functions.insert(*address, lines(&self.kernel, &[*address])?);
            }
        }
        let has = |name: &&str| addresses.iter().any(|at| self.functions[at].contains(name));
        Ok(names.iter().any(has))
    }

    /// What went into this CPU's last key since the last stop. Another CPU may be in the middle of it.
    pub fn take(&mut self, cpu: u32) -> Vec<u8> {
        let words = std::mem::take(&mut self.words).into_iter().filter(|(by, _)| *by == cpu);
        let words: Vec<u64> = words.map(|(_, word)| word).collect();
        let last = words.last_chunk::<FRESH>();
        last.map_or(Vec::new(), |words| words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }
}
