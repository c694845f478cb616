//! What a tracer asks of a tracee: the requests of ptrace(2).
//!
//! Runs in the tracer, on what the tracee's stop has left. Only the thread that traces may ask, and, but for
//! PTRACE_KILL and PTRACE_INTERRUPT, only while the tracee stands.

use super::order::{Mode, Resume};
use super::told::Stop;
use super::tracee::{State, Tracee};
use super::{attach, filters, regs, vectors};
use crate::arch::task::fpu::debug_size;
use crate::mm::user::UserPtr;
use crate::process::perf;
use crate::process::signal;
use crate::process::task::current::current;
use crate::process::task::task::Task;
use crate::process::task::work;
use crate::process::tree::table;
use crate::process::watch;
use abi::ptrace::{
    DispatchConfig, Event, Options, PeekSigInfo, REGS, Regs, RseqConfiguration, SyscallInfo,
    USER_DEBUGREG, USER_DEBUGREG_END, USER_SIZE, regset, request as req,
};
use abi::signal::{SigInfo, SigSet, Signal, code};
use abi::{Errno, Result};
use alloc::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// Carries out a request about the task with number `tid`: what ptrace(2) returns.
///
/// # Errors
/// `ESRCH` if the caller does not trace it, or it does not stand; `EIO` for what is unknown; each request's own.
pub fn request(request: i64, tid: i32, addr: u64, data: u64) -> Result<i64> {
    match request {
        req::TRACEME => return attach::trace_me().map(|()| 0),
        req::ATTACH | req::SEIZE => {
            let target = table::lookup_task(tid).ok_or(Errno::ESRCH)?;
            let seized = request == req::SEIZE;
            if seized && addr != 0 {
                return Err(Errno::EIO);
            }
            let options = if seized { options_of(data) } else { Ok(Options::empty()) };
            // As on Linux, unknown ones have another error here than where options are changed.
            let other = |error| if error == Errno::EINVAL { Errno::EIO } else { error };
            let options = options.map_err(other)?;
            return attach::attach(&target, seized, options).map(|()| 0);
        }
        _ => {}
    }
    let target = table::lookup_task(tid).ok_or(Errno::ESRCH)?;
    let tracee = target.tracing.tracee().ok_or(Errno::ESRCH)?;
    if !core::ptr::eq(&*tracee.tracer, &*current()) {
        return Err(Errno::ESRCH);
    }
    let call = Request { target: &target, tracee: &tracee, addr, data };
    match request {
        req::KILL => call.kill(),
        req::INTERRUPT => call.interrupt(),
        _ => call.of_standing(request),
    }
}

fn options_of(data: u64) -> Result<Options> {
    let options = u32::try_from(data).ok().and_then(Options::from_bits).ok_or(Errno::EINVAL)?;
    // What Linux allows to checkpointing tools only.
    if options.contains(Options::SUSPEND_SECCOMP) && !filters::may_suspend() {
        return Err(Errno::EPERM);
    }
    Ok(options)
}

struct Request<'a> {
    target: &'a Arc<Task>,
    tracee: &'a Arc<Tracee>,
    addr: u64,
    data: u64,
}

