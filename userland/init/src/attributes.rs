//! Extended attributes of a root's files, which an initramfs has no place for: the host packs them into a file, and process 1 gives
//! them back before the command starts. Owns nothing.

use std::io;

/// The file in [`FOLDER`](crate::FOLDER) that holds them.
pub const FILE: &str = ".alea/xattrs";

/// An attribute of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Of the file, from the root on.
    pub path: Vec<u8>,
    pub name: Vec<u8>,
    pub value: Vec<u8>,
}

/// Whether attributes of this name are kept: users' own, and capabilities; others are about the machine that the files come from.
pub fn is_kept(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name == b"security.capability"
}

impl Attribute {
    /// Adds it to a file: each part with its length (four bytes, little-endian) before it.
    pub fn encode(&self, to: &mut Vec<u8>) {
        for part in [&self.path, &self.name, &self.value] {
            to.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
            to.extend_from_slice(part);
        }
    }
}

/// All attributes of such a file.
pub fn decode(mut bytes: &[u8]) -> io::Result<Vec<Attribute>> {
    let mut part = || -> Option<Vec<u8>> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        bytes = rest;
        Some(part.to_vec())
    };
    let mut all = Vec::new();
    while let Some(path) = part() {
        let (Some(name), Some(value)) = (part(), part()) else {
            let text = "the file of extended attributes is cut off";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        };
        all.push(Attribute { path, name, value });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back_as_they_were_packed() {
        let one = |path: &str, name: &str, value: &[u8]| Attribute {
            path: path.into(),
            name: name.into(),
            value: value.into(),
        };
        let all = [one("a/b", "user.x", b""), one("c", "security.capability", &[0, 10, 255])];
        let mut bytes = Vec::new();
        all.iter().for_each(|attribute| attribute.encode(&mut bytes));
        assert_eq!(decode(&bytes).unwrap(), all);
        assert_eq!(decode(b"").unwrap(), []);
        assert!(decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
