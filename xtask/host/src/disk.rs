//! Room on the disk: what would fail for want of it half an hour later says so at once.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use rustix::fs::statvfs;

/// Bytes in a GiB.
const GIB: f64 = (1u64 << 30) as f64;

/// An error if fewer than `bytes` are free for this user where `folder` lies; `what` needs them.
pub fn ensure_room(folder: &Path, bytes: u64, what: &str) -> Result<()> {
    let disk = statvfs(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    ensure!(
        free >= bytes,
        "{what} needs {:.1} GiB free at {}, and {:.1} are: make room there, and start again",
        bytes as f64 / GIB,
        folder.display(),
        free as f64 / GIB
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_free_and_what_to_do() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(ensure_room(here, 1, "this").is_ok());
        let error = format!("{:#}", ensure_room(here, u64::MAX, "this").unwrap_err());
        assert!(error.starts_with("this needs 17179869184.0 GiB free"), "{error}");
        assert!(error.contains("make room"), "{error}");
    }
}
