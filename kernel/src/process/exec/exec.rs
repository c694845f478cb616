//! `execve`: a new program for a process.
//!
//! Everything that may fail is done first, beside the old program: the file, its plan, the arguments. Then
//! the other threads go (the point of no return: an error after it kills the process, as on Linux), the new
//! address space is built through the direct map without a single fault, and the old one goes last.
//! `image` maps, `args` gathers strings, `stack` lays out what the program finds, `script` follows `#!`.

use super::args::{ArgArea, Strings};
use super::cred::file_caps;
use super::image::Image;
use super::layout::stack_offset;
use super::open::open;
use super::{commit, script, threads};
use crate::arch::entry::frame::TrapFrame;
use crate::diag::exec_phases::{ExecTimer, Step};
use crate::mm::fallible::{TryGrow, TrySlice, TryVec};
use crate::process::perf;
use crate::process::ptrace;
use crate::process::rings;
use crate::process::task::current::Current;
use crate::trace::{self, Event, Point};
use crate::try_format;
use crate::vfs::namei::LookupFlags;
use crate::vfs::{DenyWrite, Fd, FdTable};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// How many `#!` interpreters may call each other.
const MAX_SCRIPTS: usize = 5;

/// What to execute and with what.
pub struct ExecRequest<'a> {
    /// Where a relative path starts.
    pub at: Fd,
    pub path: &'a [u8],
    pub lookup: LookupFlags,
    pub argv: &'a dyn Strings,
    pub envp: &'a dyn Strings,
}

/// Replaces the program of the running task. On success `frame` enters the new one.
///
/// # Errors
/// All of Linux's; the old program goes on unchanged.
pub fn execve(frame: &mut TrapFrame, request: &ExecRequest<'_>) -> Result<()> {
    let task = crate::process::task::current::current();
    let mut timer = ExecTimer::start(task.process().pid());
    let file = open(task, request.at, request.path, request.lookup)?;
    let shown = shown_name(request)?;
    let mut area = ArgArea::new(task, request.argv, request.envp)?;
    let (file, script) = follow_scripts(task, request, file, &shown)?;
    let offset = stack_offset(task, file.file());
    area.fill(offset, request.argv, request.envp, script.as_ref(), &shown)?;
    timer.end(Step::Arguments);
    let image = Image::open(task, file)?;
    timer.end(Step::Executable);
    let caps = file_caps(task, image.executable().file())?;
    let (number, old_tid) = (frame.orig_rax, task.tid());
    threads::become_only(task)?;
    let executable = image.executable().clone();
    match commit::commit(frame, task, image, caps, area, &shown, &mut timer) {
        Ok(()) => {
            drop(executable);
            timer.end(Step::Rest);
            timer.commit();
            let name = || Event::Exec { comm: task.comm(), old_tid };
            trace::at(Point::Exec, name);
            rings::exec_done(task);
            perf::exec_done(task, &shown, old_tid);
            ptrace::exec_done(frame, number, old_tid);
            Ok(())
        }
        Err(_) => {
            // The old program cannot go on: its threads and maybe its memory are gone.
            drop((executable, timer, shown));
            let segv = abi::signal::Signal::SIGSEGV;
            crate::process::tree::exit::do_group_exit(
                crate::process::tree::exit::Status::signalled(segv),
            )
        }
    }
}

/// The path that AT_EXECFN, `comm` and scripts are told: that of `execveat` names the descriptor.
fn shown_name(request: &ExecRequest<'_>) -> Result<Vec<u8>> {
    if request.at.0 == abi::fs::AT_FDCWD || request.path.first() == Some(&b'/') {
        return request.path.try_owned();
    }
    let mut name = try_format!("/dev/fd/{}", request.at.0)?.into_bytes();
    if !request.path.is_empty() {
        name.try_push(b'/')?;
        name.try_extend_from_slice(request.path)?;
    }
    Ok(name)
}

/// Follows `#!` lines to a file that is none; the arguments that they put before the caller's.
fn follow_scripts(
    task: Current,
    request: &ExecRequest<'_>,
    mut file: Arc<DenyWrite>,
    shown: &[u8],
) -> Result<(Arc<DenyWrite>, Option<Vec<Vec<u8>>>)> {
    let mut prefix: Option<Vec<Vec<u8>>> = None;
    // None for `shown`.
    let mut name: Option<Vec<u8>> = None;
    for depth in 0.. {
        if file.plan().is_some() {
            // It was executed itself, and nobody has written to it since.
            break;
        }
        let start = script::first_bytes(file.file())?;
        let Some(line) = script::parse(&start)? else { break };
        if depth >= MAX_SCRIPTS {
            return Err(Errno::ELOOP);
        }
        if depth == 0 && request.at.0 != abi::fs::AT_FDCWD && closes_on_exec(&task.files(), request)
        {
            // The interpreter could not open the script again.
            return Err(Errno::ENOENT);
        }
        let mut args = Vec::new();
        args.try_push(line.interpreter.try_owned()?)?;
        if let Some(argument) = line.argument {
            args.try_push(argument.try_owned()?)?;
        }
        args.try_push(match name.replace(line.interpreter.try_owned()?) {
            Some(own) => own,
            None => shown.try_owned()?,
        })?;
        if let Some(outer) = prefix.take() {
            // The outer line's first word was our own name, which we replaced by path.
            args.try_extend(outer.into_iter().skip(1))?;
        }
        prefix = Some(args);
        file = open(task, Fd(abi::fs::AT_FDCWD), line.interpreter, LookupFlags::FOLLOW)?;
    }
    Ok((file, prefix))
}

fn closes_on_exec(files: &FdTable, request: &ExecRequest<'_>) -> bool {
    request.path.first() != Some(&b'/') && files.cloexec(request.at).unwrap_or(false)
}
