//! Walking the declarations of a block of byte code: names, scopes, devices, methods.
//!
//! Owns the reading of lengths, name strings and constants. Never leaves the slice it was given; a
//! declaration that it does not know ends its block.

/// Scopes within scopes within scopes, at most.
const DEPTH: u32 = 8;

/// A declaration that is of use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declaration<'a> {
    /// `Name (name, value)`: the bytes from the value on.
    Name([u8; 4], &'a [u8]),
    /// `Scope` or `Device`: what is inside.
    Block { device: bool, inside: &'a [u8] },
    /// `Method`: its body. Only methods without arguments.
    Method([u8; 4], &'a [u8]),
}

/// The inside of the first device with that `_CID` or `_HID`.
pub fn device<'a>(code: &'a [u8], id: &[u8]) -> Option<&'a [u8]> {
    device_within(code, id, DEPTH)
}

fn device_within<'a>(code: &'a [u8], id: &[u8], depth: u32) -> Option<&'a [u8]> {
    let depth = depth.checked_sub(1)?;
    Declarations(code).find_map(|found| match found {
        Declaration::Block { device: true, inside } if has_id(inside, id) => Some(inside),
        Declaration::Block { inside, .. } => device_within(inside, id, depth),
        _ => None,
    })
}

/// Shows `visit` the inside of every device with that `_CID` or `_HID`, until it is false: whether it never was.
pub fn devices<'a>(code: &'a [u8], id: &[u8], visit: &mut dyn FnMut(&'a [u8]) -> bool) -> bool {
    devices_within(code, id, visit, DEPTH)
}

fn devices_within<'a>(
    code: &'a [u8],
    id: &[u8],
    visit: &mut dyn FnMut(&'a [u8]) -> bool,
    depth: u32,
) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return true };
    Declarations(code).all(|found| match found {
        Declaration::Block { device: true, inside } if has_id(inside, id) => visit(inside),
        Declaration::Block { inside, .. } => devices_within(inside, id, visit, depth),
        _ => true,
    })
}

fn has_id(device: &[u8], id: &[u8]) -> bool {
    Declarations(device).any(|found| match found {
        Declaration::Name(name, [0x0d, text @ ..]) if &name == b"_CID" || &name == b"_HID" => {
            text.strip_prefix(id).is_some_and(|rest| rest.first() == Some(&0))
        }
        _ => false,
    })
}

/// The value of the integer `name`, wherever in the table it is declared.
pub fn integer(code: &[u8], name: [u8; 4]) -> Option<u64> {
    integer_within(code, name, DEPTH)
}

fn integer_within(code: &[u8], name: [u8; 4], depth: u32) -> Option<u64> {
    let depth = depth.checked_sub(1)?;
    Declarations(code).find_map(|found| match found {
        Declaration::Name(this, value) if this == name => Some(constant(value)?.0),
        Declaration::Block { inside, .. } => integer_within(inside, name, depth),
        _ => None,
    })
}

/// The declarations of one block, in order.
pub struct Declarations<'a>(pub &'a [u8]);

impl<'a> Iterator for Declarations<'a> {
    type Item = Declaration<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match declaration(self.0) {
                Some((found, rest)) => {
                    self.0 = rest;
                    if found.is_some() {
                        return found;
                    }
                }
                None => {
                    self.0 = &[];
                    return None;
                }
            }
        }
    }
}

/// The first declaration, if it is of use, and what follows it.
fn declaration(code: &[u8]) -> Option<(Option<Declaration<'_>>, &[u8])> {
    match *code {
        // Name
        [0x08, ref rest @ ..] => {
            let (name, value) = name(rest)?;
            Some((Some(Declaration::Name(name, value)), skip_data(value)?))
        }
        // Alias, External
        [0x06, ref rest @ ..] => Some((None, name(name(rest)?.1)?.1)),
        [0x15, ref rest @ ..] => Some((None, name(rest)?.1.get(2..)?)),
        // Scope, Device
        [0x10, ref rest @ ..] => {
            let (inside, rest) = package(rest)?;
            Some((Some(Declaration::Block { device: false, inside: name(inside)?.1 }), rest))
        }
        [0x5b, 0x82, ref rest @ ..] => {
            let (inside, rest) = package(rest)?;
            Some((Some(Declaration::Block { device: true, inside: name(inside)?.1 }), rest))
        }
        // Method
        [0x14, ref rest @ ..] => {
            let (inside, rest) = package(rest)?;
            let (name, inside) = name(inside)?;
            let (flags, body) = inside.split_first()?;
            let method = (flags & 7 == 0).then_some(Declaration::Method(name, body));
            Some((method, rest))
        }
        // Mutex, Event
        [0x5b, 0x01, ref rest @ ..] => Some((None, name(rest)?.1.get(1..)?)),
        [0x5b, 0x02, ref rest @ ..] => Some((None, name(rest)?.1)),
        // OperationRegion
        [0x5b, 0x80, ref rest @ ..] => {
            let rest = name(rest)?.1.get(1..)?;
            Some((None, skip_data(skip_data(rest)?)?))
        }
        // Field, Processor, PowerResource, ThermalZone, IndexField, BankField; If, Else
        [0x5b, 0x81 | 0x83..=0x87, ref rest @ ..] | [0xa0 | 0xa1, ref rest @ ..] => {
            Some((None, package(rest)?.1))
        }
        _ => None,
    }
}

/// What a leading length covers, and what follows.
pub fn package(code: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&lead, _) = code.split_first()?;
    let more = usize::from(lead >> 6);
    let mut length = usize::from(if more == 0 { lead & 0x3f } else { lead & 0x0f });
    for (place, &byte) in code.get(1..1 + more)?.iter().enumerate() {
        length |= usize::from(byte) << (4 + 8 * place);
    }
    // The length counts its own bytes.
    Some((code.get(1 + more..length)?, code.get(length..)?))
}

/// The last part of a name, and what follows.
pub fn name(code: &[u8]) -> Option<([u8; 4], &[u8])> {
    let start = code.iter().position(|byte| !matches!(byte, b'\\' | b'^'))?;
    let code = code.get(start..)?;
    let (count, code) = match *code {
        [0x00, ref rest @ ..] => return Some(([0; 4], rest)),
        [0x2e, ref rest @ ..] => (2, rest),
        [0x2f, count, ref rest @ ..] => (usize::from(count), rest),
        _ => (1, code),
    };
    let (parts, rest) = code.split_at_checked(4 * count)?;
    let part: [u8; 4] = *parts.last_chunk()?;
    let letters = part.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'_' | b'0'..=b'9'));
    (letters && !part[0].is_ascii_digit()).then_some((part, rest))
}

/// An integer constant, and what follows.
pub fn constant(code: &[u8]) -> Option<(u64, &[u8])> {
    let (&lead, rest) = code.split_first()?;
    let width = match lead {
        0x00 | 0x01 => return Some((u64::from(lead), rest)),
        0xff => return Some((u64::MAX, rest)),
        0x0a => 1,
        0x0b => 2,
        0x0c => 4,
        0x0e => 8,
        _ => return None,
    };
    let (bytes, rest) = rest.split_at_checked(width)?;
    Some((bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)), rest))
}

/// What follows a constant, string, buffer, package or name.
fn skip_data(code: &[u8]) -> Option<&[u8]> {
    match *code {
        [0x0d, ref rest @ ..] => rest.get(rest.iter().position(|&byte| byte == 0)? + 1..),
        [0x11..=0x13, ref rest @ ..] => Some(package(rest)?.1),
        _ => match constant(code) {
            Some((_, rest)) => Some(rest),
            None => Some(name(code)?.1),
        },
    }
}
