//! The check and the interpreter against a second implementation, which works straight from the definition: bytes of the
//! instruction taken apart where they are needed, a program counter, and cells that say whether they were written.

mod common;

use alea_bpf::{DATA_WORDS, Insn, MAX_LEN, Program};
use common::flip;
use proptest::prelude::*;
use std::collections::HashMap;

/// The opcodes that seccomp allows, as linux/seccomp.c lists them: class, then size and mode, operation or source.
fn allowed(code: u16) -> bool {
    const ALU: [u16; 9] = [0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0];
    const JUMPS: [u16; 4] = [0x10, 0x20, 0x30, 0x40];
    let (class, rest) = (code & 7, code & !7);
    match class {
        0 => [0x00, 0x20, 0x60, 0x80].contains(&rest),
        1 => [0x00, 0x60, 0x80].contains(&rest),
        2 | 3 => rest == 0,
        4 => rest == 0x80 || ALU.contains(&rest) || ALU.contains(&(rest ^ 8)),
        5 => rest == 0 || JUMPS.contains(&rest) || JUMPS.contains(&(rest ^ 8)),
        6 => rest == 0 || rest == 0x10,
        _ => rest == 0 || rest == 0x80,
    }
}

/// Where the instruction at `pc` may go.
fn targets(program: &[Insn], pc: usize) -> Vec<usize> {
    let insn = program[pc];
    match insn.code {
        0x05 => vec![pc + 1 + insn.k as usize],
        code if code & 7 == 5 => vec![pc + 1 + insn.jt as usize, pc + 1 + insn.jf as usize],
        _ => vec![pc + 1],
    }
}

/// Whether a program is one, by the definition. What a cell has on the ways to an instruction is found by going them all,
/// again and again until nothing changes; as on Linux a return is no end of a way.
fn is_valid(program: &[Insn]) -> bool {
    if program.is_empty() || program.len() > 4096 {
        return false;
    }
    for (pc, insn) in program.iter().enumerate() {
        let k = insn.k;
        let good = allowed(insn.code)
            && match insn.code {
                0x20 => k < 64 && k % 4 == 0,
                0x02 | 0x03 | 0x60 | 0x61 => k < 16,
                0x34 => k != 0,
                0x64 | 0x74 => k < 32,
                _ => true,
            };
        if !good {
            return false;
        }
        if insn.code & 7 == 5 && targets(program, pc).iter().any(|&to| to >= program.len()) {
            return false;
        }
    }
    if program.last().is_none_or(|insn| insn.code & 7 != 6) {
        return false;
    }
    let mut before: HashMap<usize, u16> = HashMap::from([(0, 0)]);
    loop {
        let mut changed = false;
        for pc in 0..program.len() {
            let Some(&at) = before.get(&pc) else { continue };
            let stores = program[pc].code == 2 || program[pc].code == 3;
            let after = if stores { at | 1 << program[pc].k } else { at };
            for to in targets(program, pc) {
                let old = before.get(&to).copied();
                let new = old.unwrap_or(u16::MAX) & after;
                changed |= old != Some(new);
                before.insert(to, new);
            }
        }
        if !changed {
            break;
        }
    }
    let reads = |insn: &Insn| insn.code == 0x60 || insn.code == 0x61;
    program.iter().enumerate().all(|(pc, insn)| {
        // What no way leads to may read anything.
        !reads(insn) || before.get(&pc).is_none_or(|cells| cells & 1 << insn.k != 0)
    })
}

