//! What is read of an event, or of its group, in the form that was asked for.
//!
//! Owns nothing. Locks: the mutex of all events, while the numbers are gathered.

use super::event::{Changes, Event, changes};
use crate::mm::Sink;
use crate::mm::fallible::{TryGrow, TryVec};
use abi::perf::{Attr, format};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use zerocopy::IntoBytes;

/// The most that may be read of a group, in bytes: all of it stands in one record of a sample.
const MOST_READ: usize = 16 << 10;

/// `E2BIG` if what is read of a group were longer than that with one more event, which reads it as `attr` says.
pub(super) fn check_size(leader: &Event, attr: &Attr, _: &Changes) -> Result<()> {
    let links = leader.links.lock();
    let members = links.members.len() + 1;
    let own = [&leader.attr, attr].into_iter();
    let mut all = own.chain(links.members.iter().map(|member| &member.attr));
    if all.any(|attr| attr.read_size(members) > MOST_READ) { Err(Errno::E2BIG) } else { Ok(()) }
}

/// Reads an event.
///
/// # Errors
/// `ENOSPC` if there is no room for all of it, `EFAULT`, `ENOMEM`.
pub(super) fn read(event: &Arc<Event>, dst: &mut Sink<'_>) -> Result<usize> {
    let words = gather(event, dst.remaining())?;
    let bytes = words.as_bytes();
    match dst.put(bytes)? {
        put if put < bytes.len() => Err(Errno::EFAULT),
        put => Ok(put),
    }
}

fn gather(event: &Arc<Event>, room: usize) -> Result<Vec<u64>> {
    let changes = changes();
    let leader = event.leader();
    let mut members = Vec::new();
    members.try_extend(leader.links.lock().members.iter().cloned())?;
    let size = event.attr.read_size(members.len());
    if room < size {
        return Err(Errno::ENOSPC);
    }
    let mut words = Vec::with_room(size / size_of::<u64>())?;
    let form = event.attr.read_format;
    if form & format::GROUP == 0 {
        put_one(event, &changes, form, true, &mut words)?;
        return Ok(words);
    }
    let totals = leader.totals(&changes);
    words.try_push(1 + members.len() as u64)?;
    put_if(form & format::ENABLED != 0, totals.enabled, &mut words)?;
    put_if(form & format::RUNNING != 0, totals.running, &mut words)?;
    put_one(&leader, &changes, form, false, &mut words)?;
    for member in &members {
        put_one(member, &changes, form, false, &mut words)?;
    }
    Ok(words)
}

fn put_if(wanted: bool, word: u64, words: &mut Vec<u64>) -> Result<()> {
    if wanted { words.try_push(word) } else { Ok(()) }
}

fn put_one(
    event: &Event,
    changes: &Changes,
    form: u64,
    with_times: bool,
    words: &mut Vec<u64>,
) -> Result<()> {
    let totals = event.totals(changes);
    words.try_push(totals.count)?;
    put_if(with_times && form & format::ENABLED != 0, totals.enabled, words)?;
    put_if(with_times && form & format::RUNNING != 0, totals.running, words)?;
    put_if(form & format::ID != 0, event.id, words)?;
    // Relaxed: see the field.
    put_if(form & format::LOST != 0, event.lost.load(Ordering::Relaxed), words)
}
