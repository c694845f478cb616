//! Filters of tracepoints (PERF_EVENT_IOC_SET_FILTER): comparisons of fields with numbers, joined by `&&`, `||`, `!` and
//! parentheses.
//!
//! Pure. A filter is checked once and made a list in postfix order; it has a bounded length, so it runs in bounded time and on a
//! bounded stack.

use crate::errno::{Errno, Result};

/// Parentheses and signs that may be open at once: each leaves two values for later at most, and there is room for 128.
const DEPTH: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    HasBits,
}

impl Relation {
    /// The longer ones first.
    const ALL: [(&'static str, Self); 7] = [
        ("==", Self::Equal),
        ("!=", Self::Unequal),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        ("<", Self::Less),
        (">", Self::Greater),
        ("&", Self::HasBits),
    ];

    const fn holds(self, value: i64, number: i64) -> bool {
        match self {
            Self::Equal => value == number,
            Self::Unequal => value != number,
            Self::Less => value < number,
            Self::LessOrEqual => value <= number,
            Self::Greater => value > number,
            Self::GreaterOrEqual => value >= number,
            Self::HasBits => value & number != 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Compare(u8, Relation, i64),
    Not,
    And,
    Or,
}

/// A part of a filter.
#[derive(Clone, Copy, Debug)]
pub struct Step(Act);

impl Step {
    /// To be written over.
    pub const EMPTY: Self = Self(Act::Not);
}

struct Parser<'a> {
    rest: &'a str,
    fields: &'a [&'a str],
    steps: &'a mut [Step],
    used: usize,
    depth: usize,
}

/// Reads a filter over these fields, which are known by their places: how many steps it has.
///
/// # Errors
/// `EINVAL` if it is none, or has more steps than there is room for; `EPERM` for a parenthesis too many, `ENOENT` for one too few.
pub fn parse(text: &str, fields: &[&str], steps: &mut [Step]) -> Result<usize> {
    let mut parser = Parser { rest: text.trim(), fields, steps, used: 0, depth: 0 };
    parser.either()?;
    match parser.rest {
        "" => Ok(parser.used),
        // Linux gives out the numbers of its own reasons here and below.
        rest if rest.starts_with(')') => Err(Errno::EPERM),
        _ => Err(Errno::EINVAL),
    }
}

/// Whether what has these values passes.
#[must_use]
pub fn passes(steps: &[Step], values: &[i64]) -> bool {
    // The last result is the lowest bit.
    let mut stack = 0u128;
    for step in steps {
        let [last, before] = [stack & 1 != 0, stack >> 1 & 1 != 0];
        let (result, left) = match step.0 {
            Act::Compare(field, relation, number) => {
                let value = values.get(usize::from(field));
                (value.is_some_and(|value| relation.holds(*value, number)), stack)
            }
            Act::Not => (!last, stack >> 1),
            Act::And => (before && last, stack >> 2),
            Act::Or => (before || last, stack >> 2),
        };
        stack = left << 1 | u128::from(result);
    }
    stack & 1 != 0
}

impl Parser<'_> {
    fn put(&mut self, act: Act) -> Result<()> {
        *self.steps.get_mut(self.used).ok_or(Errno::EINVAL)? = Step(act);
        self.used += 1;
        Ok(())
    }

    fn take(&mut self, word: &str) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn either(&mut self) -> Result<()> {
        self.both()?;
        while self.take("||") {
            self.both()?;
            self.put(Act::Or)?;
        }
        Ok(())
    }

    fn both(&mut self) -> Result<()> {
        self.one()?;
        while self.take("&&") {
            self.one()?;
            self.put(Act::And)?;
        }
        Ok(())
    }

    fn one(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(Errno::EINVAL);
        }
        if self.take("!") {
            self.one()?;
            self.put(Act::Not)?;
        } else if self.take("(") {
            self.either()?;
            if !self.take(")") {
                let ended = self.rest.is_empty();
                return Err(if ended { Errno::ENOENT } else { Errno::EINVAL });
            }
        } else {
            self.comparison()?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn word(&mut self) -> &str {
        let is_in = |one: char| one.is_ascii_alphanumeric() || one == '_';
        let len = self.rest.find(|one| !is_in(one)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest.trim_start();
        word
    }

    fn comparison(&mut self) -> Result<()> {
        let fields = self.fields;
        let name = self.word();
        let field = fields.iter().position(|field| *field == name).ok_or(Errno::EINVAL)?;
        let relation = Relation::ALL.into_iter().find(|(sign, _)| self.take(sign));
        let (_, relation) = relation.ok_or(Errno::EINVAL)?;
        let negative = self.take("-");
        let number = number(self.word()).ok_or(Errno::EINVAL)?;
        let number = if negative { number.wrapping_neg() } else { number };
        self.put(Act::Compare(field as u8, relation, number))
    }
}

fn number(word: &str) -> Option<i64> {
    let (digits, base) = match word.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&word[2..], 16),
        [b'0', _, ..] => (&word[1..], 8),
        _ => (word, 10),
    };
    u64::from_str_radix(digits, base).ok().map(u64::cast_signed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [&str; 2] = ["id", "common_pid"];

    fn result(text: &str, values: [i64; 2]) -> Option<bool> {
        let mut steps = [Step::EMPTY; 200];
        let used = parse(text, &FIELDS, &mut steps).ok()?;
        Some(super::passes(&steps[..used], &values))
    }

    #[test]
    fn comparisons() {
        for (text, expected) in [
            ("id == 3", true),
            ("id==3", true),
            (" id != 3 ", false),
            ("id < 4 && common_pid >= 7", true),
            ("id > 4 || common_pid <= 7", true),
            ("id == 1 || id == 2 || id == 3", true),
            ("!(id == 3)", false),
            ("!!(id == 3)", true),
            ("id & 2", true),
            ("id & 4", false),
            ("id == 0x3 && id == 03", true),
            ("id > -1", true),
            ("id == 1 && id == 2 || id == 3", true),
            ("id == 3 || id == 1 && id == 2", true),
            ("(id == 3 || id == 1) && id == 2", false),
        ] {
            assert_eq!(result(text, [3, 7]), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_filter() {
        let deep = "(".repeat(5000);
        let many = "id == 1 || ".repeat(5000);
        for text in [
            "",
            "id",
            "id ==",
            "== 3",
            "id == x",
            "id = 3",
            "nobody == 3",
            "(id == 3",
            "id == 3)",
            "id == 3 &&",
            "id == 3 id == 4",
            "!",
            "id == -",
            "id == 99999999999999999999",
            "id == 1é",
            &deep,
            &many,
        ] {
            assert_eq!(result(text, [3, 7]), None, "{text}");
        }
    }

    #[test]
    fn the_deepest_that_is_taken_runs() {
        let mut text = "(id == 4 || id == 3 && ".repeat(31);
        text.push_str("id == 3");
        text.push_str(&")".repeat(31));
        assert_eq!(result(&text, [3, 7]), Some(true));
        assert_eq!(result(&text, [4, 7]), Some(true));
        assert_eq!(result(&text, [5, 7]), Some(false));
    }
}
