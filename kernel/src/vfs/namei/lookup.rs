//! Path walk: from a name to a [`Path`].
//!
//! [`Walker`] goes component by component without recursion, and allocates nothing itself for a path without symbolic
//! links (a dynamic directory makes the dentries that are looked up in it). It holds no lock between components; each
//! step takes the directory's table lock for one lookup, and the mount tree's where it crosses a mount point. The order
//! of checks is Linux's, because programs see it in the errors.

use super::{perm, protect};
use crate::mm::fallible::TryGrow;
use crate::sync::cond_resched;
use crate::vfs::context::context::FsContext;
use crate::vfs::context::fdtable::{Fd, FdTable};
use crate::vfs::cred::Cred;
use crate::vfs::object::dentry::Dentry;
use crate::vfs::object::inode::LinkText;
use crate::vfs::object::mount::{self, MountFlags};
use crate::vfs::object::path::Path;
use crate::vfs::object::types::FileType;
use abi::fs::AT_FDCWD;
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bitflags::bitflags;

/// The most symbolic links that one walk follows.
const MAX_LINKS: u32 = 40;

/// On whose behalf names are looked up: the caller's root and working directory, descriptors and credentials.
#[derive(Clone, Copy)]
pub struct LookupCtx<'a> {
    pub fs: &'a FsContext,
    pub files: &'a FdTable,
    pub cred: &'a Arc<Cred>,
}

bitflags! {
    /// How to walk.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct LookupFlags: u32 {
        /// Follow a symbolic link in the last component.
        const FOLLOW = 1;
        /// The result must be a directory.
        const DIRECTORY = 2;
        /// An empty path means the starting point itself.
        const EMPTY = 4;
        /// `RESOLVE_NO_XDEV`: no mount is crossed.
        const NO_XDEV = 8;
        /// `RESOLVE_NO_MAGICLINKS`.
        const NO_MAGICLINKS = 16;
        /// `RESOLVE_NO_SYMLINKS`.
        const NO_SYMLINKS = 32;
        /// `RESOLVE_BENEATH`: leaving the starting point is EXDEV.
        const BENEATH = 64;
        /// `RESOLVE_IN_ROOT`: the starting point is the root.
        const IN_ROOT = 128;
        /// The walk is no use of the mount in which it ends: the one of `umount`, which may ask whether there was any.
        const NO_USE = 256;
    }
}

impl LookupFlags {
    /// The walk stays below its starting point.
    const SCOPED: Self = Self::BENEATH.union(Self::IN_ROOT);
}

/// The last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// A name: [`Walker::name`] gives it.
    Name,
    /// `.`
    Dot,
    /// `..`
    DotDot,
    /// No component is left: the path was empty or `/`, or it ended in a symbolic link to `/`.
    Nothing,
}

/// Resolves `path` from `at` (a descriptor or `AT_FDCWD`).
#[inline]
pub fn lookup(ctx: &LookupCtx<'_>, at: Fd, path: &[u8], flags: LookupFlags) -> Result<Path> {
    let start = start(ctx, at, path, flags)?;
    Walker::at(ctx, start, path, flags).finish()
}

/// Resolves all but the last component of `path`.
pub fn parent<'a>(
    ctx: &'a LookupCtx<'a>,
    at: Fd,
    path: &'a [u8],
    flags: LookupFlags,
) -> Result<(Walker<'a>, Last)> {
    let mut walker = Walker::new(ctx, at, path, flags)?;
    let last = walker.walk_to_last()?;
    Ok((walker, last))
}

/// Where a walk of `path` starts.
#[inline(always)]
fn start(ctx: &LookupCtx<'_>, at: Fd, path: &[u8], flags: LookupFlags) -> Result<Path> {
    match path.first() {
        Some(b'/') if !flags.intersects(LookupFlags::SCOPED) => Ok(ctx.fs.root()),
        Some(first) if *first != b'/' && at.0 == AT_FDCWD => Ok(ctx.fs.cwd()),
        _ => start_at(ctx, at, path, flags),
    }
}

