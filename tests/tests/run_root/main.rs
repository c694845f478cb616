//! One command on a root of the user's own, on Alea and on Linux: exit statuses, input and output, what the root may be made of,
//! and how it ends when the command, the kernel or the user will not.

mod roots;
mod terminal;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use alea_tests::{PATIENCE, in_turn};
use tempfile::TempDir;
use xtask_host::paths;

const KERNELS: [&str; 2] = ["alea", "linux"];

/// A root with BusyBox, two users and a file of one's own.
fn root() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["bin", "etc", "home/ann", "srv"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    fs::copy(paths::busybox(), at("bin/busybox")).unwrap();
    let applets = [
        "sh",
        "cat",
        "id",
        "sleep",
        "head",
        "kill",
        "poweroff",
        "mkdir",
        "ln",
        "ls",
        "rm",
        "stat",
        "sha256sum",
        "wc",
        "tty",
        "stty",
        "seq",
        "test",
        "chmod",
        "env",
        "ps",
        "mknod",
        "dd",
        "ip",
    ];
    for applet in applets {
        symlink("busybox", at("bin").join(applet)).unwrap();
    }
    let passwd = "root:x:0:0::/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\n";
    fs::write(at("etc/passwd"), passwd).unwrap();
    fs::write(at("etc/group"), "root:x:0:\nusers:x:100:\naudio:x:29:ann\n").unwrap();
    fs::write(at("srv/data"), "of my own\n").unwrap();
    folder
}

