//! Executable files: their plans, and mapping them.

use super::layout::Layout;
use crate::base::page::USER_END;
use crate::mm::fallible::{TryVec, try_arc};
use crate::mm::space::request::{Backing, MapFixed, MapRequest, Prot, VmFlags};
use crate::mm::{AddressSpace, MapSource, MmapBase, Sink, is_low};
use crate::process::task::current::Current;
use crate::vfs::namei::{LookupFlags, perm};
use crate::vfs::{Capability, Cred, DenyWrite, Fd, MapTarget, OpenFile};
use abi::{Errno, Result};
use alea_elf::{Error, HEADER_LEN, Header, Kind, Plan, Segment};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use x86_64::VirtAddr;

/// Enough of a file for the header and the program headers of every ordinary executable.
const USUAL_START: usize = 1024;

/// A program and, if it names one, its interpreter.
pub(super) struct Image {
    file: Arc<DenyWrite>,
    /// `Err` if it cannot be mapped, which shows only after the point of no return.
    plan: Result<Arc<Plan>, Error>,
    source: Arc<dyn MapSource>,
    interpreter: Option<Interpreter>,
}

struct Interpreter {
    /// Keeps writers away until it is mapped.
    file: Arc<DenyWrite>,
    plan: Result<Arc<Plan>, Error>,
    source: Arc<dyn MapSource>,
}

/// Where an image came to lie.
pub(super) struct Placed {
    /// First user instruction.
    pub(super) entry: u64,
    /// AT_ENTRY, AT_PHDR, AT_PHNUM, AT_BASE.
    pub(super) program_entry: u64,
    pub(super) phdrs: u64,
    pub(super) phdr_count: u16,
    pub(super) base: u64,
    /// Start and end of code and data.
    pub(super) bounds: [u64; 4],
    pub(super) brk_start: u64,
    /// Where the program and its interpreter lie.
    spans: [Range<u64>; 2],
}

impl Placed {
    /// Maps ahead what earlier runs of these files touched.
    pub(super) fn map_known(&self, mm: &AddressSpace) -> Result<()> {
        self.spans
            .iter()
            .filter(|span| !span.is_empty())
            .try_for_each(|span| mm.map_known(span.clone()))
    }
}

impl Image {
    /// Reads what the file says; `ENOEXEC`, `ELIBBAD`, and the errors of opening the interpreter.
    pub(super) fn open(task: Current, file: Arc<DenyWrite>) -> Result<Self> {
        let plan = match plan_of(&file)? {
            Err(Error::NotExecutable) => return Err(Errno::ENOEXEC),
            plan => plan,
        };
        let interp = plan.as_ref().ok().and_then(|plan| plan.interp);
        let interpreter = match interp {
            Some(place) => Some(open_interpreter(task, file.file(), place)?),
            None => None,
        };
        let source = source_of(file.file())?;
        Ok(Self { file, plan, source, interpreter })
    }

    /// The program's file.
    pub(super) fn executable(&self) -> &Arc<DenyWrite> {
        &self.file
    }

    /// Whether the program, or its interpreter, is one that `cred` may execute but not read.
    pub(super) fn is_hidden_from(&self, cred: &Cred) -> bool {
        let files =
            [Some(&self.file), self.interpreter.as_ref().map(|interpreter| &interpreter.file)];
        files.into_iter().flatten().any(|file| {
            let inode = file.file().inode();
            perm::check(&**inode, cred, perm::READ).is_err()
        })
    }

    /// Whether the stack must be executable.
    pub(super) fn exec_stack(&self) -> bool {
        self.plan.as_ref().is_ok_and(|plan| plan.exec_stack)
    }

