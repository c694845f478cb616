//! The page: sections around the charts, tables behind them, and how to measure each again.

use anyhow::{Context, Result};
use inferno::flamegraph::{self, TextTruncateDirection};

use super::chart::{self, LINUX, PHASE_COLOURS, Size, Stack, escape};
use super::experiments::FOLDER;
use super::{BenchPart, ProfilePart, Row, growth};
use xtask_host::table;

/// What a reader must know first.
const LEAD: &str = "<p>Alea is an x86_64 kernel that runs unmodified Linux programs. Here it is measured beside \
    Debian's Linux: the same static binaries, the same initramfs, the same virtual machine. Everywhere \
    <span class=\"key linux\"></span>\u{a0}is Linux and <span class=\"key alea\"></span>\u{a0}is Alea, and less is better. The data \
    lie beside this page as JSON (<code>bench.json</code>, <code>profile.json</code>) and as CSV.</p>\n";

/// The page of the parts that were measured.
pub(super) fn render(
    bench: Option<&BenchPart>,
    profile: Option<&ProfilePart>,
    experiments: bool,
) -> Result<String> {
    let mut body = String::new();
    match bench {
        Some(bench) => body.push_str(&bench_sections(bench)?),
        None => body.push_str(&missing("Against Linux", "cargo xtask bench --report")),
    }
    match profile {
        Some(profile) => body.push_str(&profile_sections(profile)?),
        None => body.push_str(&missing("Where an exec goes", "cargo xtask profile --report")),
    }
    let content = if experiments {
        format!("<p><a href=\"{FOLDER}/index.html\">They have a page of their own.</a></p>")
    } else {
        format!("<p>Not done yet.</p>{}", reproduce("cargo xtask experiments --report"))
    };
    let intro = "Five published articles about random bytes and system calls, done again.";
    body.push_str(&section("The experiments", intro, &content));
    Ok(document("Alea, measured", LEAD, &body))
}

/// A whole page, which needs no other file.
pub(super) fn document(title: &str, lead: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{}{}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{lead}{body}</main>\n\
         </body>\n</html>\n",
        include_str!("style.css"),
        phase_rules(),
    )
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

pub(super) fn section(title: &str, intro: &str, content: &str) -> String {
    let intro = if intro.is_empty() { String::new() } else { format!("<p>{intro}</p>\n") };
    format!("<section>\n<h2>{title}</h2>\n{intro}{content}\n</section>\n")
}

pub(super) fn reproduce(command: &str) -> String {
    // Lines break between words only: a browser would break `--report` after its first hyphen.
    let words: Vec<String> =
        command.split_whitespace().map(|word| format!("<span>{}</span>", escape(word))).collect();
    format!("<p class=\"how\">Measure it again: <code>{}</code></p>\n", words.join(" "))
}

/// A chart for a desktop and the same for a phone.
pub(super) fn both(draw: impl Fn(Size) -> Result<String>) -> Result<String> {
    Ok(format!(
        "<figure class=\"wide\">{}</figure>\n<figure class=\"narrow\">{}</figure>\n",
        draw(Size::Wide)?,
        draw(Size::Narrow)?
    ))
}

const WALL: &str = "The host's other work shows in these figures. <code>memory_at_shell</code> is no time but the memory \
    in use when the shell waits for its first command.";

const COUNTED: &str = "They repeat within a hundredth on any host, however busy; but an instruction is not always the same \
    time, so they stand beside the times and do not replace them.";

fn bench_sections(part: &BenchPart) -> Result<String> {
    let mut html = format!("<p class=\"about\">{}</p>\n", escape(&part.about));
    for (title, rows, command, unit, about) in [
        ("Time against Linux", &part.wall, part.command.clone(), "wall time", WALL),
        (
            "Instructions against Linux",
            &part.instructions,
            part.command.replace(" --report", " --icount"),
            "guest instructions",
            COUNTED,
        ),
    ] {
        let rows: Vec<&Row> =
            rows.iter().filter(|row| title.starts_with("Time") || row.unit != "KiB").collect();
        let compared: Vec<&Row> =
            rows.iter().copied().filter(|row| row.ratio().is_some()).collect();
        if compared.is_empty() {
            continue;
        }
        let intro = format!(
            "Alea's share of Linux's {unit} for the same program in the same virtual machine: the whole \
             width is Linux, and a bar in <span class=\"key goal\"></span>\u{a0}red is one that takes longer. \
             <span class=\"key mark\"></span> is the goal. {about}"
        );
        let chart = both(|size| chart::ratios(size, title, &compared))?;
        html.push_str(&section(title, &intro, &(chart + &values(&rows) + &reproduce(&command))));
    }
    let timed: Vec<&Row> = part.wall.iter().filter(|row| row.unit == "ns").collect();
    if !timed.is_empty() {
        let intro = "Every sample of every boot, so that noise is seen and not averaged away. \
            <span class=\"key linux\"></span> Linux, <span class=\"key alea\"></span> Alea.";
        let chart = both(|size| chart::spreads(size, "Distributions of the samples", &timed))?;
        html.push_str(&section("Distributions", intro, &(chart + &reproduce(&part.command))));
    }
    if !part.growth.is_empty() {
        html.push_str(&growth::sections(part)?);
    }
    Ok(html)
}

