//! [`Path`]: a place in the mount tree, and how to print it.
#![forbid(unsafe_code)]

use super::dentry::Dentry;
use super::inode::Inode;
use super::mount::Mount;
use crate::mm::fallible::{TryGrow, TrySlice, TryVec};
use crate::sync::cond_resched;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A dentry as seen through a mount.
#[derive(Clone)]
pub struct Path {
    pub mount: Arc<Mount>,
    pub dentry: Arc<Dentry>,
}

impl Path {
    /// The root of a mount.
    pub fn root_of(mount: Arc<Mount>) -> Self {
        let dentry = mount.root().clone();
        Self { mount, dentry }
    }

    /// The object there.
    #[inline]
    pub fn inode(&self) -> &Arc<dyn Inode> {
        self.dentry.inode()
    }

    /// Whether both name the same dentry through the same mount.
    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.dentry, &other.dentry) && Arc::ptr_eq(&self.mount, &other.mount)
    }

    /// The path from `root`, as /proc shows it. A place that was unlinked ends in ` (deleted)`, and one that
    /// has no place in the tree at all (a pipe) is its own name.
    pub fn to_absolute(&self, root: &Path) -> Result<Vec<u8>> {
        let mut rendered = self.render(root)?;
        if self.dentry.is_unlinked() && !rendered.nameless {
            rendered.text.try_extend_from_slice(b" (deleted)")?;
        }
        Ok(rendered.text)
    }

    /// The path from `root` for `getcwd`: ENOENT once unlinked, with `(unreachable)` in front if it does not
    /// lie below `root`.
    pub fn to_cwd(&self, root: &Path) -> Result<Vec<u8>> {
        if self.dentry.is_unlinked() {
            return Err(Errno::ENOENT);
        }
        let mut rendered = self.render(root)?;
        if !rendered.reached {
            let mut text = b"(unreachable)".try_owned()?;
            text.try_extend_from_slice(&rendered.text)?;
            rendered.text = text;
        }
        Ok(rendered.text)
    }

    /// Whether this place is below (or is) `root`.
    pub fn is_below(&self, root: &Path) -> bool {
        self.render(root).is_ok_and(|r| r.reached)
    }

    fn render(&self, root: &Path) -> Result<Rendered> {
        // Collected from the end, each component reversed, then turned around once.
        let mut text: Vec<u8> = Vec::new();
        text.try_reserve(64).map_err(|_| Errno::ENOMEM)?;
        let mut at = self.clone();
        let mut reached = false;
        let mut nameless = false;
        loop {
            cond_resched();
            if at.same(root) {
                reached = true;
                break;
            }
            if Arc::ptr_eq(&at.dentry, at.mount.root()) {
                match at.mount.place() {
                    Some(place) => {
                        at = place;
                        continue;
                    }
                    None => break,
                }
            }
            let (parent, name) = at.dentry.parent_and_name();
            text.try_reserve(name.len() + 1).map_err(|_| Errno::ENOMEM)?;
            text.try_extend(name.iter().rev().copied())?;
            match parent {
                Some(parent) => at.dentry = parent,
                None => {
                    nameless = true;
                    break;
                }
            }
            text.try_push(b'/')?;
        }
        if text.is_empty() {
            text.try_push(b'/')?;
        }
        text.reverse();
        Ok(Rendered { text, reached, nameless })
    }
}

struct Rendered {
    text: Vec<u8>,
    reached: bool,
    nameless: bool,
}