    /// Maps everything into an empty space.
    pub(super) fn map(&self, mm: &AddressSpace, layout: &Layout) -> Result<Placed> {
        let plan = self.plan.as_ref().map_err(|_| Errno::EINVAL)?;
        let bias = match (plan.kind, &self.interpreter) {
            (Kind::Fixed, _) => 0,
            (Kind::Anywhere, Some(_)) => layout.program_base(plan.align).wrapping_sub(plan.start()),
            (Kind::Anywhere, None) => free_bias(layout.mmap_base, plan)?,
        };
        let program = map_plan(mm, plan, bias, &self.source)?;
        let program_entry = plan.entry.wrapping_add(bias);
        let (entry, base, interpreter) = match &self.interpreter {
            None => (program_entry, 0, 0..0),
            Some(interpreter) => {
                let plan = interpreter.plan.as_ref().map_err(|_| Errno::EINVAL)?;
                let bias = match plan.kind {
                    Kind::Fixed => 0,
                    Kind::Anywhere => free_bias(layout.mmap_base, plan)?,
                };
                let span = map_plan(mm, plan, bias, &interpreter.source)?;
                (plan.entry.wrapping_add(bias), bias.wrapping_add(plan.start()), span)
            }
        };
        if entry >= USER_END {
            return Err(Errno::EINVAL);
        }
        let free_standing = plan.kind == Kind::Anywhere && self.interpreter.is_none();
        let end = plan.break_start().wrapping_add(bias);
        Ok(Placed {
            entry,
            program_entry,
            phdrs: if plan.phdrs == 0 { 0 } else { plan.phdrs.wrapping_add(bias) },
            phdr_count: plan.phdr_count,
            base,
            bounds: plan.bounds().map(|addr| addr.wrapping_add(bias)),
            // A program among the mappings gets its heap where other programs lie.
            brk_start: layout.brk_start(if free_standing { layout.program_base(1) } else { end }),
            spans: [program, interpreter],
        })
    }
}

/// The bias that puts an image where the first mapping goes.
fn free_bias(base: MmapBase, plan: &Plan) -> Result<u64> {
    let start = match base {
        MmapBase::Top(top) => {
            top.checked_sub(plan.extent()).ok_or(Errno::ENOMEM)? & !(plan.align - 1)
        }
        MmapBase::Bottom(bottom) => bottom.next_multiple_of(plan.align),
    };
    Ok(start.wrapping_sub(plan.start()))
}

/// The file's plan, from its last execution if nobody has written to it since.
fn plan_of(file: &DenyWrite) -> Result<Result<Arc<Plan>, Error>> {
    if let Some(plan) = file.plan() {
        return Ok(Ok(plan));
    }
    let plan = read_plan(file.file())?;
    if let Ok(plan) = &plan {
        file.set_plan(plan);
    }
    Ok(plan)
}

/// Parses a file; the outer error is one of reading it.
#[inline(never)]
fn read_plan(file: &OpenFile) -> Result<Result<Arc<Plan>, Error>> {
    let mut start = [0; USUAL_START];
    let len = file.read_at(&mut Sink::kernel(&mut start), 0)?;
    if len < HEADER_LEN {
        return Ok(Err(Error::NotExecutable));
    }
    let header = match Header::parse(&start[..HEADER_LEN]) {
        Ok(header) => header,
        Err(error) => return Ok(Err(error)),
    };
    let at = usize::try_from(header.phdrs_offset).ok();
    let inside = at.and_then(|at| start[..len].get(at..at.checked_add(header.phdrs_len())?));
    if let Some(phdrs) = inside {
        return shared(Plan::new(&header, phdrs, USER_END));
    }
    let mut phdrs = Vec::new();
    phdrs.try_reserve_exact(header.phdrs_len()).map_err(|_| Errno::ENOMEM)?;
    phdrs.try_resize(header.phdrs_len(), 0)?;
    let got = match i64::try_from(header.phdrs_offset) {
        Ok(_) => file.read_at(&mut Sink::kernel(&mut phdrs), header.phdrs_offset)?,
        Err(_) => 0,
    };
    if got < phdrs.len() {
        return Ok(Err(Error::NotExecutable));
    }
    shared(Plan::new(&header, &phdrs, USER_END))
}

