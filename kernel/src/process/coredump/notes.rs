//! The notes of a core: registers of each thread, and what there is to know of the process.
//!
//! Owns nothing. Never looks at another thread: [`super::threads`] has what each left. The order is Linux's: the thread that
//! dumps, the process, the other threads. Locks: none.

use super::segments::Segment;
use super::settings::CORE_FILE_NOTE_SIZE_LIMIT;
use super::threads::Thread;
use crate::arch::task::fpu;
use crate::base::{PAGE_SIZE, cpu};
use crate::mm::fallible::{TryCollect, TryGrow, TryVec};
use crate::process::task::current::{Current, current_arc};
use crate::process::timers::times::Usage;
use crate::process::tree::table;
use abi::signal::SigInfo;
use abi::time::NSEC_PER_SEC;
use abi::{Errno, Result};
use alloc::vec::Vec;
use zerocopy::{Immutable, IntoBytes};

const NT_PRSTATUS: u32 = 1;
const NT_FPREGSET: u32 = 2;
const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
const NT_X86_XSTATE: u32 = 0x202;
const NT_X86_XSAVE_LAYOUT: u32 = 0x205;
const NT_FILE: u32 = 0x4649_4c45;
const NT_SIGINFO: u32 = 0x5349_4749;

/// Bytes of the FXSAVE image, which each vector state begins with.
const FX_SIZE: usize = 512;

/// The leaf of CPUID that tells of the states of XSAVE.
const XSAVE_LEAF: u32 = 0xd;

/// `struct timeval`.
type Timeval = [i64; 2];

/// `struct elf_prstatus`.
#[derive(Default, IntoBytes, Immutable)]
#[repr(C)]
struct PrStatus {
    /// Signal, code, errno.
    info: [i32; 3],
    cursig: i16,
    pad: i16,
    sigpend: u64,
    sighold: u64,
    pid: i32,
    ppid: i32,
    pgrp: i32,
    sid: i32,
    utime: Timeval,
    stime: Timeval,
    cutime: Timeval,
    cstime: Timeval,
    regs: [u64; abi::ptrace::REGS],
    fpvalid: i32,
    end: i32,
}

/// `struct elf_prpsinfo`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct PrPsInfo {
    state: u8,
    sname: u8,
    zomb: u8,
    nice: i8,
    pad: u32,
    flag: u64,
    uid: u32,
    gid: u32,
    pid: i32,
    ppid: i32,
    pgrp: i32,
    sid: i32,
    fname: [u8; 16],
    psargs: [u8; PSARGS],
}

const PSARGS: usize = 80;

/// States of the leader as `elf_prpsinfo` counts them: the place of its bit, from 1. One that runs has none.
const STATE_SLEEPING_HARD: u8 = 2;
const STATE_DEAD: u8 = 8;

/// `struct x86_xfeat_component`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Component {
    number: u32,
    size: u32,
    offset: u32,
    flags: u32,
}

/// What all notes are made from.
pub(super) struct Notes<'a> {
    task: Current,
    signal: i32,
    info: &'a SigInfo,
    /// The one that dumps comes first.
    threads: &'a [Thread],
    files: Option<Vec<u8>>,
    usage: Usage,
    children: Usage,
}

impl<'a> Notes<'a> {
    pub fn new(
        task: Current,
        info: &'a SigInfo,
        threads: &'a [Thread],
        segments: &[Segment],
    ) -> Result<Self> {
        let process = task.process();
        Ok(Self {
            task,
            signal: info.signo,
            info,
            threads,
            files: files(segments)?,
            usage: process.usage(),
            children: process.children_usage(),
        })
    }

    /// Gives all bytes of the notes to `put`, in order: the same ones each time.
    pub fn write(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for (at, thread) in self.threads.iter().enumerate() {
            note(put, b"CORE", NT_PRSTATUS, self.status(thread).as_bytes())?;
            if at == 0 {
                self.process(put)?;
            }
            let fx = thread.vectors.get(..FX_SIZE).ok_or(Errno::EINVAL)?;
            note(put, b"CORE", NT_FPREGSET, fx)?;
            if fpu::xcr0() != 0 {
                note(put, b"LINUX", NT_X86_XSTATE, &thread.vectors)?;
            }
        }
        if fpu::xcr0() != 0 {
            note(put, b"LINUX", NT_X86_XSAVE_LAYOUT, layout()?.as_bytes())?;
        }
        Ok(())
    }

