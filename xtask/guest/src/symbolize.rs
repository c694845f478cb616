//! Turns a panic's call trace into functions, files and lines, from the kernel's own DWARF; and names into addresses.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use object::{Object, ObjectSymbol};
use xtask_host::paths;

/// The first words of a panic, on Linux as on Alea.
pub const PANIC: &str = "Kernel panic - not syncing";

/// The panic in `output`, with the call trace symbolised from `kernel` as far as that goes.
pub fn panic_report(kernel: &Path, output: &str) -> Option<String> {
    let mut report = panic_text(output)?.trim_end().to_owned();
    if let Some(trace) = panic_trace(kernel, output) {
        report.push_str("\n\n");
        report.push_str(&trace);
    }
    Some(report)
}

/// The call trace of the panic in `output` alone, symbolised: for who has seen the text already.
pub fn panic_trace(kernel: &Path, output: &str) -> Option<String> {
    let addresses = trace(panic_text(output)?);
    if addresses.is_empty() {
        return None;
    }
    let lines =
        lines(kernel, &addresses).unwrap_or_else(|error| format!("  (cannot be: {error:#})\n"));
    Some(format!("The call trace, symbolised:\n{lines}"))
}

/// The last panic in `output`, from its first line to its end mark or the end of output.
fn panic_text(output: &str) -> Option<&str> {
    let end_mark = format!("---[ end {PANIC}");
    let end = output.rfind(&end_mark);
    let start = output[..end.unwrap_or(output.len())].rfind(PANIC)?;
    let start = output[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = end.map_or(output.len(), |at| {
        output[at..].find('\n').map_or(output.len(), |newline| at + newline)
    });
    Some(&output[start..end])
}

/// The addresses of lines such as ` [<ffffffff80212345>] `, in order.
fn trace(text: &str) -> Vec<u64> {
    let address = |line: &str| {
        let inside = line.split("[<").nth(1)?.split(">]").next()?;
        u64::from_str_radix(inside.trim_start_matches("0x"), 16).ok()
    };
    text.lines().filter_map(address).collect()
}

/// One line for each address and function inlined there.
pub fn lines(kernel: &Path, addresses: &[u64]) -> Result<String> {
    let fail = |error: Box<dyn std::error::Error>| anyhow!("{}: {error}", kernel.display());
    let loader = addr2line::Loader::new(kernel).map_err(fail)?;
    let mut report = String::new();
    for &address in addresses {
        // A return address belongs to the call before it.
        let mut frames = loader.find_frames(address.saturating_sub(1)).map_err(fail)?;
        let mut any = false;
        while let Some(frame) = frames.next()? {
            let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
            let name = name.as_deref().unwrap_or("?").to_owned();
            let place = frame.location.as_ref().map_or_else(String::new, |location| {
                let file = shorten(location.file.unwrap_or("?"));
                format!("  {file}:{}", location.line.unwrap_or(0))
            });
            let mark = if any { "    inlined by       " } else { "" };
            let head = if any { String::new() } else { format!("{address:#018x}  ") };
            report.push_str(&format!("  {head}{mark}{name}{place}\n"));
            any = true;
        }
        if !any {
            let name = loader.find_symbol(address).unwrap_or("?");
            let name = rustc_demangle::demangle(name);
            report.push_str(&format!("  {address:#018x}  {name:#}\n"));
        }
    }
    Ok(report)
}

/// The address of the function or static with this path, as `alea_kernel::random::user::getrandom`, or of a symbol
/// with just this name. An error if there is none (it was inlined everywhere) or more than one.
pub fn address_of(kernel: &Path, name: &str) -> Result<u64> {
    let bytes = std::fs::read(kernel).with_context(|| kernel.display().to_string())?;
    let file = object::File::parse(bytes.as_slice())?;
    let is_it = |symbol: &object::Symbol<'_, '_>| {
        let Ok(mangled) = symbol.name() else { return false };
        mangled == name || format!("{:#}", rustc_demangle::demangle(mangled)) == name
    };
    let found: Vec<u64> = file.symbols().filter(is_it).map(|symbol| symbol.address()).collect();
    match found[..] {
        [address] => Ok(address),
        [] => bail!("{} has no symbol {name}", kernel.display()),
        _ => bail!("{} has {} symbols {name}", kernel.display(), found.len()),
    }
}

/// Paths below the repository are shown relative to it.
fn shorten(file: &str) -> &str {
    let root = paths::root().to_str().unwrap_or("");
    file.strip_prefix(root).map_or(file, |rest| rest.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "booting\n\
        [    0.5] Kernel panic - not syncing: No working init found\n\
        Call trace:\n \
        [<ffffffff80212345>] \n \
        [<ffffffff80200001>] boot+0x1\n\
        Its functions and lines: addr2line -Cfipe kernel.elf 0xffffffff80212344 0xffffffff80200000\n\
        ---[ end Kernel panic - not syncing ]---\nlater\n";

    #[test]
    fn the_panic_is_cut_out_of_the_log() {
        let text = panic_text(OUTPUT).unwrap();
        assert!(text.starts_with("[    0.5] Kernel panic"), "{text}");
        assert!(text.ends_with("]---"), "{text}");
        assert_eq!(panic_text("all is well\n"), None);
        assert_eq!(panic_text("a\nKernel panic - not syncing: cut o"), {
            Some("Kernel panic - not syncing: cut o")
        });
    }

    #[test]
    fn the_trace_is_read() {
        assert_eq!(trace(OUTPUT), [0xffff_ffff_8021_2345, 0xffff_ffff_8020_0001]);
    }

    #[test]
    fn a_kernel_that_cannot_be_read_costs_only_the_names() {
        let report = panic_report(Path::new("/nonexistent.elf"), OUTPUT).unwrap();
        assert!(report.contains("No working init") && report.contains("cannot be"), "{report}");
        let trace = panic_trace(Path::new("/nonexistent.elf"), OUTPUT).unwrap();
        assert!(!trace.contains("No working init") && report.ends_with(&trace), "{trace}");
    }

    #[test]
    fn a_name_has_one_address_or_none() {
        let own = std::env::current_exe().unwrap();
        assert!(address_of(&own, "main").unwrap() > 0);
        assert!(address_of(&own, "no_such_function").is_err());
        let path = "xtask_guest::symbolize::tests::a_name_has_one_address_or_none";
        assert!(address_of(&own, path).unwrap() > 0);
    }

    #[test]
    fn this_very_function_has_a_name() {
        let address = this_very_function_has_a_name as *const () as usize as u64;
        let own = std::env::current_exe().unwrap();
        // The test binary is position independent, so its addresses mean nothing to the file:
        // only that looking one up neither fails nor panics is shown here.
        lines(&own, &[address]).unwrap();
    }
}
