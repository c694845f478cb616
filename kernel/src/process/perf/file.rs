//! The descriptor of an event: read, poll, the commands of ioctl.
//!
//! Owns the event. Locks: the mutex of all events, for commands.

use super::event::{Changes, Event, changes};
use super::{breakpoint, life, map, pay, read, settings, tracepoint};
use crate::mm::Sink;
use crate::mm::fallible::try_arc;
use crate::mm::user::UserPtr;
use crate::process::task::current::current;
use crate::sync::PollTable;
use crate::vfs::anon::anonymous;
use crate::vfs::{
    Abilities, Capability, Fd, FileOps, MapRange, MapTarget, OpenFile, PollEvents, Position,
};
use abi::fs::OpenFlags;
use abi::perf::{bit, ioctl};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// The file of an event.
pub(super) struct EventFile {
    pub event: Arc<Event>,
}

/// A new file for an event that is not attached yet.
pub(super) fn new(event: &Arc<Event>) -> Result<OpenFile> {
    let ops = try_arc(EventFile { event: event.clone() })?;
    anonymous(ops, "[perf_event]", OpenFlags::RDWR, false)
}

/// The event behind a descriptor; `EBADF` for any other file.
pub(super) fn event_of(fd: i32) -> Result<Arc<Event>> {
    let file = current().files().get(Fd(fd))?;
    let event = file.downcast::<EventFile>().ok_or(Errno::EBADF)?;
    Ok(event.event.clone())
}

impl FileOps for EventFile {
    fn read(&self, _: &OpenFile, dst: &mut Sink<'_>, _: &mut u64) -> Result<usize> {
        read::read(&self.event, dst)
    }

    fn position(&self) -> Position {
        Position::None
    }

    fn poll(&self, _: &OpenFile, table: &mut PollTable) -> PollEvents {
        table.watch(&self.event.ends);
        match &self.event.mapped_ring() {
            Some(ring) => {
                table.watch(&ring.readers);
                let ready = ring.take_ready();
                match has_ended(&self.event) {
                    // What waits in the buffer is not told of any more, as on Linux.
                    true => PollEvents::HUP,
                    false if ready => PollEvents::READABLE,
                    false => PollEvents::empty(),
                }
            }
            None => PollEvents::HUP,
        }
    }

    fn mmap_range(&self, file: &Arc<OpenFile>, range: &MapRange) -> Result<MapTarget> {
        map::target(&self.event, file, range)
    }

    fn is_mapped_alone(&self) -> bool {
        true
    }

    fn ioctl(&self, _: &OpenFile, cmd: u32, arg: u64) -> Result<i64> {
        command(&self.event, cmd, arg).map(|()| 0)
    }

    fn signals_changed(&self, file: &OpenFile, fd: Option<i32>) -> Result<()> {
        pay::listen(&self.event, file, fd);
        Ok(())
    }

    fn release(&self, _: &OpenFile) {
        life::release(&self.event);
    }

    fn abilities(&self) -> Abilities {
        Abilities::TELLS
    }
}

/// Whether nothing more comes of it, nor of those inherited from it.
fn has_ended(event: &Event) -> bool {
    event.is_over() && event.links.lock().children.iter().all(|child| child.strong_count() == 0)
}

fn command(event: &Arc<Event>, cmd: u32, arg: u64) -> Result<()> {
    match cmd {
        ioctl::ENABLE => for_each(event, arg, &mut |event, changes| event.set_on(changes, true)),
        ioctl::DISABLE => for_each(event, arg, &mut |event, changes| event.set_on(changes, false)),
        ioctl::RESET => for_each(event, arg, &mut |event, _| event.reset()),
        ioctl::ID => UserPtr::new(arg).write(&event.id)?,
        ioctl::PERIOD => return set_period(event, UserPtr::new(arg).read()?),
        ioctl::SET_OUTPUT if arg == u64::MAX => return map::set_output(event, None),
        ioctl::SET_OUTPUT => return map::set_output(event, Some(&event_of(arg as i32)?)),
        ioctl::PAUSE_OUTPUT => {
            let ring = event.mapped_ring().filter(|ring| ring.pages() != 0);
            ring.ok_or(Errno::EINVAL)?.pause(arg as u32 != 0);
        }
        ioctl::SET_FILTER => return tracepoint::set_filter(event, arg),
        ioctl::REFRESH if event.attr.has(bit::INHERIT) || !event.attr.is_sampling() => {
            return Err(Errno::EINVAL);
        }
        ioctl::REFRESH => event.refresh(arg as u32, &changes()),
        ioctl::SET_BPF => {
            current().files().get(Fd(arg as i32))?;
            return Err(Errno::EINVAL);
        }
        ioctl::QUERY_BPF => {
            let cred = current().cred_arc();
            let may = cred.capable(Capability::PERFMON) || cred.capable(Capability::SYS_ADMIN);
            return Err(if may { Errno::EINVAL } else { Errno::EPERM });
        }
        ioctl::MODIFY_ATTRIBUTES => {
            return breakpoint::modify(event, &settings::read_attr(arg)?, &changes());
        }
        _ => return Err(Errno::ENOTTY),
    }
    Ok(())
}

fn for_each(event: &Arc<Event>, arg: u64, act: &mut dyn FnMut(&Event, &Changes)) {
    let changes = changes();
    if arg & ioctl::GROUP == 0 {
        event.for_each_heir(&changes, act);
        return;
    }
    let leader = event.leader();
    leader.for_each_heir(&changes, act);
    for at in 0.. {
        let member = leader.links.lock().members.get(at).cloned();
        let Some(member) = member else { return };
        member.for_each_heir(&changes, act);
    }
}

/// PERF_EVENT_IOC_PERIOD: there is nothing to change but for what samples.
fn set_period(event: &Event, period: u64) -> Result<()> {
    let mut attr = event.attr;
    attr.period = period;
    if !event.is_by_frequency() {
        attr.flags &= !bit::FREQ;
    }
    if !event.attr.is_sampling() || period == 0 || !attr.has_good_period(settings::rate()) {
        return Err(Errno::EINVAL);
    }
    event.set_period(period, &changes())
}
