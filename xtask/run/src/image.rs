//! A root file system that is being put together: entries by path, later ones in the place of earlier ones, and their way into
//! an archive.
//!
//! Contents are not held in memory: they lie in files of this machine, or in a file without a name.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::rc::Rc;

use alea_cpio::Header;
use alea_init::attributes::Attribute;
use anyhow::{Context, Result, bail, ensure};
use xtask_host::term;

/// File type bits of a mode, as in `stat(2)`.
pub const TYPE: u32 = 0o170_000;
pub const DIRECTORY: u32 = 0o040_000;
pub const REGULAR: u32 = 0o100_000;
pub const SYMLINK: u32 = 0o120_000;
pub const CHARACTER: u32 = 0o020_000;
pub const BLOCK: u32 = 0o060_000;
pub const FIFO: u32 = 0o010_000;

/// Contents of more bytes than this are packed behind a bar.
const LARGE: u64 = 32 << 20;

/// The longest path in an archive, and the longest name, in bytes.
const LONGEST_PATH: usize = 4095;
const LONGEST_NAME: usize = 255;

/// The longest target of a link, in bytes: Linux's.
pub const LONGEST_TARGET: usize = 4095;

/// What an entry is besides its contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// With the type.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Seconds since 1970.
    pub mtime: u32,
    pub rdev: (u32, u32),
    /// Names and values of extended attributes: those that are kept.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The contents of a file, which several names may share.
#[derive(Debug)]
pub enum Contents {
    Bytes(Vec<u8>),
    /// A file of this machine, and its length when it was looked at.
    Host(PathBuf, u64),
    /// A piece of the image's own spool.
    Spooled {
        at: u64,
        length: u64,
    },
}

impl Contents {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Host(_, length) | Self::Spooled { length, .. } => *length,
        }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    about: About,
    contents: Option<Rc<Contents>>,
    /// The layer that added it, or something below it.
    layer: usize,
}

/// A root file system.
pub struct Image {
    entries: BTreeMap<Vec<u8>, Entry>,
    spool: File,
    spooled: u64,
    /// How many bytes may be spooled: more have no room in the memory of any guest here.
    room: u64,
    layer: usize,
}

/// A path as an archive has it: relative, without `.`; none for the root itself. What leads out of the root is refused.
pub fn relative(path: &[u8]) -> Result<Option<Vec<u8>>> {
    let shown = || String::from_utf8_lossy(path).into_owned();
    ensure!(!path.starts_with(b"/"), "{:?} is an absolute path: refused", shown());
    ensure!(!path.contains(&0), "{:?} holds a NUL: refused", shown());
    let mut words = Vec::new();
    for word in path.split(|&byte| byte == b'/') {
        match word {
            b"" | b"." => {}
            b".." => bail!("{:?} leads out of the root: refused", shown()),
            word if word.len() > LONGEST_NAME => bail!("{:?} holds too long a name", shown()),
            word => words.push(word),
        }
    }
    let whole = words.join(&b'/');
    ensure!(whole.len() <= LONGEST_PATH, "{:?} is longer than a path may be", shown());
    Ok((!whole.is_empty()).then_some(whole))
}

impl Image {
    /// An empty root.
    pub fn new() -> Result<Self> {
        let spool = tempfile::tempfile().context("no room for a temporary file")?;
        let memory = rustix::system::sysinfo();
        let room = (memory.totalram as u64).saturating_mul(memory.mem_unit.into());
        Ok(Self { entries: BTreeMap::new(), spool, spooled: 0, room, layer: 0 })
    }

    /// What is added from now on is of one more layer.
    pub fn next_layer(&mut self) {
        self.layer += 1;
    }

    /// Adds an entry of any kind in the place of what is there. A folder that stays one keeps what it holds.
    pub fn add(&mut self, path: Vec<u8>, about: About, contents: Option<Rc<Contents>>) {
        let mut at = 0;
        while let Some(slash) = path[at..].iter().position(|&byte| byte == b'/') {
            at += slash;
            let parent = &path[..at];
            at += 1;
            // A folder that the archive does not name, or in the place of something else, which it hides.
            match self.entries.get_mut(parent) {
                Some(entry) if entry.about.mode & TYPE == DIRECTORY => entry.layer = self.layer,
                _ => {
                    let about = About { mode: DIRECTORY | 0o755, ..About::default() };
                    let entry = Entry { about, contents: None, layer: self.layer };
                    self.entries.insert(parent.to_vec(), entry);
                }
            }
        }
        if about.mode & TYPE != DIRECTORY {
            self.remove_below(&path);
        }
        self.entries.insert(path, Entry { about, contents, layer: self.layer });
    }