/// What a benchmark of `userland/bench/bench.c` does.
fn work(name: &str) -> &'static str {
    match name {
        "getpid" => "the least system call",
        "getrandom_16" => "the system call, 16 bytes",
        "getrandom_256" => "the system call, 256 bytes",
        "getrandom_64k" => "the system call, 64 KiB",
        "vdso_getrandom_4" => "4 bytes without a system call",
        "vdso_getrandom_16" => "16 bytes without a system call",
        "vdso_getrandom_32" => "32 bytes without a system call",
        "vdso_getrandom_1024" => "1 KiB without a system call",
        "vdso_clock_gettime" => "the time without a system call",
        "read_urandom_16" => "16 bytes from the open /dev/urandom",
        "fopen_urandom_16" => "fopen, fread of 16 bytes, fclose of /dev/urandom",
        "pipe_1" => "a byte into a pipe and out of it",
        "pipe_pingpong" => "a byte to another process and back",
        "ctx_switch" => "to another thread and back",
        "seccomp_getpid_50" => "getpid, past a filter of 50 rules about numbers",
        "seccomp_getpid_args_50" => "getpid, past a filter of 50 rules about arguments",
        "signal_delivery" => "a signal to oneself, its handler, the return",
        "mmap_touch_64" => "64 pages mapped, written, unmapped",
        "mmap_file_read_64" => "64 pages of a file mapped, read, unmapped",
        "mmap_file_write_64" => "64 pages of a file mapped privately, written, unmapped",
        "open_close" => "open and close of a file",
        "stat" => "stat of a file",
        "getdents_100" => "all names of a directory of 100",
        "maps_8000" => "/proc/self/maps of 8,000 mappings",
        "smaps_8000" => "/proc/self/smaps of 8,000 mappings",
        "proc_stat" => "/proc/self/stat, opened and read",
        "proc_status" => "/proc/self/status, opened and read",
        "poll_10" => "poll of 10 pipes, one ready",
        "poll_100" => "poll of 100 pipes, one ready",
        "select_10" => "select of 10 pipes, one ready",
        "select_100" => "select of 100 pipes, one ready",
        "epoll_wait_1" => "epoll_wait on 100 pipes, one ready",
        "fork_exit" => "fork, exit, wait",
        "exec_true" => "fork, exec of BusyBox's true, wait",
        "spawn_true" => "posix_spawn of BusyBox's true, wait",
        "shell_noop" => "sh -c :",
        "pipe_grep" => "sh -c 'grep', 200 lines",
        "sed_pipeline" => "sh -c 'cat | sed', 200 lines",
        "tcp_1k" => "1 KiB of a TCP stream to another process",
        "tcp_4k" => "4 KiB of a TCP stream",
        "tcp_128k" => "128 KiB of a TCP stream",
        "pipe_4k" => "4 KiB through a pipe to another process",
        "pipe_64k" => "64 KiB through a pipe",
        "unix_64k" => "64 KiB of an AF_UNIX stream",
        "touch_32m" => "32 MiB of anonymous memory mapped, written, unmapped",
        "read_tmpfs_128k" => "read of 128 KiB of a file",
        "boot_to_user" => "from QEMU's start to the first program's first instruction",
        "memory_at_shell" => "memory in use at the first shell",
        _ => "",
    }
}

