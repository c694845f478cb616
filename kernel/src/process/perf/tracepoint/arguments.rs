//! The arguments of system calls as Linux 6.12 declares them in tracefs (`arguments.txt`).
//!
//! Owns the list. Never says what a value means. Locks: none.

/// `NAME: TYPE NAME, TYPE NAME, ...` a line, in the order of the names.
const ALL: &str = include_str!("arguments.txt");

/// What Linux's tracepoints call a system call, where that is not its name.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("fstat", "newfstat"),
    ("lstat", "newlstat"),
    ("sendfile", "sendfile64"),
    ("stat", "newstat"),
    ("umount2", "umount"),
    ("uname", "newuname"),
];

/// The name that its tracepoints have.
pub(super) fn point_name(call: &'static str) -> &'static str {
    OTHER_NAMES.iter().find(|(name, _)| *name == call).map_or(call, |(_, other)| other)
}

/// The declarations of the arguments of a call, by the name of its tracepoints.
pub(super) fn of(point: &str) -> impl Iterator<Item = &'static str> {
    let own = |line: &'static str| {
        let (name, all) = line.split_once(':')?;
        (name == point).then_some(all)
    };
    let all = ALL.lines().find_map(own).unwrap_or_default();
    all.split(',').map(str::trim).filter(|one| !one.is_empty())
}

/// The name in a declaration: what comes last.
pub(super) fn name(declaration: &'static str) -> &'static str {
    declaration.rsplit(' ').next().unwrap_or(declaration)
}
