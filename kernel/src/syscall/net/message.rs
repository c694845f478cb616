//! Messages with names and control data: what send and recv have in common in all their forms.

use super::socket::{Any, any, find, read_address};
use crate::mm::fallible::{TryGrow, TrySlice, TryVec};
use crate::mm::user::{self, UserPtr, UserSlice};
use crate::mm::{Sink, Source};
use crate::net::option::{known, more};
use crate::net::unix::flight::{Flight, Sender};
use crate::net::unix::sender::UNKNOWN;
use crate::net::unix::{Address, Ancillary, How, Kind, Outgoing, Socket};
use crate::net::{self, Control, NetSocket, SockName};
use crate::process;
use crate::syscall::caller::{fd_limit, file_any, or_sigpipe};
use crate::syscall::file::install::reserved;
use crate::time;
use crate::vfs::{Capability, Fd, OpenFile};
use abi::socket::{CmsgHdr, MsgFlags, SCM_CREDENTIALS, SCM_MAX_FD, SCM_RIGHTS, SOL_SOCKET, Ucred};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use zerocopy::{FromBytes, IntoBytes};

/// Size of a control header, and what the data behind it are aligned to.
const HEADER: usize = size_of::<CmsgHdr>();
const ALIGN: usize = 8;
/// Control data as short as this Linux keeps on its stack, and does not count.
const UNCOUNTED_CONTROL: usize = 36;
/// No control message of a network is longer.
const MAX_NET_CONTROL: usize = 64;

/// A destination's name.
#[derive(Clone, Copy)]
pub enum Name<'a> {
    None,
    /// In user memory.
    At(u64, u32),
    /// It was read before.
    Read(&'a [u8]),
}

impl Name<'_> {
    /// What a call is given: nothing by no address, or by no length.
    #[inline]
    pub fn given(addr: u64, len: u32) -> Self {
        if addr == 0 || len == 0 { Self::None } else { Self::At(addr, len) }
    }

    fn read(self) -> Result<Option<Vec<u8>>> {
        Ok(match self {
            Self::None | Self::Read([]) => None,
            Self::At(addr, len) => Some(read_address(addr, len)?),
            Self::Read(name) => Some(name.try_owned()?),
        })
    }
}

/// What was received, as the header reports it.
pub struct Received {
    pub bytes: usize,
    /// A `sockaddr`.
    pub from: Option<SockName>,
    pub flags: MsgFlags,
    pub control_len: usize,
}

/// Sends `iov`; `control` is address and length of the control data. SIGPIPE goes with EPIPE unless the
/// flags forbid it.
pub fn send_message(
    file: &OpenFile,
    iov: &[UserSlice],
    name: Name<'_>,
    control: (u64, usize),
    flags: MsgFlags,
) -> Result<usize> {
    match any(file)? {
        Any::Unix(socket) => send_unix(file, socket, iov, name, control, flags),
        Any::Net(socket) => send_net(file, &**socket, iov, name, control, flags),
    }
}

fn send_net(
    file: &OpenFile,
    socket: &dyn NetSocket,
    iov: &[UserSlice],
    name: Name<'_>,
    control: (u64, usize),
    flags: MsgFlags,
) -> Result<usize> {
    let to = name.read()?;
    let mut controls = Vec::new();
    read_controls(control, |level, kind, data| {
        let data = data[..data.len().min(MAX_NET_CONTROL)].try_owned()?;
        controls.try_push(Control { level, kind, data })?;
        Ok(())
    })?;
    let nonblock = file.nonblock() || flags.contains(MsgFlags::DONTWAIT);
    let how = net::Outgoing { to: to.as_deref(), control: &controls, flags, nonblock };
    let result = socket.send(&mut Source::iovec(iov), &how);
    if flags.contains(MsgFlags::ZEROCOPY)
        && let Ok(sent) = result
    {
        note_uncopied(socket, sent);
    }
    if flags.contains(MsgFlags::NOSIGNAL) { result } else { or_sigpipe(file, result) }
}

