//! Evaluating an object: constants, packages, and methods that only compute.
//!
//! Owns a method's local variables. Knows Store, Add, Subtract, And, Or, shifts, Index and Return, which
//! is what a method that adds up an address consists of; anything else has no value. Steps and nesting
//! are bounded.

use crate::walk::{self, Declaration, Declarations};

/// Operations within operations.
const DEPTH: u32 = 16;
/// Elements of a package that are kept.
const ELEMENTS: usize = 2;

/// What byte code evaluates to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Integer(u64),
    /// The first elements and how many there are.
    Package([u64; ELEMENTS], usize),
}

/// The value of the object `name` of a device in the table `code`.
pub fn object(code: &[u8], device: &[u8], name: [u8; 4]) -> Option<Value> {
    let mut method = Method { code, locals: [Value::Integer(0); 8] };
    Declarations(device).find_map(|found| match found {
        Declaration::Name(this, value) if this == name => Some(method.value(value, DEPTH)?.0),
        Declaration::Method(this, body) if this == name => method.run(body),
        _ => None,
    })
}

struct Method<'a> {
    code: &'a [u8],
    locals: [Value; 8],
}

/// Where a Store goes to.
enum Target {
    Nowhere,
    Local(usize),
    Element(usize, usize),
}

impl Method<'_> {
    /// Runs the body to its Return.
    fn run(&mut self, mut body: &[u8]) -> Option<Value> {
        loop {
            if let [0xa4, rest @ ..] = body {
                return Some(self.value(rest, DEPTH)?.0);
            }
            // A statement is an operation whose value is not used; each takes at least a byte.
            body = self.value(body, DEPTH)?.1;
        }
    }

    /// The value at the front, and what follows.
    fn value<'c>(&mut self, code: &'c [u8], depth: u32) -> Option<(Value, &'c [u8])> {
        let depth = depth.checked_sub(1)?;
        match *code {
            [local @ 0x60..=0x67, ref rest @ ..] => {
                Some((*self.locals.get(usize::from(local - 0x60))?, rest))
            }
            [0x12, ref rest @ ..] => {
                let (inside, rest) = walk::package(rest)?;
                Some((self.package(inside, depth)?, rest))
            }
            // Store
            [0x70, ref rest @ ..] => {
                let (value, rest) = self.value(rest, depth)?;
                let (target, rest) = self.target(rest, depth)?;
                self.store(target, value)?;
                Some((value, rest))
            }
            // Add, Subtract, ShiftLeft, ShiftRight, And, Or
            [op @ (0x72 | 0x74 | 0x79..=0x7b | 0x7d), ref rest @ ..] => {
                let (left, rest) = self.integer(rest, depth)?;
                let (right, rest) = self.integer(rest, depth)?;
                let (target, rest) = self.target(rest, depth)?;
                let value = Value::Integer(combine(op, left, right)?);
                self.store(target, value)?;
                Some((value, rest))
            }
            _ => match walk::constant(code) {
                Some((value, rest)) => Some((Value::Integer(value), rest)),
                None => {
                    let (name, rest) = walk::name(code)?;
                    Some((Value::Integer(walk::integer(self.code, name)?), rest))
                }
            },
        }
    }

    fn integer<'c>(&mut self, code: &'c [u8], depth: u32) -> Option<(u64, &'c [u8])> {
        match self.value(code, depth)? {
            (Value::Integer(value), rest) => Some((value, rest)),
            _ => None,
        }
    }

    fn package(&mut self, code: &[u8], depth: u32) -> Option<Value> {
        let (&count, mut rest) = code.split_first()?;
        let mut elements = [0; ELEMENTS];
        for element in elements.iter_mut().take(usize::from(count)) {
            // A package may have fewer initialisers than elements.
            if rest.is_empty() {
                break;
            }
            (*element, rest) = self.integer(rest, depth)?;
        }
        Some(Value::Package(elements, usize::from(count)))
    }

    fn target<'c>(&mut self, code: &'c [u8], depth: u32) -> Option<(Target, &'c [u8])> {
        match *code {
            [0x00, ref rest @ ..] => Some((Target::Nowhere, rest)),
            [local @ 0x60..=0x67, ref rest @ ..] => {
                Some((Target::Local(usize::from(local - 0x60)), rest))
            }
            // Index (Local, number, nothing)
            [0x88, local @ 0x60..=0x67, ref rest @ ..] => {
                let (index, rest) = self.integer(rest, depth)?;
                let [0x00, rest @ ..] = rest else { return None };
                let index = usize::try_from(index).ok()?;
                Some((Target::Element(usize::from(local - 0x60), index), rest))
            }
            _ => None,
        }
    }

    fn store(&mut self, target: Target, value: Value) -> Option<()> {
        match (target, value) {
            (Target::Nowhere, _) => {}
            (Target::Local(local), value) => *self.locals.get_mut(local)? = value,
            (Target::Element(local, index), Value::Integer(value)) => {
                let Value::Package(elements, count) = self.locals.get_mut(local)? else {
                    return None;
                };
                if index >= *count {
                    return None;
                }
                *elements.get_mut(index)? = value;
            }
            (Target::Element(..), Value::Package(..)) => return None,
        }
        Some(())
    }
}

fn combine(op: u8, left: u64, right: u64) -> Option<u64> {
    let bits = u32::try_from(right).unwrap_or(u32::MAX);
    Some(match op {
        0x72 => left.wrapping_add(right),
        0x74 => left.wrapping_sub(right),
        0x79 => left.checked_shl(bits).unwrap_or(0),
        0x7a => left.checked_shr(bits).unwrap_or(0),
        0x7b => left & right,
        0x7d => left | right,
        _ => return None,
    })
}
