//! The files of tracepoints in tracefs: a folder each with its number and its format, and what perf reads beside them.
//!
//! Owns nothing: a text is made when it is read. Never changes what is traced. Locks: none.

use super::arguments;
use super::fields::{self, Form};
use crate::arch::entry::frame::SYSCALLS;
use crate::fs::procfs::{Fixed, ProcFile};
use crate::fs::tracefs;
use crate::mm::fallible::try_arc;
use crate::process::watch;
use crate::vfs::Super;
use crate::{try_format, try_write, try_writeln};
use abi::Result;
use abi::perf::{Sched, Software, tracepoint as id};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Has tracefs be there.
pub(in crate::process::perf) fn register() {
    tracefs::register(fill);
}

/// The number of a tracepoint.
struct Number(u64);

impl ProcFile for Number {
    fn read(&self) -> Result<Vec<u8>> {
        try_format!("{}\n", self.0).map(String::into_bytes)
    }
}

/// The format of one.
struct Format {
    name: String,
    id: u64,
    what: Software,
}

/// Its fields, and how its print format shows them.
struct Body {
    fields: String,
    print: String,
}

const COMMON: [(&str, usize, usize, bool); 4] = [
    ("unsigned short common_type", 0, 2, false),
    ("unsigned char common_flags", 2, 1, false),
    ("unsigned char common_preempt_count", 3, 1, false),
    ("int common_pid", 4, 4, true),
];

impl Body {
    /// Whoever reads a field takes its name from the end of the declaration.
    fn field(&mut self, what: &str, offset: usize, size: usize, signed: bool) -> Result<()> {
        let signed = u8::from(signed);
        let to = &mut self.fields;
        try_writeln!(to, "\tfield:{what};\toffset:{offset};\tsize:{size};\tsigned:{signed};")
    }
}

impl ProcFile for Format {
    fn read(&self) -> Result<Vec<u8>> {
        let mut body = Body { fields: String::new(), print: String::new() };
        match self.what {
            Software::Enter(None) => {
                body.field("long id", 8, 8, true)?;
                body.field("unsigned long args[6]", 16, 48, false)?;
                try_write!(body.print, "{ENTER}")?;
            }
            Software::Leave(None) => {
                body.field("long id", 8, 8, true)?;
                body.field("long ret", 16, 8, true)?;
                try_write!(body.print, "\"NR %ld = %ld\", REC->id, REC->ret")?;
            }
            Software::Enter(Some(number)) => entered(&mut body, watch::name_of(number.into()))?,
            Software::Leave(Some(_)) => {
                body.field("int __syscall_nr", 8, 4, true)?;
                body.field("long ret", 16, 8, true)?;
                try_write!(body.print, "\"0x%lx\", REC->ret")?;
            }
            Software::Sched(what) => scheduled(&mut body, what)?,
            _ => {}
        }
        let mut all = Body { fields: String::new(), print: String::new() };
        for (what, offset, size, signed) in COMMON {
            all.field(what, offset, size, signed)?;
        }
        let (name, id, common) = (&self.name, self.id, all.fields);
        let Body { fields, print } = body;
        let text = try_format!(
            "name: {name}\nID: {id}\nformat:\n{common}\n{fields}\nprint fmt: {print}\n"
        )?;
        Ok(text.into_bytes())
    }
}

const ENTER: &str = "\"NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)\", REC->id, REC->args[0], REC->args[1], REC->args[2], REC->args[3], REC->args[4], REC->args[5]";

fn entered(body: &mut Body, call: &'static str) -> Result<()> {
    body.field("int __syscall_nr", 8, 4, true)?;
    let mut values = String::new();
    try_write!(body.print, "\"")?;
    for (at, declaration) in arguments::of(arguments::point_name(call)).enumerate() {
        let name = arguments::name(declaration);
        body.field(declaration, 16 + 8 * at, 8, false)?;
        let between = if at == 0 { "" } else { ", " };
        try_write!(body.print, "{between}{name}: 0x%08lx")?;
        try_write!(values, ", ((unsigned long)(REC->{name}))")?;
    }
    try_write!(body.print, "\"{values}")
}

