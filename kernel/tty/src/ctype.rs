//! The character classes Linux's terminals use: Latin-1, without any locale.
//!
//! Owns nothing; must stay in step with Linux's table, because word erase and echo depend on it.

/// C0 control characters and DEL; the C1 range is not "control" for a terminal.
pub fn is_control(c: u8) -> bool {
    c < 0x20 || c == 0x7f
}

fn is_upper(c: u8) -> bool {
    c.is_ascii_uppercase() || (matches!(c, 0xc0..=0xde) && c != 0xd7)
}

fn is_lower(c: u8) -> bool {
    c.is_ascii_lowercase() || (c >= 0xdf && c != 0xf7)
}

/// Letters, digits and the underscore: what word erase takes as a word.
pub fn is_word(c: u8) -> bool {
    is_upper(c) || is_lower(c) || c.is_ascii_digit() || c == b'_'
}

/// Lower case as IUCLC maps it.
pub fn to_lower(c: u8) -> u8 {
    if is_upper(c) { c.wrapping_add(0x20) } else { c }
}

/// Upper case as OLCUC maps it.
pub fn to_upper(c: u8) -> u8 {
    if is_lower(c) { c.wrapping_sub(0x20) } else { c }
}
