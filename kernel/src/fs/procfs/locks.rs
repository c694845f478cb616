//! `/proc/locks`: the file locks that are held, the newest first, each with the requests that wait for it, as Linux prints
//! them.
//!
//! Owns the text only. Looks at copies: nothing is locked while it is made.
#![forbid(unsafe_code)]

use super::file::Text;
use super::fixed::register_file;
use crate::mm::fallible::{TryGrow, TryString, TryVec, try_arc};
use crate::sync::pace::{Pace, killable};
use crate::try_format;
use crate::vfs::object::locks::{self, FOREVER, FileLocks, Lock, LockKind};
use abi::Result;
use alloc::string::String;
use alloc::vec::Vec;

pub(super) fn register() -> Result<()> {
    register_file("locks", 0o444, try_arc(Text(text))?)
}

fn text() -> Result<String> {
    let mut out = String::new();
    let (mut number, mut before) = (0, u64::MAX);
    while let Some((at, file)) = locks::newest_below(before) {
        killable()?;
        before = at;
        if let Some(file) = file {
            Tree::new(&file)?.print(&mut out, &mut number)?;
        }
    }
    Ok(out)
}

/// A lock that is held or a request, and who waits for it.
struct Node {
    lock: Lock,
    waiters: Vec<usize>,
}

/// The locks of a file. A request waits for the first lock that is in its way; of those who wait there already, for the
/// first that would be in its way, too, and so on.
struct Tree {
    file: (u32, u32, u64),
    held: usize,
    nodes: Vec<Node>,
}

impl Tree {
    fn new(file: &FileLocks) -> Result<Self> {
        let (held, requests) = file.copies()?;
        let mut tree = Self {
            file: (file.dev.major(), file.dev.minor(), file.ino),
            held: held.len(),
            nodes: Vec::with_room(held.len() + requests.len())?,
        };
        for lock in held.into_iter().killable() {
            tree.nodes.try_push(Node { lock: lock?, waiters: Vec::new() })?;
        }
        for lock in requests.into_iter().killable() {
            tree.add(lock?)?;
        }
        Ok(tree)
    }

    fn add(&mut self, request: Lock) -> Result<()> {
        let in_its_way = |node: &Node| node.lock.conflicts(&request);
        let mut at = self.nodes[..self.held].iter().paced().position(in_its_way);
        // One for whom nothing is in the way any more has been woken.
        let Some(mut blocker) = at else { return Ok(()) };
        while let Some(next) = at {
            blocker = next;
            let waiters = &self.nodes[blocker].waiters;
            at = waiters.iter().paced().copied().find(|&waiter| in_its_way(&self.nodes[waiter]));
        }
        let number = self.nodes.len();
        self.nodes.try_push(Node { lock: request, waiters: Vec::new() })?;
        self.nodes[blocker].waiters.try_push(number)
    }

    fn print(&self, out: &mut String, number: &mut u64) -> Result<()> {
        // Each with the number of its waiters that have been printed: the chain may be long.
        let mut chain: Vec<(usize, usize)> = Vec::new();
        for lock in (0..self.held).rev().killable() {
            let lock = lock?;
            *number += 1;
            self.line(out, *number, 0, &self.nodes[lock].lock)?;
            chain.try_push((lock, 0))?;
            while let Some((node, printed)) = chain.last_mut() {
                crate::sync::cond_resched();
                let Some(&waiter) = self.nodes[*node].waiters.get(*printed) else {
                    chain.pop();
                    continue;
                };
                *printed += 1;
                self.line(out, *number, chain.len(), &self.nodes[waiter].lock)?;
                chain.try_push((waiter, 0))?;
            }
        }
        Ok(())
    }

    fn line(&self, out: &mut String, number: u64, depth: usize, lock: &Lock) -> Result<()> {
        let (major, minor, ino) = self.file;
        let arrow = if depth == 0 { "" } else { "-> " };
        let width = depth.saturating_sub(1) + arrow.len();
        let (sort, kind, pid) = match lock {
            Lock::Record(lock) if lock.pid == -1 => ("OFDLCK", lock.kind, lock.pid),
            Lock::Record(lock) => ("POSIX ", lock.kind, lock.pid),
            Lock::Whole(lock) => ("FLOCK ", lock.kind, lock.pid),
        };
        let kind = if kind == LockKind::Write { "WRITE" } else { "READ" };
        let what = try_format!(
            "{number}: {arrow:>width$}{sort} ADVISORY  {kind} {pid} {major:02x}:{minor:02x}:{ino} "
        )?;
        out.try_push_str(&what)?;
        let range = match lock {
            Lock::Record(lock) => lock.range.clone(),
            Lock::Whole(_) => 0..FOREVER,
        };
        let end = match range.end {
            FOREVER => try_format!("{} EOF\n", range.start)?,
            end => try_format!("{} {}\n", range.start, end - 1)?,
        };
        out.try_push_str(&end)
    }
}