/// The figures behind a chart.
fn values(rows: &[&Row]) -> String {
    let show = |row: &Row, value: f64| match row.unit.as_str() {
        "ns" => table::time(value),
        "KiB" => format!("{:.1} MiB", value / 1024.0),
        _ => table::count(value),
    };
    let mut html = String::from(
        "<details><summary>The figures</summary><div class=\"scroll\"><table>\n\
         <tr><th>name<th>Linux<th>Alea<th>Alea / Linux<th>goal<th class=\"words\">one iteration is\n",
    );
    for row in rows {
        let cell = |spread: &Option<super::Spread>| {
            spread.as_ref().map_or("-".into(), |spread| show(row, spread.median))
        };
        html.push_str(&format!(
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td class=\"words\">{}\n",
            escape(&row.name),
            cell(&row.linux),
            cell(&row.alea),
            row.ratio().map_or("-".into(), |ratio| format!("{ratio:.3}")),
            row.goal.map_or(String::new(), |goal| format!("{goal:.2}")),
            work(&row.name),
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
            "The phases of Alea's exec, and fork, exit and wait. The line is from the first to the 99th \
             percentile, the bar the middle half, the mark the median; generator {}; the axis is logarithmic.",
            escape(&generator.name)
        );
        let content = chart + &phase_table(part) + &reproduce(&part.command);
        html.push_str(&section("How long each phase takes", &intro, &content));
    }
    if !part.vm_exits.is_empty() {
        html.push_str(&exits_section(part));
    }
    if !part.stacks.is_empty() {
        html.push_str(&flame_section(part)?);
    }
    let words = "<code>timeline.trace.json</code> beside this page holds the last execs, phase by phase, in the Trace \
        Event format: open it in Perfetto (ui.perfetto.dev) or chrome://tracing.";
    html.push_str(&section("Timeline", words, &reproduce(&part.command)));
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
    let what = |kind: &str| match kind {
        "port" => "an access to an I/O port",
        "timer" => "the timer was set: a time slice ended",
        "apic" => "the end of an interrupt, or one to another CPU",
        "cpuid" => "CPUID",
        "random" => "RDRAND or RDSEED",
        "halt" => "nothing was left to do",
        "predictors" => "how the CPU predicts was changed for a task",
        "barrier" => "a barrier for predictions",
        _ => "",
    };
    let rows: String = part
        .vm_exits
        .iter()
        .map(|(kind, count)| {
            let (kind, what) = (escape(kind), what(kind));
            format!("<tr><td>{kind}<td>{count}<td class=\"words\">{what}\n")
        })
        .collect();
    let intro = "What Alea's kernel did in 500 execs that makes a hypervisor step in, which costs more than many \
        system calls. The timer comes with time and not with execs: so often did a time slice end meanwhile.";
    let table = format!(
        "<div class=\"scroll\"><table>\n<tr><th>kind<th>in 500 execs<th class=\"words\">what\n\
         {rows}</table></div>"
    );
    section("Exits from the virtual machine", intro, &(table + &reproduce(&part.command)))
}

/// The flame graph's own colours are for a page of its own.
const FLAME_STYLE: &str = "<style>:root{color-scheme:light dark}body{margin:0;overflow:hidden}\
    svg{display:block;width:100%}#background stop{stop-color:#fff}\
    @media(prefers-color-scheme:dark){#background stop{stop-color:#1f2226}\
    #title,#details,#unzoom,#search,#matched{fill:#e8e6e1}}</style>";

fn flame_section(part: &ProfilePart) -> Result<String> {
    let mut options = flamegraph::Options::default();
    options.title = "Kernel stacks during fork, exec and exit".into();
    options.count_name = "samples".into();
    // As wide as the page.
    options.image_width = None;
    options.text_truncate_direction = TextTruncateDirection::Right;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, part.stacks.iter().map(String::as_str), &mut svg)
        .context("the flame graph")?;
    let svg = String::from_utf8(svg).context("the flame graph")?;
    let svg = &svg[svg.find("<svg").unwrap_or(0)..];
    let height = svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next());
    let height: u32 = height.and_then(|height| height.parse().ok()).context("the flame graph")?;
    let intro = "Where Alea's kernel was when it was looked at: the width of a function is how often it was seen, \
        and what it called stands above it. Click on one to widen it; on a phone, scroll sideways.";
    let frame = format!(
        "<div class=\"scroll\"><iframe class=\"flame\" style=\"height:{height}px\" title=\"flame graph\" \
         srcdoc=\"{}\"></iframe></div>",
        escape(&format!("{FLAME_STYLE}{svg}"))
    );
    Ok(section("Flame graph", intro, &(frame + &reproduce(&part.command))))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Curve, Event, GeneratorPart, PhasePart, Refusal, Spread};
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

    /// The page with whole commands.
    fn text(page: &str) -> String {
        page.replace("<span>", "").replace("</span>", "")
    }

    #[test]
    fn the_page_stands_alone() {
        let page = render(Some(&bench()), Some(&profile()), true).unwrap();
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
            assert!(text(&page).contains(wanted), "{wanted} is missing");
        }
        assert_eq!(page.matches("<section>").count(), page.matches("</section>").count());
        assert_eq!(page.matches("<svg ").count(), page.matches("</svg>").count());
        assert!(page.matches("<svg ").count() >= 11, "two sizes of each chart");
    }

    #[test]
    fn every_benchmark_and_curve_has_words() {
        let names = |file: &str, digits: bool| -> Vec<String> {
            let source = std::fs::read_to_string(xtask_host::paths::source(file)).unwrap();
            let table = source.lines().filter_map(|line| line.strip_prefix("\t{ \""));
            let entries = table.filter_map(|line| line.split_once("\", "));
            let named = |rest: &str| !digits || rest.starts_with(|c: char| c.is_ascii_digit());
            entries.filter(|(_, rest)| named(rest)).map(|(name, _)| name.to_owned()).collect()
        };
        let benchmarks = names("userland/bench/bench.c", true);
        assert!(benchmarks.len() > 20);
        assert!(benchmarks.iter().all(|name| !work(name).is_empty()), "{benchmarks:?}");
        let curves = [
            names("userland/growth/growth.c", false),
            names("userland/growth/growth_cpus.h", false),
        ];
        assert!(curves.iter().all(|names| names.len() > 5));
        assert!(
            curves.iter().flatten().all(|name| !growth::meaning(name).is_empty()),
            "{curves:?}"
        );
    }

    #[test]
    fn what_was_not_measured_says_how_to() {
        let page = render(None, None, false).unwrap();
        assert_eq!(page.matches("Not measured yet").count(), 2);
        assert!(text(&page).contains("cargo xtask bench --report"));
    }
}
