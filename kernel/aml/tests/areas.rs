//! Where devices say that their registers lie, as QEMU's microvm describes its virtio devices, and what nobody should describe.

use alea_aml::areas;
use proptest::prelude::*;

const ID: &[u8] = b"LNRO0005";

fn with_length(inside: &[u8]) -> Vec<u8> {
    let length = inside.len() + 2;
    let mut out = vec![0x40 | (length & 15) as u8, (length >> 4) as u8];
    out.extend(inside);
    out
}

fn device(name: &[u8; 4], id: &[u8], resources: &[u8]) -> Vec<u8> {
    let mut inside = name.to_vec();
    inside.extend(b"\x08_HID\x0d");
    inside.extend(id);
    inside.extend(b"\0\x08_UID\x0a\x03\x08_CRS\x11");
    let mut buffer = vec![0x0a, resources.len() as u8];
    buffer.extend(resources);
    inside.extend(with_length(&buffer));
    let mut device = b"\x5b\x82".to_vec();
    device.extend(with_length(&inside));
    device
}

/// A table of devices in `\_SB`.
fn table(devices: &[Vec<u8>]) -> Vec<u8> {
    let mut scope = b"\\_SB_".to_vec();
    scope.extend(devices.concat());
    let mut table = vec![0; 36];
    table.push(0x10);
    table.extend(with_length(&scope));
    table
}

/// `Memory32Fixed (ReadWrite, start, len)`, an interrupt, and the end.
fn resources(start: u32, len: u32) -> Vec<u8> {
    let mut bytes = vec![0x86, 9, 0, 1];
    bytes.extend(start.to_le_bytes());
    bytes.extend(len.to_le_bytes());
    bytes.extend([0x89, 6, 0, 3, 1, 12, 0, 0, 0, 0x79, 0]);
    bytes
}

fn found(tables: &[&[u8]]) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    areas(tables, ID, &mut |start, len| {
        all.push((start, len));
        all.len() < 3
    });
    all
}

#[test]
fn each_device_is_shown_until_there_are_enough() {
    let one = table(&[
        device(b"VR00", ID, &resources(0xfeb0_0000, 512)),
        device(b"COM1", b"PNP0501", &resources(0x1000, 16)),
        device(b"VR01", ID, &resources(0xfeb0_0200, 512)),
    ]);
    assert_eq!(found(&[&one]), [(0xfeb0_0000, 512), (0xfeb0_0200, 512)]);
    let two = [&one[..], &one].repeat(2);
    assert_eq!(found(&two).len(), 3, "and no more");
}

#[test]
fn other_descriptors_are_passed_over_and_a_device_without_memory_is_none() {
    let mut behind = vec![0x22, 1, 0, 0x47, 1, 0xf8, 3, 0xf8, 3, 8, 8];
    behind.extend(resources(0x8000, 0x100));
    let table = table(&[
        device(b"VR00", ID, &behind),
        device(b"VR01", ID, &[0x22, 1, 0, 0x79, 0]),
        device(b"VR02", ID, &[0x86, 9, 0, 1, 0]),
        device(b"VR03", ID, &[]),
    ]);
    assert_eq!(found(&[&table]), [(0x8000, 0x100)]);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _any = found(&[&bytes]);
        let _any = found(&[&table(&[device(b"VR00", ID, &bytes)])]);
    }

    #[test]
    fn no_broken_byte_makes_it_panic(at in 36..90usize, to in any::<u8>(), cut in 0..90usize) {
        let mut bytes = table(&[device(b"VR00", ID, &resources(0xfeb0_0000, 512))]);
        let cut = cut.min(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = to;
        }
        let _any = found(&[&bytes]);
        let _any = found(&[&bytes[..cut]]);
    }
}
