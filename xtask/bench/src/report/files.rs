//! The report's data as files: JSON and CSV, and the timeline as Perfetto opens it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{BenchPart, Event, PhasePart, ProfilePart, Refusal, Row};

pub(super) const BENCH: &str = "bench.json";
pub(super) const PROFILE: &str = "profile.json";

/// A part that an earlier command wrote, if it did.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(None) };
    serde_json::from_str(&text).map(Some).with_context(|| {
        format!("{} is of another version: measure again, or remove it", path.display())
    })
}

pub(super) fn bench(folder: &Path, part: &BenchPart) -> Result<()> {
    fs::write(folder.join(BENCH), serde_json::to_string_pretty(part)? + "\n")?;
    fs::write(folder.join("bench.csv"), rows_csv(&[&part.wall, &part.instructions]))?;
    fs::write(folder.join("growth.csv"), growth_csv(part))?;
    Ok(())
}

pub(super) fn profile(folder: &Path, part: &ProfilePart) -> Result<()> {
    fs::write(folder.join(PROFILE), serde_json::to_string_pretty(part)? + "\n")?;
    fs::write(folder.join("phases.csv"), phases_csv(part))?;
    fs::write(folder.join("exec.csv"), exec_csv(part))?;
    fs::write(folder.join("timeline.csv"), timeline_csv(&part.timeline))?;
    fs::write(folder.join("vm_exits.csv"), exits_csv(part))?;
    fs::write(folder.join("stacks.folded"), part.stacks.join("\n") + "\n")?;
    let trace = serde_json::to_string_pretty(&trace_events(&part.timeline))?;
    fs::write(folder.join("timeline.trace.json"), trace + "\n")?;
    Ok(())
}

fn rows_csv(tables: &[&Vec<Row>]) -> String {
    let mut text = String::from("benchmark,unit,kernel,sample,value\n");
    for row in tables.iter().flat_map(|rows| rows.iter()) {
        for (kernel, spread) in [("linux", &row.linux), ("alea", &row.alea)] {
            for (n, value) in spread.iter().flat_map(|s| &s.samples).enumerate() {
                text.push_str(&format!("{},{},{kernel},{n},{value}\n", row.name, row.unit));
            }
        }
    }
    text
}

fn growth_csv(part: &BenchPart) -> String {
    let mut text = String::from("curve,kernel,n,instructions\n");
    for curve in &part.growth {
        for (kernel, points) in [("linux", &curve.linux), ("alea", &curve.alea)] {
            for (n, cost) in points {
                text.push_str(&format!("{},{kernel},{n},{cost}\n", curve.name));
            }
        }
        // No figure: the kernel refused that size.
        for Refusal { kernel, n, .. } in &curve.refused {
            text.push_str(&format!("{},{kernel},{n},\n", curve.name));
        }
    }
    text
}

fn phases_csv(part: &ProfilePart) -> String {
    let mut text = String::from("generator,phase,upto_ns,count\n");
    for generator in &part.generators {
        for phase in &generator.phases {
            for (upto, count) in &phase.steps {
                text.push_str(&format!("{},{},{upto},{count}\n", generator.name, phase.name));
            }
        }
    }
    text
}

/// Averages; the phase `total` is the whole, the program's own included.
fn exec_csv(part: &ProfilePart) -> String {
    let mut text = String::from("kernel,generator,phase,average_ns,p99_ns\n");
    for generator in &part.generators {
        for phase in &generator.phases {
            let PhasePart { name, avg, p99, .. } = phase;
            text.push_str(&format!("alea,{},{name},{avg},{p99}\n", generator.name));
        }
        text.push_str(&format!("alea,{},total,{},\n", generator.name, generator.total));
    }
    if let Some(total) = part.linux_total {
        text.push_str(&format!("linux,,total,{total},\n"));
    }
    text
}

fn timeline_csv(timeline: &[Event]) -> String {
    let mut text = String::from("cpu,pid,phase,start_ns,duration_ns\n");
    for Event { cpu, pid, phase, start, duration } in timeline {
        text.push_str(&format!("{cpu},{pid},{phase},{start},{duration}\n"));
    }
    text
}

fn exits_csv(part: &ProfilePart) -> String {
    let mut text = String::from("kind,in_500_execs\n");
    for (kind, count) in &part.vm_exits {
        text.push_str(&format!("{kind},{count}\n"));
    }
    text
}

/// The Trace Event format: complete events, times in microseconds.
fn trace_events(timeline: &[Event]) -> Value {
    let events: Vec<Value> = timeline
        .iter()
        .map(|event| {
            json!({
                "name": event.phase, "cat": "exec", "ph": "X",
                "ts": event.start / 1000.0, "dur": event.duration / 1000.0,
                "pid": event.pid, "tid": event.pid, "args": { "cpu": event.cpu },
            })
        })
        .collect();
    json!({ "displayTimeUnit": "ns", "traceEvents": events })
}

#[cfg(test)]
mod tests {
    use super::super::page;
    use super::*;

    /// Each figure of the JSON stands in a CSV file too.
    #[test]
    fn csv_holds_what_json_holds() {
        let (bench, profile) = (page::tests::bench(), page::tests::profile());
        let rows = rows_csv(&[&bench.wall, &bench.instructions]);
        let samples = |row: &Row| {
            [&row.linux, &row.alea]
                .into_iter()
                .flatten()
                .map(|spread| spread.samples.len())
                .sum::<usize>()
        };
        let expected: usize = bench.wall.iter().chain(&bench.instructions).map(samples).sum();
        assert_eq!(rows.lines().count(), 1 + expected);
        let growth = growth_csv(&bench);
        assert!(growth.contains("processes,alea,10000,24000\n"), "{growth}");
        assert!(growth.contains("processes,linux,10,\n"), "a refused size: {growth}");
        assert_eq!(
            exec_csv(&profile).lines().skip(1).collect::<Vec<_>>(),
            [
                "alea,chacha20,random,2000,9000",
                "alea,chacha20,elf_load,2000,9000",
                "alea,chacha20,total,9000,",
                "linux,,total,90000,"
            ]
        );
        assert_eq!(phases_csv(&profile).lines().count(), 1 + 2 * 3);
        assert!(timeline_csv(&profile.timeline).ends_with("\n0,9,random,1,2\n"));
        assert!(exits_csv(&profile).ends_with("\nport,0\n"));
    }

    #[test]
    fn the_timeline_is_in_microseconds() {
        let event =
            Event { cpu: 1, pid: 7, phase: "elf_load".into(), start: 2500.0, duration: 500.0 };
        let trace = trace_events(&[event]);
        let first = &trace["traceEvents"][0];
        assert_eq!((first["ts"].as_f64(), first["dur"].as_f64()), (Some(2.5), Some(0.5)));
        assert_eq!((first["ph"].as_str(), first["name"].as_str()), (Some("X"), Some("elf_load")));
    }
}
