//! The kernel's collections grow fallibly: what clippy cannot forbid, because it is a trait's method with many
//! implementations, is looked for here. `kernel/clippy.toml` has the rest.

use crate::faults::Faults;
use crate::tree::Tree;

/// What may allocate, whatever it is called on, and what does so instead.
const CALLS: [(&str, &str); 6] = [
    (".extend(", "TryGrow::try_extend, or push where there is room"),
    ("Arc::from(", "try_arc_bytes"),
    ("String::from(", "try_string"),
    ("Vec::from(", "try_copy"),
    ("Box::from(", "try_box"),
    ("Box::default(", "try_box"),
];
/// What owns memory of the heap, as a field's type begins.
const OWNERS: [&str; 6] = ["Vec<", "VecDeque<", "Box<", "String", "BTreeMap<", "BTreeSet<"];
/// Self tests, the unpacking of the initramfs at boot, and the room where allocations are made fallible.
const FREE: [&str; 3] = ["selftest", "kernel/src/fs/initramfs/", "kernel/src/mm/fallible.rs"];

pub fn check(tree: &Tree, faults: &mut Faults) {
    let kernel = tree.rust().filter(|file| file.name.starts_with("kernel/src/"));
    for file in kernel.filter(|file| !FREE.iter().any(|free| file.name.contains(free))) {
        for (number, line) in (1..).zip(file.code.lines()) {
            for (call, instead) in CALLS.iter().filter(|(call, _)| calls(line, call)) {
                let name = &file.name;
                faults.add(format!("{name}:{number}: {call} may allocate: {instead}"));
            }
        }
        for name in cloned_owners(&file.code) {
            faults.add(format!("{}: Clone of {name} would allocate", file.name));
        }
    }
}

/// The types with memory of their own that a derived `Clone` would copy.
fn cloned_owners(code: &str) -> impl Iterator<Item = &str> {
    code.split("#[derive(").skip(1).filter_map(|after| {
        let (derived, item) = after.split_once(")]")?;
        let (head, rest) = item.split_once(['{', '(', ';'])?;
        let (_, name) = head.rsplit_once("struct ").or_else(|| head.rsplit_once("enum "))?;
        let body = rest.split_once("\n}").map_or(rest, |(body, _)| body);
        let body = body.split_once("#[derive(").map_or(body, |(body, _)| body);
        let owns = OWNERS
            .iter()
            .any(|owner| body.match_indices(owner).any(|(at, _)| begins_a_type(&body[..at])));
        (derived.split(',').any(|word| word.trim() == "Clone") && owns).then_some(name.trim())
    })
}

/// Whether a type that begins here is the field's own, not that of an `Arc`, and its whole name, not the end of `ArrayVec`.
fn begins_a_type(before: &str) -> bool {
    before.ends_with("Option<")
        || !before.ends_with(|c: char| c.is_alphanumeric() || "<_&".contains(c))
}

/// Whether the call is there by its whole name: not `ArrayVec::from(`.
fn calls(line: &str, call: &str) -> bool {
    line.match_indices(call).any(|(at, _)| {
        call.starts_with('.') || !line[..at].ends_with(|c: char| c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, line: &str) -> usize {
        let mut faults = Faults::default();
        check(&Tree::of(&[(name, &format!("//! X.\n{line}\n"))]), &mut faults);
        faults.all().len()
    }

    #[test]
    fn what_may_allocate_is_found() {
        for line in ["list.extend(other);", "let a = Arc::from(bytes);", "s = String::from(x);"] {
            assert_eq!(faults("kernel/src/net/x.rs", line), 1, "{line}");
        }
    }

    #[test]
    fn a_derived_clone_that_allocates_is_found() {
        for body in ["pub a: u32,\n    pub b: Vec<u8>,", "a: Option<Box<Other>>,"] {
            let text = format!("#[derive(Clone, Debug)]\npub struct One {{\n    {body}\n}}");
            assert_eq!(faults("kernel/src/net/x.rs", &text), 1, "{body}");
        }
        for body in [
            "groups: Arc<Vec<u32>>,",
            "list: ArrayVec<u8, 4>,",
            "a: u32,\n}\nstruct Other {\n    a: Vec<u8>,",
        ] {
            let text = format!("#[derive(Clone, Debug)]\npub struct One {{\n    {body}\n}}");
            assert_eq!(faults("kernel/src/net/x.rs", &text), 0, "{body}");
        }
        let moved = "#[derive(Debug)]\nstruct One {\n    a: Vec<u8>,\n}";
        assert_eq!(faults("kernel/src/net/x.rs", moved), 0);
    }

    #[test]
    fn what_has_its_own_memory_is_free() {
        assert_eq!(faults("kernel/src/net/x.rs", "let a = ArrayVec::from(bytes);"), 0);
        assert_eq!(faults("kernel/src/net/x.rs", "list.try_extend(other)?;"), 0);
        assert_eq!(faults("kernel/src/mm/selftest/x.rs", "list.extend(other);"), 0);
        assert_eq!(faults("xtask/src/x.rs", "list.extend(other);"), 0);
    }
}
