//! Plans of real and of broken files.

use alea_elf::{Error, HEADER_LEN, Header, Kind, PHDR_LEN, Plan};
use proptest::prelude::*;

const LIMIT: u64 = 0x7fff_ffff_f000;

fn header(kind: u16, machine: u16, phdrs: u16) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes[16..18].copy_from_slice(&kind.to_le_bytes());
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes[24..32].copy_from_slice(&0x40_1000u64.to_le_bytes());
    bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
    bytes[54..56].copy_from_slice(&56u16.to_le_bytes());
    bytes[56..58].copy_from_slice(&phdrs.to_le_bytes());
    bytes
}

fn phdr(kind: u32, flags: u32, [offset, vaddr, filesz, memsz]: [u64; 4]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    for word in [offset, vaddr, vaddr, filesz, memsz, 0x1000] {
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

fn plan(phdrs: &[Vec<u8>]) -> Result<Plan, Error> {
    let header = Header::parse(&header(2, 62, phdrs.len() as u16))?;
    Plan::new(&header, &phdrs.concat(), LIMIT)
}

#[test]
fn an_ordinary_static_executable() {
    let plan = plan(&[
        phdr(1, 4, [0, 0x40_0000, 0x500, 0x500]),
        phdr(1, 5, [0x1000, 0x40_1000, 0x2345, 0x2345]),
        phdr(1, 6, [0x4e10, 0x40_5e10, 0x200, 0x1400]),
        phdr(0x6474_e551, 6, [0; 4]),
    ])
    .unwrap();
    assert_eq!(plan.kind, Kind::Fixed);
    assert_eq!((plan.start(), plan.end()), (0x40_0000, 0x40_8000));
    assert_eq!(plan.phdrs, 0x40_0040);
    assert_eq!(plan.break_start(), 0x40_7210);
    assert!(!plan.exec_stack);
    let data = plan.loads[2];
    assert_eq!((data.start(), data.file_start(), data.file_end()), (0x40_5000, 0x4000, 0x40_7000));
    assert_eq!(data.tail(), (0x40_6010, 0xff0));
}

#[test]
fn what_is_no_executable_of_this_machine() {
    let parse = |bytes: &[u8]| Header::parse(bytes).err();
    assert_eq!(parse(b""), Some(Error::NotExecutable));
    assert_eq!(parse(b"#!/bin/sh\n"), Some(Error::NotExecutable));
    assert_eq!(parse(&header(1, 62, 1)), Some(Error::NotExecutable), "relocatable");
    assert_eq!(parse(&header(2, 3, 1)), Some(Error::NotExecutable), "i386");
    assert_eq!(parse(&header(2, 62, 0)), Some(Error::NotExecutable), "no program headers");
    assert_eq!(parse(&header(2, 62, 1171)), Some(Error::NotExecutable), "more than 64 KiB of them");
    let mut odd = header(2, 62, 1);
    odd[54] = 57;
    assert_eq!(parse(&odd), Some(Error::NotExecutable), "another header size");
}

#[test]
fn segments_that_cannot_be_mapped() {
    for wrong in [
        [0, 0x40_0000, 0x1000, 0x500],
        [0x10, 0x40_0000, 0x500, 0x500],
        [0, LIMIT, 0x1000, 0x1000],
        [0, 0x40_0000, 0x1000, u64::MAX],
        [0, !0xfff, 0x1000, 0x1000],
        [!0xfff, 0x40_0000, 0x1000, 0x1000],
    ] {
        assert_eq!(plan(&[phdr(1, 5, wrong)]), Err(Error::BadLayout), "{wrong:x?}");
    }
    assert_eq!(plan(&[phdr(0x6474_e551, 6, [0; 4])]), Err(Error::BadLayout), "nothing to load");
}

#[test]
fn interpreters() {
    let load = phdr(1, 5, [0, 0x40_0000, 0x1000, 0x1000]);
    let with = |size| plan(&[load.clone(), phdr(3, 4, [0x200, 0x40_0200, size, size])]);
    assert_eq!(with(28).unwrap().interp, Some((0x200, 28)));
    assert_eq!(with(1), Err(Error::NotExecutable));
    assert_eq!(with(4097), Err(Error::NotExecutable));
}

#[test]
fn the_host_can_run_itself() {
    let bytes = std::fs::read("/proc/self/exe").unwrap();
    let header = Header::parse(&bytes).unwrap();
    let start = header.phdrs_offset as usize;
    let plan = Plan::new(&header, &bytes[start..start + header.phdrs_len()], LIMIT).unwrap();
    assert!(plan.loads.iter().any(|s| s.flags.exec()));
    assert!(plan.loads.iter().all(|s| s.file_end() <= s.end().max(s.start())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_safe(start in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(header) = Header::parse(&start) {
            let _ = Plan::new(&header, &start, LIMIT);
        }
    }

    #[test]
    fn any_program_headers_are_safe(
        kind in 2u16..4,
        phdrs in proptest::collection::vec(
            (prop_oneof![Just(1u32), Just(3), Just(0x6474_e551), any::<u32>()], any::<u32>(),
             any::<[u64; 4]>(), any::<[u16; 4]>(), any::<bool>()), 1..40),
    ) {
        let bytes: Vec<u8> = phdrs.iter().flat_map(|(kind, flags, wide, narrow, small)| {
            let words = if *small { narrow.map(|n| u64::from(n) << 4) } else { *wide };
            phdr(*kind, *flags, words)
        }).collect();
        let header = Header::parse(&header(kind, 62, phdrs.len() as u16)).unwrap();
        assert_eq!(bytes.len(), phdrs.len() * PHDR_LEN);
        if let Ok(plan) = Plan::new(&header, &bytes, LIMIT) {
            for segment in &plan.loads {
                prop_assert!(segment.start() <= segment.file_end());
                prop_assert!(segment.file_end() <= segment.end() || segment.mem_size == 0);
                prop_assert!(segment.end() <= LIMIT + 0x1000);
                let (at, len) = segment.tail();
                prop_assert!(len < 4096 && (len == 0 || (at + len) % 4096 == 0));
            }
        }
    }
}