fn shared(plan: Result<Plan, Error>) -> Result<Result<Arc<Plan>, Error>> {
    Ok(match plan {
        Ok(plan) => Ok(try_arc(plan)?),
        Err(error) => Err(error),
    })
}

fn open_interpreter(
    task: Current,
    file: &OpenFile,
    (offset, len): (u64, u64),
) -> Result<Interpreter> {
    let mut path = Vec::new();
    path.try_reserve_exact(len as usize).map_err(|_| Errno::ENOMEM)?;
    path.try_resize(len as usize, 0)?;
    if file.read_at(&mut Sink::kernel(&mut path), offset)? < path.len() {
        return Err(Errno::EIO);
    }
    if path.pop() != Some(0) {
        return Err(Errno::ENOEXEC);
    }
    // What lies behind an earlier NUL is not part of the name.
    path.truncate(path.iter().position(|&b| b == 0).unwrap_or(path.len()));
    let file = super::open::open(task, Fd(abi::fs::AT_FDCWD), &path, LookupFlags::FOLLOW)?;
    if file.file().inode().size() < HEADER_LEN as u64 {
        return Err(Errno::EIO);
    }
    let plan = match plan_of(&file)? {
        Err(Error::NotExecutable) => {
            let mut header = [0; HEADER_LEN];
            let got = file.file().read_at(&mut Sink::kernel(&mut header), 0)?;
            return Err(if got < HEADER_LEN { Errno::EIO } else { Errno::ELIBBAD });
        }
        plan => plan,
    };
    let source = source_of(file.file())?;
    Ok(Interpreter { file, plan, source })
}

fn source_of(file: &Arc<OpenFile>) -> Result<Arc<dyn MapSource>> {
    match file.ops().mmap(file)? {
        MapTarget::File(source) => Ok(source),
        _ => Err(Errno::ENOEXEC),
    }
}

fn map_plan(
    mm: &AddressSpace,
    plan: &Plan,
    bias: u64,
    source: &Arc<dyn MapSource>,
) -> Result<Range<u64>> {
    for segment in &plan.loads {
        map_segment(mm, segment, bias, source)?;
    }
    let start = plan.start().wrapping_add(bias);
    Ok(start..start.saturating_add(plan.extent()))
}

fn map_segment(
    mm: &AddressSpace,
    segment: &Segment,
    bias: u64,
    source: &Arc<dyn MapSource>,
) -> Result<()> {
    let mut prot = Prot::empty();
    prot.set(Prot::READ, segment.flags.read());
    prot.set(Prot::WRITE, segment.flags.write());
    prot.set(Prot::EXEC, segment.flags.exec());
    let map = |start: u64, end: u64, backing: Backing| -> Result<()> {
        if end <= start {
            return Ok(());
        }
        let at = start.wrapping_add(bias);
        if at >= USER_END || end - start > USER_END - at {
            return Err(Errno::ENOMEM);
        }
        if is_low(at)
            && !crate::process::task::current::current().cred().capable(Capability::SYS_RAWIO)
        {
            return Err(Errno::EPERM);
        }
        let request = MapRequest {
            addr: Some(VirtAddr::new_truncate(at)),
            fixed: MapFixed::Replace,
            len: end - start,
            prot,
            shared: false,
            backing,
            flags: VmFlags::empty(),
            populate: false,
        };
        mm.map(request).map(drop)
    };
    let file = Backing::File { source: source.clone(), offset: segment.file_start() };
    map(segment.start(), segment.file_end(), file)?;
    map(segment.file_end(), segment.end(), Backing::ANON)?;
    let (tail, len) = segment.tail();
    if len != 0 && segment.flags.write() {
        mm.zero(tail.wrapping_add(bias), len)?;
    }
    Ok(())
}
