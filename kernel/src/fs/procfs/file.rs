//! [`ProcFile`]: what one fixed file of /proc (or /sys) says, and those that are no more than a text. `fixed` keeps the files that
//! are registered.

use super::text::TextBuf;
use crate::mm::fallible::TrySlice;
use crate::sync::killable;
use crate::vfs::Cred;
use abi::{Errno, Result};
use alloc::string::String;
use alloc::vec::Vec;

/// A fixed file of /proc (or /sys).
pub trait ProcFile: Send + Sync {
    /// The whole text; asked for again whenever a reader starts from the beginning.
    fn read(&self) -> Result<Vec<u8>>;
    /// Adds a piece of it to `text`, from the place `from` on (0 is the beginning), and returns where the next piece begins.
    /// A text that is not long is one piece.
    fn piece(&self, _from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
        text.replace(self.read()?);
        Ok(None)
    }
    /// Takes what one `write` wrote.
    fn write(&self, _data: &[u8]) -> Result<usize> {
        Err(Errno::EIO)
    }
    /// Whether `cred` reads and writes it below /proc/sys, whatever its mode says.
    fn is_open_to(&self, _cred: &Cred) -> bool {
        false
    }
}

/// A file whose text a function makes.
pub struct Text(pub fn() -> Result<String>);

impl ProcFile for Text {
    fn read(&self) -> Result<Vec<u8>> {
        (self.0)().map(String::into_bytes)
    }
}

/// A file whose text is as long as users make it: a function makes it piece by piece, as [`ProcFile::piece`] does.
pub struct Pieces<F>(pub F);

impl<F: Fn(u64, &mut TextBuf) -> Result<Option<u64>> + Send + Sync> ProcFile for Pieces<F> {
    fn read(&self) -> Result<Vec<u8>> {
        let mut text = TextBuf::default();
        let mut from = 0;
        while let Some(next) = self.piece(from, &mut text)? {
            killable()?;
            from = next;
        }
        text.finish()
    }
    fn piece(&self, from: u64, text: &mut TextBuf) -> Result<Option<u64>> {
        (self.0)(from, text)
    }
}

/// A file whose text the source gives.
pub struct Fixed(pub &'static str);

impl ProcFile for Fixed {
    fn read(&self) -> Result<Vec<u8>> {
        self.0.as_bytes().try_owned()
    }
}

/// A file whose text was made when it was registered.
pub struct Made(pub String);

impl ProcFile for Made {
    fn read(&self) -> Result<Vec<u8>> {
        self.0.as_bytes().try_owned()
    }
}
