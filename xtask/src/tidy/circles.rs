//! Circles: within a folder, no files or folders that use each other in a ring, but for those the data file allows.
//!
//! A file and the folder of its name are one room, and so is `mod.rs`: it may show what its children have, but code in it
//! that children use, and that uses them, is a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::data::Rules;
use super::faults::Faults;
use super::modules::Edge;

/// Users and used, by name.
type Links<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

pub fn check(rules: &Rules, edges: &[Edge], faults: &mut Faults) {
    let mut folders = BTreeMap::<&str, Links>::new();
    for Edge { from, to, .. } in edges {
        if let Some((folder, a, b)) = rooms(from, to) {
            folders.entry(folder).or_default().entry(a).or_default().insert(b);
        }
    }
    let mut inside = BTreeSet::new();
    for (folder, links) in folders {
        for circle in circles(&links) {
            let members: Vec<String> =
                circle.iter().map(|room| format!("{folder}{room}")).collect();
            let allowed =
                rules.circles.iter().any(|list| members.iter().all(|one| list.contains(one)));
            inside.extend(members.iter().cloned());
            for member in members.into_iter().filter(|_| !allowed) {
                let what =
                    format!("{member}: in a circle of {}: {}", circle.len(), circle.join(" "));
                faults.of("circle", member, what);
            }
        }
    }
    for member in rules.circles.iter().flatten().filter(|member| !inside.contains(*member)) {
        faults.add(format!("{member}: allowed to be in a circle, and in none"));
    }
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
        check(&Rules::parse(rules).unwrap(), &edges, &mut faults);
        faults.all()
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
        assert_eq!(found[0], "k/fs/a: in a circle of 3: a b c (circle)");
        assert!(faults("circles = [[\"k/fs/a\", \"k/fs/b\", \"k/fs/c\"]]", &edges).is_empty());
        assert_eq!(faults("circles = [[\"k/fs/a\", \"k/fs/b\"]]", &edges).len(), 3);
    }

    #[test]
    fn floors_without_a_ring_are_none() {
        assert!(
            faults("", &[("k/a.rs", "k/b.rs"), ("k/b.rs", "k/c.rs"), ("k/a.rs", "k/c.rs")])
                .is_empty()
        );
        assert_eq!(faults("circles = [[\"k/a\"]]", &[("k/a.rs", "k/b.rs")]).len(), 1);
    }

    #[test]
    fn a_door_with_code_in_it_is_in_the_ring() {
        let edges = [("k/pipe/mod.rs", "k/pipe/ring.rs"), ("k/pipe/ring.rs", "k/pipe/mod.rs")];
        assert_eq!(faults("", &edges).len(), 2);
    }
}