/// Runs a valid program; how many instructions that took, too.
fn interpret(program: &[Insn], data: &[u32; DATA_WORDS]) -> (u32, usize) {
    let (mut a, mut x, mut cells) = (0u64, 0u64, [None::<u64>; 16]);
    let mut pc = 0;
    for steps in 1.. {
        let Insn { code, jt, jf, k } = program[pc];
        pc += 1;
        let operand = if code & 8 != 0 { x } else { k as u64 };
        match code & 7 {
            0 | 1 => {
                let value = match code & 0xe0 {
                    0x00 => k as u64,
                    0x20 => data[k as usize / 4] as u64,
                    0x60 => cells[k as usize].expect("read before it was written"),
                    _ => 64,
                };
                if code & 7 == 0 { a = value } else { x = value }
            }
            2 => cells[k as usize] = Some(a),
            3 => cells[k as usize] = Some(x),
            4 => {
                a = match code & 0xf0 {
                    0x00 => a + operand,
                    0x10 => (1 << 32) + a - operand,
                    0x20 => a * operand,
                    0x30 if operand == 0 => return (0, steps),
                    0x30 => a / operand,
                    0x40 => a | operand,
                    0x50 => a & operand,
                    0x60 => a << (operand & 31),
                    0x70 => a >> (operand & 31),
                    0x80 => (1 << 32) - a,
                    _ => a ^ operand,
                } & 0xffff_ffff;
            }
            5 if code == 5 => pc += k as usize,
            5 => {
                let holds = match code & 0xf0 {
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    _ => a & operand != 0,
                };
                pc += if holds { jt } else { jf } as usize;
            }
            6 => return (if code == 6 { k } else { a as u32 }, steps),
            _ => {
                if code == 7 {
                    x = a
                } else {
                    a = x
                }
            }
        }
    }
    unreachable!()
}

fn insn(code: u16, jt: u8, jf: u8, k: u32) -> Insn {
    Insn { code, jt, jf, k }
}

fn any_code() -> impl Strategy<Value = u16> {
    let good: Vec<u16> = (0..=0xff).filter(|&code| allowed(code)).collect();
    prop_oneof![40 => proptest::sample::select(good), 1 => 0..=0xffu16, 1 => any::<u16>()]
}

fn any_k() -> impl Strategy<Value = u32> {
    prop_oneof![
        6 => 0..20u32,
        4 => (0..16u32).prop_map(|word| word * 4),
        1 => 56..72u32,
        1 => any::<u32>(),
        1 => Just(u32::MAX),
        1 => Just(1 << 31),
    ]
}

fn any_insn() -> impl Strategy<Value = Insn> {
    (any_code(), 0..6u8, 0..6u8, any_k()).prop_map(|(code, jt, jf, k)| insn(code, jt, jf, k))
}

/// A program that may be wrong in any way, but ends with a return mostly.
fn any_program() -> impl Strategy<Value = Vec<Insn>> {
    (prop::collection::vec(any_insn(), 0..24), 0..20u8).prop_map(|(mut program, end)| {
        if end > 0 {
            program.push(insn(if end % 2 == 0 { 0x06 } else { 0x16 }, 0, 0, 0x7fff_0000));
        }
        program
    })
}

/// Makes a program right where it is wrong, so that most of them are run.
fn mended(mut program: Vec<Insn>) -> Vec<Insn> {
    // All cells are written first.
    let mut whole: Vec<Insn> = (0..16).map(|cell| insn(0x02, 0, 0, cell)).collect();
    program.retain(|insn| allowed(insn.code));
    let len = program.len();
    for (at, insn) in program.iter_mut().enumerate() {
        let left = (len - at - 1) as u32;
        match insn.code {
            0x20 => insn.k = insn.k % 16 * 4,
            0x02 | 0x03 | 0x60 | 0x61 => insn.k %= 16,
            0x34 => insn.k = insn.k.max(1),
            0x64 | 0x74 => insn.k %= 32,
            0x05 => insn.k = insn.k.checked_rem(left).unwrap_or(0),
            code if code & 7 == 5 => {
                insn.jt = (insn.jt as u32).checked_rem(left).unwrap_or(0) as u8;
                insn.jf = (insn.jf as u32).checked_rem(left).unwrap_or(0) as u8;
            }
            _ => {}
        }
    }
    whole.extend(program);
    if whole.last().is_none_or(|insn| insn.code & 7 != 6) {
        whole.push(insn(0x16, 0, 0, 0));
    }
    whole
}

