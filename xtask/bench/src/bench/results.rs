//! What was measured, as rows of both kernels: for people (`table`) and for programs (`report`).

use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};

use super::about::{host_cpu, linux_version};
use super::bench::{Bench, Both, Kernel, MEMORY};
use crate::figures::{Figures, Samples};
use xtask_guest::qemu::{self, Accel};
use xtask_host::process;
use xtask_host::table::{self, Table};

impl Bench {
    pub(super) fn format(&self, name: &str, value: Option<f64>) -> String {
        match value {
            None => "-".into(),
            Some(value) if name == MEMORY => format!("{:.1} MiB", value / 1024.0),
            Some(value) if self.machine.icount => table::count(value),
            Some(value) => table::time(value),
        }
    }

    pub(super) fn table(&self, both: &Both) -> Table {
        let mut table = Table::new(&[
            if self.machine.icount { "instructions" } else { "time" },
            "Linux",
            "min",
            "max",
            "Alea",
            "min",
            "max",
            "Alea/Linux",
            "goal",
        ]);
        for (name, [linux, alea]) in rows(both) {
            let mut cells = vec![name.clone()];
            for samples in [&linux, &alea] {
                for value in [samples.median(), samples.min(), samples.max()] {
                    cells.push(self.format(&name, value));
                }
            }
            cells.push(ratio(&linux, &alea).map_or("-".into(), |ratio| format!("{ratio:.3}")));
            cells.push(self.goal(&name).map_or(String::new(), |goal| format!("{goal:.2}")));
            table.row(cells);
        }
        table
    }

    pub(super) fn caption(&self) -> String {
        format!(
            "medians over {} boot(s) of each; {} CPU(s), -cpu {}, {}{}{}",
            self.runs,
            self.machine.smp,
            self.machine.cpu,
            self.machine.memory(),
            if self.machine.icount { ", -icount shift=0" } else { "" },
            self.linux_append
                .as_ref()
                .map_or(String::new(), |words| format!(", Linux with {words}")),
        )
    }

    pub(super) fn report(&self, both: &Both, accel: Accel) -> Result<Value> {
        let results: Vec<Value> = rows(both)
            .into_iter()
            .map(|(name, [linux, alea])| {
                let unit = self.unit(&name);
                json!({
                    "name": name, "unit": unit, "ratio": ratio(&linux, &alea),
                    "goal": self.goal(&name),
                    "linux": summary(&linux), "alea": summary(&alea),
                })
            })
            .collect();
        let linux = (self.only != Some(Kernel::Alea)).then(|| linux_version(&self.linux()));
        Ok(json!({
            "date": process::output(Command::new("date").args(["-u", "+%FT%TZ"]))?.trim(),
            "host": { "cpu": host_cpu(), "cpus": std::thread::available_parallelism()?.get() },
            "qemu": qemu::version()?.to_string(),
            "machine": {
                "smp": self.machine.smp, "memory": self.machine.memory(), "cpu": self.machine.cpu,
                "accel": accel, "icount": self.machine.icount,
            },
            "linux": linux.transpose()?,
            "linux_append": self.linux_append,
            "runs": self.runs,
            "results": results,
            "failures": { "linux": both[0].failures, "alea": both[1].failures },
            "skipped": { "linux": both[0].skipped, "alea": both[1].skipped },
        }))
    }
}

/// Every measurement of either kernel, in the guest's order.
pub(super) fn rows(both: &Both) -> Vec<(String, [Samples; 2])> {
    let mut names: Vec<&String> = Vec::new();
    for name in both.iter().flat_map(|figures| &figures.order) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let samples =
        |figures: &Figures, name: &String| figures.samples.get(name).cloned().unwrap_or_default();
    names
        .into_iter()
        .map(|name| (name.clone(), [samples(&both[0], name), samples(&both[1], name)]))
        .collect()
}

pub(super) fn ratio(linux: &Samples, alea: &Samples) -> Option<f64> {
    Some(alea.median()? / linux.median()?)
}

pub(super) fn summary(samples: &Samples) -> Value {
    if samples.is_empty() {
        return Value::Null;
    }
    json!({
        "median": samples.median(), "min": samples.min(), "max": samples.max(), "samples": samples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_what_either_kernel_measured() {
        let mut both = Both::default();
        both[0].add("getpid", 100.0);
        both[0].add("only_linux", 1.0);
        both[1].add("getpid", 25.0);
        both[1].add("only_alea", 1.0);
        let rows = rows(&both);
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["getpid", "only_linux", "only_alea"]);
        assert_eq!(ratio(&rows[0].1[0], &rows[0].1[1]), Some(0.25));
        assert_eq!(ratio(&rows[1].1[0], &rows[1].1[1]), None);
    }
}
