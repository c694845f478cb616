//! The circumstances of a measurement: the host, the Linux, and all of them in a sentence.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// The circumstances of a report, for people.
pub(super) fn sentence(about: &Value) -> String {
    let text = |pointer: &str| match about.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "?".into(),
    };
    format!(
        "{}: {} boots of each kernel, interleaved, on {} CPU(s) of {} with {} under QEMU {} ({}); host {} \
         with {} CPUs; Linux {}{}.",
        text("/date"),
        text("/runs"),
        text("/machine/smp"),
        text("/machine/cpu"),
        text("/machine/memory"),
        text("/qemu"),
        text("/machine/accel"),
        text("/host/cpu"),
        text("/host/cpus"),
        text("/linux"),
        about["linux_append"].as_str().map_or(String::new(), |words| format!(" with {words}")),
    )
}

pub(super) fn host_cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    line.map_or_else(|| "unknown".into(), |(_, model)| model.to_owned())
}

/// The version text in a bzImage: its offset, less 512, stands at 0x20e.
pub(super) fn linux_version(image: &Path) -> Result<String> {
    let bytes = fs::read(image).with_context(|| image.display().to_string())?;
    let version = || {
        let field = bytes.get(0x20e..0x210)?;
        let at = usize::from(u16::from_le_bytes(field.try_into().ok()?)) + 0x200;
        let text = bytes.get(at..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    Ok(version().unwrap_or_else(|| "unknown".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_bzimage_is_read() {
        let mut image = vec![0; 0x400];
        image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        image[0x300..0x30d].copy_from_slice(b"6.12.95 (x@y)");
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &image).unwrap();
        assert_eq!(linux_version(file.path()).unwrap(), "6.12.95 (x@y)");
        fs::write(file.path(), b"short").unwrap();
        assert_eq!(linux_version(file.path()).unwrap(), "unknown");
    }
}
