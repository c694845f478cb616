//! Filters of packets against a second implementation: the packet is one row of bytes there, in which places are numbers without a
//! bound, and instructions are taken apart where they are run.

mod common;

use alea_bpf::{Device, Facts, Filter, Insn, MAX_LEN, Packet};
use common::flip;
use proptest::prelude::*;

fn insn(code: u16, jt: u8, jf: u8, k: u32) -> Insn {
    Insn { code, jt, jf, k }
}

/// The opcodes that linux/filter.c allows (`chk_code_allowed`).
fn allowed(code: u16) -> bool {
    const LOADS: [u16; 10] = [0x00, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60, 0x80, 0x100];
    let (class, rest) = (code & 7, code & !7);
    match class {
        0 => LOADS[..9].contains(&rest),
        1 => [0x00, 0x60, 0x80, 0xb0].contains(&rest),
        2 | 3 => rest == 0,
        4 => rest == 0x80 || (rest & !8 <= 0xa0 && rest & !8 != 0x80),
        5 => rest == 0 || (0x10..0x50).contains(&rest),
        6 => rest == 0 || rest == 0x10,
        _ => rest == 0 || rest == 0x80,
    }
}

const TOLD: u32 = 0xffff_f000;

/// What linux/filter.c refuses of one instruction, but for jumps and cells.
fn is_good(insn: &Insn) -> bool {
    let k = insn.k;
    allowed(insn.code)
        && match insn.code {
            0x20 | 0x28 | 0x30 if k >= TOLD => k - TOLD <= 60 && k.is_multiple_of(4),
            0x02 | 0x03 | 0x60 | 0x61 => k < 16,
            0x34 | 0x94 => k != 0,
            0x64 | 0x74 => k < 32,
            _ => true,
        }
}

/// A packet as one row of bytes.
struct Row {
    bytes: Vec<u8>,
    data: i64,
    network: i64,
    link: Option<i64>,
}

impl Row {
    fn at(&self, place: i64, size: i64) -> Option<u32> {
        let bytes = (place..place + size).map(|at| self.bytes.get(usize::try_from(at).ok()?));
        bytes.map(|byte| byte.copied()).try_fold(0, |sum, byte| Some(sum << 8 | byte? as u32))
    }

    fn load(&self, offset: i64, size: i64) -> Option<u32> {
        match offset as i32 as i64 {
            offset @ 0.. => self.at(self.data + offset, size),
            offset if offset >= -0x10_0000 => self.at(self.network + offset + 0x10_0000, size),
            offset if offset >= -0x20_0000 => self.at(self.link? + offset + 0x20_0000, size),
            _ => None,
        }
    }

    fn attributes(&self, from: usize, len: usize, kind: u32) -> u32 {
        let (mut at, mut left) = (from, len);
        let data = &self.bytes[self.data as usize..];
        while left >= 4 {
            let own = u16::from_le_bytes([data[at], data[at + 1]]) as usize;
            if own < 4 || own > left {
                break;
            }
            if u16::from_le_bytes([data[at + 2], data[at + 3]]) as u32 & 0x3fff == kind {
                return at as u32;
            }
            let whole = own.div_ceil(4) * 4;
            (at, left) = (at + whole, left.saturating_sub(whole));
        }
        0
    }

    fn attribute(&self, a: u32, x: u32, nested: bool) -> u32 {
        let (a, len) = (a as usize, self.bytes.len() - self.data as usize);
        if len < 4 || a > len - 4 {
            return 0;
        }
        if !nested {
            return self.attributes(a, len - a, x);
        }
        let data = &self.bytes[self.data as usize..];
        let own = u16::from_le_bytes([data[a], data[a + 1]]) as usize;
        if own < 4 || own > len - a { 0 } else { self.attributes(a + 4, own - 4, x) }
    }
}

fn told(row: &Row, facts: &Facts, number: u32, a: u32, x: u32) -> Result<u32, u32> {
    Ok(match number {
        0 => facts.protocol as u32,
        8 => facts.device.ok_or(a)?.index,
        12 => row.attribute(a, x, false),
        16 => row.attribute(a, x, true),
        20 => facts.mark,
        28 => facts.device.ok_or(a)?.kind,
        32 => facts.hash,
        36 => facts.cpu,
        40 => a ^ x,
        52 => facts.payload,
        56 => (facts.random)(),
        _ => 0,
    })
}

/// What an operation makes of A; `None` for a division by zero.
fn computed(code: u16, a: u64, by: u64) -> Option<u64> {
    let value = match code & 0xf0 {
        0x00 => a + by,
        0x10 => (1 << 32) + a - by,
        0x20 => a * by,
        0x30 | 0x90 if by == 0 => return None,
        0x30 => a / by,
        0x90 => a % by,
        0x40 => a | by,
        0x50 => a & by,
        0x60 => a << (by & 31),
        0x70 => a >> (by & 31),
        0x80 => (1 << 32) - a,
        _ => a ^ by,
    };
    Some(value & 0xffff_ffff)
}

