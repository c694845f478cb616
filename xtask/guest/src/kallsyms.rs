//! The names of the kernel's functions, put into the kernel itself, where /proc/kallsyms finds them.
//!
//! The linker cannot know them, so its script leaves room for them, and this fills it once the kernel is linked.

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSection, ObjectSymbol};

/// The room: the length of the text in eight bytes, then the text.
const SECTION: &str = ".kallsyms";
const HEAD: usize = 8;

/// What ends a name that is longer: Linux's have fewer than 512 bytes, and nobody reads more of one.
const LONGEST: usize = 180;

/// What Linux calls the first byte of the code, and the first one behind it.
const ALSO: [(&str, &str); 3] =
    [("__kernel_start", "_text"), ("__kernel_start", "_stext"), ("__text_end", "_etext")];

/// Writes the names of all functions into the kernel's image.
pub fn put_into(elf: &mut [u8]) -> Result<()> {
    let (start, room, text) = {
        let file = object::File::parse(&*elf)?;
        let section = file.section_by_name(SECTION).context("the kernel has no .kallsyms")?;
        let (start, room) = section.file_range().context(".kallsyms is not in the file")?;
        (usize::try_from(start)?, usize::try_from(room)?, text(&file)?)
    };
    ensure!(
        HEAD + text.len() <= room,
        "the names of the kernel's functions take {} bytes: enlarge .kallsyms in linker.ld",
        text.len()
    );
    elf[start..start + HEAD].copy_from_slice(&(text.len() as u64).to_le_bytes());
    elf[start + HEAD..start + HEAD + text.len()].copy_from_slice(text.as_bytes());
    Ok(())
}

/// One line for each, by address, in the form of /proc/kallsyms.
fn text(file: &object::File<'_>) -> Result<String> {
    let code = file.section_by_name(".text").context("the kernel has no code")?;
    let code = code.address()..=code.address() + code.size();
    let mut lines = Vec::new();
    for symbol in file.symbols().filter(|symbol| code.contains(&symbol.address())) {
        let name = symbol.name()?;
        let is_text = symbol.address() != *code.end();
        let kind = if symbol.is_global() { 'T' } else { 't' };
        for (_, other) in ALSO.iter().filter(|(own, _)| *own == name) {
            lines.push((symbol.address(), 'T', (*other).to_owned()));
        }
        if is_text && !name.is_empty() && !name.starts_with(['.', '$']) {
            lines.push((symbol.address(), kind, readable(name)));
        }
    }
    lines.sort();
    lines.dedup();
    Ok(lines.iter().map(|(at, kind, name)| format!("{at:016x} {kind} {name}\n")).collect())
}

/// Without the hash, and without spaces, at which others take a line apart.
fn readable(name: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(name)).replace(' ', "_");
    name.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn names_are_one_word() {
        assert_eq!(readable("_ZN3foo3bar17h0123456789abcdefE"), "foo::bar");
        let name = "_ZN33_$LT$foo..A$u20$as$u20$foo..B$GT$3bar17h0123456789abcdefE";
        assert_eq!(readable(name), "<foo::A_as_foo::B>::bar");
        assert_eq!(readable("pvh_long"), "pvh_long");
    }
}
