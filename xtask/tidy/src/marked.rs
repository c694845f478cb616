//! Tables of docs/architecture.md that are made from the data file: each stands between two marks.

use crate::faults::Faults;
use crate::tree::Tree;

/// Where the tables are.
pub const PAGE: &str = "docs/architecture.md";

/// A fault if what stands between the marks is not `table`.
pub fn check(tree: &Tree, begin: &str, end: &str, table: &str, faults: &mut Faults) {
    let Some(page) = tree.file(PAGE) else { return };
    match replace(&page.text, begin, end, table) {
        Some(text) if text == page.text => {}
        Some(_) => faults.add(format!(
            "{PAGE}: not what the data file says, `cargo xtask tidy --write` mends it: {}",
            begin.trim_end()
        )),
        None => faults.add(format!("{PAGE}: the mark is missing: {}", begin.trim_end())),
    }
}

/// The page with `table` between the marks; nothing if it has none.
pub fn replace(page: &str, begin: &str, end: &str, table: &str) -> Option<String> {
    let from = page.find(begin)? + begin.len();
    let to = from + page[from..].find(end)?;
    Some(format!("{}{table}{}", &page[..from], &page[to..]))
}
