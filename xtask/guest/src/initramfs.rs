//! The guest's files, as an initramfs: BusyBox with all its applets, and the programs and scripts
//! of `userland/`. Same inputs, same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use alea_cpio::Writer;
use anyhow::{Context, Result};

use xtask_host::{paths, process};

/// A file tree in memory. Later entries replace earlier ones of the same name.
#[derive(Clone, Default)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone)]
enum Entry {
    Dir(u32),
    File(u32, Vec<u8>),
    Symlink(String),
    CharDevice(u32, (u32, u32)),
}

impl Tree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// The folders and device nodes that every initramfs of ours begins with.
    pub fn skeleton() -> Self {
        let mut tree = Self::new();
        for dir in ["dev/pts", "dev/shm", "proc", "sys", "run", "root", "mnt", "usr/lib", "var/log"]
        {
            tree.dir(dir, 0o755);
        }
        tree.dir("tmp", 0o1777);
        for (name, mode, device) in DEVICES {
            tree.char_device(&format!("dev/{name}"), mode, device);
        }
        for (name, target) in [("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0")] {
            tree.symlink(&format!("dev/{name}"), target);
        }
        tree.symlink("dev/stdout", "/proc/self/fd/1").symlink("dev/stderr", "/proc/self/fd/2");
        tree
    }

    /// The skeleton, and BusyBox with a link for each applet at the place upstream gives it.
    pub fn with_busybox() -> Result<Self> {
        let mut tree = Self::skeleton();
        tree.host_file("bin/busybox", 0o755, &paths::busybox())?;
        let applets = process::output(Command::new(paths::busybox()).arg("--list-full"))
            .context("the guest's BusyBox does not run here")?;
        for applet in applets.lines().filter(|applet| *applet != "bin/busybox") {
            tree.symlink(applet, "/bin/busybox");
        }
        Ok(tree)
    }

    pub fn dir(&mut self, path: &str, mode: u32) -> &mut Self {
        self.insert(path, Entry::Dir(mode))
    }

    pub fn file(&mut self, path: &str, mode: u32, data: impl Into<Vec<u8>>) -> &mut Self {
        self.insert(path, Entry::File(mode, data.into()))
    }

    pub fn symlink(&mut self, path: &str, target: &str) -> &mut Self {
        self.insert(path, Entry::Symlink(target.to_owned()))
    }

    /// Adds a character device with its major and minor number.
    pub fn char_device(&mut self, path: &str, mode: u32, device: (u32, u32)) -> &mut Self {
        self.insert(path, Entry::CharDevice(mode, device))
    }

    /// Adds a copy of a file of this machine.
    pub fn host_file(&mut self, path: &str, mode: u32, from: &Path) -> Result<&mut Self> {
        let data = fs::read(from).with_context(|| format!("cannot read {}", paths::shown(from)))?;
        Ok(self.file(path, mode, data))
    }

    /// Adds all that lies below `from`, with its links and execute bits, at the tree's root.
    pub fn overlay(&mut self, from: &Path) -> Result<&mut Self> {
        self.overlay_at(from, "")
    }

    /// The same at `prefix`, which is empty or ends in a slash.
    pub fn overlay_at(&mut self, from: &Path, prefix: &str) -> Result<&mut Self> {
        let entries =
            fs::read_dir(from).with_context(|| format!("cannot read {}", paths::shown(from)))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_str().with_context(|| format!("{name:?} is not UTF-8"))?;
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                let target = fs::read_link(entry.path())?;
                self.symlink(&path, target.to_str().context("a link's target is not UTF-8")?);
            } else if kind.is_dir() {
                self.dir(&path, 0o755);
                self.overlay_at(&entry.path(), &format!("{path}/"))?;
            } else {
                // Only the execute bit counts: the rest depends on the umask of whoever cloned.
                let executable = entry.metadata()?.permissions().mode() & 0o111 != 0;
                let mode = if executable { 0o755 } else { 0o644 };
                self.host_file(&path, mode, &entry.path())?;
            }
        }
        Ok(self)
    }

    /// The tree as a newc archive.
    pub fn archive(&self) -> Vec<u8> {
        let mut archive = Writer::new();
        // Sorted by name, a folder comes before what is in it.
        for (path, entry) in &self.entries {
            match entry {
                Entry::Dir(mode) => archive.dir(path, *mode),
                Entry::File(mode, data) => archive.file(path, *mode, data),
                Entry::Symlink(target) => archive.symlink(path, target),
                Entry::CharDevice(mode, device) => archive.char_device(path, *mode, *device),
            };
        }
        archive.finish()
    }

    fn insert(&mut self, path: &str, entry: Entry) -> &mut Self {
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        for parent in parents {
            self.entries.entry(parent.to_owned()).or_insert(Entry::Dir(0o755));
        }
        self.entries.insert(path.to_owned(), entry);
        self
    }
}

/// Name, permissions, major and minor number, as in Linux's devices.txt.
const DEVICES: [(&str, u32, (u32, u32)); 9] = [
    ("null", 0o666, (1, 3)),
    ("zero", 0o666, (1, 5)),
    ("full", 0o666, (1, 7)),
    ("random", 0o666, (1, 8)),
    ("urandom", 0o666, (1, 9)),
    ("kmsg", 0o644, (1, 11)),
    ("ttyS0", 0o620, (4, 64)),
    ("tty", 0o666, (5, 0)),
    ("console", 0o600, (5, 1)),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn names(archive: &[u8]) -> Vec<String> {
        let mut names = Vec::new();
        let mut at = 0;
        loop {
            let field = |n: usize| {
                let hex = &archive[at + 6 + n * 8..at + 14 + n * 8];
                usize::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap()
            };
            let (size, name) = (field(6), field(11));
            let text = std::str::from_utf8(&archive[at + 110..at + 109 + name]).unwrap();
            if text == "TRAILER!!!" {
                return names;
            }
            names.push(text.to_owned());
            at = ((at + 110 + name).next_multiple_of(4) + size).next_multiple_of(4);
        }
    }

    #[test]
    fn parents_come_first_and_are_made() {
        let mut tree = Tree::new();
        tree.file("a/b/c", 0o644, "x").symlink("a-b", "a/b").dir("a/b", 0o700);
        assert_eq!(names(&tree.archive()), ["a", "a-b", "a/b", "a/b/c"]);
    }

    #[test]
    fn an_overlay_keeps_links_and_execute_bits_and_replaces() {
        let host = tempfile::tempdir().unwrap();
        fs::create_dir(host.path().join("etc")).unwrap();
        fs::write(host.path().join("etc/motd"), "new").unwrap();
        fs::write(host.path().join("init"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(host.path().join("init"), fs::Permissions::from_mode(0o770)).unwrap();
        std::os::unix::fs::symlink("init", host.path().join("linuxrc")).unwrap();
        let mut tree = Tree::new();
        tree.file("etc/motd", 0o644, "old").overlay(host.path()).unwrap();
        assert!(matches!(&tree.entries["etc/motd"], Entry::File(0o644, data) if data == b"new"));
        assert!(matches!(&tree.entries["init"], Entry::File(0o755, _)));
        assert!(matches!(&tree.entries["linuxrc"], Entry::Symlink(target) if target == "init"));
        assert_eq!(tree.archive(), tree.clone().archive(), "same inputs, same bytes");
    }
}
