//! A recording as a timeline in Trace Event JSON, which ui.perfetto.dev opens: a row for each CPU, with the task that it runs, and
//! one for each task, with its system calls as slices and what happens in them.
//!
//! Slices of a row nest: what would reach over the end of the one around it, since records were lost, ends with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::records::{Kind, Record, Recording};

/// The process of the timeline whose rows are the CPUs.
pub const CPUS: u32 = 0;

/// Part of a row.
struct Slice {
    start: u64,
    end: u64,
    name: String,
    category: &'static str,
    args: Value,
}

/// What is known of a task.
#[derive(Default)]
struct Task {
    pid: u32,
    name: String,
    slices: Vec<Slice>,
    instants: Vec<Value>,
    /// The call that it is in.
    call: Option<Slice>,
    /// Its last record.
    last: u64,
}

/// What a CPU runs, since when.
struct Running {
    tid: u32,
    since: u64,
}

struct Timeline<'a> {
    origin: u64,
    hertz: u64,
    names: &'a BTreeMap<u32, String>,
    tasks: BTreeMap<u32, Task>,
    cpus: BTreeMap<u32, Vec<Slice>>,
    running: BTreeMap<u32, Running>,
    lost: u64,
}

/// The timeline of a recording; `names` has those of system calls. Also how many records were lost.
pub fn timeline(recording: &Recording, names: &BTreeMap<u32, String>) -> (Value, u64) {
    let origin = recording.records.iter().map(start_of).min().unwrap_or(0);
    let end = recording.records.last().map_or(origin, |record| record.time);
    let mut all = Timeline {
        origin,
        hertz: recording.hertz.max(1),
        names,
        tasks: BTreeMap::new(),
        cpus: BTreeMap::new(),
        running: BTreeMap::new(),
        lost: 0,
    };
    for known in &recording.known {
        let task = Task { pid: known.pid, name: known.name.clone(), ..Task::default() };
        all.tasks.insert(known.tid, task);
    }
    for record in &recording.records {
        all.add(record);
    }
    let lost = all.lost;
    (all.finish(end), lost)
}

/// When what a record tells of began.
fn start_of(record: &Record) -> u64 {
    let start = match record.kind {
        Kind::Call | Kind::Lock | Kind::Phase => record.words[0],
        Kind::Fault => record.words[3],
        _ => record.time,
    };
    start.min(record.time)
}

