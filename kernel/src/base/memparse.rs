//! Sizes as users write them: [`memparse`]. Owns nothing. Locks: none.
#![forbid(unsafe_code)]

/// A number, decimal or hexadecimal after `0x`, with one of Linux's suffixes `k`, `m`, `g`, `t` or none.
pub fn memparse(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        b't' | b'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    number.ok()?.checked_mul(1 << shift)
}
