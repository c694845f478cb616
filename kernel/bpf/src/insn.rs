//! An instruction, `struct sock_filter`, and the numbers of the opcodes (linux/bpf_common.h).

/// One instruction as a program hands it over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insn {
    pub code: u16,
    /// How many instructions a true comparison passes over.
    pub jt: u8,
    /// How many a false one does.
    pub jf: u8,
    pub k: u32,
}

/// Bytes of an instruction.
pub const SIZE: usize = 8;

impl Insn {
    /// From its bytes.
    pub const fn from_bytes(bytes: [u8; SIZE]) -> Self {
        let [c0, c1, jt, jf, k0, k1, k2, k3] = bytes;
        let code = u16::from_le_bytes([c0, c1]);
        Self { code, jt, jf, k: u32::from_le_bytes([k0, k1, k2, k3]) }
    }

    /// Its bytes.
    pub const fn to_bytes(self) -> [u8; SIZE] {
        let [c0, c1] = self.code.to_le_bytes();
        let [k0, k1, k2, k3] = self.k.to_le_bytes();
        [c0, c1, self.jt, self.jf, k0, k1, k2, k3]
    }
}

/// The opcodes that seccomp allows, all of which filters of packets have too.
pub mod code {
    pub const LD_W_ABS: u16 = 0x20;
    pub const LD_W_LEN: u16 = 0x80;
    pub const LDX_W_LEN: u16 = 0x81;
    pub const LD_IMM: u16 = 0x00;
    pub const LDX_IMM: u16 = 0x01;
    pub const LD_MEM: u16 = 0x60;
    pub const LDX_MEM: u16 = 0x61;
    pub const ST: u16 = 0x02;
    pub const STX: u16 = 0x03;
    pub const RET_K: u16 = 0x06;
    pub const RET_A: u16 = 0x16;
    pub const TAX: u16 = 0x07;
    pub const TXA: u16 = 0x87;
    pub const ADD_K: u16 = 0x04;
    pub const SUB_K: u16 = 0x14;
    pub const MUL_K: u16 = 0x24;
    pub const DIV_K: u16 = 0x34;
    pub const OR_K: u16 = 0x44;
    pub const AND_K: u16 = 0x54;
    pub const LSH_K: u16 = 0x64;
    pub const RSH_K: u16 = 0x74;
    pub const NEG: u16 = 0x84;
    pub const XOR_K: u16 = 0xa4;
    pub const JA: u16 = 0x05;
    pub const JEQ_K: u16 = 0x15;
    pub const JGT_K: u16 = 0x25;
    pub const JGE_K: u16 = 0x35;
    pub const JSET_K: u16 = 0x45;
    /// In place of K: X.
    pub const X: u16 = 0x08;
}

/// The opcodes that filters of packets have beside those.
pub mod packet_code {
    pub const LD_H_ABS: u16 = 0x28;
    pub const LD_B_ABS: u16 = 0x30;
    pub const LD_W_IND: u16 = 0x40;
    pub const LD_H_IND: u16 = 0x48;
    pub const LD_B_IND: u16 = 0x50;
    pub const LDX_B_MSH: u16 = 0xb1;
    pub const MOD_K: u16 = 0x94;
}
