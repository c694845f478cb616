//! What `alea-trace -R` wrote: the tasks that there were, and the records of all CPUs, by time. docs/using.md has their form.

use anyhow::{Context, Result, bail, ensure};

/// What a record tells of; the numbers of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Now,
    Lost,
    Enter,
    Leave,
    Switch,
    Wakeup,
    Fault,
    Phase,
    Draw,
    Reseed,
    Lock,
    Fork,
    Exec,
    Exit,
    Left,
    Call,
}

impl Kind {
    const ALL: [Self; 16] = [
        Self::Now,
        Self::Lost,
        Self::Enter,
        Self::Leave,
        Self::Switch,
        Self::Wakeup,
        Self::Fault,
        Self::Phase,
        Self::Draw,
        Self::Reseed,
        Self::Lock,
        Self::Fork,
        Self::Exec,
        Self::Exit,
        Self::Left,
        Self::Call,
    ];

    /// Words behind the head that there are at least.
    fn least(self) -> usize {
        match self {
            Self::Left => 0,
            Self::Now | Self::Lost | Self::Exit => 1,
            Self::Leave | Self::Switch | Self::Wakeup | Self::Fork => 2,
            Self::Call | Self::Reseed => 3,
            Self::Fault | Self::Draw | Self::Lock | Self::Exec => 4,
            Self::Phase => 5,
            Self::Enter => 7,
        }
    }
}

/// A record.
#[derive(Clone, Debug)]
pub struct Record {
    pub kind: Kind,
    pub cpu: u32,
    pub tid: u32,
    /// Of the time-stamp counter.
    pub time: u64,
    /// What comes behind the head.
    pub words: Vec<u64>,
}

impl Record {
    /// The name that stands from word `at` on.
    pub fn name(&self, at: usize) -> String {
        let bytes: Vec<u8> =
            self.words.iter().skip(at).take(3).flat_map(|word| word.to_le_bytes()).collect();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// The first text among what the arguments of an entry point to.
    pub fn text(&self) -> Option<String> {
        let label = *self.words.get(7)?;
        let bytes: Vec<u8> = self.words[8..].iter().flat_map(|word| word.to_le_bytes()).collect();
        let text = bytes.get(..usize::try_from(label >> 16).ok()?)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// A task that there was when the recording began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub tid: u32,
    pub pid: u32,
    pub name: String,
}

/// All of a recording.
#[derive(Debug, Default)]
pub struct Recording {
    pub known: Vec<Known>,
    /// Ticks of the counter in a second.
    pub hertz: u64,
    pub records: Vec<Record>,
}

impl Recording {
    /// Reads a file that `alea-trace -R` wrote.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let end =
            bytes.windows(2).position(|pair| pair == b"\n\n").context("no end of the head")?;
        let head = String::from_utf8_lossy(&bytes[..end]);
        let mut lines = head.lines();
        ensure!(lines.next() == Some("alea-trace 1"), "this is no recording of alea-trace");
        let mut all = Self { known: lines.filter_map(known).collect(), ..Self::default() };
        let (chunks, rest) = bytes[end + 2..].as_chunks::<8>();
        ensure!(rest.is_empty(), "the recording ends within a word");
        let words: Vec<u64> = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect();
        let mut at = 0;
        while at < words.len() {
            at += all.add(&words[at..])?;
        }
        all.records.sort_by_key(|record| record.time);
        Ok(all)
    }

    /// Adds the first record of `words`: how many words it has.
    fn add(&mut self, words: &[u64]) -> Result<usize> {
        let [first, ..] = *words else { bail!("a record without words") };
        let len = usize::from((first >> 16) as u16);
        let kind = Kind::ALL.get(usize::from(first as u8).wrapping_sub(1)).copied();
        let (Some(kind), Some([_, time, rest @ ..])) = (kind, words.get(..len)) else {
            bail!("a record cannot be read: {first:#x}");
        };
        ensure!(rest.len() >= kind.least(), "a record of {kind:?} is too short");
        match kind {
            Kind::Now => self.hertz = rest[0],
            _ => self.records.push(Record {
                kind,
                cpu: u32::from((first >> 8) as u8),
                tid: (first >> 32) as u32,
                time: *time,
                words: rest.to_vec(),
            }),
        }
        Ok(len)
    }
}

/// A line `task TID PID NAME`.
fn known(line: &str) -> Option<Known> {
    let mut words = line.strip_prefix("task ")?.splitn(3, ' ');
    let tid = words.next()?.parse().ok()?;
    let pid = words.next()?.parse().ok()?;
    Some(Known { tid, pid, name: words.next()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(words: &[u64]) -> Vec<u8> {
        let mut bytes = b"alea-trace 1\ntask 1 1 init\ntask 7 5 a b\n\n".to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    #[test]
    fn records_come_by_time() {
        let switch = |cpu: u64, time| [5 | cpu << 8 | 4 << 16 | 7 << 32, time, 1, 1];
        let words = [[1 | 3 << 16, 9, 1000].as_slice(), &switch(1, 20), &switch(0, 10)].concat();
        let all = Recording::parse(&file(&words)).unwrap();
        assert_eq!(all.hertz, 1000);
        assert_eq!(all.known[1], Known { tid: 7, pid: 5, name: "a b".to_owned() });
        let seen: Vec<_> =
            all.records.iter().map(|one| (one.kind, one.cpu, one.tid, one.time)).collect();
        assert_eq!(seen, [(Kind::Switch, 0, 7, 10), (Kind::Switch, 1, 7, 20)]);
    }

    #[test]
    fn what_is_cut_or_wrong_is_refused() {
        for words in [
            &[5 | 4 << 16, 1, 1][..],
            &[0, 0],
            &[5 | 1 << 16],
            &[5 | 3 << 16, 1, 1],
            &[99 | 2 << 16, 0],
        ] {
            assert!(Recording::parse(&file(words)).is_err(), "{words:x?}");
        }
        assert!(Recording::parse(b"").is_err());
        assert!(Recording::parse(b"x\n\n").is_err());
    }
}
