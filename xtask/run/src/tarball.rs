//! A tar as a root, or as a layer of one.

use std::io::Read;
use std::rc::Rc;

use alea_init::attributes::is_kept;
use anyhow::{Context, Result, bail, ensure};
use tar::{Archive, Entry, EntryType};

use crate::image::{
    About, BLOCK, CHARACTER, Contents, DIRECTORY, FIFO, Image, LONGEST_TARGET, REGULAR, SYMLINK,
    relative,
};

/// What the names of an OCI layer mean.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Names {
    AsTheyAre,
    /// `.wh.NAME` removes NAME, `.wh..wh..opq` all that lower layers put into its folder.
    Whiteouts,
}

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Adds all entries of the tar that `from` gives. A tar that is cut off, or names something outside the root, is an error.
pub fn add(image: &mut Image, from: impl Read, names: Names) -> Result<()> {
    let mut ended = Ended { from, zeros: 0, total: 0 };
    let mut archive = Archive::new(&mut ended);
    for entry in archive.entries()? {
        let mut entry = entry.context("the tar cannot be read: is it cut off?")?;
        let path = entry.path_bytes().into_owned();
        let Some(path) = relative(&path)? else { continue };
        if names == Names::Whiteouts && whiteout(image, &path) {
            continue;
        }
        let shown = String::from_utf8_lossy(&path).into_owned();
        add_entry(image, &mut entry, path).with_context(|| format!("in the tar, {shown}"))?;
    }
    std::io::copy(&mut ended, &mut std::io::sink()).context("behind the end of the tar")?;
    if ended.total == 0 {
        bail!("this is no tar: it is empty");
    }
    if ended.zeros < END {
        bail!("the tar is cut off: its end is missing");
    }
    Ok(())
}

/// A tar ends in two blocks of zeros.
const END: u64 = 1024;

/// Counts the zeros at the end of what is read.
struct Ended<R> {
    from: R,
    zeros: u64,
    total: u64,
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.from.read(into)?;
        let zeros = into[..length].iter().rev().take_while(|&&byte| byte == 0).count();
        self.zeros = if zeros == length { self.zeros + zeros as u64 } else { zeros as u64 };
        self.total += length as u64;
        Ok(length)
    }
}

fn add_entry(image: &mut Image, entry: &mut Entry<impl Read>, path: Vec<u8>) -> Result<()> {
    let attributes = attributes(entry)?;
    let header = entry.header();
    let kind = header.entry_type();
    // Of what is no device, GNU tar leaves the numbers empty.
    let rdev = match kind {
        EntryType::Char | EntryType::Block => {
            (header.device_major()?.unwrap_or(0), header.device_minor()?.unwrap_or(0))
        }
        _ => (0, 0),
    };
    let mut about = About {
        mode: header.mode()? & 0o7777,
        uid: u32::try_from(header.uid()?)?,
        gid: u32::try_from(header.gid()?)?,
        mtime: u32::try_from(header.mtime()?).unwrap_or(0),
        rdev,
        attributes,
    };
    let link = entry.link_name_bytes().map(|name| name.into_owned());
    let link = || link.context("a link without a target");
    let mut contents = None;
    about.mode |= match kind {
        EntryType::Directory => DIRECTORY,
        EntryType::Symlink => {
            let target = link()?;
            ensure!(target.len() <= LONGEST_TARGET, "the target of a link is too long");
            contents = Some(Rc::new(Contents::Bytes(target)));
            SYMLINK
        }
        EntryType::Link => {
            let first = relative(&link()?)?.context("a link to the root")?;
            return image.link(path, &first);
        }
        EntryType::Char => CHARACTER,
        EntryType::Block => BLOCK,
        EntryType::Fifo => FIFO,
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            contents = Some(image.spool(entry)?);
            REGULAR
        }
        EntryType::XGlobalHeader => return Ok(()),
        other => bail!("an entry of kind {other:?} is not known"),
    };
    image.add(path, about, contents);
    Ok(())
}

/// The extended attributes in the entry's PAX header, as GNU tar and Docker write them.
fn attributes(entry: &mut Entry<impl Read>) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut all = Vec::new();
    let shown = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    for record in entry.pax_extensions()?.into_iter().flatten() {
        let Ok(record) = record else {
            // The reader of tars ends a record at the first newline.
            eprintln!("note: {shown}: an attribute with a newline in it is left out");
            continue;
        };
        ensure!(
            !record.key_bytes().starts_with(b"GNU.sparse."),
            "a sparse file in PAX's form is not known here: pack it with tar --format=gnu"
        );
        if let Some(name) = record.key_bytes().strip_prefix(b"SCHILY.xattr.")
            && is_kept(name)
        {
            all.push((name.to_vec(), record.value_bytes().to_vec()));
        }
    }
    Ok(all)
}

/// Whether the entry only hides what lower layers have, which is gone then.
fn whiteout(image: &mut Image, path: &[u8]) -> bool {
    let cut = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let (folder, name) = path.split_at(cut);
    if name == OPAQUE {
        image.hide_below(folder.strip_suffix(b"/").unwrap_or(folder));
        return true;
    }
    if let Some(hidden) = name.strip_prefix(WHITEOUT) {
        // Without a name there is nothing to hide.
        if !hidden.is_empty() {
            image.hide(&[folder, hidden].concat());
        }
        return true;
    }
    false
}
