//! Reading source as text: words, and code without its comments and strings.

/// True if `word` stands in `line` by itself, not as part of a longer word.
pub fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(part) && !line[at + word.len()..].starts_with(part))
}

/// Rust source with comments, strings and character literals blanked; lines stay lines.
pub fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let skipped = literal_or_comment(rest, code.chars().next_back());
        if skipped == 0 {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            let (blanked, after) = rest.split_at(skipped);
            code.extend(blanked.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = after;
        }
    }
    code
}

/// Length of the comment, string or character literal that `text` starts with, or 0.
fn literal_or_comment(text: &str, before: Option<char>) -> usize {
    let bytes = text.as_bytes();
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if bytes[0] == b'r' && !in_word {
        let hashes = text[1..].bytes().take_while(|byte| *byte == b'#').count();
        if bytes.get(1 + hashes) == Some(&b'"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let from = 2 + hashes;
            return text[from..].find(&close).map_or(text.len(), |at| from + at + close.len());
        }
    }
    match bytes[0] {
        b'"' => quoted(text, '"'),
        // 'x' and '\n' are literals; 'x without a second quote is a lifetime.
        b'\'' => {
            let mut chars = text[1..].chars();
            match (chars.next(), chars.next()) {
                (Some('\\'), _) | (Some(_), Some('\'')) => quoted(text, '\''),
                _ => 0,
            }
        }
        _ => 0,
    }
}

/// Length of the quoted text that `text` starts with.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of the block comment, with those nested in it, that `text` starts with.
fn block_comment(text: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        assert_eq!(code_only("a // b\nc"), "a     \nc");
        assert_eq!(code_only("a /* b /* c */ d */ e"), "a                   e");
        assert_eq!(code_only(r##"x(r#"a " b"#) y"##), "x(          ) y");
        assert_eq!(code_only(r#"x("c\"d") y"#), "x(      ) y");
        assert_eq!(code_only(r"f::<'a>('\'', 'b') z"), "f::<'a>(    ,    ) z");
    }

    #[test]
    fn words_stand_alone() {
        assert!(has_word("a later b", "later"));
        assert!(!has_word("a laterb", "later"));
        assert!(!has_word("a_later", "later"));
    }
}