    fn process(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        note(put, b"CORE", NT_PRPSINFO, self.names().as_bytes())?;
        note(put, b"CORE", NT_SIGINFO, self.info.as_bytes())?;
        let auxv: Vec<u64> = match self.task.process().program() {
            Some(program) => program.auxv().flatten().try_to_vec()?,
            None => Vec::new(),
        };
        note(put, b"CORE", NT_AUXV, auxv.as_bytes())?;
        match &self.files {
            Some(files) => note(put, b"CORE", NT_FILE, files),
            None => Ok(()),
        }
    }

    fn status(&self, thread: &Thread) -> PrStatus {
        let process = self.task.process();
        let (utime, stime) = if thread.is_leader {
            (self.usage.utime_ns, self.usage.stime_ns)
        } else {
            (thread.utime_ns, thread.stime_ns)
        };
        PrStatus {
            info: [self.signal, 0, 0],
            cursig: self.signal as i16,
            sigpend: thread.pending,
            sighold: thread.blocked,
            pid: thread.tid,
            ppid: process.ppid(),
            pgrp: process.pgid(),
            sid: process.session().sid(),
            utime: timeval(utime),
            stime: timeval(stime),
            cutime: timeval(self.children.utime_ns),
            cstime: timeval(self.children.stime_ns),
            regs: zerocopy::transmute!(thread.regs),
            fpvalid: 1,
            ..PrStatus::default()
        }
    }

    fn names(&self) -> PrPsInfo {
        let process = self.task.process();
        let leader = table::lookup_task(process.pid()).unwrap_or_else(current_arc);
        let cred = leader.cred_arc();
        let (state, sname) = match self.threads.iter().position(|thread| thread.is_leader) {
            Some(0) => (0, b'R'),
            Some(_) => (STATE_SLEEPING_HARD, b'D'),
            None => (STATE_DEAD, b'.'),
        };
        PrPsInfo {
            state,
            sname,
            zomb: 0,
            nice: leader.sched.nice() as i8,
            pad: 0,
            flag: 0,
            uid: cred.uid,
            gid: cred.gid,
            pid: process.pid(),
            ppid: process.ppid(),
            pgrp: process.pgid(),
            sid: process.session().sid(),
            fname: leader.comm(),
            psargs: self.arguments(),
        }
    }

    /// The program's arguments, as many as there is room for, with spaces between them.
    fn arguments(&self) -> [u8; PSARGS] {
        let mut text = [0; PSARGS];
        let (start, end) = self.task.process().program().map_or((0, 0), |program| program.args);
        let len = end.saturating_sub(start).min(PSARGS as u64 - 1) as usize;
        let got = self.task.mm().read_bytes(start, &mut text[..len]);
        text[..got].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
        text
    }
}

fn timeval(ns: u64) -> Timeval {
    [(ns / NSEC_PER_SEC) as i64, (ns % NSEC_PER_SEC / 1000) as i64]
}

/// One note: name and contents begin at multiples of four.
fn note(
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
    name: &[u8],
    kind: u32,
    desc: &[u8],
) -> Result<()> {
    let pad = |len: usize| &[0; 3][..len.wrapping_neg() % 4];
    let header = [name.len() as u32 + 1, desc.len() as u32, kind];
    put(header.as_bytes())?;
    put(name)?;
    put(&[0])?;
    put(pad(name.len() + 1))?;
    put(desc)?;
    put(pad(desc.len()))
}

/// The states of the vector image that come after its header.
fn layout() -> Result<Vec<Component>> {
    let extended = (2..64).filter(|number| fpu::xcr0() >> number & 1 != 0);
    extended
        .map(|number: u32| {
            let [size, offset, ..] = cpu::cpuid(XSAVE_LEAF, number);
            Component { number, size, offset, flags: 0 }
        })
        .try_to_vec()
}

/// The list of mapped files; nothing if there is no room for it, as on Linux.
fn files(segments: &[Segment]) -> Result<Option<Vec<u8>>> {
    let most = CORE_FILE_NOTE_SIZE_LIMIT.get().unsigned_abs() as usize;
    let (mut places, mut names): (Vec<u64>, Vec<u8>) = (Vec::new(), Vec::new());
    places.try_extend([0, PAGE_SIZE as u64])?;
    for mapping in segments.iter().map(|segment| &segment.mapping) {
        let Some(source) = &mapping.source else { continue };
        let page = mapping.offset / PAGE_SIZE as u64;
        places.try_extend([mapping.range.start, mapping.range.end, page])?;
        names.try_extend_from_slice(source.name()?.as_bytes())?;
        names.try_push(0)?;
        if size_of_val(&*places).saturating_add(names.len()) >= most {
            return Ok(None);
        }
    }
    places[0] = (places.len() as u64 - 2) / 3;
    let mut files = Vec::new();
    files.try_extend_from_slice(places.as_bytes())?;
    files.try_extend_from_slice(&names)?;
    Ok(Some(files))
}
