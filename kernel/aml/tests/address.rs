//! Tables as hypervisors make them, and tables that nobody should make.

use alea_aml::address;
use proptest::prelude::*;

const ID: &[u8] = b"VM_Gen_Counter";

/// QEMU 10.0's SSDT for `-device vmgenid`, after SeaBIOS patched it: a method that adds 40 to `VGIA`.
const QEMU: &str = "53534454ca000000014b424f43485320564d47454e494400010000004258504301000000\
    08564749410c00f0ff071041085c5f53425f5b8248075647454e085f4849440d51454d555647494400085f4349440d564d\
    5f47656e5f436f756e74657200085f44444e0d564d5f47656e5f436f756e7465720014175f53544100700a0f60a00a9356\
    47494100700060a4601420414444520070120202607072564749410a280088600000700088600100a46014195c2e5f4750\
    455f45303500865c2e5f53425f5647454e0a80";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().filter_map(|byte| (byte as char).to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// A table of `Device (VGEN) { Name (_CID, ...) <rest> }` in `\_SB`, behind things to be skipped.
fn table(rest: &[u8]) -> Vec<u8> {
    let mut device = b"VGEN\x08_CID\x0dVM_Gen_Counter\0".to_vec();
    device.extend(rest);
    let mut scope = b"\\_SB_".to_vec();
    // OperationRegion, Field, Mutex, a buffer, and a device that is another one.
    scope.extend(b"\x5b\x80DBG_\x01\x0b\x02\x04\x01\x5b\x81\x0bDBG_\x01DBGB\x08\x5b\x01MUT_\x00");
    scope.extend(b"\x08BUF_\x11\x04\x0a\x01\xff\x5b\x82\x0fHPET\x08_HID\x0c\x41\xd0\x01\x03");
    scope.extend(b"\x5b\x82");
    scope.extend(with_length(&device));
    let mut code = b"\x15\\_SB_\x06\x00\x10".to_vec();
    code.extend(with_length(&scope));
    let mut table = vec![0; 36];
    table.extend(code);
    table
}

fn with_length(inside: &[u8]) -> Vec<u8> {
    let length = inside.len() + 2;
    let mut out = vec![0x40 | (length & 15) as u8, (length >> 4) as u8];
    out.extend(inside);
    out
}

#[test]
fn qemu_adds_it_up_in_a_method() {
    assert_eq!(address(&[&hex(QEMU)], ID, *b"ADDR"), Some(0x07ff_f028));
    assert_eq!(address(&[&[0; 40], &hex(QEMU)], b"QEMUVGID", *b"ADDR"), Some(0x07ff_f028));
    assert_eq!(address(&[&hex(QEMU)], b"VM_Gen_Count", *b"ADDR"), None, "no prefix");
    assert_eq!(address(&[&hex(QEMU)], ID, *b"ADDX"), None);
}

#[test]
fn others_name_a_package() {
    let table = table(b"\x08ADDR\x12\x09\x02\x0c\x00\x10\x00\xe0\x0a\x01");
    assert_eq!(address(&[&table], ID, *b"ADDR"), Some(0x1_e000_1000));
}

#[test]
fn what_needs_more_than_computing_has_no_value() {
    // A method that loops for ever, one without a return, one that stores beyond its package.
    for body in [
        &b"\x14\x0aADDR\x00\xa2\x02\x01\xa4\x60"[..],
        b"\x14\x09ADDR\x00\x70\x01\x60",
        b"\x14\x15ADDR\x00\x70\x12\x02\x02\x60\x70\x01\x88\x60\x0a\x02\x00\xa4\x60",
        b"\x14\x0bADDR\x00\xa4\x88\x60\x01\x00",
    ] {
        assert_eq!(address(&[&table(body)], ID, *b"ADDR"), None);
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _any = address(&[&bytes], ID, *b"ADDR");
        let _any = address(&[&table(&bytes)], ID, *b"ADDR");
    }

    #[test]
    fn no_broken_byte_makes_it_panic(at in 36..202usize, to in any::<u8>(), cut in 0..202usize) {
        let mut bytes = hex(QEMU);
        bytes[at] = to;
        let _any = address(&[&bytes], ID, *b"ADDR");
        let _any = address(&[&bytes[..cut]], ID, *b"ADDR");
    }

    #[test]
    fn nesting_is_bounded(op in prop_oneof![Just(0x10u8), Just(0x70), Just(0x72), Just(0x12)], n in 1..3000usize) {
        let body = vec![op; n];
        let _any = address(&[&table(&body)], ID, *b"ADDR");
    }
}
