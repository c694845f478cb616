//! Plain text tables, and figures as people read them.

/// Columns of text: the first is left-aligned, all others right-aligned.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(ToString::to_string).collect()] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The whole table, one line per row.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => line.push_str(&format!("{cell:<width$}")),
                    _ => line.push_str(&format!("  {cell:>width$}")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Nanoseconds with three significant digits and a fitting unit.
pub fn time(ns: f64) -> String {
    scaled(ns, &[("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", f64::INFINITY)])
}

/// A count with three significant digits.
pub fn count(n: f64) -> String {
    scaled(n, &[("", 1e3), ("k", 1e6), ("M", 1e9), ("G", f64::INFINITY)])
}

/// `below` of each unit is where the next one takes over; each is 1000 times the one before.
fn scaled(value: f64, units: &[(&str, f64)]) -> String {
    let mut scale = 1.0;
    for (unit, below) in units {
        if value < *below {
            let shown = value / scale;
            let digits = if shown >= 100.0 || (scale == 1.0 && shown.fract() == 0.0) {
                0
            } else if shown >= 10.0 {
                1
            } else {
                2
            };
            let gap = if unit.is_empty() { "" } else { " " };
            return format!("{shown:.digits$}{gap}{unit}");
        }
        scale *= 1000.0;
    }
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["name", "ns"]);
        table.row(vec!["getpid".into(), "5".into()]);
        table.row(vec!["x".into(), "12345".into()]);
        assert_eq!(table.render(), "name       ns\ngetpid      5\nx       12345\n");
    }

    #[test]
    fn figures_have_three_digits() {
        assert_eq!(time(7.0), "7 ns");
        assert_eq!(time(650.4), "650 ns");
        assert_eq!(time(4321.0), "4.32 us");
        assert_eq!(time(98_765.0), "98.8 us");
        assert_eq!(time(5_200_000.0), "5.20 ms");
        assert_eq!(time(12e9), "12.0 s");
        assert_eq!(count(314.0), "314");
        assert_eq!(count(763_000.0), "763 k");
    }
}
