//! Interactive BusyBox: one test for each session, whose every screen must be Linux's.
//!
//! `ALEA_SCREENS=linux` in the environment plays the sessions on Linux, which checks the sessions;
//! `ALEA_SCREENS=record` plays them there and writes `tests/screens` anew: look at the difference.

use std::collections::BTreeMap;
use std::process::ExitCode;

use alea_tests::screens::Chapter;
use alea_tests::{PROMPT, Shell, Terminal, alea};
use libtest_mimic::{Arguments, Failed, Trial};
use xtask_guest::qemu::Machine;
use xtask_host::paths;

const ESCAPE: &str = "\x1b";
const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";

const CHAPTERS: &[Chapter] =
    &[VI, VI_LONG, LESS, TOP, WATCH, EDITING, HISTORY, COMPLETION, JOBS, PTY];

const VI: Chapter = Chapter {
    name: "vi",
    mask: None,
    steps: &[
        ("open", "vi text\n"),
        ("insert", "iThe first line\nsecond\nthird line"),
        ("end of inserting", ESCAPE),
        ("first line", "1G"),
        ("next word", "w"),
        ("end of the line", "$"),
        ("down", "j"),
        ("delete a line", "dd"),
        ("put it below", "p"),
        ("undo", "u"),
        ("undo again", "u"),
        ("copy a line above", "yyP"),
        ("search", "/third\n"),
        ("change a word", "cwfourth"),
        ("end of changing", ESCAPE),
        ("append", "A, longer"),
        ("end of appending", ESCAPE),
        ("delete a word", "0dw"),
        ("open a line above", "Onew"),
        ("end of the new line", ESCAPE),
        ("join", "J"),
        ("write", ":w\n"),
        ("delete a character twice", "x."),
        ("substitute", ":1,$s/line/LINE/g\n"),
        ("quit is refused", ":q\n"),
        ("quit all the same", ":q!\n"),
        ("what was written", "cat text\n"),
        ("open again", "vi text\n"),
        ("arrows", "\x1b[B\x1b[C\x1b[C"),
        ("replace", "rX"),
        ("write and quit", ":wq\n"),
        ("the end", "cat text\n"),
    ],
};

const VI_LONG: Chapter = Chapter {
    name: "vi-long",
    mask: None,
    steps: &[
        ("prepare", "seq 1 100 > numbers; clear\n"),
        ("open", "vi numbers\n"),
        ("page down", "\x06"),
        ("half a page down", "\x04"),
        ("page up", "\x02"),
        ("last line", "G"),
        ("line 50", "50G"),
        ("search", "/7\n"),
        ("next", "n"),
        ("search back", "?3\n"),
        ("delete three lines", "3dd"),
        ("put them at the end", "Gp"),
        (
            "a wide line",
            "o0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 end",
        ),
        ("end of the wide line", ESCAPE),
        ("start of the wide line", "0"),
        ("go by colon", ":20\n"),
        ("mark, move, delete to the mark", "ma3jd'a"),
        ("set numbers off", ":set noai\n"),
        ("write to another file", ":w other\n"),
        ("quit", ":q!\n"),
        ("count", "wc numbers other\n"),
    ],
};

const LESS: Chapter = Chapter {
    name: "less",
    mask: None,
    steps: &[
        ("prepare", "seq 1 100 > numbers; seq -s ' ' 1 60 > wide; clear\n"),
        ("open", "less numbers\n"),
        ("page", " "),
        ("line", "\n"),
        ("half a page", "d"),
        ("back", "b"),
        ("search", "/55\n"),
        ("search another", "/9\n"),
        ("next", "n"),
        ("the one before", "N"),
        ("search back", "?4\n"),
        ("not there", "/none\n"),
        ("end", "G"),
        ("line 50", "50g"),
        ("start", "g"),
        ("what file", "="),
        ("any key", " "),
        // One by one: two of them together would show the screen of the first alone, too soon for the next key.
        ("a line down", DOWN),
        ("another", DOWN),
        ("a line up", UP),
        ("quit", "q"),
        ("line numbers", "less -N numbers wide\n"),
        // No Enter: less would take it for a key of its own, and draw the same screen once more.
        ("next file", ":n"),
        ("quit the second", "q"),
        ("from a pipe", "seq 1000 1100 | less\n"),
        ("its end", "G"),
        ("quit the third", "q"),
        ("chopped", "less -S wide\n"),
        ("quit the last", "q"),
    ],
};

