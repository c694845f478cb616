//! What the writer writes, the reader reads: every entry, in order, with its mode, owner, device and contents.

use alea_cpio::{Archive, NAME_LIMIT, Writer};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Entry {
    Dir(u32),
    File(u32, Vec<u8>),
    Symlink(String),
    CharDevice(u32, (u32, u32)),
}

impl Entry {
    fn mode(&self) -> u32 {
        match self {
            Self::Dir(mode) => 0o040_000 | mode,
            Self::File(mode, _) => 0o100_000 | mode,
            Self::Symlink(_) => 0o120_777,
            Self::CharDevice(mode, _) => 0o020_000 | mode,
        }
    }

    fn data(&self) -> &[u8] {
        match self {
            Self::File(_, data) => data,
            Self::Symlink(target) => target.as_bytes(),
            Self::Dir(_) | Self::CharDevice(..) => &[],
        }
    }

    fn device(&self) -> (u32, u32) {
        if let Self::CharDevice(_, device) = self { *device } else { (0, 0) }
    }
}

fn entry() -> impl Strategy<Value = Entry> {
    let mode = 0u32..0o10000;
    prop_oneof![
        mode.clone().prop_map(Entry::Dir),
        (mode.clone(), prop::collection::vec(any::<u8>(), 0..600))
            .prop_map(|(mode, data)| Entry::File(mode, data)),
        "[a-z/.]{1,60}".prop_map(Entry::Symlink),
        (mode, any::<(u32, u32)>()).prop_map(|(mode, device)| Entry::CharDevice(mode, device)),
    ]
}

fn write(entries: &[(String, Entry)]) -> Vec<u8> {
    let mut archive = Writer::new();
    for (name, entry) in entries {
        match entry {
            Entry::Dir(mode) => archive.dir(name, *mode),
            Entry::File(mode, data) => archive.file(name, *mode, data),
            Entry::Symlink(target) => archive.symlink(name, target),
            Entry::CharDevice(mode, device) => archive.char_device(name, *mode, *device),
        };
    }
    archive.finish()
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        entries in prop::collection::vec(("[a-z][a-z0-9/.]{0,60}", entry()), 0..12)
    ) {
        let bytes = write(&entries);
        let mut archive = Archive::new(&bytes[..]);
        let mut name = [0; NAME_LIMIT];
        for (number, (wanted, entry)) in (1..).zip(&entries) {
            let (header, len) = archive.next(&mut name).unwrap().expect("an entry is missing");
            prop_assert_eq!(&name[..len], wanted.as_bytes());
            prop_assert_eq!(header.mode, entry.mode());
            prop_assert_eq!((header.uid, header.gid, header.mtime), (0, 0, 0));
            prop_assert_eq!(header.ino, number);
            prop_assert_eq!(header.rdev, entry.device());
            let mut data = Vec::new();
            while let chunk @ [_, ..] = archive.data().unwrap() {
                data.extend_from_slice(chunk);
                let len = chunk.len();
                archive.consume(len).unwrap();
            }
            prop_assert_eq!(&data[..], entry.data());
        }
        prop_assert!(archive.next(&mut name).unwrap().is_none());
    }
}