    /// Makes `path` one more name of the file `first`.
    pub fn link(&mut self, path: Vec<u8>, first: &[u8]) -> Result<()> {
        let entry = self.entries.get(first).cloned();
        let is_folder = |entry: &Entry| entry.about.mode & TYPE == DIRECTORY;
        let entry = entry.filter(|entry| !is_folder(entry)).with_context(|| {
            let [path, first] = [&path, first].map(String::from_utf8_lossy);
            format!("{path:?} is a link to {first:?}, which is not there")
        })?;
        self.add(path, entry.about, entry.contents);
        Ok(())
    }

    /// Hides what lower layers have of an entry and of all below it.
    pub fn hide(&mut self, path: &[u8]) {
        if self.entries.get(path).is_some_and(|entry| entry.layer < self.layer) {
            self.entries.remove(path);
        }
        self.hide_below(path);
    }

    /// Hides what lower layers have in a folder; the root is no bytes.
    pub fn hide_below(&mut self, path: &[u8]) {
        let layer = self.layer;
        self.remove_where(path, |entry| entry.layer < layer);
    }

    fn remove_below(&mut self, path: &[u8]) {
        self.remove_where(path, |_| true);
    }

    fn remove_where(&mut self, folder: &[u8], goes: impl Fn(&Entry) -> bool) {
        let mut prefix = folder.to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        let below = self.entries.range(prefix.clone()..);
        let below = below.take_while(|(path, _)| path.starts_with(&prefix));
        let below = below.filter(|(_, entry)| goes(entry)).map(|(path, _)| path.clone());
        for path in below.collect::<Vec<_>>() {
            self.entries.remove(&path);
        }
    }

    /// Keeps what `from` gives, to its end.
    pub fn spool(&mut self, from: &mut impl Read) -> Result<Rc<Contents>> {
        let (at, left) = (self.spooled, self.room - self.spooled);
        let length = io::copy(&mut from.take(left.saturating_add(1)), &mut self.spool)
            .context("it cannot be kept to its end: is it cut off?")?;
        ensure!(
            length <= left,
            "the files hold more than the {} MiB of memory that this machine has",
            self.room >> 20
        );
        self.spooled += length;
        Ok(Rc::new(Contents::Spooled { at, length }))
    }

    /// How many bytes the files hold, each counted once.
    pub fn size(&self) -> u64 {
        let mut seen = HashMap::new();
        for contents in self.entries.values().filter_map(|entry| entry.contents.as_ref()) {
            seen.insert(Rc::as_ptr(contents), contents.length());
        }
        seen.values().sum()
    }

    /// The extended attributes of all entries, as process 1 reads them.
    pub fn attributes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (path, entry) in &self.entries {
            for (name, value) in &entry.about.attributes {
                let (path, name, value) = (path.clone(), name.clone(), value.clone());
                Attribute { path, name, value }.encode(&mut bytes);
            }
        }
        bytes
    }

    /// Writes the whole as a newc archive. Same entries, same bytes.
    pub fn write(&mut self, to: &mut impl Write) -> Result<()> {
        let size = self.size();
        let bar = (size > LARGE).then(|| term::bytes_bar(size, "packing the root"));
        let mut names: HashMap<*const Contents, u32> = HashMap::new();
        for contents in self.entries.values().filter_map(|entry| entry.contents.as_ref()) {
            *names.entry(Rc::as_ptr(contents)).or_default() += 1;
        }
        let mut numbers: HashMap<*const Contents, u32> = HashMap::new();
        let mut next = 0;
        for (path, entry) in &self.entries {
            let shown = || String::from_utf8_lossy(path).into_owned();
            let About { mode, uid, gid, mtime, rdev, .. } = entry.about;
            let mut header = Header { mode, uid, gid, mtime, rdev, nlink: 1, ..Header::default() };
            next += 1;
            header.ino = next;
            let mut contents = entry.contents.as_deref();
            if let Some(shared) = &entry.contents
                && mode & TYPE == REGULAR
            {
                header.nlink = names.get(&Rc::as_ptr(shared)).copied().unwrap_or(1);
                if let Some(first) = numbers.insert(Rc::as_ptr(shared), next) {
                    // A further name: the contents have been written.
                    numbers.insert(Rc::as_ptr(shared), first);
                    header.ino = first;
                    contents = None;
                }
            }
            let length = contents.map_or(0, Contents::length);
            header.size = u32::try_from(length)
                .with_context(|| format!("{:?} has 4 GiB or more: an initramfs cannot", shown()))?;
            to.write_all(&alea_cpio::entry(&header, path))?;
            if let Some(contents) = contents {
                copy(contents, &mut self.spool, to).with_context(shown)?;
                let padding = length.next_multiple_of(4) - length;
                to.write_all(&[0; 4][..usize::try_from(padding)?])?;
                if let Some(bar) = &bar {
                    bar.inc(length);
                }
            }
        }
        to.write_all(&alea_cpio::trailer())?;
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        Ok(())
    }
}

