//! The measured figures that README and docs show: tables in `docs/figures.toml`, written into the pages between marks.
//!
//! Owns that file. What measures (`bench`, `profile`) sets cells in it with `--write-figures`; `tidy --write` writes the
//! tables into the pages, and tidy fails when a page shows other figures than the file has. Never a figure by hand: a
//! page that is edited between its marks is a fault. No locks.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The data, from the root of the repository.
pub const FILE: &str = "docs/figures.toml";
const END: &str = "<!-- end of figures -->";

/// All tables.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    #[serde(default)]
    pub table: Vec<Shown>,
    /// Some rows of a table, for a page that shows no more.
    #[serde(default)]
    pub digest: Vec<Digest>,
}

/// Rows and columns of the table `of`.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Digest {
    pub name: String,
    pub page: String,
    pub of: String,
    /// Titles, without `>`.
    pub columns: Vec<String>,
    /// The first cells of the rows.
    pub rows: Vec<String>,
}

/// A table as a page shows it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    pub name: String,
    /// The page that shows it, from the root of the repository.
    pub page: String,
    /// Titles; a column whose title begins with `>` is aligned to the right.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Figures {
    pub fn load(root: &Path) -> Result<Self> {
        Self::parse(&fs::read_to_string(root.join(FILE)).context(FILE)?)
    }

    pub fn parse(text: &str) -> Result<Self> {
        let figures: Self = toml::from_str(text).context(FILE)?;
        for table in &figures.table {
            if let Some(row) = table.rows.iter().find(|row| row.len() != table.columns.len()) {
                bail!("{FILE}: {}: a row of {} cells: {row:?}", table.name, row.len());
            }
        }
        figures.pages()?;
        Ok(figures)
    }

    /// All tables that pages show, the digests among them.
    pub fn pages(&self) -> Result<Vec<Shown>> {
        let mut pages = self.table.clone();
        for digest in &self.digest {
            let table = self.table.iter().find(|table| table.name == digest.of);
            let table = table.with_context(|| format!("{FILE} has no table {}", digest.of))?;
            pages.push(digest.shown(table)?);
        }
        Ok(pages)
    }

    /// Sets cells of the table `name`: of the row that begins with `row`, those under these titles. Rows and titles that
    /// the table does not have are an error: a figure must not get lost.
    pub fn set(&mut self, name: &str, row: &str, cells: &[(&str, String)]) -> Result<()> {
        let table = self.table.iter_mut().find(|table| table.name == name);
        let table = table.with_context(|| format!("{FILE} has no table {name}"))?;
        let cells_of = table.rows.iter_mut().find(|cells| cells[0] == row);
        let cells_of = cells_of.with_context(|| format!("{FILE}: {name} has no row {row}"))?;
        for (title, cell) in cells {
            let at =
                table.columns.iter().position(|column| column.trim_start_matches('>') == *title);
            cells_of[at.with_context(|| format!("{FILE}: {name} has no column {title}"))?] =
                cell.clone();
        }
        Ok(())
    }

    /// The same; a row that the table has not yet is added below the others.
    pub fn set_or_add(&mut self, name: &str, row: &str, cells: &[(&str, String)]) -> Result<()> {
        let table = self.table.iter_mut().find(|table| table.name == name);
        let table = table.with_context(|| format!("{FILE} has no table {name}"))?;
        if !table.rows.iter().any(|cells| cells[0] == row) {
            let mut cells = vec!["-".to_owned(); table.columns.len()];
            cells[0] = row.to_owned();
            table.rows.push(cells);
        }
        self.set(name, row, cells)
    }

    /// Writes the file, and the tables into their pages.
    pub fn write(&self, root: &Path) -> Result<()> {
        fs::write(root.join(FILE), self.text())?;
        for table in self.pages()? {
            let page = root.join(&table.page);
            let old = fs::read_to_string(&page).with_context(|| table.page.clone())?;
            let new = table
                .put(&old)
                .with_context(|| format!("{}: no marks of {}", table.page, table.name))?;
            fs::write(&page, new)?;
        }
        Ok(())
    }

    /// The file: one row a line.
    fn text(&self) -> String {
        let mut text = String::from(
            "# The measured figures that README and docs show, written by `cargo xtask bench --write-figures` and others, and\n\
             # into the pages by `cargo xtask tidy --write`.\n",
        );
        for table in &self.table {
            let row = |cells: &[String]| {
                cells.iter().map(|cell| format!("{cell:?}")).collect::<Vec<_>>().join(", ")
            };
            text.push_str(&format!(
                "\n[[table]]\nname = {:?}\npage = {:?}\n",
                table.name, table.page
            ));
            text.push_str(&format!("columns = [{}]\nrows = [\n", row(&table.columns)));
            for cells in &table.rows {
                text.push_str(&format!("    [{}],\n", row(cells)));
            }
            text.push_str("]\n");
        }
        let list = |words: &[String]| {
            words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
        };
        for Digest { name, page, of, columns, rows } in &self.digest {
            text.push_str(&format!(
                "\n[[digest]]\nname = {name:?}\npage = {page:?}\nof = {of:?}\ncolumns = [{}]\nrows = [{}]\n",
                list(columns),
                list(rows)
            ));
        }
        text
    }
}

