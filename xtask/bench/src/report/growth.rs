//! The page's sections of curves: growth with size and with CPUs, and the figures behind them.

use anyhow::Result;

use super::chart::escape;
use super::curves::{self, Over};
use super::page::{reproduce, section};
use super::{BenchPart, Curve, Refusal};
use crate::growth;
use xtask_host::table;

pub(super) fn sections(part: &BenchPart) -> Result<String> {
    let (over_cpus, sizes): (Vec<&Curve>, Vec<&Curve>) =
        part.growth.iter().partition(|curve| curve.name.starts_with(growth::OVER_CPUS));
    let mut html = String::new();
    if !sizes.is_empty() {
        let intro = "What one operation costs when there are N of something already, in guest instructions. \
            A flat line is work that does not grow; both axes are logarithmic, so a straight rise is growth with \
            a power of N. <span class=\"key linux\"></span> Linux, <span class=\"key alea\"></span> Alea.";
        let command = "cargo xtask boot --lto --icount --memory 2G \
            --initrd target/alea/programs.cpio --append 'console=ttyS0 quiet \
            rdinit=/usr/lib/alea/growth'   # and again with --kernel linux";
        let content = plots(&sizes, Over::Sizes)? + &figures(&sizes) + &reproduce(command);
        html.push_str(&section("Growth with size", intro, &content));
    }
    if !over_cpus.is_empty() {
        let intro = "What one operation costs on a machine of 1 to 8 CPUs: the instructions of all CPUs together, \
            interrupts from one to another and waiting for locks included. QEMU runs the CPUs in turns and its \
            clock counts what each of them executes; a halted CPU executes nothing, which the first curve shows. \
            So contention appears as work, but a cache line that moves between two CPUs appears not at all, and \
            the curves do not say how long an operation takes. \
            <span class=\"key linux\"></span> Linux, <span class=\"key alea\"></span> Alea.";
        let command = "cargo xtask boot --lto --icount --memory 2G --smp 8 \
            --initrd target/alea/programs.cpio --append 'console=ttyS0 quiet \
            rdinit=/usr/lib/alea/growth alea.growth=cpus_*'   # with --smp 1, 2, 4, and with --kernel linux";
        let content = plots(&over_cpus, Over::Cpus)? + &figures(&over_cpus) + &reproduce(command);
        html.push_str(&section("Growth with CPUs", intro, &content));
    }
    Ok(html)
}

fn plots(curves: &[&Curve], over: Over) -> Result<String> {
    let mut plots = String::from("<div class=\"plots\">\n");
    for curve in curves {
        let what = meaning(&curve.name);
        plots.push_str(&format!(
            "<figure><figcaption><b>{}</b>: {what}{}</figcaption>{}</figure>\n",
            escape(&curve.name),
            refusals(curve),
            curves::curve(curve, over)?
        ));
    }
    Ok(plots + "</div>\n")
}

/// Where a kernel ended a curve before its time, in words.
fn refusals(curve: &Curve) -> String {
    let say = |refusal: &Refusal| {
        format!(
            "; {} refused {} (error {})",
            if refusal.kernel == "linux" { "Linux" } else { "Alea" },
            table::count(refusal.n),
            escape(&refusal.why)
        )
    };
    curve.refused.iter().map(say).collect()
}

/// The figures behind the curves.
fn figures(curves: &[&Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| curve.linux.iter().chain(&curve.alea));
    let mut sizes: Vec<f64> = points().map(|(n, _)| *n).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let mut html = String::from(
        "<details><summary>The figures</summary><div class=\"scroll\"><table>\n<tr><th>curve<th>kernel",
    );
    html.extend(sizes.iter().map(|n| format!("<th>{n}")));
    for curve in curves {
        for (kernel, points) in [("Linux", &curve.linux), ("Alea", &curve.alea)] {
            html.push_str(&format!("\n<tr><td>{}<td>{kernel}", escape(&curve.name)));
            for size in &sizes {
                let cost = points.iter().find(|(n, _)| n == size).map(|(_, cost)| *cost);
                html.push_str(&format!("<td>{}", cost.map_or("-".into(), table::count)));
            }
        }
    }
    html + "\n</table></div></details>\n"
}

/// What a curve of `userland/growth/growth.c` measures.
pub(super) fn meaning(curve: &str) -> &'static str {
    match curve {
        "processes" => "fork, exit and wait beside N sleeping processes",
        "open_files" => "open and close beside N open files",
        "directory" => "create, stat and unlink in a directory of N",
        "mappings" => "map, touch and unmap a page beside N mappings",
        "fork_pages" => "fork, exit and wait with N written pages",
        "timers" => "arm and disarm a timer beside N armed ones",
        "epoll" => "one ready among N watched descriptors",
        "threads" => "getrandom(16) by N threads, each woken once for 100 draws",
        "cpus_getpid" => "getpid on one CPU, the others idle",
        "cpus_fork" => "fork, exit and wait",
        "cpus_exec" => "fork, exec of true, exit and wait",
        "cpus_mapping" => "a page mapped, read on every CPU, unmapped on all",
        "cpus_getrandom" => "getrandom(16), a thread on every CPU drawing at once",
        "cpus_pipe" => "a byte through a pipe to another process and back",
        _ => "",
    }
}