/// A send of a stream said that its bytes need not be copied: its sender is told when they may be used again, if it asked for that.
#[cold]
fn note_uncopied(socket: &dyn NetSocket, sent: usize) {
    if sent > 0 && socket.options().is_on(const { known(SOL_SOCKET, more::ZEROCOPY) }) {
        socket.note_uncopied();
    }
}

fn send_unix(
    file: &OpenFile,
    socket: &Arc<Socket>,
    iov: &[UserSlice],
    name: Name<'_>,
    control: (u64, usize),
    flags: MsgFlags,
) -> Result<usize> {
    let urgent = flags.contains(MsgFlags::OOB);
    if urgent && socket.kind() != Kind::Stream {
        return Err(Errno::EOPNOTSUPP);
    }
    let to = match name.read()? {
        None => None,
        Some(name) if socket.kind() == Kind::Datagram => {
            let name = Address::decode(&name)?;
            if matches!(name, Address::Unnamed) {
                return Err(Errno::EINVAL);
            }
            // As on Linux, also if nobody is found.
            socket.bind_for_creds()?;
            Some(find(&name)?)
        }
        // A connected socket looks at no name, a stream only at whether there is one.
        Some(_) => (socket.kind() == Kind::Stream).then(|| socket.clone()),
    };
    let ancillary = read_control(control)?;
    let nonblock = file.nonblock() || flags.contains(MsgFlags::DONTWAIT);
    let result = socket.send(&mut Source::iovec(iov), Outgoing { to, ancillary, nonblock, urgent });
    if flags.contains(MsgFlags::NOSIGNAL) { result } else { or_sigpipe(file, result) }
}

fn read_control(control: (u64, usize)) -> Result<Ancillary> {
    let mut ancillary = Ancillary::default();
    read_controls(control, |level, kind, data| {
        match (level, kind) {
            (SOL_SOCKET, SCM_RIGHTS) => read_rights(data, &mut ancillary)?,
            (SOL_SOCKET, SCM_CREDENTIALS) => ancillary.cred = Some(read_cred(data)?),
            (SOL_SOCKET, _) => return Err(Errno::EINVAL),
            _ => {}
        }
        Ok(())
    })?;
    if !ancillary.files.is_empty() {
        let task = process::current();
        let cred = task.cred();
        let sender = Sender {
            uid: cred.uid,
            limit: fd_limit(),
            privileged: cred.capable(Capability::SYS_RESOURCE)
                || cred.capable(Capability::SYS_ADMIN),
        };
        ancillary.flight = Some(Flight::begin(ancillary.files.len(), sender)?);
    }
    Ok(ancillary)
}

/// Goes through the control messages: level, type, data.
fn read_controls(
    (addr, len): (u64, usize),
    mut each: impl FnMut(i32, i32, &[u8]) -> Result<()>,
) -> Result<()> {
    if addr == 0 || len == 0 {
        return Ok(());
    }
    if len > UNCOUNTED_CONTROL && len >= net::control_limit() {
        return Err(Errno::ENOBUFS);
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| Errno::ENOBUFS)?;
    bytes.try_resize(len, 0)?;
    user::read_bytes(addr, &mut bytes)?;
    let mut rest = bytes.as_slice();
    while let Ok((header, _)) = CmsgHdr::read_from_prefix(rest) {
        let size = usize::try_from(header.len).map_err(|_| Errno::EINVAL)?;
        if size < HEADER || size > rest.len() {
            return Err(Errno::EINVAL);
        }
        each(header.level, header.kind, &rest[HEADER..size])?;
        rest = rest.get(size.next_multiple_of(ALIGN)..).unwrap_or_default();
    }
    Ok(())
}

fn read_rights(data: &[u8], ancillary: &mut Ancillary) -> Result<()> {
    let count = data.len() / 4;
    if count + ancillary.files.len() > SCM_MAX_FD {
        return Err(Errno::EINVAL);
    }
    ancillary.files.try_room(count)?;
    for fd in data.as_chunks::<4>().0 {
        let file = file_any(i32::from_ne_bytes(*fd))?;
        if !file.ops().may_be_passed() {
            return Err(Errno::EINVAL);
        }
        ancillary.files.try_push(file)?;
    }
    Ok(())
}

