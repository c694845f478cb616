//! The point of no return and what follows: the new program takes the old one's place.

use super::args::ArgArea;
use super::image::Image;
use super::layout::Layout;
use super::program::Program;
use super::{cred, stack};
use crate::arch::entry::frame::TrapFrame;
use crate::arch::task::switch;
use crate::base::PAGE_SIZE;
use crate::diag::exec_phases::{ExecTimer, Step};
use crate::mm::AddressSpace;
use crate::mm::fallible::try_arc;
use crate::process::coredump::SUID_DUMPABLE;
use crate::process::signal;
use crate::process::task::current::Current;
use crate::process::task::task::Memory;
use crate::process::tree::exit;
use crate::process::watch;
use crate::vfs::Files;
use crate::vfs::file_caps::FileCaps;
use abi::Result;
use abi::process::personality;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use zeroize::Zeroize;

/// Builds the new program and enters it. An error means that the process cannot go on.
pub(super) fn commit(
    frame: &mut TrapFrame,
    task: Current,
    image: Image,
    caps: Option<FileCaps>,
    mut area: ArgArea,
    name: &[u8],
    timer: &mut ExecTimer,
) -> Result<()> {
    let mm = AddressSpace::new()?;
    let file = image.executable().clone();
    let steady = task.process().steady();
    let change = cred::change(task, file.file(), caps.as_ref())?;
    let guarded = change.guarded || image.is_hidden_from(&task.cred());
    forget_personality(task, change.sets_id);
    timer.end(Step::NewSpace);
    let mut layout = Layout::draw(task);
    mm.set_mmap_base(layout.mmap_base);
    timer.end(Step::Layout);
    let placed = image.map(&mm, &layout)?;
    mm.set_brk(placed.brk_start);
    timer.end(Step::Image);
    placed.map_known(&mm)?;
    timer.end(Step::Prefault);
    let secure = change.secure;
    if let Some(new_cred) = change.cred {
        task.set_cred(new_cred);
    }
    let top = layout.stack_top;
    let vdso = mm.map_vdso(top, layout.vdso)?;
    let cred = task.cred();
    let laid = stack::lay_out(&mut area, top, &placed, &cred, secure, vdso, &layout.secret);
    layout.secret.zeroize();
    drop(cred);
    map_stack(&mm, top, area, image.exec_stack())?;
    timer.end(Step::Stack);
    let program = try_arc(Program {
        file,
        bounds: placed.bounds,
        brk_start: placed.brk_start,
        stack_start: laid.sp,
        args: laid.args,
        env: laid.env,
        auxv: laid.auxv,
    })?;
    let old = replace_memory(task, mm);
    show(task, program, guarded);
    drop(steady);
    timer.end(Step::Switch);
    drop(old);
    timer.end(Step::OldSpace);
    forget_old_program(task, name)?;
    if secure || change.guarded {
        // Relaxed: a setting.
        task.settings.parent_death_signal.store(0, Ordering::Relaxed);
    }
    enter(frame, task, placed.entry, laid.sp);
    timer.end(Step::Close);
    Ok(())
}

/// Puts the finished pages where the stack pointer will look for them.
fn map_stack(mm: &AddressSpace, top: u64, area: ArgArea, exec: bool) -> Result<()> {
    let len = (area.page_count() * PAGE_SIZE) as u64;
    mm.map_stack(top, len + 33 * PAGE_SIZE as u64, exec)?;
    let base = top - len;
    for (at, page) in area.into_pages().into_iter().enumerate() {
        mm.install(base + (at * PAGE_SIZE) as u64, page.into_frame())?;
    }
    mm.map_known_stack(base)
}

/// Switches to the new space and lets a waiting vfork parent go on; the old one comes back.
fn replace_memory(task: Current, mm: Arc<AddressSpace>) -> Option<Memory> {
    exit::leave_user_memory(task);
    task.rseq.clear();
    task.tracing.breakpoints.clear(&task);
    mm.activate();
    let old = task.set_mm(Some(Memory::first(mm)));
    if old.as_ref().is_some_and(|old| !old.allows_large()) {
        task.mm().allow_large(false);
    }
    task.execute_predictors();
    old
}

/// What others see is the new program, whose memory it is now. Into one that is `guarded` only root may look.
fn show(task: Current, program: Arc<Program>, guarded: bool) {
    task.process().set_program(Some(program));
    let dumpable = if guarded { SUID_DUMPABLE.get().unsigned_abs() } else { 1 };
    // Relaxed: who decides by it has the lock that exec has now.
    task.process().dumpable.store(dumpable, Ordering::Relaxed);
}

/// What of `personality` does not outlive an exec: as on Linux, what makes all memory executable, and for a
/// program that `sets_id` what makes its addresses known.
fn forget_personality(task: Current, sets_id: bool) {
    let gone = if sets_id { personality::CLEAR_ON_SETID } else { personality::READ_IMPLIES_EXEC };
    // Relaxed: the thread's own setting.
    task.settings.personality.fetch_and(!gone, Ordering::Relaxed);
}

/// Everything that belonged to the old program.
fn forget_old_program(task: Current, name: &[u8]) -> Result<()> {
    let process = task.process();
    let file_name = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
    task.set_comm(file_name);
    // Relaxed: settings; nobody orders anything by them.
    process.has_execed.store(true, Ordering::Relaxed);
    process.exit_signal.store(abi::signal::Signal::SIGCHLD.number(), Ordering::Relaxed);
    signal::reset_for_exec(&task)?;
    task.map(|task| &task.registered).clear();
    watch::forget_dispatch(task);
    // Record locks belong to the table: one that is not shared stays.
    let shared = task.files().is_shared();
    if shared {
        let own = Files::new(task.files().fork()?)?;
        drop(task.set_files(Some(own)));
    }
    task.files().close_on_exec();
    Ok(())
}

/// The registers of a new program.
fn enter(frame: &mut TrapFrame, task: Current, entry: u64, sp: u64) {
    task.vectors().reset();
    switch::set_fs_base(0);
    switch::set_user_gs_base(0);
    *frame = TrapFrame::new_user(entry, sp);
}