/// Runs a program that is one.
fn interpret(program: &[Insn], row: &Row, facts: &Facts) -> u32 {
    let (mut a, mut x, mut cells) = (0u64, 0u64, [None::<u64>; 16]);
    let len = row.bytes.len() as u64 - row.data as u64;
    let mut pc = 0;
    loop {
        let Insn { code, jt, jf, k } = program[pc];
        pc += 1;
        let operand = if code & 8 != 0 { x } else { k as u64 };
        let size = [4, 2, 1][(code >> 3 & 3) as usize % 3];
        match code {
            0x20 | 0x28 | 0x30 if k >= TOLD => match told(row, facts, k - TOLD, a as u32, x as u32)
            {
                Ok(value) => a = value as u64,
                Err(end) => return end,
            },
            0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 => {
                let from = if code & 0x40 != 0 { x as i64 } else { 0 };
                match row.load(from + k as i32 as i64, size) {
                    Some(value) => a = value as u64,
                    None => return 0,
                }
            }
            0xb1 => match row.load(k as i32 as i64, 1) {
                Some(byte) => x = (byte as u64 & 15) * 4,
                None => return 0,
            },
            0x80 => a = len,
            0x81 => x = len,
            0x00 => a = k as u64,
            0x01 => x = k as u64,
            0x60 => a = cells[k as usize].expect("read before it was written"),
            0x61 => x = cells[k as usize].expect("read before it was written"),
            0x02 => cells[k as usize] = Some(a),
            0x03 => cells[k as usize] = Some(x),
            0x05 => pc += k as usize,
            0x06 => return k,
            0x16 => return a as u32,
            0x07 => x = a,
            0x87 => a = x,
            _ if code & 7 == 4 => match computed(code, a, operand) {
                Some(value) => a = value,
                None => return 0,
            },
            _ => {
                let holds = match code & 0xf0 {
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    _ => a & operand != 0,
                };
                pc += if holds { jt } else { jf } as usize;
            }
        }
    }
}

fn any_k() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => 0..80u32,
        4 => (0..16u32).prop_map(|number| TOLD + number * 4),
        2 => (0..60u32).prop_map(|at| 0xfff0_0000 + at),
        2 => (0..60u32).prop_map(|at| 0xffe0_0000 + at),
        1 => TOLD - 8..=u32::MAX,
        1 => any::<u32>(),
    ]
}

fn any_insn() -> impl Strategy<Value = Insn> {
    let good: Vec<u16> = (0..=0xff).filter(|&code| allowed(code)).collect();
    let code = prop_oneof![60 => proptest::sample::select(good), 1 => any::<u16>()];
    (code, 0..4u8, 0..4u8, any_k()).prop_map(|(code, jt, jf, k)| insn(code, jt, jf, k))
}

/// Cells are all written first; jumps and constants are made right.
fn mended(mut program: Vec<Insn>) -> Vec<Insn> {
    program.retain(|insn| allowed(insn.code));
    let len = program.len();
    for (at, insn) in program.iter_mut().enumerate() {
        let left = (len - at - 1) as u32;
        match insn.code {
            0x20 | 0x28 | 0x30 if insn.k >= TOLD => insn.k = TOLD + insn.k % 16 * 4,
            0x02 | 0x03 | 0x60 | 0x61 => insn.k %= 16,
            0x34 | 0x94 => insn.k = insn.k.max(1),
            0x64 | 0x74 => insn.k %= 32,
            0x05 => insn.k = insn.k.checked_rem(left).unwrap_or(0),
            code if code & 7 == 5 => {
                insn.jt = (insn.jt as u32).checked_rem(left).unwrap_or(0) as u8;
                insn.jf = (insn.jf as u32).checked_rem(left).unwrap_or(0) as u8;
            }
            _ => {}
        }
    }
    let mut whole: Vec<Insn> = (0..16).map(|cell| insn(0x02, 0, 0, cell)).collect();
    whole.extend(program);
    whole.push(insn(0x16, 0, 0, 0));
    whole
}

#[derive(Clone, Debug)]
struct Sent {
    head: Vec<u8>,
    body: Vec<u8>,
    data: prop::sample::Index,
    network: prop::sample::Index,
    has_link: bool,
    device: bool,
}

fn any_sent() -> impl Strategy<Value = Sent> {
    // Small numbers make attributes.
    let byte = || prop_oneof![any::<u8>(), 0..9u8, Just(0u8)];
    let bytes = move |most| prop::collection::vec(byte(), 0..most);
    let at = any::<prop::sample::Index>;
    (bytes(60), bytes(100), at(), at(), any::<bool>(), any::<bool>()).prop_map(
        |(head, body, data, network, has_link, device)| Sent {
            head,
            body,
            data,
            network,
            has_link,
            device,
        },
    )
}

fn facts(device: bool) -> Facts {
    let device = device.then_some(Device { index: 1, kind: 772 });
    let random = || 0x1234_5678;
    Facts { protocol: 0x86dd, device, mark: 7, hash: 8, payload: 9, cpu: 3, random }
}

