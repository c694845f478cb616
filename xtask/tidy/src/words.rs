//! The words of the kernel's command line: the table of docs/using.md is made from the kernel's own, which is read as text,
//! `CONSTANT = "name", "how it is written", "what it does";`.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use crate::faults::Faults;
use crate::marked;
use crate::tree::Tree;

/// The kernel's table, from the root of the repository.
pub const FILE: &str = "kernel/src/cmdline/words.rs";
/// The page that shows it.
pub const PAGE: &str = "docs/using.md";
const BEGIN: &str =
    "<!-- words: `cargo xtask tidy --write` makes the table from kernel/src/cmdline/words.rs -->\n";
const END: &str = "<!-- end of words -->";

pub fn check(tree: &Tree, faults: &mut Faults) {
    let (Some(source), Some(page)) = (tree.file(FILE), tree.file(PAGE)) else { return };
    match with_table(&page.text, &source.text) {
        Ok(text) if text == page.text => {}
        Ok(_) => faults.add(format!("{PAGE}: not the words of {FILE}: tidy --write")),
        Err(error) => faults.add(format!("{error:#}")),
    }
}

/// The page with the table made anew.
pub fn with_table(page: &str, source: &str) -> Result<String> {
    let mut table = String::from("\n| word | what it does |\n|---|---|\n");
    let (_, words) =
        source.split_once("\nwords! {\n").with_context(|| format!("{FILE}: no words"))?;
    let (words, _) = words.split_once("\n}").context("words! without an end")?;
    for line in words.lines() {
        let texts: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
        let [name, form, what] = texts[..] else { anyhow::bail!("{FILE}: cannot read {line:?}") };
        ensure!(form.starts_with(name), "{FILE}: {name} is not written as {form}");
        ensure!(!line.contains('\\'), "{FILE}: {name}: the page would show the backslash");
        writeln!(table, "| `{}` | {} |", form.replace('|', "\\|"), what.replace('|', "\\|"))?;
    }
    table.push('\n');
    marked::replace(page, BEGIN, END, &table)
        .with_context(|| format!("{PAGE}: no marks of the words"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! W.\nmacro_rules! words { () => {} }\n\nwords! {\n    A = \"a.b\", \"a.b=0|1\", \"says c\";\n\
                          \x20   Q = \"quiet\", \"quiet\", \"no lines\";\n}\n";

    #[test]
    fn the_page_has_a_row_for_each_word() {
        let page = with_table(&format!("x\n{BEGIN}{END}\n"), SOURCE).unwrap();
        assert!(page.contains("\n| `a.b=0\\|1` | says c |\n| `quiet` | no lines |\n"), "{page}");
        let faults = |source: &str| {
            let mut faults = Faults::default();
            check(&Tree::of(&[(PAGE, &page), (FILE, source)]), &mut faults);
            faults.all().len()
        };
        assert_eq!(faults(SOURCE), 0);
        assert_eq!(faults(&SOURCE.replace("says c", "says d")), 1);
        assert_eq!(faults(&SOURCE.replace("\"a.b=", "\"b.b=")), 1);
        assert_eq!(faults(&SOURCE.replace("0|1", "0\\\\|1")), 1);
        assert_eq!(faults(&SOURCE.replace(", \"no lines\"", "")), 1);
    }
}