/// Credentials that the sender claims: its own, unless it may pose as others.
fn read_cred(data: &[u8]) -> Result<Ucred> {
    let claimed = Ucred::read_from_bytes(data).map_err(|_| Errno::EINVAL)?;
    let task = process::current();
    let cred = task.cred();
    let pid = claimed.pid == task.process().pid() || cred.capable(Capability::SYS_ADMIN);
    let uid =
        [cred.uid, cred.euid, cred.suid].contains(&claimed.uid) || cred.capable(Capability::SETUID);
    let gid =
        [cred.gid, cred.egid, cred.sgid].contains(&claimed.gid) || cred.capable(Capability::SETGID);
    if !(pid && uid && gid) {
        return Err(Errno::EPERM);
    }
    if process::lookup_task(claimed.pid).is_none() && process::lookup(claimed.pid).is_none() {
        return Err(Errno::ESRCH);
    }
    Ok(claimed)
}

/// Receives into `iov`; control data go to address and length `control`.
pub fn receive_message(
    file: &OpenFile,
    iov: &[UserSlice],
    control: (u64, usize),
    flags: MsgFlags,
) -> Result<Received> {
    match any(file)? {
        Any::Unix(socket) => receive_unix(file, socket, iov, control, flags),
        Any::Net(socket) => receive_net(file, &**socket, iov, control, flags),
    }
}

fn receive_net(
    file: &OpenFile,
    socket: &dyn NetSocket,
    iov: &[UserSlice],
    control: (u64, usize),
    flags: MsgFlags,
) -> Result<Received> {
    let nonblock = file.nonblock() || flags.contains(MsgFlags::DONTWAIT);
    let got = socket.receive(&mut Sink::iovec(iov), flags, nonblock)?;
    let mut out = Received { bytes: got.bytes, from: got.from, flags: got.flags, control_len: 0 };
    if got.full > got.bytes {
        if !got.to_end {
            out.flags |= MsgFlags::TRUNC;
        }
        if flags.contains(MsgFlags::TRUNC) {
            out.bytes = got.full;
        }
    }
    let mut writer = ControlWriter { addr: control.0, room: control.1, done: 0, cut: false };
    for control in &got.control {
        writer.put_at(control.level, control.kind, &control.data);
    }
    if writer.cut {
        out.flags |= MsgFlags::CTRUNC;
    }
    out.flags |= flags & MsgFlags::CMSG_CLOEXEC;
    out.control_len = writer.done;
    Ok(out)
}

fn receive_unix(
    file: &OpenFile,
    socket: &Arc<Socket>,
    iov: &[UserSlice],
    control: (u64, usize),
    flags: MsgFlags,
) -> Result<Received> {
    if flags.contains(MsgFlags::OOB) {
        let peek = flags.contains(MsgFlags::PEEK);
        let bytes = socket.receive_urgent(&mut Sink::iovec(iov), peek)?;
        return Ok(Received { bytes, from: None, flags: MsgFlags::OOB, control_len: 0 });
    }
    let nonblock = file.nonblock() || flags.contains(MsgFlags::DONTWAIT);
    let how = How {
        nonblock,
        peek: flags.contains(MsgFlags::PEEK),
        wait_all: flags.contains(MsgFlags::WAITALL),
    };
    let got = socket.receive(&mut Sink::iovec(iov), how)?;
    let mut out = Received {
        bytes: got.bytes,
        from: match got.from {
            // An unnamed sender has no address, not even a family.
            Some(Address::Unnamed) => None,
            Some(from) => Some(from.encode()),
            None if got.ancillary.is_some() => peer_name(socket),
            None => None,
        },
        flags: MsgFlags::empty(),
        control_len: 0,
    };
    if got.full > got.bytes {
        out.flags |= MsgFlags::TRUNC;
        if flags.contains(MsgFlags::TRUNC) {
            out.bytes = got.full;
        }
    }
    let mut writer = ControlWriter { addr: control.0, room: control.1, done: 0, cut: false };
    put_ancillary(&mut writer, socket, got.ancillary, flags);
    if writer.cut {
        out.flags |= MsgFlags::CTRUNC;
    }
    out.flags |= flags & MsgFlags::CMSG_CLOEXEC;
    out.control_len = writer.done;
    Ok(out)
}

