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

/// As long as no number may be, with its sign and with zeros in front (TMPBUFLEN - 1).
const TOO_LONG: usize = 21;

/// What stands between numbers. Linux skips other white space in front of one, but none ends it.
fn is_separator(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

/// Takes the next number and what separates it from others off a line; empty at the end.
pub fn next_word<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let end = rest.iter().position(is_separator).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after.trim_ascii_start();
    word
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

/// The text of a number, without white space around it.
fn text_of(data: &[u8]) -> Option<&str> {
    let data = data.trim_ascii_start();
    let end = data.iter().rposition(|byte| !is_separator(byte)).map_or(0, |last| last + 1);
    if end < TOO_LONG { core::str::from_utf8(&data[..end]).ok() } else { None }
}

/// Parses a number without a sign that may have white space around it.
pub fn unsigned(data: &[u8]) -> Option<u64> {
    magnitude(text_of(data)?)
}

/// Parses a number that may have white space around it.
pub fn number(data: &[u8]) -> Option<i32> {
    let text = text_of(data)?;
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let size = i64::try_from(magnitude(digits)?).ok()?;
    i32::try_from(if is_negative { -size } else { size }).ok()
}
