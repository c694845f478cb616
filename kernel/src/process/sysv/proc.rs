//! /proc/sysvipc: the objects, one a line.

use super::table::Object;
use super::{limits, msg, sem, shm};
use crate::base::PAGE_SIZE;
use crate::fs::procfs::{Pieces, TextBuf, register_file};
use crate::mm::fallible::{TryString, try_arc};
use crate::try_writeln;
use abi::Result;

/// Adds the files to /proc; once, at boot.
pub fn register() -> Result<()> {
    limits::register(shm::end_orphans)?;
    let listings: [(&str, fn(&mut TextBuf) -> Result<()>); 3] =
        [("sysvipc/shm", segments), ("sysvipc/sem", sets), ("sysvipc/msg", queues)];
    for (path, listing) in listings {
        let whole = move |_: u64, text: &mut TextBuf| listing(text).map(|()| None);
        register_file(path, 0o444, try_arc(Pieces(whole))?)?;
    }
    Ok(())
}

fn segments(text: &mut TextBuf) -> Result<()> {
    text.try_push_str(concat!(
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid",
        "      atime      dtime      ctime                   rss                  swap\n"
    ))?;
    shm::for_each(|segment| {
        let rss = segment.cache.resident() * PAGE_SIZE as u64;
        let (id, size, state) = (segment.id(), segment.size, segment.state().told(segment));
        let perm = state.perm;
        try_writeln!(
            text,
            "{:10} {id:10}  {:4o} {size:21} {:5} {:5}  {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10} {rss:21} {:21}",
            perm.key,
            perm.mode,
            state.cpid,
            state.lpid,
            state.nattch,
            perm.uid,
            perm.gid,
            perm.cuid,
            perm.cgid,
            state.atime,
            state.dtime,
            state.ctime,
            0
        )
    })
}

fn sets(text: &mut TextBuf) -> Result<()> {
    text.try_push_str(
        "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n",
    )?;
    sem::for_each(|set| {
        let Ok(told) = set.told(|_| Ok(())) else { return Ok(()) };
        let (id, perm) = (set.id(), told.perm);
        try_writeln!(
            text,
            "{:10} {id:10}  {:4o} {:10} {:5} {:5} {:5} {:5} {:10} {:10}",
            perm.key,
            perm.mode,
            told.nsems,
            perm.uid,
            perm.gid,
            perm.cuid,
            perm.cgid,
            told.otime,
            told.ctime
        )
    })
}

fn queues(text: &mut TextBuf) -> Result<()> {
    text.try_push_str(concat!(
        "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid",
        "      stime      rtime      ctime\n"
    ))?;
    msg::for_each(|queue| {
        let Ok(told) = queue.told(|_| Ok(())) else { return Ok(()) };
        let (id, perm) = (queue.id(), told.perm);
        try_writeln!(
            text,
            "{:10} {id:10}  {:4o}  {:10} {:10} {:5} {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10}",
            perm.key,
            perm.mode,
            told.cbytes,
            told.qnum,
            told.lspid,
            told.lrpid,
            perm.uid,
            perm.gid,
            perm.cuid,
            perm.cgid,
            told.stime,
            told.rtime,
            told.ctime
        )
    })
}