fn run(kernel: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_alea-run"));
    let limit = (2 * PATIENCE).as_secs().to_string();
    command.args(["--kernel", kernel, "--accel", "tcg", "--timeout", &limit]).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `words` on `root`, to the end.
fn on(root: &Path, kernel: &str, options: &[&str], words: &[&str]) -> Output {
    let mut command = run(kernel, &["--root", root.to_str().unwrap()]);
    command.args(options).arg("--").args(words);
    in_turn(|| command.output().unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn ended(output: &Output, status: i32) {
    let shown = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{shown}");
}

#[test]
fn the_exit_status_is_the_commands() {
    let root = root();
    fs::write(root.path().join("srv/script"), "#!/bin/sh\n").unwrap();
    for kernel in KERNELS {
        let status = |words: &[&str], status| {
            let output = on(root.path(), kernel, &[], words);
            ended(&output, status);
            text(&output.stderr)
        };
        assert_eq!(status(&["sh", "-c", "exit 7"], 7), "");
        status(&["sh", "-c", "kill -9 $$"], 128 + 9);
        // Each boot of Linux takes its time.
        if kernel == "linux" {
            continue;
        }
        assert_eq!(status(&["true"], 127), "alea: true: No such file or directory (os error 2)\n");
        assert!(status(&["/srv/script"], 126).contains("Permission denied"));
        status(&["sh", "-c", "kill -SEGV $$"], 128 + 11);
        // Not even all signals at once reach process 1.
        status(&["sh", "-c", "kill -9 1; kill -9 -1; exit 3"], 3);
        // Nor does it wait for what is left behind.
        status(&["sh", "-c", "sleep 1000 & exit 4"], 4);
    }
}

#[test]
fn a_roots_own_init_has_the_serial_line() {
    let root = root();
    let script =
        "#!/bin/sh\necho ready; read line; echo \"process $$: $line\"; sleep 1; poweroff -f\n";
    fs::write(root.path().join("srv/init"), script).unwrap();
    fs::set_permissions(root.path().join("srv/init"), Permissions::from_mode(0o755)).unwrap();
    for kernel in KERNELS {
        let mut command = run(kernel, &["--root", root.path().to_str().unwrap()]);
        command.args(["--init", "/srv/init"]).stdin(Stdio::piped());
        let output = in_turn(|| {
            let mut child = command.spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let is_ready = lines.any(|line| line.unwrap() == "ready");
            child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
            let answered = lines.any(|line| line.unwrap() == "process 1: typed");
            assert!(is_ready && answered);
            child.wait_with_output().unwrap()
        });
        ended(&output, 0);
    }
}

#[test]
fn a_panic_of_a_roots_own_init_is_status_125() {
    let root = root();
    fs::write(root.path().join("srv/init"), "#!/bin/sh\nexit 3\n").unwrap();
    fs::set_permissions(root.path().join("srv/init"), Permissions::from_mode(0o755)).unwrap();
    let mut command = run("alea", &["--root", root.path().to_str().unwrap()]);
    let output = in_turn(|| command.args(["--init", "/srv/init"]).output().unwrap());
    ended(&output, 125);
    assert!(text(&output.stdout).contains("Attempted to kill init"), "{}", text(&output.stdout));
}

#[test]
fn streams_and_surroundings_are_the_commands_own() {
    let root = root();
    for kernel in KERNELS {
        let options =
            ["--env", "A=b c", "--env", "PATH=/bin", "--workdir", "/srv", "--user", "ann"];
        let script = "echo \"$A $PATH $HOME\"; id -u; id -G; cat data; ip -o link show lo; cat; \
                      echo to err >&2";
        let mut command = run(kernel, &["--root", root.path().to_str().unwrap()]);
        command.args(options).args(["--", "sh", "-c", script]).stdin(Stdio::piped());
        let output = in_turn(|| {
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(b"from the host\n").unwrap();
            child.wait_with_output().unwrap()
        });
        ended(&output, 0);
        let printed = text(&output.stdout);
        let (before, after) =
            ("b c /bin /home/ann\n1000\n100 29\nof my own\n", "\nfrom the host\n");
        let of_lo = printed.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        assert!(of_lo.is_some_and(|lo| lo.contains(",UP")), "{printed}");
        assert_eq!(text(&output.stderr), "to err\n", "no word of the boot");
        if kernel == "linux" {
            continue;
        }
        let mounts = on(root.path(), kernel, &[], &["cat", "/proc/mounts"]);
        for place in ["/proc", "/sys", "/dev", "/dev/pts", "/dev/shm"] {
            assert!(text(&mounts.stdout).contains(&format!(" {place} ")), "{kernel}: {place}");
        }
        for (options, why) in [
            (["--user", "nobody-here"], "the root knows no such user"),
            (["--workdir", "/nowhere"], "/nowhere"),
        ] {
            let output = on(root.path(), kernel, &options, &["cat"]);
            ended(&output, 125);
            assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
        }
    }
}

#[test]
fn a_hundred_mebibytes_come_out_whole() {
    let root = root();
    let count = ["dd", "if=/dev/zero", "bs=1M", "count=100", "status=none"];
    let output = on(root.path(), "alea", &[], &count);
    ended(&output, 0);
    assert!(output.stdout.len() == 100 << 20 && output.stdout.iter().all(|&byte| byte == 0));
    // And in: the sum is of what the host has sent.
    let mut command = run("alea", &["--root", root.path().to_str().unwrap(), "--", "wc", "-c"]);
    command.stdin(Stdio::piped());
    let output = in_turn(|| {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&vec![b'x'; 20 << 20]));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        output
    });
    assert_eq!(text(&output.stdout).trim(), (20 << 20).to_string());
}

/// By instructions, of which icount makes a nanosecond each, so that a busy machine changes little: 10 to 20 million are what 20 MB
/// took when the whole run took 320 ms.
#[test]
fn a_command_of_a_large_root_starts_soon() {
    let root = root();
    // Nothing that could be compressed.
    let mut state = 1u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    });
    fs::write(root.path().join("srv/data"), noise.take(20_000_000).collect::<Vec<_>>()).unwrap();
    // While the guest waits for the host its time goes on by the host's: the shortest of a few.
    let mut told = Vec::new();
    let soon = (0..3).any(|_| {
        let output = on(root.path(), "alea", &["--icount"], &["cat", "/proc/uptime"]);
        ended(&output, 0);
        told.push(text(&output.stdout));
        told.last().unwrap().split(' ').next().unwrap().parse::<f64>().unwrap() < 0.03
    });
    assert!(soon, "{told:?}");
}

