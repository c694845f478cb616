//! The table of docs/testing.md that says how many allocations were made to fail, and what broke: what `--fail-alloc` measures with
//! `--write-figures` becomes the row of that command.

use anyhow::Result;

use crate::shown::Figures;
use xtask_host::paths;

const TABLE: &str = "injected";
/// The row that adds up all others.
const ALL: &str = "in all";
/// The columns that are added up, in the order of [`Injected`].
const SUMS: [&str; 4] = ["allocations", "made to fail", "of them frames", "found"];

/// What one run gave.
pub struct Injected {
    pub asked: u64,
    pub failed: u64,
    /// Of the latter the frames of memory.
    pub frames: u64,
    /// Panics, hangs, and what was left behind.
    pub found: u64,
}

/// Writes what the command that runs has measured into docs/figures.toml and the page that shows it.
pub fn write(injected: &Injected) -> Result<()> {
    let mut figures = Figures::load(paths::root())?;
    note(&mut figures, &command(std::env::args()), injected)?;
    figures.write(paths::root())
}

/// The command as it was given, without the word that has its figures written.
fn command(args: impl Iterator<Item = String>) -> String {
    let words = args.skip(1).filter(|word| word != "--write-figures");
    format!("`cargo xtask {}`", words.collect::<Vec<_>>().join(" "))
}

fn note(figures: &mut Figures, command: &str, injected: &Injected) -> Result<()> {
    let Injected { asked, failed, frames, found } = injected;
    let cells = |values: [u64; 4]| {
        SUMS.iter().copied().zip(values.map(|value| value.to_string())).collect::<Vec<_>>()
    };
    figures.set_or_add(TABLE, command, &cells([*asked, *failed, *frames, *found]))?;
    let mut sums = [0; 4];
    if let Some(table) = figures.table.iter_mut().find(|table| table.name == TABLE) {
        table.rows.retain(|row| row[0] != ALL);
        for row in &table.rows {
            for (sum, cell) in sums.iter_mut().zip(&row[1..]) {
                *sum += cell.parse::<u64>()?;
            }
        }
    }
    figures.set_or_add(TABLE, ALL, &cells(sums))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_one_row_and_the_last_row_adds_up() {
        let mut figures = Figures::parse(
            "[[table]]\nname = \"injected\"\npage = \"docs/testing.md\"\n\
             columns = [\"command\", \">allocations\", \">made to fail\", \">of them frames\", \">found\"]\nrows = []\n",
        )
        .unwrap();
        let word = |word: &str| word.to_owned();
        let fuzz =
            command(["x", "fuzz", "--fail-alloc", "5", "--write-figures"].map(word).into_iter());
        assert_eq!(fuzz, "`cargo xtask fuzz --fail-alloc 5`");
        for (command, asked, found) in [(&*fuzz, 100, 3), ("abi", 50, 1), (&*fuzz, 200, 0)] {
            note(&mut figures, command, &Injected { asked, failed: 7, frames: 2, found }).unwrap();
        }
        let rows: Vec<String> = figures.table[0].rows.iter().map(|row| row.join(" ")).collect();
        assert_eq!(
            rows,
            [format!("{fuzz} 200 7 2 0"), word("abi 50 7 2 1"), word("in all 250 14 4 1")]
        );
    }
}
