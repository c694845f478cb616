//! Measured figures: README and docs show them in tables between marks only, and as `docs/figures.toml` has them.

use crate::faults::Faults;
use crate::shown::{self, Figures};
use crate::tree::{File, Tree};

/// What a measured figure ends in.
const UNITS: [&str; 6] = [" ns", " us", " ms", " MiB", " KiB", " s"];
/// How the marks begin.
const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- end of figures -->";

pub fn check(tree: &Tree, faults: &mut Faults) {
    let data = tree.file(shown::FILE).map_or("", |file| &file.text);
    let figures = match Figures::parse(data) {
        Ok(figures) => figures,
        Err(error) => return faults.add(format!("{error:#}")),
    };
    let figures = match figures.pages() {
        Ok(figures) => figures,
        Err(error) => return faults.add(format!("{error:#}")),
    };
    for table in &figures {
        match tree.file(&table.page).map(|page| (table.put(&page.text), &page.text)) {
            Some((Some(new), old)) if new == *old => {}
            Some((Some(_), _)) => faults.add(format!(
                "{}: the figures of {} are not those of {}: tidy --write",
                table.page,
                table.name,
                shown::FILE
            )),
            _ => faults.add(format!("{}: no marks of the figures {}", table.page, table.name)),
        }
    }
    for page in tree.files.iter().filter(|file| is_page(file)) {
        let known = |line: &str| {
            figures.iter().any(|table| table.page == page.name && table.mark() == line)
        };
        for line in page.text.lines().filter(|line| line.starts_with(BEGIN) && !known(line)) {
            faults.add(format!("{}: {line}: {} has no such table", page.name, shown::FILE));
        }
        unmarked(page, faults);
    }
}

fn is_page(file: &File) -> bool {
    file.name == "README.md" || file.name.starts_with("docs/") && file.name.ends_with(".md")
}

/// Tables with measured figures in them that stand outside of marks; the key is a table's first line.
fn unmarked(page: &File, faults: &mut Faults) {
    let mut inside = false;
    let mut head: Option<&str> = None;
    for (number, line) in (1..).zip(page.text.lines()) {
        inside = (inside || line.starts_with(BEGIN)) && !line.starts_with(END);
        if !line.starts_with('|') {
            head = None;
            continue;
        }
        let head = *head.get_or_insert(line);
        if !inside && line.split('|').any(is_figure) {
            let what = format!("{}:{number}: figures outside of marks", page.name);
            faults.of("figures", format!("{} {head}", page.name), what);
        }
    }
}

/// Whether a cell is a number with a unit of what is measured.
fn is_figure(cell: &str) -> bool {
    let cell = cell.trim();
    UNITS.iter().any(|unit| {
        cell.strip_suffix(unit).is_some_and(|number| number.replace(',', "").parse::<f64>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = "[[table]]\nname = \"t\"\npage = \"README.md\"\ncolumns = [\"work\", \">Alea\"]\n\
                        rows = [[\"getpid\", \"1 ns\"]]\n";
    const GOOD: &str = "<!-- figures: t -->\n\n| work | Alea |\n|---|--:|\n| getpid | 1 ns |\n\n<!-- end of figures -->\n";

    fn faults(page: &str) -> Vec<String> {
        let mut faults = Faults::default();
        check(&Tree::of(&[("README.md", page), (shown::FILE, DATA)]), &mut faults);
        faults.all()
    }

    #[test]
    fn figures_are_those_of_the_file() {
        assert!(faults(GOOD).is_empty());
        assert_eq!(
            faults(&GOOD.replace("1 ns", "0 ns")),
            ["README.md: the figures of t are not those of docs/figures.toml: tidy --write"]
        );
        assert_eq!(faults("none\n"), ["README.md: no marks of the figures t"]);
    }

    #[test]
    fn figures_elsewhere_are_a_fault() {
        let page = format!("{GOOD}\n| what | how |\n|---|---|\n| boot | 3.5 s |\n");
        assert_eq!(faults(&page), ["README.md:11: figures outside of marks (figures)"]);
        let page = format!("{GOOD}\n| what | how |\n|---|---|\n| boot | by 3 CPUs |\n");
        assert!(faults(&page).is_empty());
        let page = format!("{GOOD}<!-- figures: u -->\n<!-- end of figures -->\n");
        assert_eq!(faults(&page).len(), 1);
    }
}
