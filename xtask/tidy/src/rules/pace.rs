//! Loops over numbers that a user may count are paced: docs/decisions/0001.
//!
//! Looks at `for` loops over ranges, and at steps of a page, in the rooms that system calls reach with lengths of the
//! user's. Such a loop says `.paced()` or `.killable()`, or its end is a constant, the lesser of a value and a constant
//! (`0..count.min(MOST)`), or the number of CPUs. What is bounded otherwise is excepted, with its line as the key. Loops without a range (`while`, over lists) are beyond this rule.

use crate::faults::Faults;
use crate::tree::Tree;

/// Where lengths of the user's choice come to.
const ROOMS: [&str; 7] = [
    "kernel/src/mm/",
    "kernel/src/fs/",
    "kernel/src/vfs/",
    "kernel/src/net/",
    "kernel/src/process/",
    "kernel/src/drivers/",
    "kernel/src/syscall/",
];

pub fn check(tree: &Tree, faults: &mut Faults) {
    for file in tree.rust() {
        let name = &file.name;
        let is_room = ROOMS.iter().any(|room| name.starts_with(room));
        if !is_room || name.contains("selftest") {
            continue;
        }
        for (number, line) in (1..).zip(file.code.lines()) {
            if is_unpaced(line) {
                let (line, what) = (line.trim(), "a loop over numbers that is not paced");
                faults.of("paced", format!("{name}: {line}"), format!("{name}:{number}: {what}"));
            }
        }
    }
}

fn is_unpaced(line: &str) -> bool {
    if line.contains(".paced()") || line.contains(".killable()") {
        return false;
    }
    let line = line.trim();
    let looped = line.strip_prefix("for ").and_then(|rest| rest.split_once(" in "));
    line.contains("step_by(PAGE_SIZE") || looped.is_some_and(|(_, over)| ends_by_value(over))
}

/// Whether `over` is a range (not the index of a slice) that ends somewhere, but not where the code bounds it.
fn ends_by_value(over: &str) -> bool {
    let mut depth = 0i32;
    for (at, c) in over.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            '.' if depth == 0 && over[at..].starts_with("..") => {
                let end = over[at + 2..].trim_start_matches('=');
                return !is_bounded(end);
            }
            _ => {}
        }
    }
    false
}

/// Whether what follows a range's dots begins with a constant, or is no more than one or than there are CPUs.
fn is_bounded(end: &str) -> bool {
    let mut depth = 0i32;
    let over = end.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0 || c == '{'
    });
    let end = end[..over.unwrap_or(end.len())].trim();
    let least = end.strip_suffix(')').and_then(|end| end.rsplit_once(".min("));
    is_constant(end)
        || end.ends_with("cpus_online()")
        || least.is_some_and(|(_, most)| !most.is_empty() && is_constant(most))
}

/// Whether the end of a range is a number or the name of a constant; a range without an end is bounded by what it is
/// zipped with.
fn is_constant(end: &str) -> bool {
    let path: String =
        end.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
    let name = path.rsplit("::").next().unwrap_or_default();
    name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(line: &str) -> usize {
        let mut faults = Faults::default();
        let text = format!("//! X.\n{line}\n");
        check(&Tree::of(&[("kernel/src/mm/x.rs", &text)]), &mut faults);
        faults.all().len()
    }

    #[test]
    fn numbers_that_users_count_are_paced() {
        assert_eq!(faults("for index in first..last {"), 1);
        assert_eq!(faults("for n in (0..=count).rev() {"), 1);
        assert_eq!(faults("for addr in (low..high).step_by(PAGE_SIZE) {"), 1);
        assert_eq!(faults("let n = range.step_by(PAGE_SIZE).count();"), 1);
        assert_eq!(faults("for addr in (low..high).step_by(PAGE_SIZE).killable() {"), 0);
        assert_eq!(faults("for index in (first..last).paced() {"), 0);
        assert_eq!(faults("for n in 0..count.min(other) {"), 1);
        assert_eq!(faults("for (n, x) in (0..count).zip(all.min(8)) {"), 1);
        assert_eq!(faults("for n in 0..count.min() {"), 1);
    }

    #[test]
    fn constants_and_slices_are_bounded() {
        for line in [
            "for n in 0..8 {",
            "for level in (1..LEVELS).rev() {",
            "for n in 0..table::LEN {",
            "for entry in &entries[..used] {",
            "for (n, frame) in (0..).zip(frames) {",
            "for frame in self.frames.drain(..) {",
            "for step in 0..steps.min(1000) {",
            "for n in (0..count.min(MOST)).rev() {",
            "for cpu in (0..percpu::cpus_online()).filter(|&cpu| cpu != here) {",
        ] {
            assert_eq!(faults(line), 0, "{line}");
        }
    }

    #[test]
    fn other_rooms_are_free() {
        let mut faults = Faults::default();
        let text = "//! X.\nfor n in 0..count {\n";
        let files = [("kernel/src/arch/x.rs", text), ("kernel/src/mm/selftest/x.rs", text)];
        check(&Tree::of(&files), &mut faults);
        assert!(faults.all().is_empty());
    }
}
