//! Seeds that firmware and boot loaders leave in memory, and tables that lie about them.

use alea_random::credit::EntropyBits;
use alea_random::handed::{
    EFI_SYSTEM_TABLE, LONGEST, efi_configuration, efi_seed, efi_seed_len, in_oem0, worth,
};
use proptest::prelude::*;

fn oem0(maker: &[u8; 8], seed: usize) -> Vec<u8> {
    let mut table = vec![0; 36 + seed];
    table[16..24].copy_from_slice(maker);
    table
}

#[test]
fn a_seed_of_oem0_follows_the_header() {
    assert_eq!(in_oem0(&oem0(b"MICROSFT", 64)), Some(36..100));
    assert_eq!(in_oem0(&oem0(b"MICROSFT", 8)), Some(36..44));
    // Linux takes a table of 4,096 bytes at most.
    assert_eq!(in_oem0(&oem0(b"MICROSFT", 4060)), Some(36..36 + LONGEST));
    assert_eq!(in_oem0(&oem0(b"MICROSFT", 4061)), None);
}

#[test]
fn a_short_table_or_another_makers_has_none() {
    assert_eq!(in_oem0(&oem0(b"MICROSFT", 7)), None);
    assert_eq!(in_oem0(&oem0(b"BOCHS   ", 64)), None);
    assert_eq!(in_oem0(&[0; 20]), None);
    assert_eq!(in_oem0(&[]), None);
}

fn system_table(entries: u64, address: u64) -> [u8; EFI_SYSTEM_TABLE] {
    let mut table = [0; EFI_SYSTEM_TABLE];
    table[..8].copy_from_slice(b"IBI SYST");
    table[104..112].copy_from_slice(&entries.to_le_bytes());
    table[112..120].copy_from_slice(&address.to_le_bytes());
    table
}

#[test]
fn the_configuration_table_is_found_unless_the_system_table_lies() {
    assert_eq!(efi_configuration(&system_table(10, 0x7fe0_0000)), Some((0x7fe0_0000, 240)));
    assert_eq!(efi_configuration(&system_table(257, 0x7fe0_0000)), None);
    assert_eq!(efi_configuration(&system_table(u64::MAX, 0x7fe0_0000)), None);
    assert_eq!(efi_configuration(&system_table(10, 0)), None);
    assert_eq!(efi_configuration(&[0x41; EFI_SYSTEM_TABLE]), None);
}

#[test]
fn the_seed_is_found_by_its_guid() {
    let guid = [0xbc, 0xe5, 0xe1, 0x1c, 0xeb, 0x7c, 0xf2, 0x42, 0x81, 0xe5, 0x8a, 0xad];
    let mut table = vec![0x11; 48];
    assert_eq!(efi_seed(&table), None);
    table.extend(guid);
    table.extend([0xf1, 0x80, 0xf5, 0x7b]);
    assert_eq!(efi_seed(&table), None, "the entry is cut off");
    table.extend(0x1234_5678_u64.to_le_bytes());
    assert_eq!(efi_seed(&table), Some(0x1234_5678));
    table[64..].fill(0);
    assert_eq!(efi_seed(&table), None, "an address of zero is none");
}

#[test]
fn a_length_is_believed_up_to_a_limit() {
    let len = |len: u32| efi_seed_len(len.to_le_bytes());
    assert_eq!((len(32), len(8), len(1024)), (Some(32), Some(8), Some(1024)));
    assert_eq!((len(1025), len(u32::MAX)), (Some(1024), Some(1024)));
    assert_eq!((len(7), len(0)), (None, None));
}

#[test]
fn a_seed_is_worth_its_bits_and_no_more_than_all() {
    assert_eq!(worth(8), EntropyBits(64));
    assert_eq!(worth(32), EntropyBits(256));
    assert_eq!(worth(usize::MAX), EntropyBits(256));
}

proptest! {
    #[test]
    fn no_table_leads_out_of_itself(table in prop::collection::vec(any::<u8>(), 0..5000), marked: bool) {
        let mut table = table;
        if marked && table.len() > 24 {
            table[16..24].copy_from_slice(b"MICROSFT");
        }
        if let Some(seed) = in_oem0(&table) {
            prop_assert!(seed.end <= table.len() && seed.len() >= 8 && seed.len() <= LONGEST);
        }
        let _address = efi_seed(&table);
    }
}
