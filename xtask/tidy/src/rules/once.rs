//! Numbers that stand in one place: the size of a page, the end of user space and others that were once written in
//! several files under several names. Data is the table below.

use crate::faults::Faults;
use crate::tree::Tree;

/// How a number may look, the file that names it, and under which name the others have it. The pure crates keep
/// their own: they know no kernel.
const ONCE: [(&[&str], &str, &str); 4] = [
    (&["0x541b"], "kernel/abi/src/tty.rs", "abi::tty::FIONREAD"),
    (&["0x7fff_f000"], "kernel/random/src/request.rs", "mm::iov::MAX_RW_COUNT"),
    (&["1 << 47", "0x7fff_ffff_f000"], "kernel/src/base/page.rs", "base::page::USER_END"),
    (
        &["/ 4096", "* 4096", "% 4096", "div_ceil(4096)"],
        "kernel/src/base/page.rs",
        "base::page::PAGE_SIZE",
    ),
];

/// Where page tables are made by hand, in assembly and in fixed layouts.
const MACHINE: [&str; 3] = ["kernel/src/arch/", "kernel/src/base/", "kernel/src/machine/"];

pub fn check(tree: &Tree, faults: &mut Faults) {
    for file in tree.rust().filter(|file| file.name.starts_with("kernel/src/")) {
        for (number, line) in (1..).zip(file.code.lines()) {
            for (forms, home, name) in ONCE {
                let again = forms.iter().any(|form| line.contains(form)) && file.name != home;
                if again && !(name.ends_with("PAGE_SIZE") && is_exempt(&file.name)) {
                    faults.add(format!("{}:{number}: write {name}", file.name));
                }
            }
            let page = "kernel/src/base/page.rs";
            if names_a_page(line) && file.name != page {
                faults.add(format!("{}:{number}: write base::page::PAGE_SIZE", file.name));
            }
        }
    }
}

/// Self tests count in numbers.
fn is_exempt(name: &str) -> bool {
    MACHINE.iter().any(|place| name.starts_with(place)) || name.contains("/selftest")
}

/// `const ...PAGE...: ... = 4096;`
fn names_a_page(line: &str) -> bool {
    let Some((name, value)) = line.split_once("const ").and_then(|(_, rest)| rest.split_once('='))
    else {
        return false;
    };
    name.contains("PAGE") && matches!(value.trim(), "4096;" | "0x1000;" | "1 << 12;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, line: &str) -> Vec<String> {
        let mut faults = Faults::default();
        check(&Tree::of(&[(name, &format!("//! X.\n{line}\n"))]), &mut faults);
        faults.all()
    }

    #[test]
    fn the_size_of_a_page_is_written_once() {
        let line = "pub const PAGE_SIZE: usize = 4096;";
        assert!(faults("kernel/src/base/page.rs", line).is_empty());
        assert_eq!(faults("kernel/src/fs/x.rs", line).len(), 1);
        assert_eq!(faults("kernel/src/fs/x.rs", "const PAGE: u64 = 4096;").len(), 1);
        assert_eq!(faults("kernel/src/fs/x.rs", "let pages = len / 4096;").len(), 1);
        assert!(faults("kernel/src/net/x.rs", "const MAX_BACKLOG: usize = 4096;").is_empty());
    }

    #[test]
    fn what_has_a_name_elsewhere_is_not_written_again() {
        assert_eq!(faults("kernel/src/net/x.rs", "const FIONREAD: u32 = 0x541b;").len(), 1);
        assert_eq!(faults("kernel/src/mm/x.rs", "let most = 0x7fff_f000;").len(), 1);
        assert_eq!(faults("kernel/src/mm/x.rs", "if addr < 1 << 47 {}").len(), 1);
        assert!(faults("kernel/abi/src/tty.rs", "pub const FIONREAD: u32 = 0x541b;").is_empty());
    }
}
