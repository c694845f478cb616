//! Which file of a crate uses which: the graph that the rules on floors and circles look at.
//!
//! Owns the graph of one crate, made from its source alone, with no compiler: `crate::`, `self::` and `super::` paths,
//! in `use` and in the middle of code, and paths that begin with a child module. A name that a module imports or
//! re-exports is followed to the file that has it, so that a facade in `mod.rs` is not taken for a user of what it shows.
//! Never guesses: what cannot be followed ends at the last module that is known. No locks.

use std::collections::{BTreeMap, BTreeSet};

use super::uses::{self, Reference};
use crate::tree::{File, Tree};

/// A use of `to` by `from`, both names of files, and the first line of `from` that has it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub line: usize,
}

/// A module: its path from the root of the crate.
type Module = Vec<String>;

struct Graph<'a> {
    /// The file of each module.
    files: BTreeMap<Module, &'a str>,
    /// What each module calls names of other modules: the path from the root, and of globs the module.
    names: BTreeMap<Module, BTreeMap<String, Module>>,
    /// Files of macros that the crate exports.
    macros: BTreeMap<String, &'a str>,
}

/// All uses between the files below `root`, a crate's source folder with `main.rs` or `lib.rs` in it.
pub fn edges(tree: &Tree, root: &str) -> Vec<Edge> {
    let files: Vec<&File> = tree.rust().filter(|file| file.name.starts_with(root)).collect();
    let mut graph = Graph {
        files: files
            .iter()
            .map(|file| (module_of(&file.name[root.len()..]), &*file.name))
            .collect(),
        names: BTreeMap::new(),
        macros: BTreeMap::new(),
    };
    let mut found = Vec::new();
    for file in &files {
        let module = module_of(&file.name[root.len()..]);
        for name in uses::exported_macros(&file.code) {
            graph.macros.insert(name, &file.name);
        }
        for mut reference in uses::references(&file.code) {
            let Some(path) = graph.absolute(&module, &reference.path) else { continue };
            if let Some(name) = reference.imported_as.take() {
                graph.names.entry(module.clone()).or_default().insert(name, path.clone());
            }
            found.push((*file, module.clone(), Reference { path, ..reference }));
        }
    }
    let mut edges = BTreeMap::<(String, String), usize>::new();
    for (file, module, reference) in found {
        let to = graph.file_of(&reference);
        // What a module shows of its own children is no use of them.
        let facade = reference.public && reference.path.starts_with(&module);
        if to == file.name || facade {
            continue;
        }
        let line = edges.entry((file.name.clone(), to.to_owned())).or_insert(reference.line);
        *line = reference.line.min(*line);
    }
    edges.into_iter().map(|((from, to), line)| Edge { from, to, line }).collect()
}

/// The module of a file, named from the source folder on.
fn module_of(name: &str) -> Module {
    let mut path: Module = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| last == "mod") || ["main", "lib"].contains(&path[0].as_str())
    {
        path.pop();
    }
    path
}

impl Graph<'_> {
    /// A path as it stands in `module`, from the root on; nothing for one that leaves the crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let first = path.first()?;
        let mut base = module.clone();
        let mut rest = path;
        match first.as_str() {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" | "super" => {
                while let Some(word) =
                    rest.first().filter(|word| ["self", "super"].contains(&word.as_str()))
                {
                    if word == "super" {
                        base.pop()?;
                    }
                    rest = &rest[1..];
                }
            }
            child => {
                base.push(child.to_owned());
                if !self.files.contains_key(&base) {
                    return None;
                }
                rest = &path[1..];
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// The file that has what a path from the root names.
    fn file_of(&self, reference: &Reference) -> &str {
        // An exported macro stands at the root, wherever its file is.
        if let [name] = &reference.path[..]
            && let Some(file) = self.macros.get(name)
        {
            return file;
        }
        let mut path = reference.path.clone();
        let mut seen = BTreeSet::new();
        loop {
            let mut known = path.len();
            while !self.files.contains_key(&path[..known]) && known > 0 {
                known -= 1;
            }
            let target = path.get(known).and_then(|name| self.names.get(&path[..known])?.get(name));
            match target {
                // The name of a module that it imports from itself is no way further.
                Some(target) if seen.insert(path.clone()) && target[..] != path[..known] => {
                    let mut next = target.clone();
                    next.extend_from_slice(&path[known + 1..]);
                    path = next;
                }
                _ => return self.files.get(&path[..known]).copied().unwrap_or_default(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let edge = |edge: Edge| format!("{}:{} {}", edge.from, edge.line, edge.to);
        edges(&tree, "k/").into_iter().map(edge).collect()
    }

    #[test]
    fn paths_lead_to_files() {
        let found = graph(&[
            ("k/main.rs", "mod a; mod b;\nfn f() { a::go() }"),
            ("k/a/mod.rs", "mod x; mod y;\npub use x::X;"),
            ("k/a/x.rs", "use super::y::{self, Y};\nuse crate::b;\npub struct X;"),
            ("k/a/y.rs", "pub struct Y;\nfn f() { crate::b::run(); std::mem::swap() }"),
            ("k/b.rs", "use crate::a::X;\nfn run() { crate::a::y::Y }"),
        ]);
        assert_eq!(
            found,
            [
                "k/a/x.rs:1 k/a/y.rs",
                "k/a/x.rs:2 k/b.rs",
                "k/a/y.rs:2 k/b.rs",
                "k/b.rs:1 k/a/x.rs",
                "k/b.rs:2 k/a/y.rs",
                "k/main.rs:2 k/a/mod.rs",
            ]
        );
    }

    #[test]
    fn names_that_a_parent_imports_are_followed() {
        let found = graph(&[
            ("k/main.rs", "mod a; mod b;"),
            ("k/a/mod.rs", "mod x;\nuse crate::b::B;"),
            ("k/a/x.rs", "use super::B;"),
            ("k/b.rs", "pub struct B;"),
        ]);
        assert_eq!(found, ["k/a/mod.rs:2 k/b.rs", "k/a/x.rs:1 k/b.rs"]);
    }

    #[test]
    fn exported_macros_are_their_files() {
        let found = graph(&[
            ("k/main.rs", "mod a; mod b;"),
            ("k/a.rs", "#[macro_export]\nmacro_rules! per { () => {} }"),
            ("k/b.rs", "crate::per! {}"),
            ("k/c.rs", "use crate::per;"),
        ]);
        assert_eq!(found, ["k/b.rs:1 k/a.rs", "k/c.rs:1 k/a.rs"]);
    }
}
