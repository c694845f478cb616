//! docs/assessment.md: each machine's report stands there between two marks, as the command wrote it.

use std::fs;

use anyhow::{Context, Result};

use xtask_host::paths;

const PAGE: &str = "docs/assessment.md";
const END: &str = "<!-- end of report -->\n";

/// Writes the report of the machine of that name into the page.
pub fn put(name: &str, report: &str) -> Result<()> {
    let path = paths::source(PAGE);
    let page = fs::read_to_string(&path)?;
    let page = replaced(&page, name, report)
        .with_context(|| format!("{PAGE} has no line `{}`", begin(name).trim_end()))?;
    Ok(fs::write(path, page)?)
}

fn begin(name: &str) -> String {
    format!("<!-- report: {name} -->\n")
}

/// The page with `report` between the marks of `name`; nothing if it has none.
fn replaced(page: &str, name: &str, report: &str) -> Option<String> {
    let begin = begin(name);
    let from = page.find(&begin)? + begin.len();
    let to = from + page[from..].find(END)?;
    Some(format!("{}\n{report}\n{}", &page[..from], &page[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_replaces_that_of_its_machine_alone() {
        let page = "a\n<!-- report: max -->\nold\n<!-- end of report -->\nb\n\
                    <!-- report: host -->\n<!-- end of report -->\n";
        let wanted = "a\n<!-- report: max -->\n\nnew\n\n<!-- end of report -->\nb\n\
                      <!-- report: host -->\n<!-- end of report -->\n";
        assert_eq!(replaced(page, "max", "new\n").as_deref(), Some(wanted));
        assert_eq!(replaced(page, "qemu64", "new\n"), None);
        assert_eq!(replaced("<!-- report: max -->\n", "max", "new\n"), None);
    }
}