fn scheduled(body: &mut Body, what: Sched) -> Result<()> {
    let mut offset = 8;
    for (declaration, _, form) in fields::of_sched(what) {
        let signed = matches!(form, Form::Int | Form::Long);
        body.field(declaration, offset, form.size(), signed)?;
        offset += form.size();
    }
    let print = match what {
        Sched::Switch => SWITCH,
        Sched::Wakeup | Sched::WakeupNew => WAKEUP,
        Sched::Fork => FORK,
        Sched::Exec => EXEC,
        Sched::Exit => EXIT,
    };
    try_write!(body.print, "{print}")
}

/// The sums of constants are Linux's own.
const SWITCH: &str = r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1), "|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000004, "T" }, { 0x00000008, "t" }, { 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000040, "P" }, { 0x00000080, "I" }) : "R", REC->prev_state & (((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio"#;
const WAKEUP: &str =
    "\"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, REC->target_cpu";
const FORK: &str = "\"comm=%s pid=%d child_comm=%s child_pid=%d\", REC->parent_comm, REC->parent_pid, REC->child_comm, REC->child_pid";
const EXEC: &str = "\"filename=%s pid=%d old_pid=%d\", __get_str(filename), REC->pid, REC->old_pid";
const EXIT: &str = "\"comm=%s pid=%d prio=%d\", REC->comm, REC->pid, REC->prio";

fn add(sb: &Arc<Super>, group: &str, name: String, id: u64, what: Software) -> Result<()> {
    let folder = try_format!("events/{group}/{name}")?;
    tracefs::add_file(sb, &try_format!("{folder}/id")?, 0o440, try_arc(Number(id))?)?;
    let format = try_arc(Format { name, id, what })?;
    tracefs::add_file(sb, &try_format!("{folder}/format")?, 0o440, format)
}

/// All files; once, when somebody mounts tracefs for the first time.
fn fill(sb: &Arc<Super>) -> Result<()> {
    let raw = [("sys_enter", id::ENTER), ("sys_exit", id::LEAVE)];
    for (name, id) in raw {
        let what = if id == id::ENTER { Software::Enter(None) } else { Software::Leave(None) };
        add(sb, "raw_syscalls", try_format!("{name}")?, id, what)?;
    }
    for call in 0..SYSCALLS {
        let name = watch::name_of(call);
        if name != "-" {
            let (point, number) = (arguments::point_name(name), Some(call as u16));
            let first = id::FIRST_CALL + 2 * call as u64;
            let left = try_format!("sys_exit_{point}")?;
            add(sb, "syscalls", left, first, Software::Leave(number))?;
            let entered = try_format!("sys_enter_{point}")?;
            add(sb, "syscalls", entered, first + 1, Software::Enter(number))?;
        }
    }
    for what in Sched::ALL {
        let name = match what {
            Sched::Switch => "sched_switch",
            Sched::Wakeup => "sched_wakeup",
            Sched::WakeupNew => "sched_wakeup_new",
            Sched::Fork => "sched_process_fork",
            Sched::Exec => "sched_process_exec",
            Sched::Exit => "sched_process_exit",
        };
        add(sb, "sched", try_format!("{name}")?, what.id(), Software::Sched(what))?;
    }
    // perf looks into it whatever it is asked for; there is no tracer that writes such entries.
    tracefs::add_directory(sb, "events/ftrace")?;
    for (path, text) in [
        ("events/header_page", HEADER_PAGE),
        ("events/header_event", HEADER_EVENT),
        ("printk_formats", ""),
        ("saved_cmdlines", ""),
    ] {
        tracefs::add_file(sb, path, 0o440, try_arc(Fixed(text))?)?;
    }
    Ok(())
}

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";