fn any_data() -> impl Strategy<Value = [u32; DATA_WORDS]> {
    prop_oneof![any::<[u32; DATA_WORDS]>(), proptest::array::uniform16(0..4u32)]
}

/// Both say the same of the program, and of the data if it is one.
fn agree(program: &[Insn], data: &[u32; DATA_WORDS]) -> Result<bool, TestCaseError> {
    let checked = Program::new(program.to_vec());
    prop_assert_eq!(checked.is_ok(), is_valid(program), "{:?}", checked);
    let Ok(checked) = checked else { return Ok(false) };
    let (expected, steps) = interpret(program, data);
    prop_assert!(steps <= program.len());
    prop_assert_eq!(checked.run(data), expected);
    let known = checked.on_number(data[0], data[1]);
    if let Some(answer) = known.said {
        prop_assert_eq!(answer, expected);
    } else {
        prop_assert!(program.iter().any(|insn| insn.code == 0x20 && insn.k >= 8));
    }
    prop_assert_eq!(checked.run_from(known.start, data), expected);
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs(program in any_program(), data in any_data()) {
        agree(&program, &data)?;
    }

    #[test]
    fn valid_programs(program in any_program(), data in any_data()) {
        prop_assert!(agree(&mended(program), &data)?, "a program was not mended");
    }

    #[test]
    fn programs_with_rows(
        before in any_program(),
        row in prop_oneof![
            prop::collection::vec((0..8u8, 0..12u32), 4..40),
            prop::collection::vec((0..8u8, any_k()), 4..40),
        ],
        behind in any_program(),
        data in any_data(),
        into in 0..60u8,
    ) {
        // A jump into the middle of the row, or behind it.
        let mut program = vec![insn(0x20, 0, 0, 0), insn(0x15, into, 0, 1)];
        program.extend(row.into_iter().map(|(jt, k)| insn(0x15, jt, 0, k)));
        program.extend(before.into_iter().chain(behind));
        let mut program = mended(program);
        prop_assert!(agree(&program, &data)?, "a program was not mended");
        for first in 0..16 {
            agree(&program, &[first; DATA_WORDS])?;
        }
        program.truncate(30);
        program.push(insn(0x16, 0, 0, 0));
        agree(&program, &data)?;
    }

    #[test]
    fn mutated_programs(
        program in any_program(),
        data in any_data(),
        at in any::<prop::sample::Index>(),
        bit in 0..64u32,
    ) {
        let mut program = mended(program);
        let at = flip(&mut program, at, bit);
        agree(&program, &data)?;
        program.truncate(at + 1);
        agree(&program, &data)?;
    }
}

#[test]
fn every_opcode_is_judged_alike() {
    for code in 0..=u16::MAX {
        for k in [0, 1, 4, 15, 16, 31, 32, 63, 64, u32::MAX] {
            let program = [insn(code, 0, 0, k), insn(0x06, 0, 0, 0)];
            assert_eq!(Program::new(program.to_vec()).is_ok(), is_valid(&program), "{code:#x} {k}");
        }
    }
}

#[test]
fn weights_are_those_of_linux() {
    let ret = insn(0x06, 0, 0, 0);
    let weight = |first: Insn| {
        let mut program = vec![first];
        program.resize(4, ret);
        Program::new(program).unwrap().weight() - 3 - 6
    };
    assert_eq!(weight(ret), 2);
    assert_eq!(weight(insn(0x16, 0, 0, 0)), 1);
    assert_eq!(weight(insn(0x3c, 0, 0, 0)), 5);
    assert_eq!(weight(insn(0x15, 0, 1, 7)), 1);
    assert_eq!(weight(insn(0x15, 1, 0, 7)), 1);
    assert_eq!(weight(insn(0x15, 1, 2, 7)), 2);
    assert_eq!(weight(insn(0x15, 1, 2, 1 << 31)), 3);
    assert_eq!(weight(insn(0x1d, 1, 2, 1 << 31)), 2);
    assert_eq!(weight(insn(0x45, 0, 1, 7)), 2);
    assert_eq!(weight(insn(0x45, 1, 0, 7)), 1);
}