#[test]
fn a_machine_that_fails_is_status_125() {
    let root = root();
    let crash = on(root.path(), "alea", &["--append", "alea.crash=panic"], &["true"]);
    ended(&crash, 125);
    let said = text(&crash.stderr);
    assert!(said.contains("the kernel panicked") && said.contains("alea.crash=panic"), "{said}");
    let crash = on(root.path(), "linux", &[], &["sh", "-c", "echo c > /proc/sysrq-trigger"]);
    ended(&crash, 125);
    let off = on(root.path(), "alea", &[], &["poweroff", "-f"]);
    ended(&off, 125);
    let said = text(&off.stderr);
    assert!(said.contains("powered off before the command had ended"), "{said}");
    assert!(said.contains("Run /.alea/init as init process"), "the end of the log: {said}");
    let mut slow = Command::new(env!("CARGO_BIN_EXE_alea-run"));
    slow.args(["--timeout", "20", "--root"]).arg(root.path()).args(["--", "sleep", "1000"]);
    let stopped = in_turn(|| slow.output().unwrap());
    ended(&stopped, 124);
    let said = text(&stopped.stderr);
    let [time, place] = ["the time was up", "CPU 0 was at"].map(|what| said.find(what));
    assert!(time.is_some() && time < place, "why it was stopped comes first: {said}");
}

#[test]
fn a_root_larger_than_memory_is_status_125() {
    let root = root();
    fs::write(root.path().join("large"), vec![0; 60 << 20]).unwrap();
    let output = on(root.path(), "alea", &["--memory", "48M"], &["true"]);
    ended(&output, 125);
    assert!(text(&output.stderr).contains("too large"), "{}", text(&output.stderr));
}

/// util-linux's script gives the run a terminal.
#[test]
fn on_a_terminal_the_command_has_one_of_the_same_size() {
    let root = root();
    let [run, path] = [env!("CARGO_BIN_EXE_alea-run"), root.path().to_str().unwrap()];
    for kernel in KERNELS {
        let line = format!(
            "stty rows 33 cols 101; exec {run} --accel tcg --kernel {kernel} --root {path} -- \
             sh -c 'tty; stty size; echo to err >&2; tty <&2; exit 5' 2>/dev/null"
        );
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
        let output = in_turn(|| script.output().unwrap());
        ended(&output, 5);
        let told = text(&output.stdout);
        // Between them the guest's terminal may echo that script has nothing to type.
        assert!(told.contains("33 101\r\n"), "{kernel}: {told:?}");
        // A terminal is one stream on either kernel: what goes to it by stderr comes out with the rest.
        assert_eq!(told.matches("/dev/pts/0\r\n").count(), 2, "{kernel}: {told:?}");
        assert!(told.contains("to err\r\n"), "{kernel}: {told:?}");
    }
}

#[test]
fn without_a_shell_there_is_no_shell() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    let output =
        in_turn(|| run("alea", &["--root", folder.path().to_str().unwrap()]).output().unwrap());
    ended(&output, 127);
    assert!(text(&output.stderr).contains("/bin/sh"), "{}", text(&output.stderr));
}

/// README's own: a program alone, which finds the usual places all the same.
#[test]
fn a_program_alone_is_a_root() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include <sys/stat.h>\nint main(void) { struct stat s; return stat(\"/proc/self/exe\", &s) ? 1 : 7; }";
    fs::write(folder.path().join("seven.c"), source).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-static", "-o", "seven", "seven.c"]).current_dir(folder.path());
    assert!(gcc.status().unwrap().success());
    for kernel in KERNELS {
        ended(&on(folder.path(), kernel, &[], &["/seven"]), 7);
    }
}

/// The QEMUs that a run has started.
fn machines(run: &Child) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        if rest.split_whitespace().nth(1) == Some(&run.id().to_string()) {
            found.push(entry.file_name().to_str().unwrap().parse().unwrap());
        }
    }
    found
}

