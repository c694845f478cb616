//! A number as it is written to a file below /proc/sys: decimal, or with 0x or 0 in front, as Linux's `proc_dointvec_minmax`
//! reads it.
#![forbid(unsafe_code)]

/// The digits of a number and the base that their prefix stands for: 0x, 0, or none for decimal.
pub fn by_prefix(text: &str) -> (&str, u32) {
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    }
}

/// Parses digits without a sign.
fn magnitude(text: &str) -> Option<u64> {
    let (digits, base) = by_prefix(text);
    // A sign is refused here, since `from_str_radix` would take one.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, base).ok()
}

/// Parses a number without a sign that may have white space around it.
pub fn unsigned(data: &[u8]) -> Option<u64> {
    magnitude(core::str::from_utf8(data.trim_ascii()).ok()?)
}

/// Parses a number that may have white space around it.
pub fn number(data: &[u8]) -> Option<i32> {
    let text = core::str::from_utf8(data.trim_ascii()).ok()?;
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let size = i64::try_from(magnitude(digits)?).ok()?;
    i32::try_from(if is_negative { -size } else { size }).ok()
}
