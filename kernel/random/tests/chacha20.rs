//! Keystream: RFC 8439's vectors, and the portable generator against the crate's cipher.

use alea_random::block::{BlockGenerator, Key, Portable};
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use proptest::prelude::*;

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn block(key: [u8; 32], counter: u32) -> [u8; 64] {
    let mut out = [[0xaa; 64]];
    Portable.fill(&Key::new(key), counter, &mut out);
    out[0]
}

/// RFC 8439, appendix A.1: the vectors whose nonce is zero, as ours always is.
#[test]
fn rfc_8439_blocks() {
    let mut last_bit = [0; 32];
    last_bit[31] = 1;
    let mut second_byte = [0; 32];
    second_byte[1] = 0xff;
    for (key, counter, expected) in [
        (
            [0; 32],
            0,
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7
             da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
        ),
        (
            [0; 32],
            1,
            "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed
             29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
        ),
        (
            last_bit,
            1,
            "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a
             8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
        ),
        (
            second_byte,
            2,
            "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca
             13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
        ),
    ] {
        assert_eq!(block(key, counter).to_vec(), unhex(expected), "counter {counter}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

    #[test]
    fn portable_is_the_crates_cipher(key: [u8; 32], counter in 0u32..1 << 20, blocks in 1usize..20) {
        let mut ours = vec![[0x55; 64]; blocks];
        Portable.fill(&Key::new(key), counter, &mut ours);
        let mut theirs = vec![0; blocks * 64];
        let mut cipher = ChaCha20::new(&key.into(), &[0; 12].into());
        cipher.seek(u64::from(counter) * 64);
        cipher.apply_keystream(&mut theirs);
        prop_assert_eq!(ours.as_flattened(), theirs);
    }
}
