//! The page: sections around the charts, tables behind them, and how to measure each again.

use anyhow::{Context, Result};
use inferno::flamegraph;

use super::chart::{self, LINUX, PHASE_COLOURS, Size, Stack, escape};
use super::curves::{self, Over};
use super::{BenchPart, Curve, ProfilePart, Refusal, Row};
use crate::{growth, table};

/// The page of the parts that were measured.
pub(super) fn render(bench: Option<&BenchPart>, profile: Option<&ProfilePart>) -> Result<String> {
    let mut body = String::new();
    match bench {
        Some(bench) => body.push_str(&bench_sections(bench)?),
        None => body.push_str(&missing("Against Linux", "cargo xtask bench --report")),
    }
    match profile {
        Some(profile) => body.push_str(&profile_sections(profile)?),
        None => body.push_str(&missing("Where an exec goes", "cargo xtask profile --report")),
    }
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Alea, measured</title>\n\
         <style>\n{}{}</style>\n</head>\n<body>\n<main>\n<h1>Alea, measured</h1>\n{body}</main>\n\
         </body>\n</html>\n",
        include_str!("style.css"),
        phase_rules(),
    ))
}

/// The style sheet's colours of the phases.
fn phase_rules() -> String {
    (0..PHASE_COLOURS)
        .map(|n| {
            format!(
                ".p{n}{{background:var(--p{n})}}svg [fill=\"#0103{n:02X}\"]{{fill:var(--p{n})}}\
                 svg [stroke=\"#0103{n:02X}\"]{{stroke:var(--p{n})}}\n"
            )
        })
        .collect()
}

fn missing(title: &str, command: &str) -> String {
    section(title, "", &format!("<p>Not measured yet.</p>{}", reproduce(command)))
}

fn section(title: &str, intro: &str, content: &str) -> String {
    let intro = if intro.is_empty() { String::new() } else { format!("<p>{intro}</p>\n") };
    format!("<section>\n<h2>{title}</h2>\n{intro}{content}\n</section>\n")
}

fn reproduce(command: &str) -> String {
    format!("<p class=\"how\">Measure it again: <code>{}</code></p>\n", escape(command))
}

/// A chart for a desktop and the same for a phone.
fn both(draw: impl Fn(Size) -> Result<String>) -> Result<String> {
    Ok(format!(
        "<figure class=\"wide\">{}</figure>\n<figure class=\"narrow\">{}</figure>\n",
        draw(Size::Wide)?,
        draw(Size::Narrow)?
    ))
}

fn bench_sections(part: &BenchPart) -> Result<String> {
    let mut html = format!("<p class=\"about\">{}</p>\n", escape(&part.about));
    for (title, rows, command, unit) in [
        ("Time against Linux", &part.wall, part.command.clone(), "wall time"),
        (
            "Instructions against Linux",
            &part.instructions,
            format!("{} --icount", part.command.replace(" --report", "")),
            "guest instructions",
        ),
    ] {
        let compared: Vec<&Row> = rows.iter().filter(|row| row.ratio().is_some()).collect();
        if compared.is_empty() {
            continue;
        }
        let intro = format!(
            "Alea's share of Linux's {unit} for the same program in the same virtual machine: the whole \
             width is Linux. <span class=\"key goal\"></span> is the goal."
        );
        let chart = both(|size| chart::ratios(size, title, &compared))?;
        html.push_str(&section(title, &intro, &(chart + &values(rows) + &reproduce(&command))));
    }
    let timed: Vec<&Row> = part.wall.iter().filter(|row| row.unit == "ns").collect();
    if !timed.is_empty() {
        let intro = "Every sample of every boot, so that noise is seen and not averaged away. \
            <span class=\"key linux\"></span> Linux, <span class=\"key alea\"></span> Alea.";
        let chart = both(|size| chart::spreads(size, "Distributions of the samples", &timed))?;
        html.push_str(&section("Distributions", intro, &(chart + &reproduce(&part.command))));
    }
    if !part.growth.is_empty() {
        html.push_str(&growth_sections(part)?);
    }
    Ok(html)
}

