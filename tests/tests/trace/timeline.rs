//! `cargo xtask trace`: what it writes is a timeline, with the rows and slices that there have to be.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// A number of an event, in nanoseconds if it is a time.
fn nanos(event: &Value, key: &str) -> i64 {
    (event[key].as_f64().unwrap_or_else(|| panic!("no {key}: {event}")) * 1000.0).round() as i64
}

fn row(event: &Value) -> (u64, u64) {
    let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("no {key}: {event}"));
    (number("pid"), number("tid"))
}

/// Slices of a row lie apart or within each other; all events are in the order of their times.
fn nest(events: &[Value]) {
    let mut last = i64::MIN;
    let mut around: BTreeMap<(u64, u64), Vec<i64>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let start = nanos(event, "ts");
        assert!(start >= last, "out of order: {event}");
        last = start;
        if event["ph"] != "X" {
            continue;
        }
        let end = start + nanos(event, "dur");
        let open = around.entry(row(event)).or_default();
        while open.last().is_some_and(|outer| *outer <= start) {
            open.pop();
        }
        assert!(open.last().is_none_or(|outer| end <= *outer), "does not nest: {event}");
        open.push(end);
    }
}

#[test]
fn a_timeline_has_a_row_for_each_cpu_and_task() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    let script = "head -c 100 /dev/urandom > /tmp/x; /usr/lib/alea/exec_loop 3 /bin/true; ls / | sort; exit 3";
    let status = Command::new(env!("CARGO_BIN_EXE_alea-timeline"))
        .args(["--smp", "2", "-o"])
        .arg(&file)
        .args(["--", "sh", "-c", script])
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3), "the program's status");
    let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    nest(events);
    let named = |event: &&Value| event["ph"] == "M" && event["name"] == "thread_name";
    let rows: BTreeMap<_, _> = events
        .iter()
        .filter(named)
        .map(|event| (row(event), event["args"]["name"].clone()))
        .collect();
    for cpu in 0..2 {
        assert_eq!(rows.get(&(0, cpu)), Some(&Value::from(format!("CPU {cpu}"))));
    }
    let on_cpus = events.iter().filter(|event| event["cat"] == "cpu");
    let ran: BTreeSet<u64> = on_cpus.map(|event| event["args"]["task"].as_u64().unwrap()).collect();
    let tasks: BTreeSet<u64> =
        rows.keys().filter(|(pid, _)| *pid != 0).map(|(_, tid)| *tid).collect();
    assert!(ran.is_subset(&tasks), "tasks without a row: {ran:?} {tasks:?}");
    assert!(ran.len() >= 5, "{ran:?}");
    // Each kind of thing that has happened.
    let has = |category: &str, name: &str| {
        let count = events.iter().filter(|event| {
            (category.is_empty() || event["cat"] == category)
                && event["name"].as_str().is_some_and(|own| own.starts_with(name))
        });
        assert!(count.count() > 0, "no {category} {name}");
    };
    for (category, name) in [
        ("syscall", "execve"),
        ("syscall", "getpid"),
        ("syscall", "exit_group"),
        ("fault", "page fault"),
        ("phase", "elf_load"),
        ("phase", "fork"),
        ("phase", "exit"),
        ("", "draw urandom"),
        ("", "draw kernel"),
        ("", "draw getrandom"),
        ("", "woken"),
        ("", "exec"),
    ] {
        has(category, name);
    }
}
