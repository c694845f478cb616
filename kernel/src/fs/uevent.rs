//! Events of devices: `uevent` files, and the event that a write to one sends. `udevadm trigger` works by such writes.
//!
//! Owns the number of the last event and the slot for the function that carries events to programs. Never sends an event
//! by itself: no device comes or goes. Locks: that of `SEQUENCE`, held while an event is carried, so that events arrive in
//! the order of their numbers.
//! Source: lib/kobject_uevent.c of Linux.
#![forbid(unsafe_code)]

use super::procfs::ProcFile;
use crate::mm::fallible::{TryGrow, TryVec, try_arc, try_copy};
use crate::sync::{Mutex, Once};
use crate::try_format;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The longest event, in bytes, as on Linux.
const LONGEST: usize = 2048;
const UUID: usize = 36;
const ACTIONS: [&str; 8] =
    ["add", "remove", "change", "move", "online", "offline", "bind", "unbind"];

static SEQUENCE: Mutex<u64> = Mutex::new(0);
/// Carries an event to the programs that listen.
static CARRIER: Once<fn(&[u8])> = Once::new();

/// Sets what carries events; before that the event of a write reaches nobody.
pub fn register_carrier(carrier: fn(&[u8])) {
    CARRIER.call_once(|| carrier);
}

/// The `uevent` file of a device.
pub struct Uevent {
    /// Below /sys, without a slash in front.
    folder: String,
    class: &'static str,
    /// Lines that say what the device is.
    text: String,
}

impl Uevent {
    pub fn new(folder: String, class: &'static str, text: String) -> Result<Arc<Self>> {
        try_arc(Self { folder, class, text })
    }

    fn announce(&self, action: &str, arguments: &[String]) -> Result<()> {
        let (folder, class) = (&self.folder, self.class);
        let mut event = try_format!(
            "{action}@/{folder}\0ACTION={action}\0DEVPATH=/{folder}\0SUBSYSTEM={class}\0"
        )?
        .into_bytes();
        for argument in arguments {
            event.try_extend_from_slice(argument.as_bytes())?;
            event.try_push(0)?;
        }
        for line in self.text.lines() {
            event.try_extend_from_slice(line.as_bytes())?;
            event.try_push(0)?;
        }
        let mut last = SEQUENCE.lock();
        event.try_extend_from_slice(try_format!("SEQNUM={}\0", *last + 1)?.as_bytes())?;
        if event.len() > LONGEST {
            return Err(Errno::ENOMEM);
        }
        *last += 1;
        if let Some(carrier) = CARRIER.get() {
            carrier(&event);
        }
        Ok(())
    }
}

impl ProcFile for Uevent {
    fn read(&self) -> Result<Vec<u8>> {
        try_copy(self.text.as_bytes())
    }

    /// Takes `ACTION` or `ACTION UUID KEY=VALUE...`.
    fn write(&self, data: &[u8]) -> Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let text = data.strip_suffix(b"\n").or_else(|| data.strip_suffix(b"\0")).unwrap_or(data);
        let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
        let (action, rest) = match text.split_once(' ') {
            Some((action, rest)) => (action, Some(rest)),
            None => (text, None),
        };
        if !ACTIONS.contains(&action) {
            return Err(Errno::EINVAL);
        }
        self.announce(action, &arguments(rest)?)?;
        Ok(data.len())
    }
}

/// The variables that a write adds to its event.
fn arguments(rest: Option<&str>) -> Result<Vec<String>> {
    let mut variables = Vec::new();
    let Some(rest) = rest else {
        variables.try_push(try_format!("SYNTH_UUID=0")?)?;
        return Ok(variables);
    };
    let (uuid, mut rest) = rest.split_at_checked(UUID).ok_or(Errno::EINVAL)?;
    let is_uuid = uuid.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    if !is_uuid {
        return Err(Errno::EINVAL);
    }
    variables.try_push(try_format!("SYNTH_UUID={uuid}")?)?;
    while !rest.is_empty() {
        let pair = rest.strip_prefix(' ').ok_or(Errno::EINVAL)?;
        let end = pair.find(' ').unwrap_or(pair.len());
        let (pair, behind) = pair.split_at(end);
        let (key, value) = pair.split_once('=').ok_or(Errno::EINVAL)?;
        let is_word =
            |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_word(key) || !is_word(value) {
            return Err(Errno::EINVAL);
        }
        variables.try_push(try_format!("SYNTH_ARG_{key}={value}")?)?;
        rest = behind;
    }
    Ok(variables)
}

/// The number of the last event, for /sys/kernel/uevent_seqnum.
pub struct SequenceNumber;

impl ProcFile for SequenceNumber {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", *SEQUENCE.lock()).map(String::into_bytes)
    }
}