fn agree(program: &[Insn], sent: &Sent) -> Result<(), TestCaseError> {
    let filter = Filter::new(program.to_vec()).expect("a program was not mended");
    let places = sent.head.len() + 1;
    let (data, network) = (sent.data.index(places), sent.network.index(places));
    let facts = facts(sent.device);
    let (head, body, has_link) = (&sent.head[..], &sent.body[..], sent.has_link);
    let said = filter.run(&Packet { head, body, data, network, has_link, facts });
    let row = Row {
        bytes: [head, body].concat(),
        data: data as i64,
        network: network as i64,
        link: has_link.then_some(0),
    };
    prop_assert_eq!(said, interpret(program, &row, &facts));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn valid_programs(program in prop::collection::vec(any_insn(), 0..24), sent in any_sent()) {
        agree(&mended(program), &sent)?;
    }

    /// Whatever bytes come, what the check lets through is run to its end.
    #[test]
    fn mutated_programs(
        program in prop::collection::vec(any_insn(), 0..24),
        sent in any_sent(),
        at in any::<prop::sample::Index>(),
        bit in 0..64u32,
    ) {
        let mut program = mended(program);
        flip(&mut program, at, bit);
        if Filter::new(program.clone()).is_ok() {
            agree(&program, &sent)?;
        }
    }

    #[test]
    fn attributes(sent in any_sent(), at in 0..40u32, kind in 0..9u32, nested in any::<bool>()) {
        let what = TOLD + if nested { 16 } else { 12 };
        let program = [insn(0x01, 0, 0, kind), insn(0x00, 0, 0, at), insn(0x20, 0, 0, what)];
        agree(&mended(program.to_vec()), &sent)?;
    }
}

#[test]
fn every_opcode_is_judged_alike() {
    for code in 0..=u16::MAX {
        for k in
            [0, 1, 15, 16, 31, 32, 64, 0xffee_0000, TOLD - 1, TOLD, TOLD + 1, TOLD + 60, TOLD + 64]
        {
            // Jumps by one and the cells that are there are good.
            let mut program: Vec<Insn> = (0..16).map(|cell| insn(0x02, 0, 0, cell)).collect();
            program.push(insn(code, 0, 0, k));
            program.extend([insn(0x06, 0, 0, 0); 70]);
            let judged = Filter::new(program).is_ok();
            let expected = is_good(&insn(code, 0, 0, k)) && (code != 5 || k < 70);
            assert_eq!(judged, expected, "{code:#x} {k:#x}");
        }
    }
}

#[test]
fn ends_lengths_and_cells() {
    let ret = insn(0x06, 0, 0, 1);
    assert!(Filter::new(Vec::new()).is_err());
    assert!(Filter::new(vec![ret; MAX_LEN]).is_ok());
    assert!(Filter::new(vec![ret; MAX_LEN + 1]).is_err());
    assert!(Filter::new(vec![ret, insn(0x00, 0, 0, 1)]).is_err());
    assert!(Filter::new(vec![insn(0x60, 0, 0, 3), ret]).is_err());
    assert!(Filter::new(vec![insn(0x15, 0, 1, 3), ret]).is_err());
}

#[test]
fn weights_are_those_of_linux() {
    let weight = |code, k| {
        let filter = Filter::new(vec![insn(code, 0, 0, k), insn(0x06, 0, 0, 1)]).unwrap();
        filter.weight() - 2
    };
    assert_eq!(weight(0x00, 1), 3 + 1);
    assert_eq!(weight(0x80, 0), 3 + 1);
    assert_eq!(weight(0x20, 0), 7 + 13);
    assert_eq!(weight(0x20, 4), 7 + 14);
    assert_eq!(weight(0x28, 0x8000), 7 + 16);
    assert_eq!(weight(0x30, 4), 7 + 13);
    assert_eq!(weight(0x30, 0xfff0_0000), 7 + 8);
    assert_eq!(weight(0x40, 0), 7 + 8);
    assert_eq!(weight(0x50, 1), 7 + 9);
    assert_eq!(weight(0xb1, 0), 7 + 18);
    assert_eq!(weight(0x20, TOLD), 3 + 2);
    assert_eq!(weight(0x20, TOLD + 56), 3 + 4);
}

#[test]
fn walks_over_attributes_are_bounded() {
    let facts = facts(false);
    // As many attributes as there can be, none of which is looked for.
    let body = [4, 0, 1, 0].repeat(4096);
    let packet = Packet { head: &[], body: &body, data: 0, network: 0, has_link: false, facts };
    let walks = |count| {
        let mut insns = vec![insn(0x01, 0, 0, 2)];
        for _ in 0..count {
            insns.extend([insn(0x00, 0, 0, 0), insn(0x20, 0, 0, TOLD + 12)]);
        }
        insns.push(insn(0x06, 0, 0, 7));
        Filter::new(insns).unwrap().run(&packet)
    };
    assert_eq!(walks(16), 7);
    assert_eq!(walks(17), 0);
    assert_eq!(walks(1000), 0);
}