#[track_caller]
fn are_gone(machines: &[i32]) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let is_there = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    while machines.iter().any(is_there) {
        assert!(Instant::now() < deadline, "QEMU stays behind: {machines:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn no_machine_stays_behind() {
    let root = root();
    let path = root.path().to_str().unwrap();
    for (signal, status) in
        [("INT", Some(130)), ("TERM", Some(143)), ("HUP", Some(129)), ("KILL", None)]
    {
        in_turn(|| {
            let mut command = run("alea", &["--root", path, "--", "sh", "-c", "echo up; cat"]);
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            let mut line = [0; 3];
            child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
            let started = machines(&child);
            assert_eq!(started.len(), 1);
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
            let ended = child.wait().unwrap();
            assert_eq!(ended.code(), status, "SIG{signal}: {ended}");
            assert_eq!(ended.signal(), status.is_none().then_some(9));
            are_gone(&started);
        });
    }
    // Somebody has it and does not read, so that the port is full; then nobody has it.
    in_turn(|| {
        let words = ["--root", path, "--", "sh", "-c", "while :; do cat /bin/busybox; done"];
        let mut child = run("alea", &words).spawn().unwrap();
        let mut start = [0; 4];
        child.stdout.as_mut().unwrap().read_exact(&mut start).unwrap();
        assert_eq!(start, *b"\x7fELF");
        std::thread::sleep(Duration::from_secs(2));
        let started = machines(&child);
        assert_eq!(started.len(), 1, "it waits");
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(143));
        are_gone(&started);
    });
    in_turn(|| {
        let words = ["--root", path, "--", "sh", "-c", "while :; do echo y; done"];
        let mut child = run("alea", &words).spawn().unwrap();
        let mut line = [0; 2];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        let started = machines(&child);
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(141));
        are_gone(&started);
    });
}

#[test]
fn a_folder_keeps_what_its_files_are() {
    let root = root();
    let at = |name: &str| root.path().join("srv").join(name);
    fs::write(at("one"), "shared").unwrap();
    fs::hard_link(at("one"), at("two")).unwrap();
    fs::set_permissions(at("one"), fs::Permissions::from_mode(0o4711)).unwrap();
    symlink("/nowhere", at("link")).unwrap();
    let _listening = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let made = Command::new("mkfifo").args(["-m", "640"]).arg(at("pipe")).status().unwrap();
    assert!(made.success());
    // Who may make a device finds it there; nobody else has one in a folder.
    let may = Command::new("mknod").arg(at("null")).args(["c", "1", "3"]).output().unwrap();
    let device = if may.status.success() { "character special file 1 3\n" } else { "" };
    let script = "cd /srv; stat -c '%n %a %h' one two; stat -c '%N' link; stat -c '%F %a' pipe; \
                  test -e null && stat -c '%F %t %T' null && echo gone > null && rm null; ls";
    for kernel in KERNELS {
        let output = on(root.path(), kernel, &[], &["sh", "-c", script]);
        ended(&output, 0);
        let wanted = format!(
            "one 4711 2\ntwo 4711 2\n'link' -> '/nowhere'\nfifo 640\n{device}data\nlink\none\npipe\ntwo\n"
        );
        assert_eq!(text(&output.stdout), wanted, "{kernel}");
        if kernel == "alea" {
            let said = text(&output.stderr);
            assert!(said.contains("sockets are left out") && said.contains("srv/socket"), "{said}");
        }
    }
    // What has changed is packed anew.
    fs::write(at("data"), "changed\n").unwrap();
    let output = on(root.path(), "alea", &[], &["cat", "/srv/data"]);
    assert_eq!(text(&output.stdout), "changed\n");
}

#[test]
fn a_setting_that_nothing_obeys_is_taken_with_the_reason() {
    let root = root();
    let script = "cd /proc/sys/vm; for v in 60 10; do echo $v > swappiness && echo taken; done
        cat swappiness; echo 4 > nr_hugepages; cat nr_hugepages; busybox dmesg";
    let output = on(root.path(), "alea", &[], &["sh", "-c", script]);
    let said = text(&output.stdout);
    assert!(said.starts_with("taken\ntaken\n10\n0\n"), "{said}");
    assert!(
        said.contains("sysctl: vm/swappiness is 10; nothing follows, for there is no swap"),
        "{said}"
    );
    assert!(
        said.contains("sysctl: vm/nr_hugepages stays 0, for there are no huge pages"),
        "{said}"
    );
}
