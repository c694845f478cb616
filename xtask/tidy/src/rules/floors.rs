//! Floors: a file uses its own floor and lower ones only. The floors are the data file's; the table in
//! docs/architecture.md is made from them.

use crate::data::{Floor, Rules};
use crate::faults::Faults;
use crate::graph::Edge;
use crate::marked;
use crate::tree::Tree;

const BEGIN: &str =
    "<!-- floors: `cargo xtask tidy --write` makes the table from xtask/tidy.toml -->\n";
const END: &str = "<!-- end of floors -->\n";

pub fn check(tree: &Tree, rules: &Rules, edges: &[Edge], faults: &mut Faults) {
    for path in rules.floor.iter().flat_map(|floor| &floor.paths) {
        if !tree.files.iter().any(|file| file.name.starts_with(path.as_str())) {
            faults.add(format!("the floors name {path}, which is not there"));
        }
    }
    for file in tree.rust().filter(|file| file.name.starts_with("kernel/src/")) {
        if place(rules, &file.name).is_none() {
            faults.add(format!("{}: stands on no floor", file.name));
        }
    }
    for Edge { from, to, line } in edges {
        let (Some((low, _)), Some((high, room))) = (place(rules, from), place(rules, to)) else {
            continue;
        };
        if high > low {
            let what = format!("{from}:{line}: floor {low} uses {to} of floor {high}");
            faults.of("floor", format!("{from} -> {room}"), what);
        }
    }
    marked::check(tree, BEGIN, END, &table(rules), faults);
}

/// The floor of a file, and the entry of the list that says so.
fn place<'a>(rules: &'a Rules, name: &str) -> Option<(u32, &'a str)> {
    let all = rules
        .floor
        .iter()
        .flat_map(|floor| floor.paths.iter().map(|path| (floor.level, path.as_str())));
    all.filter(|(_, path)| name.starts_with(path)).max_by_key(|(_, path)| path.len())
}

/// The page with the table made anew; nothing if it has no marks.
pub fn with_table(page: &str, rules: &Rules) -> Option<String> {
    marked::replace(page, BEGIN, END, &table(rules))
}

fn table(rules: &Rules) -> String {
    let mut table = String::from("\n| floor | where | what |\n|--:|---|---|\n");
    let mut floors: Vec<&Floor> = rules.floor.iter().collect();
    floors.sort_by_key(|floor| std::cmp::Reverse(floor.level));
    for floor in floors {
        let paths: Vec<String> = floor.paths.iter().map(|path| format!("`{path}`")).collect();
        table.push_str(&format!("| {} | {} | {} |\n", floor.level, paths.join(", "), floor.what));
    }
    table + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph;
    use crate::marked::PAGE;

    const RULES: &str = "[[floor]]\nlevel = 1\npaths = [\"kernel/src/low/\"]\nwhat = \"low\"\n\
                         [[floor]]\nlevel = 2\npaths = [\"kernel/src/\"]\nwhat = \"the rest\"\n";

    fn faults(low: &str) -> Vec<String> {
        let rules = Rules::parse(RULES).unwrap();
        let page = with_table(&format!("{BEGIN}{END}"), &rules).unwrap();
        let tree = Tree::of(&[
            (PAGE, &page),
            ("kernel/src/high.rs", "use crate::low::x;"),
            ("kernel/src/low/x.rs", low),
            ("kernel/src/main.rs", ""),
        ]);
        let mut faults = Faults::default();
        check(&tree, &rules, &graph::edges(&tree, "kernel/src/"), &mut faults);
        faults.all()
    }

    #[test]
    fn only_downwards() {
        assert!(faults("use crate::low::x;").is_empty());
        assert_eq!(
            faults("\nuse crate::high::X;"),
            ["kernel/src/low/x.rs:2: floor 1 uses kernel/src/high.rs of floor 2 (floor)"]
        );
    }

    #[test]
    fn the_table_is_made_from_the_data() {
        let rules = Rules::parse(RULES).unwrap();
        let page = with_table(&format!("a\n{BEGIN}old\n{END}b\n"), &rules).unwrap();
        assert!(page.contains("|--:|---|---|\n| 2 | `kernel/src/` | the rest |\n| 1 |"), "{page}");
        assert_eq!(with_table(&page, &rules).as_ref(), Some(&page));
        assert_eq!(with_table("no marks\n", &rules), None);
    }
}
