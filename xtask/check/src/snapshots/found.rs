//! [`Found`]: what a way through one operation has shown, or several ways through parts of it.
//!
//! Owns the counts. Never adds up ways that did not begin at the same place. Locks: none.

use std::path::Path;

use anyhow::{Result, ensure};

use super::compare::{Common, PIECE};
use xtask_guest::symbolize;

/// What twins had in common.
#[derive(Debug, Default)]
pub struct Found {
    /// The SHA-256 of the machine that the operation began on; nothing on two CPUs, where the one that waits has gone a little further
    /// at each start.
    pub start: Option<String>,
    pub instructions: u64,
    /// Instructions that read some of the id.
    pub reads: u64,
    /// The instruction that follows the last of them, by number.
    pub last_read: u64,
    pub snapshots: u64,
    /// The instructions of the sample, by number.
    pub looked_at: Vec<u64>,
    pub twins: u64,
    /// Snapshots in which all bytes of the call had been compared, and in which a part had.
    pub compared: u64,
    pub compared_in_part: u64,
    /// The first instruction after which all had been: its number and address.
    pub from: Option<(u64, u64)>,
    /// Instructions of the sample at which the other CPU waited for the one that stood, and so could not go first.
    pub held: u64,
    /// Instructions at which twins had something in common that they must not have.
    pub faults: Vec<Fault>,
    /// Snapshots in which the interrupted call's bytes were the same, until the end of the operation tells if they may be.
    pub(super) shares: Vec<Share>,
}

/// A snapshot in which some of the interrupted call's bytes were the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub at: Fault,
    /// Instructions before it that had read some of the id.
    pub reads: u64,
}

/// Instructions that read the id for one comparison: its two halves.
const READS_OF_A_COMPARISON: u64 = 2;

/// Equal bytes.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub instruction: u64,
    pub rip: u64,
    pub other_first: bool,
    pub common: Common,
}

impl Found {
    /// Moves to the faults what was shared before it had been compared for the last time: at the end of the operation it is known
    /// how often the id is read, and a piece of a request may be shared after the last two reads for it, at once and no sooner.
    pub(super) fn judge_shares(&mut self) {
        for Share { at, reads } in std::mem::take(&mut self.shares) {
            let pieces = |bytes: usize| bytes.div_ceil(PIECE) as u64;
            let left = pieces(at.common.of) - pieces(at.common.compared);
            if reads < self.reads - left * READS_OF_A_COMPARISON {
                self.faults.push(at);
            }
        }
    }

    /// Both, which have looked at different instructions of one operation.
    pub(super) fn join(mut self, other: Self) -> Result<Self> {
        let way = |found: &Self| (found.start.clone(), found.instructions, found.reads);
        ensure!(way(&self) == way(&other), "{:?} is not {:?}", way(&self), way(&other));
        self.snapshots += other.snapshots;
        self.looked_at.extend(other.looked_at);
        self.twins += other.twins;
        self.compared += other.compared;
        self.compared_in_part += other.compared_in_part;
        self.from = [self.from, other.from].into_iter().flatten().min();
        self.held += other.held;
        self.faults.extend(other.faults);
        Ok(self)
    }

    pub(super) fn row(&self, name: &str) -> Vec<String> {
        let windows: usize = self.faults.iter().map(|fault| fault.common.windows).sum();
        let compared = match self.compared_in_part {
            0 => self.compared.to_string(),
            part => format!("{} + {part} in part", self.compared),
        };
        let mut row = vec![name.to_owned()];
        let counts = [self.instructions, self.reads, self.snapshots, self.twins];
        row.extend(counts.map(|count| count.to_string()));
        row.extend([compared, self.held.to_string(), windows.to_string()]);
        row
    }

    /// Where bytes were equal, in words.
    pub fn tell(&self, kernel: &Path) -> String {
        let place = |rip| symbolize::lines(kernel, &[rip + 1]).unwrap_or_default();
        let mut text = String::new();
        if let Some((_, from)) = self.from {
            text.push_str(&format!("compared from here on:\n{}", place(from)));
        }
        for fault in self.faults.iter().take(10) {
            let first = if fault.other_first { ", the other CPU first" } else { "" };
            text.push_str(&format!(
                "FAULT at instruction {}{first}: {:?}\n{}",
                fault.instruction,
                fault.common,
                place(fault.rip)
            ));
        }
        text
    }
}
