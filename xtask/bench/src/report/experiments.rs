//! The page of the experiments: each article's claim, its figures, ours, and whether it still holds.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::chart::{self, ALEA, GOAL, LINUX, escape};
use super::page::{both, document, reproduce, section};
use super::{Row, Spread, folder, photograph, write_page};
use xtask_host::table;

/// What `experiments --report` measured.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ExperimentsPart {
    /// Date, QEMU, guest: a sentence.
    pub about: String,
    pub command: String,
    /// Whether calls were counted in instructions, and not timed.
    pub instructions: bool,
    pub experiments: Vec<ExperimentPart>,
}

/// One article and what was measured.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct ExperimentPart {
    pub article: String,
    pub claim: String,
    /// Whether it still holds.
    pub today: String,
    pub titles: Vec<String>,
    pub rows: Vec<ExperimentRow>,
}

/// One line of an article's table.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct ExperimentRow {
    /// As the table shows them, by the experiment's titles.
    pub cells: Vec<String>,
    /// What one call cost; nothing for shares and counts.
    pub call: Option<Call>,
}

/// What one call cost.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    /// Nanoseconds.
    pub published: Vec<f64>,
    pub linux: f64,
    pub alea: f64,
}

const LEAD: &str = "<p>Alea grew from five published articles about random bytes and system calls. Their experiments \
    are done again here, as guest programs on Debian's Linux and on Alea in the same virtual machine. Everywhere \
    <span class=\"key linux\"></span>\u{a0}is Linux, <span class=\"key alea\"></span>\u{a0}is Alea and \
    <span class=\"key goal\"></span>\u{a0}what the article found; less is better. The data lie beside this page as \
    <code>experiments.json</code>.</p>\n";

/// The page's folder below the report's.
pub(super) const FOLDER: &str = "experiments";

/// Writes `part` and its page, and the page that points to it; returns the page's path.
pub fn write_experiments(part: &ExperimentsPart) -> Result<PathBuf> {
    let report = folder()?;
    let folder = report.join(FOLDER);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("experiments.json"), serde_json::to_string_pretty(part)? + "\n")?;
    let page = folder.join("index.html");
    fs::write(&page, render(part)?).with_context(|| page.display().to_string())?;
    photograph(&page);
    write_page(&report)?;
    Ok(page)
}

pub(super) fn render(part: &ExperimentsPart) -> Result<String> {
    let mut body = format!("<p class=\"about\">{}</p>\n", escape(&part.about));
    for experiment in &part.experiments {
        let intro = format!(
            "<b>The article:</b> {} <b>Today:</b> {}",
            escape(&experiment.claim),
            escape(&experiment.today)
        );
        let content = charts(experiment, part.instructions)? + &figures(experiment);
        body.push_str(&section(&escape(&experiment.article), &intro, &content));
    }
    body.push_str(&section("Measure it again", "", &reproduce(&part.command)));
    Ok(document("Five experiments, done again", LEAD, &body))
}

/// Alea's share of Linux for each rung, and each call on one axis.
fn charts(experiment: &ExperimentPart, instructions: bool) -> Result<String> {
    let calls: Vec<&Call> = experiment.rows.iter().filter_map(|row| row.call.as_ref()).collect();
    let spread = |median| Some(Spread { median, samples: Vec::new() });
    let rows: Vec<Row> = calls
        .iter()
        .map(|call| Row {
            name: call.name.clone(),
            unit: String::new(),
            linux: spread(call.linux),
            alea: spread(call.alea),
            goal: None,
        })
        .collect();
    let rows: Vec<&Row> = rows.iter().collect();
    let dots: Vec<_> = calls
        .iter()
        .map(|call| {
            let mut sets = vec![(vec![call.linux], LINUX), (vec![call.alea], ALEA)];
            // An article's nanoseconds are none of our instructions.
            if !instructions {
                sets.push((call.published.clone(), GOAL));
            }
            (call.name.as_str(), sets)
        })
        .collect();
    let (unit, say): (_, fn(f64) -> String) =
        if instructions { ("instructions", table::count) } else { ("time", table::time) };
    let title = format!("{}: {unit} of one call", experiment.article);
    Ok(format!(
        "<p>The {unit} of one call, on a logarithmic axis:</p>\n{}<p>Alea's share of Linux, which is the whole width:</p>\n{}",
        both(|size| chart::dots(size, &title, &dots, say))?,
        both(|size| chart::ratios(size, "Alea's share of Linux", &rows))?
    ))
}

fn figures(experiment: &ExperimentPart) -> String {
    let line = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}", escape(cell))).collect();
        format!("<tr>{cells}\n")
    };
    let rows: String = experiment.rows.iter().map(|row| line("td", &row.cells)).collect();
    format!(
        "<details open><summary>The figures</summary><div class=\"scroll\"><table>\n{}{rows}</table></div></details>\n",
        line("th", &experiment.titles)
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn part(instructions: bool) -> ExperimentsPart {
        let cells = |words: [&str; 4]| words.map(str::to_owned).to_vec();
        ExperimentsPart {
            about: "a <fast> machine".into(),
            command: "cargo xtask experiments --report".into(),
            instructions,
            experiments: vec![ExperimentPart {
                article: "From fread to syscall".into(),
                claim: "Opening the file is what costs.".into(),
                today: "It is.".into(),
                titles: cells(["time", "published", "Linux", "Alea"]),
                rows: vec![
                    ExperimentRow {
                        cells: cells(["syscall", "299 ns", "2.04 us", "176 ns"]),
                        call: Some(Call {
                            name: "syscall".into(),
                            published: vec![299.0],
                            linux: 2040.0,
                            alea: 176.0,
                        }),
                    },
                    ExperimentRow { cells: cells(["random", "53.3 %", "-", "2.0 %"]), call: None },
                ],
            }],
        }
    }

    #[test]
    fn the_page_says_what_was_claimed_and_what_holds() {
        let page = render(&part(false)).unwrap();
        for wanted in ["Opening the file", "It is.", "299 ns", "53.3 %", "a &lt;fast&gt; machine"] {
            assert!(page.contains(wanted), "{wanted} is missing");
        }
        for forbidden in ["<link", "<script src", "@import", "url(http", "src=\"http"] {
            assert!(!page.contains(forbidden), "{forbidden} needs the network");
        }
        assert_eq!(page.matches("<svg ").count(), 4, "two sizes of each chart");
    }

    #[test]
    fn an_articles_nanoseconds_do_not_stand_among_instructions() {
        let dots = |instructions| render(&part(instructions)).unwrap().matches("<circle").count();
        assert_eq!((dots(false), dots(true)), (6, 4));
    }
}
