//! hvc0: the console port of a virtio console as /dev/console, with the kernel log, input, signals and a panic's text.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

use alea_tests::boot;
use xtask_guest::guest::Outcome;
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::Machine;
use xtask_host::paths;

/// What the host reads at the port, and what it typed: an answer to each prompt.
struct Host {
    stream: UnixStream,
    seen: Vec<u8>,
}

impl Host {
    /// Reads until `text` was seen or the guest is gone; whether it was.
    fn wait_for(&mut self, text: &str) -> bool {
        let mut byte = [0; 4096];
        while !self.seen.windows(text.len()).any(|part| part == text.as_bytes()) {
            match self.stream.read(&mut byte) {
                Ok(0) | Err(_) => return false,
                Ok(n) => self.seen.extend_from_slice(&byte[..n]),
            }
        }
        true
    }

    fn answer(&mut self, prompt: &str, text: &[u8]) {
        if self.wait_for(prompt) {
            self.stream.write_all(text).expect("the guest listens");
        }
    }
}

/// Boots with a `virtconsole` whose other end `talk` has; what the serial line showed, and what hvc0 did.
fn run(init: &str, append: &str, talk: fn(&mut Host)) -> (Outcome, String) {
    run_on(Machine::new(paths::kernel()), init, append, talk)
}

fn run_on(machine: Machine, init: &str, append: &str, talk: fn(&mut Host)) -> (Outcome, String) {
    let mut tree = Tree::new();
    for dir in ["bin", "dev", "proc", "sys"] {
        tree.dir(dir, 0o755);
    }
    tree.host_file("bin/busybox", 0o755, &paths::busybox()).expect("BusyBox is there");
    tree.symlink("bin/sh", "busybox");
    tree.file("init", 0o755, init);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = folder.path().join("image");
    std::fs::write(&image, tree.archive()).expect("room for it");
    let socket = folder.path().join("port");
    let host = listen(&socket, talk);
    let machine = machine
        .initrd(image)
        .append(append)
        .args(["-chardev", &format!("socket,id=port,path={}", socket.display())])
        .args(["-device", "virtio-serial", "-device", "virtconsole,chardev=port"]);
    let outcome = boot(&machine).unwrap();
    (outcome, host.join().expect("the host's end did not fail"))
}

fn listen(socket: &Path, talk: fn(&mut Host)) -> thread::JoinHandle<String> {
    let listener = UnixListener::bind(socket).expect("a socket");
    thread::spawn(move || {
        let (stream, _) = listener.accept().expect("QEMU comes");
        let mut host = Host { stream, seen: Vec::new() };
        talk(&mut host);
        let _gone = host.wait_for("this never comes");
        String::from_utf8_lossy(&host.seen).replace('\r', "")
    })
}

const SCRIPT: &str = "#!/bin/sh\nBB=/bin/busybox\n$BB mount -t proc proc /proc\n$BB mount -t sysfs sys /sys\n\
    $BB mount -t devtmpfs dev /dev\n\
    echo '<<<'\n$BB cat /proc/consoles /sys/devices/virtual/tty/console/active\n$BB readlink /proc/self/fd/0\n\
    $BB stat -c '%n %F %t:%T' /dev/hvc0\n$BB ls /dev | $BB grep vport\n$BB tty < /dev/hvc0\n\
    read line\necho \"heard [$line]\"\n\
    $BB setsid -c $BB sh -c 'trap \"echo caught; exit\" INT; echo ready; while :; do :; done'\n\
    $BB seq 5000\necho '>>>'\n$BB poweroff -f\n";

#[test]
fn a_virtio_console_is_a_terminal_like_the_serial_line() {
    let (outcome, shown) = run(SCRIPT, "console=hvc0", |host| {
        host.answer("/dev/hvc0\r\n", b"to the guesd\x7ft\r");
        host.answer("ready\r\n", b"\x03");
    });
    assert!(shown.contains("] Alea "), "the first line of the log is missing\n{shown}");
    let numbers: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    let told = shown.split_once("<<<\n").and_then(|(_, rest)| rest.split_once(">>>"));
    let told = told.unwrap_or_else(|| panic!("{shown}\n{}", outcome.describe())).0;
    let (told, rest) = told.split_once("1\n2\n").unwrap_or((told, ""));
    assert_eq!(format!("1\n2\n{rest}"), numbers, "lines were lost");
    let typed = "to the guesd\x08 \x08t\n";
    let want = format!(
        "hvc0                 -W- (EC  p  )  229:0\nhvc0\n/dev/console\n/dev/hvc0 character special file e5:0\n\
         /dev/hvc0\n{typed}heard [to the guest]\nready\n^Ccaught\n"
    );
    assert_eq!(told, want);
    assert!(!outcome.output.contains("<<<"), "{}", outcome.output);
    let hidden = outcome.output.lines().any(|line| line.contains("reboot: Power down"));
    assert!(!hidden, "the log goes on at a port that is no console\n{}", outcome.output);
}

/// Of two consoles the last one is /dev/console, and the log is shown at both.
#[test]
fn the_last_console_word_is_the_console() {
    for (words, console) in
        [("console=hvc0 console=ttyS0", "ttyS0"), ("console=ttyS0 console=hvc0", "hvc0")]
    {
        let script = "#!/bin/sh\nBB=/bin/busybox\n$BB mount -t sysfs sys /sys\n$BB mount -t devtmpfs dev /dev\n\
            echo '<<<'\n$BB cat /sys/devices/virtual/tty/console/active\necho '>>>'\n\
            echo '<4>said to all' > /dev/kmsg\n$BB poweroff -f\n";
        let (outcome, hvc) = run(script, words, |_| {});
        let serial = outcome.output.replace('\r', "");
        let (at, other) = if console == "hvc0" { (&hvc, &serial) } else { (&serial, &hvc) };
        let words = words.replace("console=", "");
        assert!(at.contains(&format!("<<<\n{words}\n>>>")), "{at}");
        assert!(!other.contains("<<<"), "{other}");
        for shown in [&hvc, &serial] {
            assert!(shown.contains("] said to all\n") && shown.contains("] Alea "), "{shown}");
        }
    }
}

#[test]
fn without_a_serial_port_it_is_the_console() {
    let machine = Machine::new(paths::kernel()).without_serial();
    let script = "#!/bin/sh\necho '<<<' \"$*\" '>>>'\n/bin/busybox poweroff -f\n";
    let (_, shown) = run_on(machine, script, "-- heard", |_| {});
    assert!(shown.contains("<<< heard >>>") && shown.contains("] Alea "), "{shown}");
}

#[test]
fn a_panic_is_told_to_the_console() {
    let (_, shown) = run("", "console=hvc0 alea.crash=panic", |_| {});
    assert!(shown.contains("Kernel panic - not syncing: "), "{shown}");
    assert!(shown.contains("Call trace:\n [<"), "{shown}");
    assert!(shown.ends_with("---[ end Kernel panic - not syncing ]---\n"), "{shown}");
}
