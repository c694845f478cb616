//! Mount options of tmpfs: `size=`, `nr_blocks=`, `nr_inodes=`, `mode=`, `uid=`, `gid=`.
#![forbid(unsafe_code)]

use crate::base::memparse::memparse;
use crate::vfs::registry::is_common;
use abi::{Errno, Result};

/// The options that were given; `None` for those that were not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// 0 means no limit.
    pub pages: Option<u64>,
    /// 0 means no limit.
    pub inodes: Option<u64>,
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
}

impl Options {
    /// Parses a comma-separated list; EINVAL for what tmpfs does not know.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let mut options = Self::default();
        for option in text.split(|&b| b == b',').filter(|option| !is_common(option)) {
            let text = core::str::from_utf8(option).map_err(|_| Errno::EINVAL)?;
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            options.set(key, value)?;
        }
        Ok(options)
    }

    /// Those of a ramfs, which has no limits. As Linux's, it obeys `mode=` and does not look at anything else.
    pub fn of_ramfs(text: &[u8]) -> Result<Self> {
        let mut options =
            Self { pages: Some(0), inodes: Some(0), mode: Some(0o755), ..Self::default() };
        for option in text.split(|&b| b == b',') {
            if let Ok(text) = core::str::from_utf8(option)
                && let ("mode", value) = text.split_once('=').unwrap_or((text, ""))
            {
                options.set("mode", value)?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "size" => self.pages = Some(size(value)?),
            "nr_blocks" => self.pages = Some(number(value)?),
            "nr_inodes" => self.inodes = Some(number(value)?),
            "mode" => {
                let mode = u32::from_str_radix(value, 8).map_err(|_| Errno::EINVAL)?;
                self.mode = Some(mode & 0o7777);
            }
            "uid" => self.uid = Some(value.parse().map_err(|_| Errno::EINVAL)?),
            "gid" => self.gid = Some(value.parse().map_err(|_| Errno::EINVAL)?),
            "huge" | "mpol" | "inode64" | "inode32" | "noswap" => {}
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }
}

/// Bytes (or a percentage of RAM), rounded up to pages.
fn size(value: &str) -> Result<u64> {
    if let Some(percent) = value.strip_suffix('%') {
        let percent: u64 = percent.parse().map_err(|_| Errno::EINVAL)?;
        let pages = default_pages().saturating_mul(2);
        return Ok(pages.saturating_mul(percent) / 100);
    }
    Ok(number(value)?.div_ceil(PAGE))
}

fn number(value: &str) -> Result<u64> {
    memparse(value).ok_or(Errno::EINVAL)
}

pub(super) const PAGE: u64 = crate::base::PAGE_SIZE as u64;

/// Half of RAM, in pages: the limit of a tmpfs that is given none.
pub(super) fn default_pages() -> u64 {
    crate::mm::frames::stats().total / 2
}