impl Timeline<'_> {
    /// Microseconds since the beginning, to the nanosecond.
    fn micros(&self, time: u64) -> f64 {
        let ticks = u128::from(time.saturating_sub(self.origin));
        (ticks * 1_000_000_000 / u128::from(self.hertz)) as f64 / 1000.0
    }

    fn task(&mut self, tid: u32) -> &mut Task {
        self.tasks.entry(tid).or_insert_with(|| Task { pid: tid, ..Task::default() })
    }

    fn call_name(&self, number: u64) -> String {
        let name = u32::try_from(number).ok().and_then(|number| self.names.get(&number));
        name.cloned().unwrap_or_else(|| format!("syscall {number}"))
    }

    fn add(&mut self, record: &Record) {
        if record.tid != 0 {
            self.task(record.tid).last = record.time;
        }
        match record.kind {
            Kind::Enter | Kind::Leave | Kind::Call => self.add_call(record),
            Kind::Fault | Kind::Phase | Kind::Lock => self.add_part(record),
            _ => self.add_instant(record),
        }
    }

    fn add_call(&mut self, record: &Record) {
        let start = start_of(record);
        let hex = |words: &[u64]| Value::from_iter(words.iter().map(|word| format!("{word:#x}")));
        let words = &record.words;
        match record.kind {
            Kind::Enter => {
                let name = self.call_name(words[0]);
                let args = json!({"args": hex(&words[1..7]), "text": record.text()});
                let call = Slice { start, end: start, name, category: "syscall", args };
                let task = self.task(record.tid);
                task.close_call(record.time);
                task.call = Some(call);
            }
            Kind::Leave => {
                let result = words[1].cast_signed();
                if let Some(mut call) = self.task(record.tid).call.take() {
                    call.end = record.time;
                    call.args["result"] = json!(result);
                    self.task(record.tid).slices.push(call);
                }
            }
            Kind::Call => {
                let args = json!({"args": hex(&words[3..]), "result": words[2].cast_signed()});
                let name = self.call_name(words[1]);
                self.slice(record, start, name, "syscall", args);
            }
            _ => {}
        }
    }

    /// Something that took its time, in a call or beside one.
    fn add_part(&mut self, record: &Record) {
        let start = start_of(record);
        let words = &record.words;
        match record.kind {
            Kind::Fault => {
                let args = json!({"address": format!("{:#x}", words[0]), "ip": format!("{:#x}", words[1]), "code": words[2]});
                self.slice(record, start, "page fault".to_owned(), "fault", args);
            }
            Kind::Phase => {
                let end = start.saturating_add(words[1]).min(record.time);
                let name = record.name(2);
                let phase = Slice { start, end, name, category: "phase", args: json!({}) };
                self.task(record.tid).slices.push(phase);
            }
            Kind::Lock => {
                let name = format!("waits for {}", record.name(1));
                self.slice(record, start, name, "lock", json!({}));
            }
            _ => {}
        }
    }

    fn add_instant(&mut self, record: &Record) {
        let words = &record.words;
        match record.kind {
            Kind::Draw => self.instant(
                record,
                record.tid,
                &format!("draw {}", record.name(1)),
                json!({"bytes": words[0]}),
            ),
            Kind::Reseed => {
                self.instant(record, record.tid, &format!("reseed {}", record.name(0)), json!({}))
            }
            Kind::Switch => self.switch(record),
            Kind::Wakeup => {
                let (woken, cpu) = (words[0] as u32, words[1]);
                self.instant(record, woken, "woken", json!({"by": record.tid, "cpu": cpu}));
            }
            Kind::Fork => {
                let name = self.task(record.tid).name.clone();
                let child =
                    Task { pid: words[1] as u32, name, last: record.time, ..Task::default() };
                self.tasks.insert(words[0] as u32, child);
                self.instant(record, record.tid, "forks", json!({"task": words[0]}));
            }
            Kind::Exec => {
                let old = words[0] as u32;
                if old != record.tid
                    && let Some(task) = self.tasks.remove(&old)
                {
                    self.tasks.insert(record.tid, task);
                }
                self.task(record.tid).name = record.name(1);
                self.instant(record, record.tid, "exec", json!({"name": record.name(1)}));
            }
            Kind::Exit => self.instant(record, record.tid, "exit", json!({"status": words[0]})),
            Kind::Left => self.instant(record, record.tid, "traced no more", json!({})),
            Kind::Lost => {
                self.lost += words[0];
                self.instant(record, 0, &format!("{} records lost", words[0]), json!({}));
            }
            _ => {}
        }
    }

    fn slice(
        &mut self,
        record: &Record,
        start: u64,
        name: String,
        category: &'static str,
        args: Value,
    ) {
        let slice = Slice { start, end: record.time, name, category, args };
        if record.tid != 0 {
            self.task(record.tid).slices.push(slice);
        }
    }

    /// Something of a task, or of the CPU if it is none's.
    fn instant(&mut self, record: &Record, tid: u32, name: &str, args: Value) {
        let ts = self.micros(record.time);
        if tid == 0 {
            let instant = json!({"ph": "i", "s": "t", "name": name, "ts": ts, "pid": CPUS, "tid": record.cpu, "args": args});
            self.task(0).instants.push(instant);
            return;
        }
        let task = self.task(tid);
        // The process is filled in at the end, when it is known.
        task.instants
            .push(json!({"ph": "i", "s": "t", "name": name, "ts": ts, "tid": tid, "args": args}));
    }

    fn switch(&mut self, record: &Record) {
        let next = record.words[0] as u32;
        let running = self.running.insert(record.cpu, Running { tid: next, since: record.time });
        self.ran(
            record.cpu,
            running.unwrap_or(Running { tid: record.tid, since: self.origin }),
            record.time,
        );
        if next != 0 {
            self.instant(record, next, "runs", json!({"cpu": record.cpu}));
        }
    }

    /// A CPU ran a task until now.
    fn ran(&mut self, cpu: u32, running: Running, until: u64) {
        if running.tid == 0 {
            return;
        }
        let name = match &self.task(running.tid).name {
            name if name.is_empty() => running.tid.to_string(),
            name => name.clone(),
        };
        let args = json!({"task": running.tid});
        let slice = Slice { start: running.since, end: until, name, category: "cpu", args };
        self.cpus.entry(cpu).or_default().push(slice);
    }

    fn finish(mut self, end: u64) -> Value {
        for (cpu, running) in std::mem::take(&mut self.running) {
            self.ran(cpu, running, end);
        }
        let mut events = Vec::new();
        events.push(json!({"ph": "M", "name": "process_name", "pid": CPUS, "tid": 0, "args": {"name": "CPUs"}}));
        for (cpu, slices) in std::mem::take(&mut self.cpus) {
            let name = format!("CPU {cpu}");
            events.push(json!({"ph": "M", "name": "thread_name", "pid": CPUS, "tid": cpu, "args": {"name": name}}));
            self.put(slices, CPUS, cpu, &mut events);
        }
        let mut named = BTreeSet::new();
        for (tid, mut task) in std::mem::take(&mut self.tasks) {
            if tid == 0 {
                events.append(&mut task.instants);
                continue;
            }
            if task.last == 0 && task.slices.is_empty() && task.instants.is_empty() {
                continue;
            }
            task.close_call(task.last);
            let (pid, name) = (task.pid, &task.name);
            if named.insert(pid) {
                events.push(json!({"ph": "M", "name": "process_name", "pid": pid, "tid": tid, "args": {"name": name}}));
            }
            events.push(json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}));
            for mut instant in task.instants {
                instant["pid"] = json!(pid);
                events.push(instant);
            }
            self.put(task.slices, pid, tid, &mut events);
        }
        // Metadata first, then by time: a stable order of what begins at one instant, the longer before what it has within.
        let key = |event: &Value| event["ts"].as_f64().unwrap_or(-1.0);
        events.sort_by(|a, b| key(a).total_cmp(&key(b)));
        json!({"displayTimeUnit": "ns", "traceEvents": events})
    }

    /// Puts the slices of a row, so that they nest.
    fn put(&self, mut slices: Vec<Slice>, pid: u32, tid: u32, events: &mut Vec<Value>) {
        slices.sort_by_key(|slice| (slice.start, std::cmp::Reverse(slice.end)));
        let mut around: Vec<u64> = Vec::new();
        for slice in slices {
            while around.last().is_some_and(|end| *end <= slice.start) {
                around.pop();
            }
            let end = around.last().map_or(slice.end, |outer| slice.end.min(*outer));
            around.push(end);
            let (ts, until) = (self.micros(slice.start), self.micros(end));
            // In whole nanoseconds, so that no rounding makes one reach over the other.
            let nanos = ((until * 1000.0).round() - (ts * 1000.0).round()).max(0.0);
            events.push(json!({
                "ph": "X", "name": slice.name, "cat": slice.category, "ts": ts, "dur": nanos / 1000.0,
                "pid": pid, "tid": tid, "args": slice.args,
            }));
        }
    }
}

impl Task {
    /// The call that it is in ends unseen.
    fn close_call(&mut self, at: u64) {
        if let Some(mut call) = self.call.take() {
            call.end = at.max(call.start);
            self.slices.push(call);
        }
    }
}