const TOP: Chapter = Chapter {
    name: "top",
    mask: Some(top),
    steps: &[
        ("start", "top -d 1\n"),
        ("by process number", "N"),
        ("by memory", "M"),
        ("quit", "q"),
    ],
};

/// The first lines, with each number and the blanks at it made one sign: the rest is the system's.
fn top(terminal: &Terminal) -> Vec<String> {
    if terminal.before_cursor().ends_with(PROMPT) {
        return vec!["the prompt".into()];
    }
    let rows = terminal.rows();
    rows.iter().take(4).map(|row| masked(row)).collect()
}

fn masked(row: &str) -> String {
    let mut text = String::new();
    for word in row.split_whitespace() {
        let number = |c: char| c.is_ascii_digit() || ".%".contains(c);
        let plain = word.replace(number, "");
        let sign = if plain.len() < word.len() { "#" } else { "" };
        text.push_str(if text.is_empty() { "" } else { " " });
        text.push_str(sign);
        text.push_str(&plain);
    }
    text
}

const WATCH: Chapter = Chapter {
    name: "watch",
    mask: None,
    // Ctrl-C would be lost now and then: watch ignores it while the command runs.
    steps: &[
        (
            "until the second time",
            "watch -t -n 1 'test -e w && echo again && kill $PPID; touch w'\n",
        ),
        ("a failing command", "watch -t -n 1 'ls /no/such; kill $PPID'\n"),
    ],
};

const EDITING: Chapter = Chapter {
    name: "editing",
    mask: None,
    steps: &[
        ("type", "echo one two three"),
        ("start of the line", "\x01"),
        ("insert there", "# "),
        ("end of the line", "\x05"),
        ("delete a word", "\x17"),
        ("two to the left", "\x1b[D\x1b[D"),
        ("delete to the end", "\x0b"),
        ("delete to the start", "\x15"),
        ("type again", "echo abc def"),
        ("a word back", "\x1bb"),
        ("delete a character", "\x1b[3~"),
        ("home and end", "\x1b[H\x1b[C\x1b[F"),
        ("erase", "\x7f\x7f"),
        ("run", "\n"),
        (
            "a line that is wider than the screen",
            "echo 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789",
        ),
        ("erase over the edge", "\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f"),
        ("its start", "\x01"),
        ("run it", "\n"),
        ("clear the screen", "half a line\x0c"),
        ("give up", "\x03"),
        ("a quotation", "echo 'one\n"),
        ("and its end", "two'\n"),
        // Line by line: what is typed between two lines is echoed by the terminal, not by the shell.
        ("a loop", "for i in a b\n"),
        ("its body", "do echo $i\n"),
        ("its end", "done\n"),
        ("swap", "echo ab\x14\n"),
    ],
};

const HISTORY: Chapter = Chapter {
    name: "history",
    mask: None,
    steps: &[
        ("first", "echo first\n"),
        ("second", "echo second\n"),
        ("third", "echo third\n"),
        ("up", UP),
        ("up again", UP),
        ("down", DOWN),
        ("change and run", "\x7f\x7f\x7f\x7f\x7ffourth\n"),
        ("by letter", "\x10\x10"),
        ("and back", "\x0e"),
        ("give up", "\x03"),
        ("search back", "\x12"),
        ("for a word", "sec"),
        ("run it", "\n"),
        ("a line kept while looking", "half"),
        ("look", UP),
        ("and return", DOWN),
        ("drop it", "\x15"),
        ("list", "history | sed 's/^ *[0-9]* //' | tail -n 5\n"),
    ],
};

const COMPLETION: Chapter = Chapter {
    name: "completion",
    mask: None,
    steps: &[
        ("prepare", "mkdir folder; touch lonely alpha1 alpha2 'with blank' folder/deep; clear\n"),
        ("a whole name", "ls lo\t"),
        ("run", "\n"),
        ("a part", "ls al\t"),
        ("the choice", "\t"),
        ("and one of it", "2\t\n"),
        ("a folder", "ls fo\t"),
        ("below it", "\t\n"),
        ("a blank", "ls wi\t\n"),
        ("nothing", "ls zzz\t"),
        ("drop it", "\x15"),
        ("a command", "hostn\t"),
        ("run the command", "\n"),
        ("a path", "ls -d /usr/lib/al\t"),
        ("run with the path", "\n"),
        ("many commands", "mk\t\t"),
        ("give up", "\x03"),
        ("a variable", "LONG_VARIABLE=1\n"),
        ("its name", "echo $LONG_V\t"),
        ("its value", "\n"),
    ],
};

