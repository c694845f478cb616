//! Linux's error numbers.
//!
//! [`Errno`] is the kernel's one error type at the system-call edge; pure crates have small enums of
//! their own and convert. The restart codes (512 and up) are internal: the signal code turns them into
//! `EINTR` or a restarted call on the way back to user mode, and they never reach a program.

use core::fmt;

/// The kernel's result: an [`Errno`] unless said otherwise.
pub type Result<T, E = Errno> = core::result::Result<T, E>;

/// One of Linux's error numbers; never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Errno(core::num::NonZeroU16);

macro_rules! errnos {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl Errno {
            $(
                #[doc = $text]
                pub const $name: Self = Self::from_number($number);
            )*

            /// The symbolic name, e.g. `ENOENT`; `None` for a number that Linux does not define.
            pub const fn name(self) -> Option<&'static str> {
                match self.0.get() {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

impl Errno {
    const fn from_number(number: u16) -> Self {
        match core::num::NonZeroU16::new(number) {
            Some(number) => Self(number),
            None => panic!("errno 0 is success"),
        }
    }

    /// The positive error number.
    pub const fn number(self) -> i32 {
        self.0.get() as i32
    }

    /// The value a system call returns in `rax`.
    pub const fn to_return(self) -> i64 {
        -(self.0.get() as i64)
    }

    /// The error that a call returned in `rax`, restart codes included.
    pub fn from_return(value: i64) -> Option<Self> {
        let number = u16::try_from(value.checked_neg()?).ok()?;
        if number >= 4096 {
            return None;
        }
        core::num::NonZeroU16::new(number).map(Self)
    }

    /// Whether this is one of the codes that only the signal code may see.
    pub const fn is_restart(self) -> bool {
        matches!(self.0.get(), 512 | 513 | 514 | 516)
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

errnos! {
    EPERM = 1, "Operation not permitted.";
    ENOENT = 2, "No such file or directory.";
    ESRCH = 3, "No such process.";
    EINTR = 4, "Interrupted system call.";
    EIO = 5, "Input/output error.";
    ENXIO = 6, "No such device or address.";
    E2BIG = 7, "Argument list too long.";
    ENOEXEC = 8, "Exec format error.";
    EBADF = 9, "Bad file descriptor.";
    ECHILD = 10, "No child processes.";
    EAGAIN = 11, "Resource temporarily unavailable.";
    ENOMEM = 12, "Cannot allocate memory.";
    EACCES = 13, "Permission denied.";
    EFAULT = 14, "Bad address.";
    ENOTBLK = 15, "Block device required.";
    EBUSY = 16, "Device or resource busy.";
    EEXIST = 17, "File exists.";
    EXDEV = 18, "Invalid cross-device link.";
    ENODEV = 19, "No such device.";
    ENOTDIR = 20, "Not a directory.";
    EISDIR = 21, "Is a directory.";
    EINVAL = 22, "Invalid argument.";
    ENFILE = 23, "Too many open files in system.";
    EMFILE = 24, "Too many open files.";
    ENOTTY = 25, "Inappropriate ioctl for device.";
    ETXTBSY = 26, "Text file busy.";
    EFBIG = 27, "File too large.";
    ENOSPC = 28, "No space left on device.";
    ESPIPE = 29, "Illegal seek.";
    EROFS = 30, "Read-only file system.";
    EMLINK = 31, "Too many links.";
    EPIPE = 32, "Broken pipe.";
    EDOM = 33, "Numerical argument out of domain.";
    ERANGE = 34, "Numerical result out of range.";
    EDEADLK = 35, "Resource deadlock avoided.";
    ENAMETOOLONG = 36, "File name too long.";
    ENOLCK = 37, "No locks available.";
    ENOSYS = 38, "Function not implemented.";
    ENOTEMPTY = 39, "Directory not empty.";
    ELOOP = 40, "Too many levels of symbolic links.";
    ENOMSG = 42, "No message of desired type.";
    EIDRM = 43, "Identifier removed.";
    ECHRNG = 44, "Channel number out of range.";
    EL2NSYNC = 45, "Level 2 not synchronized.";
    EL3HLT = 46, "Level 3 halted.";
    EL3RST = 47, "Level 3 reset.";
    ELNRNG = 48, "Link number out of range.";
    EUNATCH = 49, "Protocol driver not attached.";
    ENOCSI = 50, "No CSI structure available.";
    EL2HLT = 51, "Level 2 halted.";
    EBADE = 52, "Invalid exchange.";
    EBADR = 53, "Invalid request descriptor.";
    EXFULL = 54, "Exchange full.";
    ENOANO = 55, "No anode.";
    EBADRQC = 56, "Invalid request code.";
    EBADSLT = 57, "Invalid slot.";
    EBFONT = 59, "Bad font file format.";
    ENOSTR = 60, "Device not a stream.";
    ENODATA = 61, "No data available.";
    ETIME = 62, "Timer expired.";
    ENOSR = 63, "Out of streams resources.";
    ENONET = 64, "Machine is not on the network.";
    ENOPKG = 65, "Package not installed.";
    EREMOTE = 66, "Object is remote.";
    ENOLINK = 67, "Link has been severed.";
    EADV = 68, "Advertise error.";
    ESRMNT = 69, "Srmount error.";
    ECOMM = 70, "Communication error on send.";
    EPROTO = 71, "Protocol error.";
    EMULTIHOP = 72, "Multihop attempted.";
    EDOTDOT = 73, "RFS specific error.";
    EBADMSG = 74, "Bad message.";
    EOVERFLOW = 75, "Value too large for defined data type.";
    ENOTUNIQ = 76, "Name not unique on network.";
    EBADFD = 77, "File descriptor in bad state.";
    EREMCHG = 78, "Remote address changed.";
    ELIBACC = 79, "Can not access a needed shared library.";
    ELIBBAD = 80, "Accessing a corrupted shared library.";
    ELIBSCN = 81, ".lib section in a.out corrupted.";
    ELIBMAX = 82, "Attempting to link in too many shared libraries.";
    ELIBEXEC = 83, "Cannot exec a shared library directly.";
    EILSEQ = 84, "Invalid or incomplete multibyte or wide character.";
    ERESTART = 85, "Interrupted system call should be restarted.";
    ESTRPIPE = 86, "Streams pipe error.";
    EUSERS = 87, "Too many users.";
    ENOTSOCK = 88, "Socket operation on non-socket.";
    EDESTADDRREQ = 89, "Destination address required.";
    EMSGSIZE = 90, "Message too long.";
    EPROTOTYPE = 91, "Protocol wrong type for socket.";
    ENOPROTOOPT = 92, "Protocol not available.";
    EPROTONOSUPPORT = 93, "Protocol not supported.";
    ESOCKTNOSUPPORT = 94, "Socket type not supported.";
    EOPNOTSUPP = 95, "Operation not supported.";
    EPFNOSUPPORT = 96, "Protocol family not supported.";
    EAFNOSUPPORT = 97, "Address family not supported by protocol.";
    EADDRINUSE = 98, "Address already in use.";
    EADDRNOTAVAIL = 99, "Cannot assign requested address.";
    ENETDOWN = 100, "Network is down.";
    ENETUNREACH = 101, "Network is unreachable.";
    ENETRESET = 102, "Network dropped connection on reset.";
    ECONNABORTED = 103, "Software caused connection abort.";
    ECONNRESET = 104, "Connection reset by peer.";
    ENOBUFS = 105, "No buffer space available.";
    EISCONN = 106, "Transport endpoint is already connected.";
    ENOTCONN = 107, "Transport endpoint is not connected.";
    ESHUTDOWN = 108, "Cannot send after transport endpoint shutdown.";
    ETOOMANYREFS = 109, "Too many references: cannot splice.";
    ETIMEDOUT = 110, "Connection timed out.";
    ECONNREFUSED = 111, "Connection refused.";
    EHOSTDOWN = 112, "Host is down.";
    EHOSTUNREACH = 113, "No route to host.";
    EALREADY = 114, "Operation already in progress.";
    EINPROGRESS = 115, "Operation now in progress.";
    ESTALE = 116, "Stale file handle.";
    EUCLEAN = 117, "Structure needs cleaning.";
    ENOTNAM = 118, "Not a XENIX named type file.";
    ENAVAIL = 119, "No XENIX semaphores available.";
    EISNAM = 120, "Is a named type file.";
    EREMOTEIO = 121, "Remote I/O error.";
    EDQUOT = 122, "Disk quota exceeded.";
    ENOMEDIUM = 123, "No medium found.";
    EMEDIUMTYPE = 124, "Wrong medium type.";
    ECANCELED = 125, "Operation canceled.";
    ENOKEY = 126, "Required key not available.";
    EKEYEXPIRED = 127, "Key has expired.";
    EKEYREVOKED = 128, "Key has been revoked.";
    EKEYREJECTED = 129, "Key was rejected by service.";
    EOWNERDEAD = 130, "Owner died.";
    ENOTRECOVERABLE = 131, "State not recoverable.";
    ERFKILL = 132, "Operation not possible due to RF-kill.";
    ERESTARTSYS = 512, "Restart if SA_RESTART or no handler, else EINTR.";
    ERESTARTNOINTR = 513, "Always restart.";
    ERESTARTNOHAND = 514, "Restart only if no handler runs, else EINTR.";
    ERESTART_RESTARTBLOCK = 516, "Restart through restart_syscall(2), else EINTR.";
}

/// A count or an error in the one register that returns it: what a call that is counted in instructions hands on,
/// since a `Result<usize>` travels in memory. It is made of a result only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned(i64);

impl Returned {
    /// What stands in `rax`.
    #[inline]
    pub const fn raw(self) -> i64 {
        self.0
    }
}

impl From<Result<usize>> for Returned {
    #[inline]
    fn from(result: Result<usize>) -> Self {
        // A count is at most 0x7ffff000.
        Self(result.map_or_else(Errno::to_return, |count| count as i64))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn round_trip_through_rax() {
        assert_eq!(Errno::ENOENT.to_return(), -2);
        assert_eq!(Errno::from_return(-2), Some(Errno::ENOENT));
        assert_eq!(Errno::from_return(0), None);
        assert_eq!(Errno::from_return(7), None);
        assert_eq!(Errno::from_return(i64::MIN), None);
        assert_eq!(Errno::from_return(-4096), None);
    }

    #[test]
    fn a_count_or_an_error_in_one_register() {
        assert_eq!(Returned::from(Ok(16)).raw(), 16);
        assert_eq!(Returned::from(Err(Errno::EAGAIN)).raw(), -11);
    }

    #[test]
    fn restart_codes_are_internal() {
        assert!(Errno::ERESTARTSYS.is_restart());
        assert!(!Errno::EINTR.is_restart());
        assert_eq!(std::format!("{:?}", Errno::EAGAIN), "EAGAIN");
    }
}
