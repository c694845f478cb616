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
    }
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
    fn what_has_its_own_memory_is_free() {
        assert_eq!(faults("kernel/src/net/x.rs", "let a = ArrayVec::from(bytes);"), 0);
        assert_eq!(faults("kernel/src/net/x.rs", "list.try_extend(other)?;"), 0);
        assert_eq!(faults("kernel/src/mm/selftest/x.rs", "list.extend(other);"), 0);
        assert_eq!(faults("xtask/src/x.rs", "list.extend(other);"), 0);
    }
}
