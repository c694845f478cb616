//! One part of work that several machines do: part K of N, counted from one.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use anyhow::{Error, bail};
use serde::{Deserialize, Serialize};

/// The most parts: far more than machines that anybody has.
const MOST: u32 = 100_000;

/// Part `index` of `count`; `index` is at least 1 and at most `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    // The order of the fields is the order of shards: those of one set stand together.
    count: u32,
    index: u32,
}

impl Shard {
    /// All of it, on one machine.
    pub const WHOLE: Self = Self { count: 1, index: 1 };

    /// The part at `place`, counted from zero and beyond the last one from the first again, of `count`.
    pub fn at(place: u64, count: u32) -> Self {
        let count = count.clamp(1, MOST);
        // Less than `count`, which is 32 bits wide.
        Self { count, index: (place % u64::from(count)) as u32 + 1 }
    }

    /// All parts of `count`.
    pub fn all(count: u32) -> impl Iterator<Item = Self> {
        (0..count.clamp(1, MOST)).map(move |place| Self::at(place.into(), count))
    }

    pub fn count(self) -> u32 {
        self.count
    }

    /// Which part, counted from zero.
    pub fn place(self) -> usize {
        self.index as usize - 1
    }

    /// As part of a file's name.
    pub fn file_name(self) -> String {
        format!("{}-of-{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // `parse` takes a plus sign; nobody means one.
        let number = |word: &str| {
            let plain = word.bytes().all(|byte| byte.is_ascii_digit());
            word.parse::<u32>().ok().filter(|_| plain)
        };
        let parsed = text.split_once('/').and_then(|(k, n)| Some((number(k)?, number(n)?)));
        match parsed {
            Some((index, count)) if (1..=count).contains(&index) && count <= MOST => {
                Ok(Self { count, index })
            }
            _ => bail!(
                "`{text}` is no part: write K/N with K from 1 to N and N up to {MOST}, as 1/4 for the first of four"
            ),
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl Display for Shard {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_from_one() {
        for (text, place, count) in
            [("1/4", 0, 4), ("4/4", 3, 4), ("1/1", 0, 1), ("24/100", 23, 100)]
        {
            let shard: Shard = text.parse().unwrap();
            assert_eq!(
                (shard.place(), shard.count(), shard.to_string()),
                (place, count, text.into())
            );
        }
        assert_eq!("1/1".parse::<Shard>().unwrap(), Shard::WHOLE);
    }

    #[test]
    fn what_is_no_part_is_refused_with_what_to_write() {
        let junk = [
            "0/4",
            "5/4",
            "1/0",
            "0/0",
            "",
            "/",
            "1",
            "1/",
            "/4",
            "a/b",
            "1/4/4",
            "-1/4",
            "+1/4",
            " 1/4",
            "1 / 4",
            "1.0/4",
            "1/4294967296",
            "1/100001",
            "0x1/4",
            "１/4",
        ];
        for text in junk {
            let error = text.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")) && error.contains("write K/N"), "{error}");
            assert!(error.contains("1/4 for the first of four"), "{error}");
        }
    }

    #[test]
    fn all_parts_of_a_count() {
        let all: Vec<String> = Shard::all(3).map(|shard| shard.to_string()).collect();
        assert_eq!(all, ["1/3", "2/3", "3/3"]);
        assert_eq!(Shard::at(24, 24).to_string(), "1/24");
        assert_eq!(Shard::at(u64::MAX, 1).to_string(), "1/1");
    }

    #[test]
    fn json_holds_the_text_and_refuses_what_the_command_line_refuses() {
        let shard = Shard::at(1, 4);
        assert_eq!(serde_json::to_string(&shard).unwrap(), "\"2/4\"");
        assert_eq!(serde_json::from_str::<Shard>("\"2/4\"").unwrap(), shard);
        assert!(serde_json::from_str::<Shard>("\"5/4\"").is_err());
    }
}