impl Digest {
    /// The digest as a table.
    fn shown(&self, of: &Shown) -> Result<Shown> {
        let missing = |what: &str| format!("{FILE}: {} has no {what}", of.name);
        let at = |title: &String| {
            let at = of.columns.iter().position(|column| column.trim_start_matches('>') == *title);
            at.with_context(|| missing(title))
        };
        let columns = self.columns.iter().map(at).collect::<Result<Vec<usize>>>()?;
        let pick = |cells: &Vec<String>| columns.iter().map(|&at| cells[at].clone()).collect();
        let row = |name: &String| {
            let row = of.rows.iter().find(|row| row[0] == *name).with_context(|| missing(name))?;
            Ok(pick(row))
        };
        Ok(Shown {
            name: self.name.clone(),
            page: self.page.clone(),
            columns: pick(&of.columns),
            rows: self.rows.iter().map(row).collect::<Result<_>>()?,
        })
    }
}

impl Shown {
    /// The line that begins the table on its page.
    pub fn mark(&self) -> String {
        format!("<!-- figures: {} -->", self.name)
    }

    /// The page with the table made anew; nothing if it has no marks.
    pub fn put(&self, page: &str) -> Option<String> {
        let mark = self.mark() + "\n";
        let from = page.find(&mark)? + mark.len();
        let to = from + page[from..].find(END)?;
        Some(format!("{}\n{}\n{}", &page[..from], self.markdown(), &page[to..]))
    }

    fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells: Vec<&str> = cells.collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = line(&mut self.columns.iter().map(|title| title.trim_start_matches('>')));
        let rules: Vec<&str> = self
            .columns
            .iter()
            .map(|title| if title.starts_with('>') { "--:" } else { "---" })
            .collect();
        text.push_str(&format!("|{}|\n", rules.join("|")));
        for row in &self.rows {
            text.push_str(&line(&mut row.iter().map(String::as_str)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = "[[table]]\nname = \"t\"\npage = \"README.md\"\ncolumns = [\"work\", \">Alea\"]\n\
                        rows = [[\"getpid\", \"1 ns\"], [\"stat\", \"2 ns\"]]\n";

    #[test]
    fn pages_show_the_tables() {
        let figures = Figures::parse(DATA).unwrap();
        let page = "a\n<!-- figures: t -->\nold\n<!-- end of figures -->\nb\n";
        let page = figures.table[0].put(page).unwrap();
        assert_eq!(
            page,
            "a\n<!-- figures: t -->\n\n| work | Alea |\n|---|--:|\n| getpid | 1 ns |\n| stat | 2 ns |\n\n\
             <!-- end of figures -->\nb\n"
        );
        assert_eq!(figures.table[0].put(&page).as_ref(), Some(&page));
        assert_eq!(figures.table[0].put("no marks\n"), None);
    }

    #[test]
    fn cells_are_set_and_kept() {
        let mut figures = Figures::parse(DATA).unwrap();
        figures.set("t", "stat", &[("Alea", "3 ns".into())]).unwrap();
        assert_eq!(figures.table[0].rows[1], ["stat", "3 ns"]);
        assert_eq!(Figures::parse(&figures.text()).unwrap(), figures);
        assert!(figures.set("t", "stat", &[("Linux", "3 ns".into())]).is_err());
        assert!(figures.set("t", "open", &[]).is_err());
        assert!(figures.set("u", "stat", &[]).is_err());
    }

    #[test]
    fn a_digest_follows_its_table() {
        let digest = "[[digest]]\nname = \"d\"\npage = \"README.md\"\nof = \"t\"\ncolumns = [\"Alea\"]\n\
                      rows = [\"stat\"]\n";
        let mut figures = Figures::parse(&format!("{DATA}{digest}")).unwrap();
        figures.set("t", "stat", &[("Alea", "3 ns".into())]).unwrap();
        assert_eq!(figures.pages().unwrap()[1].markdown(), "| Alea |\n|--:|\n| 3 ns |\n");
        assert_eq!(Figures::parse(&figures.text()).unwrap(), figures);
        for wrong in [("\"t\"\ncol", "\"u\"\ncol"), ("[\"stat\"]", "[\"open\"]")] {
            let digest = digest.replace(wrong.0, wrong.1);
            assert!(Figures::parse(&format!("{DATA}{digest}")).is_err(), "{digest}");
        }
    }

    #[test]
    fn rows_have_a_cell_for_each_column() {
        assert!(Figures::parse(&DATA.replace("\"1 ns\"", "\"1\", \"2\"")).is_err());
    }
}