impl Request<'_> {
    fn of_standing(&self, request: i64) -> Result<i64> {
        self.standing(|_, _| ())?;
        match request {
            req::PEEKTEXT | req::PEEKDATA => self.peek(),
            req::POKETEXT | req::POKEDATA => self.poke(),
            req::PEEKUSR => self.peek_user(),
            req::POKEUSR => self.poke_user(),
            req::CONT => self.resume(Mode::Run),
            req::SYSCALL => self.resume(Mode::Call),
            req::SINGLESTEP => self.resume(Mode::Step),
            req::SINGLEBLOCK => self.resume(Mode::Block),
            req::SYSEMU => self.resume(Mode::Emulate),
            req::SYSEMU_SINGLESTEP => self.resume(Mode::EmulateStep),
            req::DETACH => self.detach(),
            req::LISTEN => self.listen(),
            req::SETOPTIONS | req::OLD_SETOPTIONS => {
                self.tracee.set_options(options_of(self.data)?);
                Ok(0)
            }
            req::GETEVENTMSG => {
                let message = self.standing(|stop, _| stop.message)?;
                self.give(&message)
            }
            req::GETSIGINFO => {
                let info = self.standing(|stop, _| stop.info)?.ok_or(Errno::EINVAL)?;
                self.give(&info)
            }
            req::SETSIGINFO => self.set_info(),
            req::PEEKSIGINFO => self.peek_infos(),
            req::GETSIGMASK => self.sized::<SigSet>().and_then(|()| {
                let blocked = self.target.signals.shown_mask();
                self.give(&blocked.0)
            }),
            req::SETSIGMASK => self.set_mask(),
            req::GETREGS => {
                let regs = self.standing(|_, state| state.regs)?;
                self.give(&regs)
            }
            req::SETREGS => {
                let regs: Regs = self.take()?;
                self.set_words(0, regs.as_bytes()).map(|()| 0)
            }
            req::GETFPREGS => self.vectors_to(self.data, FPREGS).map(|_| 0),
            req::SETFPREGS => self.vectors_from(self.data, FPREGS).map(|()| 0),
            req::GETREGSET | req::SETREGSET => self.regset(request == req::SETREGSET),
            req::GET_SYSCALL_INFO => self.call_info(),
            req::GET_RSEQ_CONFIGURATION => self.rseq(),
            req::ARCH_PRCTL => self.arch_prctl(),
            req::SET_SYSCALL_USER_DISPATCH_CONFIG => self.set_dispatch(),
            req::GET_SYSCALL_USER_DISPATCH_CONFIG => self.dispatch(),
            req::SECCOMP_GET_FILTER => filters::filter(self.target, self.addr, self.data),
            req::SECCOMP_GET_METADATA => filters::metadata(self.target, self.addr, self.data),
            _ => Err(Errno::EIO),
        }
    }

    /// Looks at the stop, or changes it, if the tracee stands.
    fn standing<R>(&self, look: impl FnOnce(&mut Stop, &mut State) -> R) -> Result<R> {
        let mut state = self.tracee.state.lock();
        let stands = !state.listening && state.order.is_none();
        let mut stop = state.stop.filter(|_| stands).ok_or(Errno::ESRCH)?;
        let result = look(&mut stop, &mut state);
        state.stop = Some(stop);
        Ok(result)
    }

    fn give<T: IntoBytes + zerocopy::Immutable>(&self, value: &T) -> Result<i64> {
        UserPtr::<T>::new(self.data).write(value).map(|()| 0)
    }

    fn take<T: FromBytes + IntoBytes>(&self) -> Result<T> {
        UserPtr::<T>::new(self.data).read()
    }

    fn resume(&self, mode: Mode) -> Result<i64> {
        let signal = i32::try_from(self.data).ok().filter(|&n| n == 0 || Signal::new(n).is_some());
        let signal = signal.ok_or(Errno::EIO)?;
        {
            let mut state = self.tracee.state.lock();
            if state.stop.is_none() || state.listening || state.order.is_some() {
                return Err(Errno::ESRCH);
            }
            state.order = Some(Resume { mode, signal });
        }
        self.tracee.resumed.wake_all();
        Ok(0)
    }

    fn detach(&self) -> Result<i64> {
        let signal = i32::try_from(self.data).ok().filter(|&n| n == 0 || Signal::new(n).is_some());
        attach::detach(self.target, signal.ok_or(Errno::EIO)?);
        Ok(0)
    }

    fn kill(&self) -> Result<i64> {
        if self.tracee.state.lock().stop.is_some() {
            let info = SigInfo::new(Signal::SIGKILL, code::SI_KERNEL);
            signal::send_to_process(self.target.process(), Signal::SIGKILL, info)?;
        }
        Ok(0)
    }

    fn interrupt(&self) -> Result<i64> {
        if !self.tracee.seized {
            return Err(Errno::EIO);
        }
        self.target.tracing.set_trap();
        signal::make_look(self.target);
        let mut state = self.tracee.state.lock();
        // Who listens ends its stop and begins another one.
        if core::mem::take(&mut state.listening) {
            state.order = Some(Resume::FREE);
            drop(state);
            self.tracee.resumed.wake_all();
        }
        Ok(0)
    }

    fn listen(&self) -> Result<i64> {
        if !self.tracee.seized {
            return Err(Errno::EIO);
        }
        let mut state = self.tracee.state.lock();
        let in_stop = state.stop.is_some_and(|stop| stop.status >> 8 == Event::Stop as i32);
        if !in_stop {
            return Err(Errno::EIO);
        }
        if self.target.tracing.has_trap() {
            // What it would listen for has come: it stops again at once.
            state.order = Some(Resume::FREE);
            drop(state);
            self.tracee.resumed.wake_all();
        } else {
            state.listening = true;
        }
        Ok(0)
    }

    fn peek(&self) -> Result<i64> {
        let mut word = [0; 8];
        let space = self.target.mm_arc().ok_or(Errno::EIO)?;
        if space.read_bytes(self.addr, &mut word) != word.len() {
            return Err(Errno::EIO);
        }
        self.give(&word)
    }

    fn poke(&self) -> Result<i64> {
        let space = self.target.mm_arc().ok_or(Errno::EIO)?;
        space.write_bytes(self.addr, &self.data.to_ne_bytes()).map_err(|_| Errno::EIO)?;
        Ok(0)
    }

    /// Where in `struct user` the request points: a word of the registers, a debug register, or something that is always zero.
    fn place(&self) -> Result<Place> {
        if !self.addr.is_multiple_of(8) || self.addr >= USER_SIZE {
            return Err(Errno::EIO);
        }
        let word = (self.addr / 8) as usize;
        Ok(match self.addr {
            _ if word < REGS => Place::Register(word),
            USER_DEBUGREG..USER_DEBUGREG_END => {
                Place::Debug(((self.addr - USER_DEBUGREG) / 8) as usize)
            }
            _ => Place::Nothing,
        })
    }

    fn peek_user(&self) -> Result<i64> {
        let word = match self.place()? {
            Place::Register(at) => self.standing(|_, state| {
                let words: [u64; REGS] = zerocopy::transmute!(state.regs);
                words[at]
            })?,
            Place::Debug(at) => self.target.tracing.breakpoints.get(at),
            Place::Nothing => 0,
        };
        self.give(&word)
    }

    fn poke_user(&self) -> Result<i64> {
        match self.place()? {
            Place::Register(at) => self.set_words(at, self.data.as_bytes()).map(|()| 0),
            Place::Debug(at) => perf::with_slots(self.target, |slots| {
                self.standing(|_, _| self.set_breakpoint(at, slots))?
            }),
            Place::Nothing => Err(Errno::EIO),
        }
    }

    /// It stands, and loads them when it goes on.
    fn set_breakpoint(&self, at: usize, slots: &perf::Slots<'_>) -> Result<i64> {
        self.target.tracing.breakpoints.set(at, self.data, slots)?;
        self.target.set_work(work::DEBUG);
        Ok(0)
    }

    /// Sets the registers from word `first` on, all or up to the first that is refused.
    fn set_words(&self, first: usize, bytes: &[u8]) -> Result<()> {
        self.standing(|_, state| {
            let (words, _) = bytes.as_chunks::<8>();
            state.regs_changed = true;
            words.iter().enumerate().try_for_each(|(n, word)| {
                regs::set(&mut state.regs, first + n, u64::from_ne_bytes(*word))
            })
        })?
    }

    fn set_info(&self) -> Result<i64> {
        let info: SigInfo = self.take()?;
        self.standing(|stop, _| match &mut stop.info {
            Some(place) => {
                *place = info;
                Ok(0)
            }
            None => Err(Errno::EINVAL),
        })?
    }

    fn peek_infos(&self) -> Result<i64> {
        let args: PeekSigInfo = UserPtr::new(self.addr).read()?;
        if args.flags & !PeekSigInfo::SHARED != 0 || args.nr < 0 {
            return Err(Errno::EINVAL);
        }
        let shared = args.flags & PeekSigInfo::SHARED != 0;
        let mut count = 0;
        while count < args.nr {
            let at = args.off.checked_add(count as u64);
            let at = at.and_then(|at| usize::try_from(at).ok());
            let Some(info) = at.and_then(|at| signal::peek(self.target, shared, at)) else { break };
            match UserPtr::<SigInfo>::new(self.data).index(count as u64).write(&info) {
                Err(error) if count == 0 => return Err(error),
                Err(_) => break,
                Ok(()) => count += 1,
            }
        }
        Ok(count.into())
    }

    /// The size that a request has to name.
    fn sized<T>(&self) -> Result<()> {
        if self.addr == size_of::<T>() as u64 { Ok(()) } else { Err(Errno::EINVAL) }
    }

    fn set_mask(&self) -> Result<i64> {
        self.sized::<SigSet>()?;
        let mask = SigSet(self.take::<u64>()?);
        // It stands, and reads its own mask no more before it goes on.
        self.standing(|_, _| signal::set_mask_of(self.target, mask))?;
        Ok(0)
    }

    fn dispatch(&self) -> Result<i64> {
        self.sized::<DispatchConfig>()?;
        self.give(&watch::dispatch_config(self.target))
    }

    fn set_dispatch(&self) -> Result<i64> {
        self.sized::<DispatchConfig>()?;
        watch::set_dispatch(self.target, &self.take()?).map(|()| 0)
    }

    fn regset(&self, sets: bool) -> Result<i64> {
        let iov = UserPtr::<[u64; 2]>::new(self.data);
        let [base, len] = iov.read()?;
        if !len.is_multiple_of(8) {
            return Err(Errno::EINVAL);
        }
        let len = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
        let done = match self.addr {
            regset::PRSTATUS => self.words(base, len, sets)?,
            regset::PRFPREG => self.vectors(base, len.min(FPREGS), sets)?,
            // As on Linux, it is set whole.
            regset::X86_XSTATE if sets && len < debug_size() => return Err(Errno::EFAULT),
            regset::X86_XSTATE => self.vectors(base, len.min(debug_size()), sets)?,
            _ => return Err(Errno::EINVAL),
        };
        iov.write(&[base, done as u64]).map(|()| 0)
    }

    fn words(&self, base: u64, len: usize, sets: bool) -> Result<usize> {
        let len = len.min(size_of::<Regs>());
        let mut words = self.standing(|_, state| state.regs)?;
        if sets {
            crate::mm::user::read_bytes(base, &mut words.as_mut_bytes()[..len])?;
            self.set_words(0, &words.as_bytes()[..len])?;
        } else {
            crate::mm::user::write_bytes(base, &words.as_bytes()[..len])?;
        }
        Ok(len)
    }

    fn vectors(&self, base: u64, len: usize, sets: bool) -> Result<usize> {
        if sets {
            self.vectors_from(base, len)?;
            return Ok(len);
        }
        self.vectors_to(base, len)
    }

    /// Writes the first `most` bytes of the vector state to user memory: how many there were.
    fn vectors_to(&self, base: u64, most: usize) -> Result<usize> {
        let image = vectors::read(self.tracee)?;
        let len = most.min(image.len());
        crate::mm::user::write_bytes(base, &image[..len])?;
        Ok(len)
    }

    /// Takes the first `len` bytes of the vector state from user memory; the rest stays.
    fn vectors_from(&self, base: u64, len: usize) -> Result<()> {
        let mut image = vectors::read(self.tracee)?;
        let whole = image.len();
        // As on Linux: x87 and SSE alone, or all.
        if len != whole && len != FPREGS {
            return Err(Errno::EINVAL);
        }
        crate::mm::user::read_bytes(base, &mut image[..len])?;
        if len < whole {
            // They are in use from now on.
            image[FPREGS] |= 0b11;
        }
        vectors::write(self.tracee, image)
    }

    fn call_info(&self) -> Result<i64> {
        const ARCH_X86_64: u32 = 0xc000_003e;
        let info = self.standing(|stop, state| {
            let (op, words) = stop.call;
            let (rip, rsp) = (state.regs.rip, state.regs.rsp);
            let seccomp = if op == SyscallInfo::SECCOMP { stop.message } else { 0 };
            SyscallInfo { op, pad: [0; 3], arch: ARCH_X86_64, rip, rsp, words, seccomp }
        })?;
        let size = match info.op {
            SyscallInfo::ENTRY => 80,
            SyscallInfo::EXIT => 33,
            SyscallInfo::SECCOMP => 84,
            _ => 24,
        };
        let len = size.min(usize::try_from(self.addr).unwrap_or(usize::MAX));
        crate::mm::user::write_bytes(self.data, &info.as_bytes()[..len])?;
        Ok(size as i64)
    }

    fn rseq(&self) -> Result<i64> {
        let (area, size, signature) = self.target.rseq.registered();
        let shown = RseqConfiguration { area, size, signature, flags: 0, pad: 0 };
        let len = size_of_val(&shown).min(usize::try_from(self.addr).unwrap_or(usize::MAX));
        crate::mm::user::write_bytes(self.data, &shown.as_bytes()[..len])?;
        Ok(size_of_val(&shown) as i64)
    }

    /// The bases of FS and GS; `data` is the code, as for arch_prctl.
    fn arch_prctl(&self) -> Result<i64> {
        const SET_GS: u64 = 0x1001;
        const SET_FS: u64 = 0x1002;
        const GET_FS: u64 = 0x1003;
        const GET_GS: u64 = 0x1004;
        const FS: usize = core::mem::offset_of!(Regs, fs_base) / 8;
        const GS: usize = core::mem::offset_of!(Regs, gs_base) / 8;
        let set = |at| match self.set_words(at, self.addr.as_bytes()) {
            Err(Errno::EIO) => Err(Errno::EPERM),
            done => done.map(|()| 0),
        };
        let (fs, gs) = self.standing(|_, state| (state.regs.fs_base, state.regs.gs_base))?;
        let get = |base: u64| UserPtr::<u64>::new(self.addr).write(&base).map(|()| 0);
        match self.data {
            SET_FS => set(FS),
            SET_GS => set(GS),
            GET_FS => get(fs),
            GET_GS => get(gs),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// Bytes of `struct user_fpregs_struct`, with which the image of XSAVE begins.
const FPREGS: usize = 512;

enum Place {
    Register(usize),
    /// One of the debug registers.
    Debug(usize),
    Nothing,
}
