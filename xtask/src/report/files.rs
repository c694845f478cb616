//! The report's data as files: JSON and CSV, and the timeline as Perfetto opens it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{BenchPart, Event, ProfilePart, Refusal, Row};

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
    use super::*;

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