fn growth_sections(part: &BenchPart) -> Result<String> {
    let (over_cpus, sizes): (Vec<&Curve>, Vec<&Curve>) =
        part.growth.iter().partition(|curve| curve.name.starts_with(growth::OVER_CPUS));
    let mut html = String::new();
    if !sizes.is_empty() {
        let intro = "What one operation costs when there are N of something already, in guest instructions. \
            A flat line is work that does not grow; both axes are logarithmic, so a straight rise is growth with \
            a power of N. <span class=\"key linux\"></span> Linux, <span class=\"key alea\"></span> Alea.";
        let command = "cargo xtask boot --lto --icount --memory 2G --append 'console=ttyS0 quiet \
            rdinit=/usr/lib/alea/growth'   # and again with --kernel linux";
        let content = plots(&sizes, Over::Sizes)? + &growth_table(&sizes) + &reproduce(command);
        html.push_str(&section("Growth with size", intro, &content));
    }
    if !over_cpus.is_empty() {
        let intro = "What one operation costs on a machine of 1 to 8 CPUs: the instructions of all CPUs together, \
            interrupts from one to another and waiting for locks included. QEMU runs the CPUs in turns and its \
            clock counts what each of them executes; a halted CPU executes nothing, which the first curve shows. \
            So contention appears as work, but a cache line that moves between two CPUs appears not at all, and \
            the curves do not say how long an operation takes. \
            <span class=\"key linux\"></span> Linux, <span class=\"key alea\"></span> Alea.";
        let command = "cargo xtask boot --lto --icount --memory 2G --smp 8 --append 'console=ttyS0 quiet \
            rdinit=/usr/lib/alea/growth alea.growth=cpus_*'   # with --smp 1, 2, 4, and with --kernel linux";
        let content =
            plots(&over_cpus, Over::Cpus)? + &growth_table(&over_cpus) + &reproduce(command);
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
fn growth_table(curves: &[&Curve]) -> String {
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

/// What a curve of `userland/growth.c` measures.
fn meaning(curve: &str) -> &'static str {
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

/// The figures behind a chart.
fn values(rows: &[Row]) -> String {
    let show = |row: &Row, value: f64| match row.unit.as_str() {
        "ns" => table::time(value),
        "KiB" => format!("{:.1} MiB", value / 1024.0),
        _ => table::count(value),
    };
    let mut html = String::from(
        "<details><summary>The figures</summary><div class=\"scroll\"><table>\n\
         <tr><th>work<th>Linux<th>Alea<th>Alea / Linux<th>goal\n",
    );
    for row in rows {
        let cell = |spread: &Option<super::Spread>| {
            spread.as_ref().map_or("-".into(), |spread| show(row, spread.median))
        };
        html.push_str(&format!(
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}\n",
            escape(&row.name),
            cell(&row.linux),
            cell(&row.alea),
            row.ratio().map_or("-".into(), |ratio| format!("{ratio:.3}")),
            row.goal.map_or(String::new(), |goal| format!("{goal:.2}")),
        ));
    }
    html + "</table></div></details>\n"
}

fn profile_sections(part: &ProfilePart) -> Result<String> {
    let mut html = format!("<p class=\"about\">{}</p>\n", escape(&part.about));
    let mut stacks: Vec<Stack> = part
        .generators
        .iter()
        .map(|generator| Stack {
            label: format!("Alea, {}", generator.name),
            parts: chart::phase_parts(&generator.phases, generator.total),
            value: table::time(generator.total),
        })
        .collect();
    if let Some(total) = part.linux_total {
        let value = table::time(total);
        stacks.push(Stack { label: "Linux".into(), parts: vec![(LINUX, total)], value });
    }
    let own = both(|size| {
        chart::stacks(size, "The phases of an exec", &stacks[..part.generators.len()])
    })?;
    let beside = match part.linux_total {
        Some(_) => both(|size| chart::stacks(size, "Beside Linux, on one scale", &stacks))?,
        None => String::new(),
    };
    let chart = own + "<p>The same beside Linux, on one scale:</p>\n" + &beside;
    let intro = "One fork, exec of <code>/bin/true</code>, exit and wait, under each generator of random \
        bytes, first on a scale of its own. <code>rest</code> is the program itself and the system calls around.";
    html.push_str(&section(
        "Where an exec goes",
        intro,
        &(chart + &legend(part) + &reproduce(&part.command)),
    ));
    if let Some(generator) = part.generators.first() {
        let chart =
            both(|size| chart::percentiles(size, "How long each phase took", &generator.phases))?;
        let intro = format!(
            "The line is from the first to the 99th percentile, the bar the middle half, the mark the \
             median; generator {}. Logarithmic.",
            escape(&generator.name)
        );
        html.push_str(&section("How long each phase takes", &intro, &(chart + &phase_table(part))));
    }
    if !part.vm_exits.is_empty() {
        html.push_str(&exits_section(part));
    }
    if !part.stacks.is_empty() {
        html.push_str(&flame_section(part)?);
    }
    let words = "<p><code>target/alea/report/timeline.trace.json</code> holds the last execs as a timeline: \
        open it in Perfetto or chrome://tracing.</p>";
    html.push_str(&section("Timeline", "", words));
    Ok(html)
}

fn legend(part: &ProfilePart) -> String {
    let Some(generator) = part.generators.first() else { return String::new() };
    let mut names: Vec<(usize, &str)> =
        generator.phases.iter().enumerate().map(|(n, phase)| (n, phase.name.as_str())).collect();
    names.push((PHASE_COLOURS - 1, "rest"));
    let items: String = names
        .iter()
        .map(|(n, name)| format!("<li><span class=\"key p{n}\"></span>{}</li>", escape(name)))
        .collect();
    format!("<ul class=\"legend\">{items}<li><span class=\"key linux\"></span>Linux</li></ul>\n")
}

fn phase_table(part: &ProfilePart) -> String {
    let mut html = String::from(
        "<details><summary>The figures</summary><div class=\"scroll\"><table>\n<tr><th>phase",
    );
    for generator in &part.generators {
        let name = escape(&generator.name);
        html.push_str(&format!("<th>{name}, average<th>{name}, p99"));
    }
    let rows = part.generators.first().map_or(0, |generator| generator.phases.len());
    for n in 0..rows {
        let name = part.generators.first().and_then(|g| g.phases.get(n)).map(|p| p.name.as_str());
        html.push_str(&format!("\n<tr><td>{}", escape(name.unwrap_or(""))));
        for phase in part.generators.iter().filter_map(|generator| generator.phases.get(n)) {
            let [average, p99] = [phase.avg, phase.p99].map(table::time);
            html.push_str(&format!("<td>{average}<td>{p99}"));
        }
    }
    html + "\n</table></div></details>\n"
}

fn exits_section(part: &ProfilePart) -> String {
    let rows: String = part
        .vm_exits
        .iter()
        .map(|(kind, count)| {
            format!("<tr><td>{}<td>{count}<td>{:.3}\n", escape(kind), *count as f64 / 500.0)
        })
        .collect();
    let intro = "What the kernel did in 500 execs that leaves a virtual machine. The timer and the end of \
        its interrupt come with time, not with execs: one of each for a time slice that ended.";
    let table = format!(
        "<div class=\"scroll\"><table>\n<tr><th>kind<th>in 500 execs<th>per exec\n{rows}</table></div>"
    );
    section("Exits from the virtual machine", intro, &table)
}

fn flame_section(part: &ProfilePart) -> Result<String> {
    let mut options = flamegraph::Options::default();
    options.title = "Kernel stacks during fork, exec and exit".into();
    options.count_name = "samples".into();
    options.image_width = Some(1200);
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, part.stacks.iter().map(String::as_str), &mut svg)
        .context("the flame graph")?;
    let svg = String::from_utf8(svg).context("the flame graph")?;
    let intro = "Where the kernel was when it was looked at, widths by samples. Click a frame to widen it; \
        on a phone, scroll sideways.";
    let frame = format!(
        "<div class=\"scroll\"><iframe class=\"flame\" title=\"flame graph\" srcdoc=\"{}\"></iframe></div>",
        escape(&svg[svg.find("<svg").unwrap_or(0)..])
    );
    Ok(section("Flame graph", intro, &(frame + &reproduce(&part.command))))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Event, GeneratorPart, PhasePart, Spread};
    use super::*;

    fn spread(median: f64) -> Option<Spread> {
        Some(Spread { median, samples: vec![median * 0.9, median, median * 1.2] })
    }

    pub(in super::super) fn bench() -> BenchPart {
        let row = |name: &str, unit: &str| Row {
            name: name.into(),
            unit: unit.into(),
            linux: spread(1000.0),
            alea: spread(130.0),
            goal: Some(0.15),
        };
        BenchPart {
            about: "a <fast> machine".into(),
            command: "cargo xtask bench --runs 3 --report".into(),
            wall: vec![row("exec_true", "ns"), row("memory_at_shell", "KiB")],
            instructions: vec![row("exec_true", "instructions")],
            growth: vec![
                Curve {
                    name: "processes".into(),
                    linux: vec![(1.0, 200_000.0)],
                    alea: vec![(1.0, 22_000.0), (10_000.0, 24_000.0)],
                    refused: vec![Refusal { kernel: "linux".into(), n: 10.0, why: "11".into() }],
                },
                Curve {
                    name: "cpus_fork".into(),
                    linux: vec![(1.0, 200_000.0), (8.0, 220_000.0)],
                    alea: vec![(1.0, 22_000.0), (8.0, 34_000.0)],
                    refused: Vec::new(),
                },
            ],
        }
    }

    pub(in super::super) fn profile() -> ProfilePart {
        let phase = |name: &str| PhasePart {
            name: name.into(),
            avg: 2_000.0,
            p99: 9_000.0,
            steps: vec![(1_000.0, 10.0), (4_000.0, 80.0), (9_000.0, 10.0)],
        };
        ProfilePart {
            about: "500 execs".into(),
            command: "cargo xtask profile --report".into(),
            generators: vec![GeneratorPart {
                name: "chacha20".into(),
                total: 9_000.0,
                phases: vec![phase("random"), phase("elf_load")],
            }],
            linux_total: Some(90_000.0),
            timeline: vec![Event {
                cpu: 0,
                pid: 9,
                phase: "random".into(),
                start: 1.0,
                duration: 2.0,
            }],
            vm_exits: vec![("port".into(), 0)],
            stacks: vec!["entry;fork;copy 7".into(), "entry;exit 3".into()],
        }
    }

    #[test]
    fn the_page_stands_alone() {
        let page = render(Some(&bench()), Some(&profile())).unwrap();
        for forbidden in ["<link", "<script src", "@import", "url(http", "src=\"http"] {
            assert!(!page.contains(forbidden), "{forbidden} needs the network");
        }
        for wanted in [
            "prefers-color-scheme: dark",
            "width=device-width",
            "class=\"wide\"",
            "class=\"narrow\"",
            "Time against Linux",
            "Instructions against Linux",
            "Distributions",
            "Growth with size",
            "Linux refused 10 (error 11)",
            "Growth with CPUs",
            "Where an exec goes",
            "Flame graph",
            "cargo xtask profile --report",
            "a &lt;fast&gt; machine",
        ] {
            assert!(page.contains(wanted), "{wanted} is missing");
        }
        assert_eq!(page.matches("<section>").count(), page.matches("</section>").count());
        assert_eq!(page.matches("<svg ").count(), page.matches("</svg>").count());
        assert!(page.matches("<svg ").count() >= 11, "two sizes of each chart");
    }

    #[test]
    fn what_was_not_measured_says_how_to() {
        let page = render(None, None).unwrap();
        assert_eq!(page.matches("Not measured yet").count(), 2);
        assert!(page.contains("cargo xtask bench --report"));
    }
}
