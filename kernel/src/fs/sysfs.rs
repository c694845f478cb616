//! sysfs: the few directories and files that programs look for. Made of the same fixed entries as proc.
#![forbid(unsafe_code)]

use super::dentry::Dentry;
use super::filesystem::{Super, anonymous_dev};
use super::inode::{Inode, InodeAttr, Owner};
use super::procfs::{ProcFile, fixed};
use super::types::{DevId, Timestamp};
use crate::arch::percpu;
use crate::sync::Once;
use abi::Result;
use abi::fs::S_IFDIR;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

const MAGIC: i64 = 0x6265_6572;

static SYSFS: Once<Arc<Super>> = Once::new();

struct Root {
    attr: InodeAttr,
}

impl Inode for Root {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A list of CPUs, like `0-3`.
struct CpuList;

impl ProcFile for CpuList {
    fn read(&self) -> Result<Vec<u8>> {
        let last = percpu::cpus_online().saturating_sub(1);
        let text =
            if last == 0 { alloc::string::String::from("0\n") } else { format!("0-{last}\n") };
        Ok(text.into_bytes())
    }
}

/// The one instance.
pub fn super_block() -> Result<Arc<Super>> {
    if let Some(sb) = SYSFS.get() {
        return Ok(sb.clone());
    }
    let dev = anonymous_dev()?;
    let (owner, mode) = (Owner::default(), S_IFDIR | 0o555);
    let attr = InodeAttr::new(dev, 1, mode, owner, DevId::NONE, Timestamp::now());
    let root = Dentry::new_root(Arc::new(Root { attr }), b"/");
    let fs = Arc::new(fixed::KernelFs { name: "sysfs", magic: MAGIC });
    Ok(SYSFS.call_once(|| Super::new(fs, root, dev, true)).clone())
}

/// Adds a file, `path` below /sys.
pub fn register_file(path: &str, mode: u32, file: Arc<dyn ProcFile>) -> Result<()> {
    fixed::add_file(&super_block()?, path, mode, file)
}

/// Adds a symbolic link, `path` below /sys.
pub fn register_link(path: &str, target: &str) -> Result<()> {
    fixed::add_link(&super_block()?, path, target)
}

/// Makes sysfs mountable and lays its directories.
pub fn init() -> Result<()> {
    super::registry::register("sysfs", |_| super_block());
    let sb = super_block()?;
    for path in [
        "block",
        "bus",
        "class/tty",
        "class/mem",
        "class/net",
        "class/block",
        "dev/block",
        "dev/char",
        "devices/virtual",
        "firmware",
        "fs",
        "kernel/mm",
        "module",
        "power",
    ] {
        fixed::directory(&sb, path)?;
    }
    for file in ["online", "possible", "present"] {
        register_file(&format!("devices/system/cpu/{file}"), 0o444, Arc::new(CpuList))?;
    }
    for cpu in 0..percpu::cpus_online() {
        fixed::directory(&sb, &format!("devices/system/cpu/cpu{cpu}/topology"))?;
    }
    Ok(())
}