/// Copies contents of a length that is already written in the header: neither more nor less.
fn copy(contents: &Contents, spool: &mut File, to: &mut impl Write) -> Result<()> {
    let (copied, length) = match contents {
        Contents::Bytes(bytes) => {
            to.write_all(bytes)?;
            return Ok(());
        }
        Contents::Host(path, length) => {
            (io::copy(&mut File::open(path)?.take(*length), to)?, *length)
        }
        Contents::Spooled { at, length } => {
            spool.seek(SeekFrom::Start(*at))?;
            (io::copy(&mut spool.take(*length), to)?, *length)
        }
    };
    ensure!(copied == length, "the file became shorter while it was packed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_memory_is_not_kept() {
        let mut image = Image { room: 1000, ..Image::new().unwrap() };
        image.spool(&mut &[0; 600][..]).unwrap();
        let told = image.spool(&mut io::repeat(0)).unwrap_err().to_string();
        assert!(told.contains("memory"), "{told}");
    }

    #[test]
    fn a_layer_hides_what_lower_ones_have() {
        let mut image = Image::new().unwrap();
        for path in ["top", "d/old", "d/sub/old", "e/old", "f"] {
            image.add(path.into(), regular(), file("lower"));
        }
        image.next_layer();
        // What hides may stand behind what the same layer adds.
        for path in ["d/new", "d/sub/new", "e/new", "f"] {
            image.add(path.into(), regular(), file("upper"));
        }
        image.hide_below(b"d");
        image.hide(b"e");
        image.hide(b"f");
        let names = |image: &mut Image| -> Vec<String> {
            written(image).into_iter().map(|(name, ..)| name).collect()
        };
        let kept = ["d", "d/new", "d/sub", "d/sub/new", "e", "e/new", "f", "top"];
        assert_eq!(names(&mut image), kept);
        image.hide_below(b"");
        assert_eq!(names(&mut image), &kept[..7]);
        image.next_layer();
        image.add(b"all".to_vec(), regular(), file("that is left"));
        image.hide_below(b"");
        assert_eq!(names(&mut image), ["all"]);
    }

    fn file(text: &str) -> Option<Rc<Contents>> {
        Some(Rc::new(Contents::Bytes(text.into())))
    }

    fn regular() -> About {
        About { mode: REGULAR | 0o644, ..About::default() }
    }

    /// Names, inode numbers and contents.
    fn written(image: &mut Image) -> Vec<(String, u32, String)> {
        let mut bytes = Vec::new();
        image.write(&mut bytes).unwrap();
        let mut archive = alea_cpio::Archive::new(&bytes[..]);
        let mut name = [0; alea_cpio::NAME_LIMIT];
        let mut all = Vec::new();
        while let Some((header, length)) = archive.next(&mut name).unwrap() {
            let mut text = Vec::new();
            loop {
                let data = archive.data().unwrap().to_vec();
                if data.is_empty() {
                    break;
                }
                text.extend_from_slice(&data);
                archive.consume(data.len()).unwrap();
            }
            let name = String::from_utf8(name[..length].to_vec()).unwrap();
            all.push((name, header.ino, String::from_utf8(text).unwrap()));
        }
        all
    }

    #[test]
    fn what_leads_out_of_the_root_is_refused() {
        assert_eq!(relative(b"./a//b/.").unwrap(), Some(b"a/b".to_vec()));
        assert_eq!(relative(b"./").unwrap(), None);
        for bad in ["/etc/passwd", "../x", "a/../../x", "a/..", "a\0b", &"a".repeat(256)] {
            assert!(relative(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(relative(&[b'a'; 5000]).is_err());
    }

    #[test]
    fn later_entries_replace_and_links_share() {
        let mut image = Image::new().unwrap();
        image.add(b"a/b/c".to_vec(), regular(), file("old"));
        image.add(b"a/b".to_vec(), regular(), file("a file now"));
        image.link(b"x".to_vec(), b"a/b").unwrap();
        image.add(b"a/b".to_vec(), regular(), file("new"));
        image.link(b"y".to_vec(), b"x").unwrap();
        assert!(image.link(b"z".to_vec(), b"a").is_err(), "a folder has one name");
        assert!(image.link(b"z".to_vec(), b"nowhere").is_err());
        let spooled = image.spool(&mut &b"spooled"[..]).unwrap();
        image.add(b"s".to_vec(), regular(), Some(spooled));
        let wanted = [
            ("a", 1, ""),
            ("a/b", 2, "new"),
            ("s", 3, "spooled"),
            ("x", 4, "a file now"),
            ("y", 4, ""),
        ];
        let wanted = wanted.map(|(name, ino, text)| (name.to_owned(), ino, text.to_owned()));
        assert_eq!(written(&mut image), wanted);
    }
}
