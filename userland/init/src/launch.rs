//! The step between process 1 and the command: this program again, in a process of its own, which becomes the user, the
//! terminal's owner and at last the command. It says on standard error why it cannot, and ends with 126 or 127 then.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{chdir, ioctl_tiocsctty, setsid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use crate::FAILED;
use crate::users::Identity;

/// The first argument that means this step.
pub const WORD: &str = "launch";

/// The arguments of the step: this file's own, then the command's.
pub fn words(identity: &Identity, on_terminal: bool, workdir: OsString) -> Vec<OsString> {
    let groups: Vec<String> = identity.groups.iter().map(u32::to_string).collect();
    vec![
        WORD.into(),
        identity.uid.to_string().into(),
        identity.gid.to_string().into(),
        groups.join(",").into(),
        on_terminal.to_string().into(),
        workdir,
    ]
}

/// Becomes the command, or says why not.
pub fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    if let Err(error) = prepare(&mut words) {
        eprintln!("alea: {error}");
        return ExitCode::from(FAILED);
    }
    let Some(program) = words.next() else {
        eprintln!("alea: no command");
        return ExitCode::from(FAILED);
    };
    let error = Command::new(&program).args(words).exec();
    eprintln!("alea: {}: {error}", program.to_string_lossy());
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

fn prepare(words: &mut impl Iterator<Item = OsString>) -> io::Result<()> {
    let mut text = || words.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    let number = |text: &str| text.parse::<u32>().map_err(|_| io::Error::other("a bad number"));
    let (uid, gid, groups, on_terminal) = (text(), text(), text(), text());
    setsid()?;
    if on_terminal == "true" {
        ioctl_tiocsctty(io::stdin())?;
    }
    let groups = groups.split(',').map(|group| Ok(rustix::fs::Gid::from_raw(number(group)?)));
    set_thread_groups(&groups.collect::<io::Result<Vec<_>>>()?)?;
    set_thread_gid(rustix::fs::Gid::from_raw(number(&gid)?))?;
    set_thread_uid(rustix::fs::Uid::from_raw(number(&uid)?))?;
    let workdir = words.next().unwrap_or_else(|| "/".into());
    chdir(&workdir).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("{}: {error}", workdir.to_string_lossy()))
    })
}
