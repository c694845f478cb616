//! Files that docs and comments name are there, from the root, from the naming file's folder, or as the
//! end of a longer path. Links of a page are followed as a browser does, from the page's folder.

use crate::faults::Faults;
use crate::tree::{File, Tree};

/// Endings of names that are this repository's when they have a folder in front, and of those that are even without.
const ENDINGS: [&str; 4] = [".rs", ".md", ".toml", ".tsv"];
/// Sources of C are as often Linux's: only those below these folders are ours.
const C_BELOW: [&str; 2] = ["userland/", "tests/"];

pub fn check(tree: &Tree, faults: &mut Faults) {
    for file in &tree.files {
        let is_page = file.name.ends_with(".md");
        if !is_page && !file.name.ends_with(".rs") {
            continue;
        }
        for (number, line) in (1..).zip(file.text.lines()) {
            let prose = if is_page { line } else { comment(file, number, line) };
            for name in names(prose).filter(|name| !exists(tree, file, name)) {
                let what = format!("{}:{number}: there is no {name}", file.name);
                faults.of("named-file", format!("{} {name}", file.name), what);
            }
            for link in links(prose).filter(|link| is_page && !leads(tree, file, link)) {
                faults.add(format!("{}:{number}: the link to {link} leads nowhere", file.name));
            }
        }
    }
}

/// The comment at the end of a line of Rust.
fn comment<'a>(file: &File, number: usize, line: &'a str) -> &'a str {
    let code = file.code.lines().nth(number - 1).unwrap_or("");
    // In code, a comment is blank, and so is a string: two slashes that no string begins before.
    match line.find("//") {
        Some(at)
            if code.get(at..).is_some_and(|rest| rest.trim().is_empty())
                && !line[..at].contains('"') =>
        {
            &line[at..]
        }
        _ => "",
    }
}

/// Names of files in prose that ought to be there.
fn names(prose: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    prose.split(move |c| !part(c)).filter_map(|word| {
        let word = word.trim_end_matches('.').trim_start_matches("./");
        let plain = word.trim_start_matches("../");
        let ours = if plain.ends_with(".c") || plain.ends_with(".h") {
            C_BELOW.iter().any(|folder| plain.starts_with(folder))
        } else {
            ENDINGS.iter().any(|ending| plain.ends_with(ending) && plain.len() > ending.len())
                && (plain.contains('/') || plain.ends_with(".rs"))
        };
        // `NAME` stands for any name.
        (ours
            && !plain.contains("NAME")
            && !plain.starts_with('/')
            && !plain.starts_with("target/"))
        .then_some(plain)
    })
}

fn exists(tree: &Tree, from: &File, name: &str) -> bool {
    let folder = from.name.rsplit_once('/').map_or("", |(folder, _)| folder);
    tree.file(name).is_some()
        || tree.file(&format!("{folder}/{name}")).is_some()
        || tree
            .files
            .iter()
            .any(|file| file.name.strip_suffix(name).is_some_and(|before| before.ends_with('/')))
}

/// Where the links in a line of a page lead, those within the page and to other sites left out.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let (link, _) = rest.split_once(')')?;
        let link = link.split('#').next()?;
        (!link.is_empty() && !link.contains("://")).then_some(link)
    })
}

/// Whether a link leads to a file or a folder.
fn leads(tree: &Tree, from: &File, link: &str) -> bool {
    let mut path: Vec<&str> = from.name.split('/').collect();
    path.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." if path.pop().is_none() => return false,
            ".." => {}
            part => path.push(part),
        }
    }
    let name = path.join("/");
    tree.file(&name).is_some()
        || tree
            .files
            .iter()
            .any(|file| file.name.strip_prefix(&name).is_some_and(|rest| rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (name, text),
            ("kernel/src/mm/space/table/tlb.rs", ""),
            ("docs/decisions/1.md", ""),
        ]);
        let mut faults = Faults::default();
        check(&tree, &mut faults);
        faults.all()
    }

    #[test]
    fn files_are_named_by_their_end() {
        assert!(
            faults("docs/a.md", "`mm/space/table/tlb.rs`, [d](decisions/1.md), tlb.rs.\n")
                .is_empty()
        );
        assert!(faults("kernel/src/x.rs", "//! See `table/tlb.rs`.\n").is_empty());
        assert_eq!(
            faults("docs/a.md", "x\nsee `mm/tlb.rs` and userland/none.c, not fs/exec.c\n"),
            [
                "docs/a.md:2: there is no mm/tlb.rs (named-file)",
                "docs/a.md:2: there is no userland/none.c (named-file)",
            ]
        );
    }

    #[test]
    fn links_lead_from_the_folder_of_their_page() {
        let good = "[d](decisions/1.md#x), [all](decisions), [up](../docs/a.md), [s](https://a.b/c), [h](#x)\n";
        assert!(faults("docs/a.md", good).is_empty());
        assert_eq!(
            faults("docs/a.md", "[d](docs/decisions/1.md) [up](../../docs/a.md)\n"),
            [
                "docs/a.md:1: the link to docs/decisions/1.md leads nowhere",
                "docs/a.md:1: the link to ../../docs/a.md leads nowhere",
            ]
        );
    }

    #[test]
    fn only_comments_of_source_count() {
        assert!(faults("a.rs", "//! X\nlet x = \"gone/none.rs\"; // fine\n").is_empty());
        assert_eq!(faults("a.rs", "//! X\nf(); // as in gone.rs\n").len(), 1);
        assert!(
            faults("a.rs", "//! target/alea/x.toml\nlet x = \"http://x/none.rs\";\n").is_empty()
        );
    }
}
