//! A run on a terminal, which util-linux's `script` gives it: what a person types.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use alea_tests::in_turn;

use super::{KERNELS, ended, root, run, text};

/// A run, and the keyboard and screen of its terminal.
struct Typed {
    child: Child,
    keyboard: ChildStdin,
    screen: ChildStdout,
}

impl Typed {
    /// Runs `words` on `root`; a shell without words.
    fn start(kernel: &str, root: &Path, words: &str) -> Self {
        let run = env!("CARGO_BIN_EXE_alea-run");
        let path = root.to_str().unwrap();
        let line = format!("exec {run} --accel tcg --kernel {kernel} --root {path} {words}");
        let mut script = Command::new("script");
        script.args(["-qefc", &line, "/dev/null"]);
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keyboard, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, keyboard, screen }
    }

    /// Waits until the screen ends with `what`.
    fn wait_for(&mut self, what: &str) {
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !seen.ends_with(what.as_bytes()) {
            assert_eq!(self.screen.read(&mut byte).unwrap(), 1, "no {what:?} in {}", text(&seen));
            seen.push(byte[0]);
        }
    }

    fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// How it ended, and what was on the screen since it was last waited for.
    fn end(mut self) -> Output {
        let mut stdout = Vec::new();
        self.screen.read_to_end(&mut stdout).unwrap();
        Output { status: self.child.wait().unwrap(), stdout, stderr: Vec::new() }
    }
}

#[test]
fn without_a_command_there_is_a_shell() {
    let root = root();
    for kernel in KERNELS {
        in_turn(|| {
            let mut typed = Typed::start(kernel, root.path(), "");
            typed.wait_for("# ");
            typed.keys("tty; echo $0; exit 7\r");
            let output = typed.end();
            ended(&output, 7);
            let told = text(&output.stdout);
            assert!(told.contains("/dev/pts/0\r\n/bin/sh\r\n"), "{kernel}: {told:?}");
        });
    }
}

/// The same without a terminal: the lines of a pipe.
#[test]
fn a_shell_reads_its_commands_from_a_pipe() {
    let root = root();
    let output = in_turn(|| {
        let mut command = run("alea", &["--root", root.path().to_str().unwrap()]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"echo of mine\nexit 3\n").unwrap();
        child.wait_with_output().unwrap()
    });
    ended(&output, 3);
    assert_eq!(text(&output.stdout), "of mine\n");
}

#[test]
fn ctrl_c_interrupts_the_command_and_ctrl_a_x_leaves() {
    let root = root();
    for (kernel, keys) in [("alea", "\x03"), ("linux", "\x03"), ("alea", "\x01x")] {
        in_turn(|| {
            let mut typed = Typed::start(kernel, root.path(), "-- sh -c 'echo up; sleep 1000'");
            typed.wait_for("up\r\n");
            typed.keys(keys);
            ended(&typed.end(), 130);
        });
    }
}