/// As [`start`], where a descriptor or a flag decides.
#[inline(never)]
fn start_at(ctx: &LookupCtx<'_>, at: Fd, path: &[u8], flags: LookupFlags) -> Result<Path> {
    if path.is_empty() && !flags.contains(LookupFlags::EMPTY) {
        return Err(Errno::ENOENT);
    }
    if path.first() == Some(&b'/') && flags.contains(LookupFlags::BENEATH) {
        return Err(Errno::EXDEV);
    }
    if at.0 == AT_FDCWD {
        return Ok(ctx.fs.cwd());
    }
    let file = ctx.files.get_any(at)?;
    if !path.is_empty() && !file.path().dentry.is_dir() {
        return Err(Errno::ENOTDIR);
    }
    Ok(file.path().clone())
}

/// The number of bytes before the first slash, or of all bytes if there is none.
#[inline]
fn until_slash(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    const SLASHES: u64 = u64::from_ne_bytes([b'/'; 8]);
    let (words, rest) = text.as_chunks();
    for (nth, word) in words.iter().enumerate() {
        // A byte that is a slash becomes zero; the lowest marked byte of the result is the first of them.
        let word = u64::from_le_bytes(*word) ^ SLASHES;
        let found = word.wrapping_sub(ONES) & !word & HIGHS;
        if found != 0 {
            return nth * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    words.len() * 8 + rest.iter().position(|&b| b == b'/').unwrap_or(rest.len())
}

/// The text of a symbolic link, being walked.
struct Followed {
    text: LinkText,
    /// Where the next component starts.
    at: usize,
}

/// A walk in progress.
pub struct Walker<'a> {
    ctx: &'a LookupCtx<'a>,
    path: &'a [u8],
    /// Where the path's next component starts.
    at: usize,
    flags: LookupFlags,
    cur: Path,
    /// Where absolute links lead and `..` ends; fetched when first needed.
    root: Option<Path>,
    /// The links on the way, each found in the text of the one before. The last is walked now, else the path.
    followed: Vec<Followed>,
    /// The last component found, in the text that is walked now.
    last: (usize, usize),
    links: u32,
    /// A slash followed the component.
    slash: bool,
    /// A slash followed the symbolic link that was the last component of the caller's path.
    outer_slash: bool,
}

impl<'a> Walker<'a> {
    /// Starts a walk.
    #[inline]
    pub fn new(
        ctx: &'a LookupCtx<'a>,
        at: Fd,
        path: &'a [u8],
        flags: LookupFlags,
    ) -> Result<Walker<'a>> {
        Ok(Self::at(ctx, start(ctx, at, path, flags)?, path, flags))
    }

    /// A walk that begins at `cur`. Always inlined: a walker is large, and each move copies it.
    #[inline(always)]
    fn at(ctx: &'a LookupCtx<'a>, cur: Path, path: &'a [u8], flags: LookupFlags) -> Self {
        let root = flags.intersects(LookupFlags::SCOPED).then(|| cur.clone());
        let (followed, last, links, slash, outer_slash) = (Vec::new(), (0, 0), 0, false, false);
        Self { ctx, path, at: 0, flags, cur, root, followed, last, links, slash, outer_slash }
    }

    /// Walks to the end.
    #[inline]
    pub fn finish(mut self) -> Result<Path> {
        let done = self.walk();
        if !self.flags.contains(LookupFlags::NO_USE) {
            self.cur.mount.note_use();
        }
        done.map(|()| self.cur)
    }

    #[inline]
    fn walk(&mut self) -> Result<()> {
        loop {
            match self.walk_to_last()? {
                Last::Name => {
                    let child = self.cur.dentry.lookup(self.name())?;
                    if self.step_into(child)? {
                        continue;
                    }
                }
                Last::DotDot => self.up()?,
                Last::Dot | Last::Nothing => {}
            }
            break;
        }
        let must_be_dir = self.trailing_slash() || self.flags.contains(LookupFlags::DIRECTORY);
        if must_be_dir && !self.cur.dentry.is_dir() {
            return Err(Errno::ENOTDIR);
        }
        Ok(())
    }

    /// Walks all components but the last.
    pub fn walk_to_last(&mut self) -> Result<Last> {
        loop {
            cond_resched();
            let Some((kind, is_last)) = self.next_component() else {
                if !self.is_last_text() {
                    self.followed.pop();
                    continue;
                }
                self.last = (0, 0);
                return Ok(Last::Nothing);
            };
            let dir = &self.cur.dentry;
            if !dir.is_dir() {
                return Err(Errno::ENOTDIR);
            }
            perm::check(&**dir.inode(), self.ctx.cred, perm::EXEC)?;
            if is_last {
                self.cur.mount.note_use();
                return Ok(kind);
            }
            match kind {
                Last::Name => {
                    let child = self.cur.dentry.lookup(self.name())?;
                    self.walk_into(child)?;
                }
                Last::DotDot => self.up()?,
                Last::Dot | Last::Nothing => {}
            }
        }
    }

    /// The last component, valid after [`walk_to_last`](Self::walk_to_last) gave [`Last::Name`].
    #[inline]
    pub fn name(&self) -> &[u8] {
        self.text().get(self.last.0..self.last.1).unwrap_or_default()
    }

    /// The directory reached.
    #[inline]
    pub fn dir(&self) -> &Path {
        &self.cur
    }

    /// Whether a slash follows the last component.
    #[inline]
    pub fn trailing_slash(&self) -> bool {
        self.slash || self.outer_slash
    }

    /// Goes from the directory to its entry `child`, the last component: to the root of what is mounted on it, and where
    /// a symbolic link leads if the walk follows it. True if there is more to walk.
    #[inline]
    pub fn step_into(&mut self, child: Arc<Dentry>) -> Result<bool> {
        if child.kind() == FileType::Symlink
            && (self.trailing_slash() || self.flags.contains(LookupFlags::FOLLOW))
        {
            return self.follow_last(child);
        }
        self.enter(child)?;
        Ok(false)
    }

    /// Follows a symbolic link that is the last component, if the directory's owner is trusted to have made it.
    #[cold]
    fn follow_last(&mut self, link: Arc<Dentry>) -> Result<bool> {
        protect::check_follow(self.cur.inode().attr(), link.inode().attr(), self.ctx.cred)?;
        self.follow(link)
    }

    /// Goes to the parent directory, not above the root.
    pub fn up(&mut self) -> Result<()> {
        let ctx = self.ctx;
        let root = self.root.get_or_insert_with(|| ctx.fs.root());
        loop {
            if self.cur.same(root) {
                if self.flags.contains(LookupFlags::BENEATH) {
                    return Err(Errno::EXDEV);
                }
                break;
            }
            if !Arc::ptr_eq(&self.cur.dentry, self.cur.mount.root()) {
                if let Some(parent) = self.cur.dentry.parent() {
                    self.cur.dentry = parent;
                }
                break;
            }
            let Some(place) = self.cur.mount.place() else { break };
            if self.flags.contains(LookupFlags::NO_XDEV) {
                return Err(Errno::EXDEV);
            }
            self.cur = place;
        }
        self.cross_mounts()
    }

    #[inline]
    fn text(&self) -> &[u8] {
        self.followed.last().map_or(self.path, |link| &link.text)
    }

    /// Whether nothing is left to walk but the text that is walked now.
    #[inline]
    fn is_last_text(&self) -> bool {
        match self.followed.len() {
            0 => true,
            1 => self.at >= self.path.len(),
            _ => false,
        }
    }

    /// Finds the next component of the text that is walked now, and whether it is the walk's last; moves past it and the slashes after it.
    #[inline]
    fn next_component(&mut self) -> Option<(Last, bool)> {
        let is_last_text = self.is_last_text();
        let (text, at): (&[u8], _) = match self.followed.last_mut() {
            Some(link) => (&link.text, &mut link.at),
            None => (self.path, &mut self.at),
        };
        let is_slash = |at: usize| text.get(at) == Some(&b'/');
        let mut start = *at;
        while is_slash(start) {
            start += 1;
        }
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let name = &rest[..until_slash(rest)];
        let kind = match name {
            b"." => Last::Dot,
            b".." => Last::DotDot,
            _ => Last::Name,
        };
        let end = start + name.len();
        let mut next = end;
        while is_slash(next) {
            next += 1;
        }
        self.last = (start, end);
        self.slash = next != end;
        *at = next;
        Some((kind, is_last_text && next == text.len()))
    }

    /// As [`step_into`](Self::step_into) for a component that is not the last: links are followed.
    #[inline]
    fn walk_into(&mut self, child: Arc<Dentry>) -> Result<()> {
        if child.kind() == FileType::Symlink {
            return self.follow(child).map(drop);
        }
        self.enter(child)
    }

    #[inline]
    fn enter(&mut self, child: Arc<Dentry>) -> Result<()> {
        self.cur.dentry = child;
        self.cross_mounts()
    }

    #[inline]
    fn cross_mounts(&mut self) -> Result<()> {
        if self.cur.dentry.is_mountpoint() { self.descend() } else { Ok(()) }
    }

    /// Goes to the root of what is mounted here, if it is mounted here in this mount.
    #[inline(never)]
    fn descend(&mut self) -> Result<()> {
        let before = self.cur.mount.id();
        mount::descend(&mut self.cur);
        if self.cur.mount.id() != before && self.flags.contains(LookupFlags::NO_XDEV) {
            return Err(Errno::EXDEV);
        }
        Ok(())
    }

    /// Follows the symbolic link `link`, an entry of the current directory. True if there is more to walk.
    #[cold]
    fn follow(&mut self, link: Arc<Dentry>) -> Result<bool> {
        self.links += 1;
        let refused = self.links > MAX_LINKS
            || self.flags.contains(LookupFlags::NO_SYMLINKS)
            || self.cur.mount.flags().contains(MountFlags::NOSYMFOLLOW);
        if refused {
            return Err(Errno::ELOOP);
        }
        if let Some(target) = link.inode().follow() {
            return self.jump(target?);
        }
        crate::vfs::atime::touch_atime(&self.cur.mount, &**link.inode());
        let text = link.inode().readlink()?;
        if text.is_empty() {
            return Err(Errno::ENOENT);
        }
        if text[0] == b'/' {
            if self.flags.contains(LookupFlags::BENEATH) {
                return Err(Errno::EXDEV);
            }
            let ctx = self.ctx;
            let root = self.root.get_or_insert_with(|| ctx.fs.root()).clone();
            if self.flags.contains(LookupFlags::NO_XDEV) && root.mount.id() != self.cur.mount.id() {
                return Err(Errno::EXDEV);
            }
            self.cur = root;
        }
        // A text that is used up is replaced by the link's, so that the link's last component counts as the walk's last.
        let at = self.followed.last().map_or(self.at, |link| link.at);
        if at >= self.text().len() {
            if self.is_last_text() {
                self.outer_slash |= self.slash;
            }
            self.followed.pop();
        }
        self.followed.try_push(Followed { text, at: 0 })?;
        Ok(true)
    }

    /// Goes where a magic link leads.
    fn jump(&mut self, target: Path) -> Result<bool> {
        if self.flags.contains(LookupFlags::NO_MAGICLINKS) {
            return Err(Errno::ELOOP);
        }
        if self.flags.intersects(LookupFlags::SCOPED) {
            return Err(Errno::EXDEV);
        }
        if self.flags.contains(LookupFlags::NO_XDEV) && target.mount.id() != self.cur.mount.id() {
            return Err(Errno::EXDEV);
        }
        self.cur = target;
        Ok(false)
    }
}