#[test]
fn a_row_of_all_and_its_end() {
    let mut program = vec![insn(0x20, 0, 0, 0)];
    let cases = 250;
    program.extend((0..cases).map(|case| insn(0x15, (cases - case) as u8, 0, case as u32 * 2)));
    program.push(insn(0x06, 0, 0, 1));
    program.push(insn(0x06, 0, 0, 2));
    for number in 0..2 * cases as u32 + 3 {
        let mut data = [0; DATA_WORDS];
        data[0] = number;
        let expected = if number % 2 == 0 && number < 2 * cases as u32 { 2 } else { 1 };
        assert_eq!(Program::new(program.clone()).unwrap().run(&data), expected);
        assert!(agree(&program, &data).unwrap());
    }
    // The first of a number counts.
    let mut program: Vec<Insn> = (0..20).map(|case| insn(0x15, 20 - case, 0, 5)).collect();
    program.splice(0..0, [insn(0x00, 0, 0, 5)]);
    program.extend((0..30).map(|at| insn(0x06, 0, 0, at)));
    assert!(agree(&program, &[0; DATA_WORDS]).unwrap());
}

#[test]
fn a_start_is_behind_what_the_number_decides() {
    // Of number 39, the first argument; of all others, nothing.
    let program = [
        insn(0x20, 0, 0, 0),
        insn(0x15, 0, 2, 39),
        insn(0x20, 0, 0, 16),
        insn(0x16, 0, 0, 0),
        insn(0x06, 0, 0, 7),
    ];
    let checked = Program::new(program.to_vec()).unwrap();
    let (other, own) = (checked.on_number(1, 0), checked.on_number(39, 0));
    assert_eq!((other.said, own.said), (Some(7), None));
    assert!(other.start != own.start && own.start != alea_bpf::Start::default());
    let mut data = [0; DATA_WORDS];
    data[4] = 5;
    // What stands there for the number is not looked at any more.
    assert_eq!((checked.run_from(own.start, &data), checked.run_from(other.start, &data)), (5, 7));
    // What was put aside before is needed: no start but the beginning.
    let mut kept = vec![insn(0x00, 0, 0, 9), insn(0x02, 0, 0, 3), insn(0x01, 0, 0, 4)];
    kept.extend(program);
    let kept = Program::new(kept).unwrap();
    assert_eq!(kept.on_number(39, 0).start, alea_bpf::Start::default());
}

#[test]
fn bytes_come_back() {
    let one = insn(0x1234, 5, 6, 0x789a_bcde);
    assert_eq!(one.to_bytes(), [0x34, 0x12, 5, 6, 0xde, 0xbc, 0x9a, 0x78]);
    assert_eq!(Insn::from_bytes(one.to_bytes()), one);
}

#[test]
fn the_longest_and_one_more() {
    let mut program = vec![insn(0x00, 0, 0, 7); MAX_LEN - 1];
    program.push(insn(0x16, 0, 0, 0));
    assert_eq!(Program::new(program.clone()).unwrap().run(&[0; DATA_WORDS]), 7);
    program.insert(0, program[0]);
    assert_eq!(Program::new(program).unwrap_err(), alea_bpf::Refusal::Length);
    assert_eq!(Program::new(Vec::new()).unwrap_err(), alea_bpf::Refusal::Length);
}

#[test]
fn a_jump_over_all() {
    let mut program = vec![insn(0x05, 0, 0, (MAX_LEN - 2) as u32)];
    program.resize(MAX_LEN, insn(0x06, 0, 0, 1));
    assert!(is_valid(&program));
    assert_eq!(Program::new(program.clone()).unwrap().run(&[0; DATA_WORDS]), 1);
    program[0].k += 1;
    assert!(Program::new(program.clone()).is_err());
    program[0].k = u32::MAX;
    assert!(Program::new(program).is_err());
}