/// The control data of what came: when, from whom, and what was passed.
fn put_ancillary(
    writer: &mut ControlWriter,
    socket: &Socket,
    ancillary: Option<Ancillary>,
    flags: MsgFlags,
) {
    let Some(ancillary) = ancillary else {
        // As on Linux, the end of a stream comes from nobody: process, user and group 0.
        if socket.kind() == Kind::Stream && socket.passes_cred() {
            writer.put(SCM_CREDENTIALS, &[0; 12]);
        }
        return;
    };
    if let Some(form) = socket.stamps()
        && socket.kind() != Kind::Stream
    {
        let at = ancillary.time.unwrap_or_else(time::realtime);
        writer.put(form, net::stamp(form, at.as_u64()).as_flattened());
    }
    if socket.passes_cred() {
        let cred = ancillary.cred.unwrap_or(UNKNOWN);
        let words = [cred.pid.to_ne_bytes(), cred.uid.to_ne_bytes(), cred.gid.to_ne_bytes()];
        writer.put(SCM_CREDENTIALS, words.as_flattened());
    }
    if !ancillary.files.is_empty() {
        writer.put_files(&ancillary.files, flags.contains(MsgFlags::CMSG_CLOEXEC));
    }
}

/// The name of a connected socket's peer, if it has one.
fn peer_name(socket: &Socket) -> Option<SockName> {
    match socket.peer().map(|peer| peer.name()) {
        None | Some(Address::Unnamed) => None,
        Some(name) => Some(name.encode()),
    }
}

/// Writes control data to user memory, cutting what does not fit.
struct ControlWriter {
    addr: u64,
    room: usize,
    done: usize,
    cut: bool,
}

impl ControlWriter {
    fn left(&self) -> usize {
        if self.addr == 0 { 0 } else { self.room.saturating_sub(self.done) }
    }

    fn put(&mut self, kind: i32, data: &[u8]) {
        self.put_at(SOL_SOCKET, kind, data);
    }

    fn put_at(&mut self, level: i32, kind: i32, data: &[u8]) {
        let left = self.left();
        if left < HEADER {
            self.cut = true;
            return;
        }
        let len = (HEADER + data.len()).min(left);
        self.cut |= len < HEADER + data.len();
        let at = self.addr.wrapping_add(self.done as u64);
        let header = CmsgHdr { len: len as u64, level, kind };
        let written = user::write_bytes(at, header.as_bytes()).and_then(|()| {
            user::write_bytes(at.wrapping_add(HEADER as u64), &data[..len - HEADER])
        });
        if written.is_err() {
            // As on Linux: the bytes have been received all the same, so there is no error.
            return;
        }
        self.done += len.next_multiple_of(ALIGN).min(left);
    }

    /// Gives the receiver descriptors for as many files as its control buffer has room for, up to the first whose number
    /// cannot be had or told: a number is told before it is a file. The message says how many there are.
    fn put_files(&mut self, files: &[Arc<OpenFile>], cloexec: bool) {
        let fit = (self.left().saturating_sub(HEADER) / 4).min(files.len());
        let at = self.addr.wrapping_add(self.done as u64);
        let numbers = at.wrapping_add(HEADER as u64);
        let mut given = 0;
        for file in &files[..fit] {
            let number = UserPtr::<i32>::new(numbers.wrapping_add(4 * given as u64));
            let tell = |fd: Fd| number.write(&fd.0).map(|()| file.clone());
            if reserved(cloexec, tell).is_err() {
                break;
            }
            given += 1;
        }
        self.cut |= given < files.len();
        if given == 0 {
            return;
        }
        let len = HEADER + 4 * given;
        let header = CmsgHdr { len: len as u64, level: SOL_SOCKET, kind: SCM_RIGHTS };
        // As on Linux: the descriptors are there, whether the message can be written or not.
        if user::write_bytes(at, header.as_bytes()).is_ok() {
            self.done += len.next_multiple_of(ALIGN).min(self.left());
        }
    }
}