const JOBS: Chapter = Chapter {
    name: "jobs",
    mask: None,
    steps: &[
        ("in the background", "sleep 1000 | cat &\n"),
        ("another", "sleep 2000 &\n"),
        ("list", "jobs\n"),
        ("in front", "echo here; cat\n"),
        ("a line", "a line\n"),
        ("stop", "\x1a"),
        ("list three", "jobs\n"),
        ("back to the front", "fg\n"),
        ("another line", "another line\n"),
        ("interrupt", "\x03"),
        ("its status", "echo $?\n"),
        ("end them", "kill %1 %2; wait; clear; jobs\n"),
        ("an editor", "vi text\n"),
        ("with text", "ihello"),
        ("end of inserting", ESCAPE),
        ("stop the editor", "\x1a"),
        ("while it is stopped", "jobs\n"),
        ("continue the editor", "fg\n"),
        ("leave it", ":q!\n"),
        ("a pipeline in front", "echo there; while read x; do echo $x; done | cat\n"),
        // It comes back through both, which shows that the pipeline has the terminal.
        ("a line through it", "through it\n"),
        ("interrupt the pipeline", "\x03"),
        ("end of input", "echo where; cat\n"),
        ("without a line", "\x04"),
        ("a reader in front", "echo now; cat\n"),
        ("a line for it", "for it\n"),
        ("stop the reader", "\x1a"),
        ("a first exit is refused", "exit\n"),
        ("so let it go on", "fg\n"),
        ("to its end", "\x04"),
    ],
};

const PTY: Chapter = Chapter {
    name: "pty",
    mask: None,
    steps: &[
        ("start", "/usr/lib/alea/typescript log\n"),
        ("which terminal", "tty\n"),
        ("its size", "stty size\n"),
        ("a program in front", "echo here; cat\n"),
        ("a line", "a line\n"),
        ("interrupt", "\x03"),
        ("clear", "clear\n"),
        ("vi", "vi text\n"),
        ("insert", "ihello from the inside"),
        ("end of inserting", ESCAPE),
        ("write and quit", ":wq\n"),
        ("another size", "stty rows 10 columns 40; stty size; stty rows 16 columns 72\n"),
        ("a job", "sleep 1000 &\n"),
        ("stop and look", "kill %1; wait; clear; jobs\n"),
        ("one in the other", "/usr/lib/alea/typescript\n"),
        ("which terminal now", "tty\n"),
        ("leave the inner one", "exit\n"),
        ("leave the outer one", "exit 3\n"),
        ("its status", "echo $?; tty\n"),
        ("what was written down", "clear; head -n 3 log\n"),
    ],
};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let how = std::env::var("ALEA_SCREENS").unwrap_or_default();
    let machine = if how.is_empty() {
        alea()
    } else {
        Machine::new(paths::vmlinuz()).initrd(paths::programs_initramfs())
    };
    let machine = machine.append("console=ttyS0 quiet loglevel=1");
    let chosen = |chapter: &&Chapter| {
        let wanted = |name: &String| chapter.name.contains(name.as_str());
        arguments.filter.as_ref().is_none_or(wanted) && !arguments.skip.iter().any(wanted)
    };
    let chosen: Vec<&Chapter> = CHAPTERS.iter().filter(chosen).collect();
    let mut results = BTreeMap::new();
    let mut shell = None;
    for chapter in chosen.iter().filter(|_| !arguments.list) {
        let mut run = || {
            let mut here = match shell.take() {
                Some(shell) => shell,
                None => Shell::start(&machine)?,
            };
            if how == "record" {
                chapter.record(&mut here)?
            } else {
                chapter.play(&mut here)?
            };
            // A guest in which a session has failed is no ground for the next.
            shell = Some(here);
            anyhow::Ok(())
        };
        let result = run();
        results.insert(chapter.name, result.map_err(|error| format!("{error:#}")));
    }
    let trials = chosen.into_iter().map(|chapter| {
        let result = results.remove(chapter.name).unwrap_or(Ok(()));
        Trial::test(chapter.name, move || result.map_err(Failed::from))
    });
    let trials = trials.collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
