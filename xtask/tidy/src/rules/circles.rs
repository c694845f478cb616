//! Circles: within a folder, no files or folders that use each other in a ring, but for those that the data file names,
//! each with the reason. The table of them in docs/architecture.md is made from it.
//!
//! A file and the folder of its name are one room, and so is `mod.rs`: it may show what its children have, but code in it
//! that children use, and that uses them, is a circle.

use std::collections::{BTreeMap, BTreeSet};

use crate::data::{Circle, Rules};
use crate::faults::Faults;
use crate::graph::Edge;
use crate::marked;
use crate::tree::Tree;

const BEGIN: &str =
    "<!-- circles: `cargo xtask tidy --write` makes the table from xtask/tidy.toml -->\n";
const END: &str = "<!-- end of circles -->\n";

/// Users and used, by name.
type Links<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The uses by which a room leads to others, by their names.
type Ties<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a Edge>>;

pub fn check(tree: &Tree, rules: &Rules, edges: &[Edge], faults: &mut Faults) {
    marked::check(tree, BEGIN, END, &table(rules), faults);
    find(rules, edges, faults);
}

/// The page with the table made anew; nothing if it has no marks.
pub fn with_table(page: &str, rules: &Rules) -> Option<String> {
    marked::replace(page, BEGIN, END, &table(rules))
}

fn table(rules: &Rules) -> String {
    let mut table = String::from("\n| below | circle | why |\n|---|---|---|\n");
    for Circle { below, rooms, why } in &rules.circle {
        let rooms: Vec<String> = rooms.iter().map(|room| format!("`{room}`")).collect();
        table.push_str(&format!("| `{below}` | {} | {why} |\n", rooms.join(", ")));
    }
    table + "\n"
}

fn find(rules: &Rules, edges: &[Edge], faults: &mut Faults) {
    let mut folders = BTreeMap::<&str, (Links, Ties)>::new();
    for edge in edges {
        if let Some((folder, a, b)) = rooms(&edge.from, &edge.to) {
            let (links, ties) = folders.entry(folder).or_default();
            links.entry(a).or_default().insert(b);
            ties.entry((a, b)).or_default().push(edge);
        }
    }
    let mut meant = BTreeSet::new();
    for (folder, (links, ties)) in folders {
        for ring in circles(&links) {
            let is_it = |circle: &Circle| circle.below == folder && circle.rooms.iter().eq(&ring);
            if let Some(at) = rules.circle.iter().position(is_it) {
                meant.insert(at);
                continue;
            }
            for room in &ring {
                let of = format!("{}: {}", ring.len(), ring.join(" "));
                let uses = uses(room, &ring, &ties);
                let what = format!("{folder}{room}: in a circle of {of}{uses}");
                faults.of("circle", format!("{folder}{room}"), what);
            }
        }
    }
    for (_, Circle { below, rooms, .. }) in
        (0..).zip(&rules.circle).filter(|(at, _)| !meant.contains(at))
    {
        let rooms: Vec<&str> = rooms.iter().map(String::as_str).collect();
        faults.add(format!("{below}: there is no circle of just {}", rooms.join(" ")));
    }
}

/// The lines by which a room uses others of its ring.
fn uses(room: &str, ring: &[&str], ties: &Ties) -> String {
    let edges = ring.iter().filter_map(|other| ties.get(&(room, *other))).flatten();
    edges.map(|edge| format!("\n    {}:{} uses {}", edge.from, edge.line, edge.to)).collect()
}

/// The innermost folder that has both files, and their rooms in it.
fn rooms<'a>(from: &'a str, to: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
    let same = from.bytes().zip(to.bytes()).take_while(|(a, b)| a == b).count();
    let folder = from[..same].rfind('/').map_or(0, |at| at + 1);
    let room = |name: &'a str| {
        let name = &name[folder..];
        name.split('/').next().unwrap_or(name).trim_end_matches(".rs")
    };
    let (a, b) = (room(from), room(to));
    (a != b).then_some((&from[..folder], a, b))
}

/// The rings: largest sets of more than one room in which each leads to each.
fn circles<'a>(links: &Links<'a>) -> Vec<Vec<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        links.keys().map(|&room| (room, reachable(links, room))).collect();
    let mut done = BTreeSet::new();
    let mut found = Vec::new();
    for (&room, others) in &reach {
        if !others.contains(room) || done.contains(room) {
            continue;
        }
        let ring: Vec<&str> = others
            .iter()
            .copied()
            .filter(|other| reach.get(other).is_some_and(|back| back.contains(room)))
            .collect();
        done.extend(ring.iter().copied());
        found.push(ring);
    }
    found
}

fn reachable<'a>(links: &Links<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = links.get(from).into_iter().flatten().copied().collect();
    while let Some(room) = open.pop() {
        if seen.insert(room) {
            open.extend(links.get(room).into_iter().flatten());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(rules: &str, edges: &[(&str, &str)]) -> Vec<String> {
        let edge =
            |(from, to): &(&str, &str)| Edge { from: (*from).into(), to: (*to).into(), line: 1 };
        let edges: Vec<Edge> = edges.iter().map(edge).collect();
        let mut faults = Faults::default();
        find(&Rules::parse(rules).unwrap(), &edges, &mut faults);
        faults.all()
    }

    fn meant(rooms: &str) -> String {
        let rooms: Vec<&str> = rooms.split(' ').collect();
        format!("[[circle]]\nbelow = \"k/fs/\"\nrooms = {rooms:?}\nwhy = \"\"\n")
    }

    #[test]
    fn rings_are_found_in_their_folder() {
        let edges = [
            ("k/fs/a.rs", "k/fs/b.rs"),
            ("k/fs/b.rs", "k/fs/c/x.rs"),
            ("k/fs/c/y.rs", "k/fs/a.rs"),
            ("k/fs/d.rs", "k/fs/a.rs"),
            ("k/mm/a.rs", "k/fs/a.rs"),
        ];
        let found = faults("", &edges);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(
            found[0],
            "k/fs/a: in a circle of 3: a b c\n    k/fs/a.rs:1 uses k/fs/b.rs (circle)"
        );
        assert!(faults(&meant("a b c"), &edges).is_empty());
        assert_eq!(faults(&meant("a b"), &edges).len(), 4, "not just those");
        assert_eq!(faults(&meant("a b c d"), &edges).len(), 4, "not all of those");
    }

    #[test]
    fn floors_without_a_ring_are_none() {
        assert!(
            faults("", &[("k/a.rs", "k/b.rs"), ("k/b.rs", "k/c.rs"), ("k/a.rs", "k/c.rs")])
                .is_empty()
        );
        assert_eq!(faults(&meant("a b"), &[("k/fs/a.rs", "k/fs/b.rs")]).len(), 1);
    }

    #[test]
    fn a_door_with_code_in_it_is_in_the_ring() {
        let edges = [("k/pipe/mod.rs", "k/pipe/ring.rs"), ("k/pipe/ring.rs", "k/pipe/mod.rs")];
        assert_eq!(faults("", &edges).len(), 2);
    }
}
