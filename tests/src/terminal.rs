//! The terminal at the other end of the serial line: a model of what a person would see.
//!
//! It owns the screen and answers what programs ask a terminal. It must never look at how the bytes
//! were cut into pieces: only what stands on the screen counts.

use vt100::{Callbacks, Parser, Screen};

/// What a terminal of this size shows.
pub struct Terminal {
    parser: Parser<Questions>,
}

/// The question where the cursor is, which BusyBox's line editor and vi ask.
#[derive(Default)]
struct Questions {
    answers: Vec<u8>,
    asked_at: Option<(u16, u16)>,
}

impl Callbacks for Questions {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        _second: Option<u8>,
        parameters: &[&[u16]],
        letter: char,
    ) {
        if letter == 'n' && first.is_none() && parameters == [[6]] {
            let (row, column) = screen.cursor_position();
            self.asked_at = Some((row, column));
            let answer = format!("\x1b[{};{}R", row + 1, column + 1);
            self.answers.extend_from_slice(answer.as_bytes());
        }
    }
}

impl Terminal {
    pub fn new(rows: u16, columns: u16) -> Self {
        let parser = Parser::new_with_callbacks(
            rows.try_into().expect("a screen has rows"),
            columns.try_into().expect("a screen has columns"),
            0,
            Questions::default(),
        );
        Self { parser }
    }

    /// Shows what the guest has printed, and returns what the terminal answers to it.
    pub fn print(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.parser.process(bytes);
        std::mem::take(&mut self.parser.callbacks_mut().answers)
    }

    pub fn resize(&mut self, rows: u16, columns: u16) {
        let rows = rows.try_into().expect("a screen has rows");
        let columns = columns.try_into().expect("a screen has columns");
        self.parser.set_size(rows, columns);
    }

    /// Wipes the screen, so that what stands there later was drawn anew. A sequence that has come
    /// in part is cut: only for a screen at rest, or that will be drawn anew as a whole.
    pub fn wipe(&mut self) {
        self.parser.process(b"\x1b[2J");
    }

    /// Forgets that a program has asked where the cursor is.
    pub fn forget_question(&mut self) {
        self.parser.callbacks_mut().asked_at = None;
    }

    /// A program asked where the cursor is, and it is there still.
    pub fn asked_here(&self) -> bool {
        self.parser.callbacks().asked_at == Some(self.cursor())
    }

    /// Row and column of the cursor, from 0.
    pub fn cursor(&self) -> (u16, u16) {
        self.parser.screen().cursor_position()
    }

    /// A row, from 0, without the blanks at its end.
    pub fn row(&self, row: u16) -> String {
        self.rows().into_iter().nth(row.into()).unwrap_or_default()
    }

    /// The last row, where full-screen programs have their status line.
    pub fn last_row(&self) -> String {
        self.rows().pop().unwrap_or_default()
    }

    /// All rows, without the blanks at their ends.
    pub fn rows(&self) -> Vec<String> {
        let screen = self.parser.screen();
        let columns = screen.size().1.get();
        screen.rows(0, columns).map(|row| row.trim_end().to_owned()).collect()
    }

    /// Whether a row is exactly this.
    pub fn has_row(&self, row: &str) -> bool {
        self.rows().iter().any(|shown| shown == row)
    }

    /// The row above, if the cursor is at the start of its row: the line that was printed last,
    /// with its end. Without the end, what is typed next may be echoed on the same row.
    pub fn last_line(&self) -> Option<String> {
        let (row, column) = self.cursor();
        if column == 0 { row.checked_sub(1).map(|above| self.row(above)) } else { None }
    }

    /// The row of the cursor up to it: where a prompt stands.
    pub fn before_cursor(&self) -> String {
        let (row, column) = self.cursor();
        self.parser.screen().rows(0, column).nth(row.into()).unwrap_or_default()
    }

    /// The screen as text, for a person who looks for what went wrong.
    pub fn picture(&self) -> String {
        let (row, column) = self.cursor();
        let rows = self.rows().join("\n");
        format!("cursor in row {row}, column {column} of\n{}\n", rows.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_a_screen() {
        let mut terminal = Terminal::new(4, 20);
        for piece in ["typed in\x1b[", "4;1H- /tmp", "\x1b[1;", "10Hvi"] {
            assert!(terminal.print(piece.as_bytes()).is_empty());
        }
        assert_eq!(terminal.row(0), "typed in vi");
        assert_eq!(terminal.last_row(), "- /tmp");
        assert_eq!(terminal.cursor(), (0, 11));
        assert_eq!(terminal.before_cursor(), "typed in vi");
        terminal.wipe();
        assert!(!terminal.has_row("typed in vi"));
    }

    #[test]
    fn a_line_is_whole_when_its_end_has_come() {
        let mut terminal = Terminal::new(4, 20);
        terminal.print(b"cat is ready\r");
        assert_eq!(terminal.last_line(), None);
        terminal.print(b"\n");
        assert_eq!(terminal.last_line().as_deref(), Some("cat is ready"));
    }

    #[test]
    fn the_cursor_is_told_to_who_asks() {
        let mut terminal = Terminal::new(24, 80);
        assert!(!terminal.asked_here());
        assert_eq!(terminal.print(b"\r\n# \x1b[6"), b"");
        assert_eq!(terminal.print(b"n"), b"\x1b[2;3R");
        assert!(terminal.asked_here());
        assert_eq!(terminal.before_cursor(), "# ");
        terminal.print(b"x");
        assert!(!terminal.asked_here());
        terminal.print(b"\x08");
        terminal.forget_question();
        assert!(!terminal.asked_here());
    }
}
