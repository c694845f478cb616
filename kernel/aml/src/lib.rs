//! The little of ACPI's byte code (AML) that it takes to find devices, evaluate one object of one and say where
//! their registers lie.
//!
//! Owns nothing: pure functions over the tables' bytes. It exists because the AML interpreters of
//! crates.io (`acpi` 7, `aml` 0.16) need a nightly compiler and carry a panic in every corner, and all
//! that is wanted here is an address. What is not understood is skipped where its length is known and
//! given up where it is not; there is no recursion without a bound, no allocation and no panic, whatever
//! the bytes are. Nothing is ever written and no register is touched: objects that need that have no value.
//! Lock rules: none.
//!
//! Reference: ACPI 6.5, chapter 20, "ACPI Machine Language (AML) Specification".
#![no_std]
#![forbid(unsafe_code)]

mod eval;
mod resource;
mod walk;

/// Length of the header in front of a table's byte code.
const HEADER: usize = 36;

/// The two integers of the package that the object `name` of the first device whose `_CID` or `_HID` is
/// the string `id` evaluates to: how ACPI says a 64-bit address, low half first.
///
/// `tables` are the DSDT and SSDTs, each with its header.
///
/// ```
/// assert_eq!(alea_aml::address(&[&[0; 64]], b"VM_Gen_Counter", *b"ADDR"), None);
/// ```
pub fn address(tables: &[&[u8]], id: &[u8], name: [u8; 4]) -> Option<u64> {
    tables.iter().find_map(|table| {
        let code = table.get(HEADER..)?;
        let device = walk::device(code, id)?;
        match eval::object(code, device, name)? {
            eval::Value::Package([low, high], 2) => Some(low & 0xffff_ffff | high << 32),
            _ => None,
        }
    })
}

/// Shows `visit` where the first area of memory lies that each device whose `_CID` or `_HID` is the string `id` names
/// (`Memory32Fixed` in its `_CRS`), and its length, until it is false.
///
/// ```
/// alea_aml::areas(&[&[0; 64]], b"LNRO0005", &mut |_, _| unreachable!("there is no device"));
/// ```
pub fn areas(tables: &[&[u8]], id: &[u8], visit: &mut dyn FnMut(u64, u64) -> bool) {
    let mut show = |device: &[u8]| match resource::area(device) {
        Some((start, len)) => visit(start, len),
        None => true,
    };
    for code in tables.iter().filter_map(|table| table.get(HEADER..)) {
        if !walk::devices(code, id, &mut show) {
            return;
        }
    }
}
