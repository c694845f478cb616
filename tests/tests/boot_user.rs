//! Boots of what is not Alea's own: a machine without a serial port, and archives and command lines made for Linux,
//! which init must find as Linux gives them.

use std::io::Write;
use std::path::Path;

use alea_tests::{PATIENCE, boot};
use xtask_guest::guest::{End, Guest, Limits, Outcome};
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::Machine;
use xtask_host::paths;

/// An archive of BusyBox and an init, without /dev.
fn image(init: &str) -> tempfile::TempPath {
    let mut tree = Tree::new();
    for dir in ["bin", "proc"] {
        tree.dir(dir, 0o755);
    }
    tree.host_file("bin/busybox", 0o755, &paths::busybox()).expect("BusyBox is there");
    tree.symlink("bin/sh", "busybox");
    tree.file("init", 0o755, init);
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(&tree.archive()).expect("room for it");
    file.into_temp_path()
}

fn run(kernel: &Path, init: &str, append: &str) -> Outcome {
    let image = image(init);
    let machine = Machine::new(kernel).initrd(image.to_path_buf()).append(append);
    boot(&machine).unwrap()
}

/// What the init printed between its two marks.
fn told(outcome: &Outcome) -> &str {
    let output = &outcome.output;
    let told = output.split_once("<<<").and_then(|(_, rest)| rest.split_once(">>>"));
    told.unwrap_or_else(|| panic!("nothing was told\n{}", outcome.describe())).0
}

const POWER_OFF: &str = "/bin/busybox poweroff -f\n";
/// Linux measures its timer by a spin, and panics where another program has the CPU meanwhile.
const LINE: &str = "console=ttyS0 no_timer_check";

#[test]
fn a_machine_without_a_serial_port_boots() {
    let image = image(&format!("#!/bin/sh\necho to nobody\n{POWER_OFF}"));
    let machine = Machine::new(paths::kernel()).initrd(image.to_path_buf()).without_serial();
    let outcome = boot(&machine).unwrap();
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
}

#[test]
fn an_archive_without_dev_gets_a_console() {
    let init = format!(
        "#!/bin/sh\nBB=/bin/busybox\necho '<<<'\n$BB mount -t proc proc /proc\n\
         $BB readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2\n\
         $BB stat -c '%n %f %u %g %t %T' /dev /dev/console /root\necho '>>>'\n{POWER_OFF}"
    );
    let [linux, alea] = [paths::vmlinuz(), paths::kernel()]
        .map(|kernel| told(&run(&kernel, &init, "console=ttyS0 quiet no_timer_check")).to_owned());
    assert!(linux.contains("/dev/console 2180 0 0 5 1"), "{linux}");
    assert_eq!(alea, linux);
}

/// The same command line gives init the same words on both kernels.
#[test]
fn unknown_words_of_the_command_line_go_to_init() {
    let init = format!(
        "#!/bin/sh\necho '<<<'\necho \"$# arguments\"\nfor word; do echo \"[$word]\"; done\n\
         /bin/busybox env\necho '>>>'\n{POWER_OFF}"
    );
    let lines = [
        "single word name=value module.parameter module.value=1 ro rw root=/dev/none panic=5",
        "early=1 before rdinit=/init after late=2 -- last name=value quiet a.b",
        "auto init=/init S x=\"two words\" \"whole y=1 2\" \"bare words\" z=\"\" =odd HOME=/root TERM=dumb x=3",
        "log-buf-len=1M log_buf_len=1M BOOT_IMAGE=/boot/vmlinuz - -- --flag \"a b\" v=\"c d\" -- gone",
        "nosmp audit=0 initcall_debug_not loglevel=3 unknown=",
        "skew_tick=0 hostname=x ntp_tick_adj=0 tracing_thresh=0 rcu_nocb_poll ignore_rlimit_data print_fatal_signals",
    ];
    for line in lines {
        let line = format!("console=ttyS0 quiet no_timer_check {line}");
        let [linux, alea] = [paths::vmlinuz(), paths::kernel()]
            .map(|kernel| told(&run(&kernel, &init, &line)).to_owned());
        assert_eq!(alea, linux, "{line}");
    }
    // Linux obeys this one and hands it over all the same.
    let alea = told(&run(&paths::kernel(), &init, "console=ttyS0 quiet nokaslr")).to_owned();
    assert!(alea.contains("0 arguments"), "{alea}");
}

/// Of several words for the serial port the first one's speed counts, wherever words for other consoles stand.
#[test]
fn several_console_words_set_the_speed_as_on_linux() {
    let init =
        format!("#!/bin/sh\necho '<<<'\n/bin/busybox stty < /dev/console\necho '>>>'\n{POWER_OFF}");
    let lines = [
        ("console=ttyS0", "speed 9600"),
        ("console=ttyS0,115200", "speed 115200"),
        ("console=ttyS0,115200n8 console=none console=ttyS0,38400", "speed 115200"),
        ("console=none,38400 console=ttyS0 console=ttyS0,115200", "speed 9600"),
    ];
    for (line, speed) in lines {
        let [linux, alea] = [paths::vmlinuz(), paths::kernel()]
            .map(|kernel| told(&run(&kernel, &init, &format!("{line} quiet"))).to_owned());
        assert!(linux.contains(speed), "{line}: {linux}");
        assert_eq!(alea, linux, "{line}");
    }
}

/// A console that is not there gets a line, and the serial port is the console; one that is there gets none.
#[test]
fn a_console_that_is_not_there_is_named() {
    let init = format!("#!/bin/sh\necho '<<<' heard '>>>'\n{POWER_OFF}");
    let outcome = run(&paths::kernel(), &init, "console=ttyS0,115200 console=tty0 console=hvc0");
    assert_eq!(told(&outcome).trim(), "heard", "{}", outcome.describe());
    let said: Vec<_> =
        outcome.output.lines().filter(|line| line.contains("no such console")).collect();
    assert_eq!(said.len(), 2, "{}", outcome.describe());
    for (line, name) in said.iter().zip(["tty0", "hvc0"]) {
        assert!(line.contains(&format!("console={name}: there is no such console")), "{line}");
    }
}

/// QEMU gives a `virtserialport` the number 1 and no port 0: what is written goes there whole, and there is no file that
/// takes bytes for nobody.
#[test]
fn the_port_that_the_host_gave_is_the_one_there_is() {
    let init = format!(
        "#!/bin/sh\nBB=/bin/busybox\n$BB mount -t devtmpfs dev /dev\necho '<<<'\n$BB ls /dev | $BB grep vport\n\
         $BB seq 20000 > /dev/vport0p1\necho \"status $?\"\n\
         exec 3> /dev/vport0p1\n(echo twice > /dev/vport0p1) 2> /dev/null\necho \"second open $?\"\nexec 3>&-\n\
         echo again > /dev/vport0p1\necho \"after a close $?\"\necho '>>>'\n{POWER_OFF}"
    );
    let image = image(&init);
    let got = tempfile::NamedTempFile::new().expect("a temporary file").into_temp_path();
    let machine = Machine::new(paths::kernel())
        .initrd(image.to_path_buf())
        .append("console=ttyS0 quiet")
        .args(["-device", "virtio-serial", "-device", "virtserialport,chardev=port"])
        .args(["-chardev", &format!("file,id=port,path={}", got.display())]);
    let outcome = boot(&machine).unwrap();
    let told: Vec<_> = told(&outcome).split_whitespace().collect();
    let told = told.join(" ");
    assert_eq!(told, "vport0p1 status 0 second open 1 after a close 0", "{}", outcome.describe());
    let mut sent: String = (1..=20000).map(|number| format!("{number}\n")).collect();
    sent.push_str("again\n");
    assert!(std::fs::read_to_string(&got).expect("what was sent") == sent, "bytes were lost");
}

/// A device without a driver gets one line, one with a driver none.
#[test]
fn a_device_without_a_driver_gets_a_line() {
    let args = [
        "virtio-net-pci,addr=8",
        "virtio-rng-pci,addr=9",
        "virtio-rng-pci,addr=a",
        "virtio-balloon-pci,addr=b",
        "e1000,addr=c",
        "qemu-xhci,addr=d",
    ];
    let machine = Machine::new(paths::kernel())
        .append("console=ttyS0 alea.selftest=only")
        .args(args.iter().flat_map(|device| ["-device", device]));
    let log = boot(&machine).unwrap().powered_off().unwrap().output;
    let said: Vec<_> = log.lines().filter_map(|line| line.split_once("pci 0000:00:0")).collect();
    let said: Vec<_> =
        said.into_iter().map(|(_, line)| line.trim_end()).filter(|line| *line > "8").collect();
    let expected = [
        "8.0: virtio-net [1af4:1000]: no driver",
        "a.0: virtio-rng [1af4:1005]: not used: another one is",
        "b.0: virtio-balloon [1af4:1002]: no driver",
        "c.0: network card [8086:100e]: no driver",
        "d.0: USB controller [1b36:000d]: no driver",
    ];
    assert_eq!(said, expected, "{log}");
}

/// The letters of /proc/sysrq-trigger that end processes: everybody but process 1 gets the signal, and the largest is killed.
#[test]
fn the_letters_that_kill_do_so_as_on_linux() {
    let init = format!(
        "#!/bin/sh\nBB=/bin/busybox\n$BB mount -t proc proc /proc\n$BB mount -t devtmpfs dev /dev\necho 1 > /proc/sys/kernel/printk\n\
         SYSRQ=/proc/sysrq-trigger\necho '<<<'\n\
         for letter in e i; do\n$BB sleep 1000 & sleeper=$!\n\
         $BB sh -c 'trap \"exit 3\" TERM; while :; do :; done' & catcher=$!\n$BB sleep 1\n\
         echo $letter > $SYSRQ\nwait $sleeper; echo \"sleeper $?\"; wait $catcher; echo \"catcher $?\"\n\
         read level rest < /proc/sys/kernel/printk; echo \"level $level\"\n\
         echo 1 > /proc/sys/kernel/printk; done\n\
         $BB dd if=/dev/zero of=/dev/null bs=40M count=100000 2> /dev/null & eater=$!\n$BB sleep 2\n\
         echo f > $SYSRQ\nwait $eater; echo \"eater $?\"\necho '>>>'\n{POWER_OFF}"
    );
    let [linux, alea] = [paths::vmlinuz(), paths::kernel()].map(|kernel| {
        let outcome = run(&kernel, &init, "console=ttyS0 quiet no_timer_check");
        let lines = told(&outcome).lines().map(str::trim);
        // The shell names the signals of its children when it happens to look: who says it first is no contract.
        let is_said =
            |line: &&str| !line.starts_with('[') && !["Terminated", "Killed"].contains(line);
        let lines: Vec<_> = lines.filter(is_said).collect();
        lines.join(" ").trim().to_owned()
    });
    let ends = "sleeper 143 catcher 3 level 1 sleeper 137 catcher 137 level 1 eater 137";
    assert_eq!(linux, ends);
    assert_eq!(alea, linux);
}

/// A break on the serial line and a letter: what `kernel.sysrq` allows is done, on each kernel, and neither reaches the program.
#[test]
fn a_break_at_the_console_is_the_kernels() {
    let init = format!(
        "#!/bin/sh\nBB=/bin/busybox\n$BB mount -t proc proc /proc\nvalue=$($BB cat /proc/sys/kernel/sysrq)\n\
         echo \"'<<<' at first $value\"\nfor value in $value 1 0; do\necho $value > /proc/sys/kernel/sysrq\n\
         echo \"waits at $value\"\nread line\necho \"at $value: [$line]\"\ndone\necho '>>>'\n{POWER_OFF}"
    );
    for kernel in [paths::vmlinuz(), paths::kernel()] {
        let image = image(&init);
        let machine = Machine::new(kernel).initrd(image.to_path_buf()).append(LINE);
        let mut guest = Guest::start(&machine).unwrap();
        // Of the default a dump is not part; the last value switches all off.
        for (value, done) in
            [("438", "This sysrq operation is disabled"), ("1", "Show Memory"), ("0", "")]
        {
            guest.wait_for(&format!("waits at {value}"), PATIENCE).unwrap();
            guest.monitor().unwrap().human(0, "chardev-send-break console").unwrap();
            guest.send("m").unwrap();
            if !done.is_empty() {
                guest.wait_for(done, PATIENCE).unwrap();
            }
            guest.send("behind\n").unwrap();
        }
        let limits = Limits { total: Some(PATIENCE), idle: Some(PATIENCE) };
        let outcome = guest.finish(limits).unwrap();
        for line in ["at first 438", "at 438: [behind]", "at 1: [behind]", "at 0: [mbehind]"] {
            assert!(outcome.output.contains(line), "{line}: {}", outcome.describe());
        }
        let shown = outcome.output.matches("Show Memory").count();
        assert_eq!(shown, 1, "{}", outcome.describe());
    }
}

/// A break is a bit of the line's state that whoever reads first clears, be it to send: it is not lost while the machine prints.
#[test]
fn a_break_is_heard_while_the_machine_prints() {
    let init = format!(
        "#!/bin/sh\nBB=/bin/busybox\n$BB mount -t proc proc /proc\n$BB mount -t devtmpfs dev /dev\n\
         echo 1 > /proc/sys/kernel/sysrq\n$BB yes is-printed &\nread line\nkill $!\n{POWER_OFF}"
    );
    for kernel in [paths::vmlinuz(), paths::kernel()] {
        let image = image(&init);
        let machine = Machine::new(kernel).initrd(image.to_path_buf()).append(LINE);
        let mut guest = Guest::start(&machine).unwrap();
        for level in (0..10).chain(0..10) {
            guest.wait_for("is-printed", PATIENCE).unwrap();
            guest.monitor().unwrap().human(0, "chardev-send-break console").unwrap();
            guest.send(level.to_string()).unwrap();
            guest.wait_for(&format!("Loglevel set to {level}"), PATIENCE).unwrap();
        }
        guest.send("\n").unwrap();
        let limits = Limits { total: Some(PATIENCE), idle: Some(PATIENCE) };
        let outcome = guest.finish(limits).unwrap();
        assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
    }
}

/// Those that print: a line that says what comes, whatever the console's level, and what there is to say.
#[test]
fn the_letters_that_print_do() {
    let init = format!(
        "#!/bin/sh\nBB=/bin/busybox\n$BB mount -t proc proc /proc\n$BB sleep 1000 &\n\
         for letter in h m t w l s u 8 _ms; do echo $letter > /proc/sysrq-trigger; done\n\
         echo 3 > /proc/sysrq-trigger\nread level rest < /proc/sys/kernel/printk\necho \"level $level\"\n{POWER_OFF}"
    );
    for kernel in [paths::vmlinuz(), paths::kernel()] {
        let outcome = run(&kernel, &init, LINE);
        assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
        for (text, times) in [
            ("sysrq: HELP : loglevel(0-9) reboot(b) crash(c)", 2),
            ("sysrq: Show Memory", 2),
            ("Mem-Info:", 2),
            ("sysrq: Show State", 1),
            ("sysrq: Show Blocked State", 1),
            ("sysrq: Show backtrace of all active CPUs", 1),
            ("sysrq: Emergency Sync", 2),
            ("sysrq: Emergency Remount R/O", 1),
            ("sysrq: Loglevel set to 8", 1),
            ("sysrq: Loglevel set to 3", 1),
            ("level 3", 1),
        ] {
            let said = outcome.output.matches(text).count();
            assert_eq!(said, times, "{text}: {}", outcome.describe());
        }
        let tasks = outcome.output.matches("task:init").count();
        assert!(tasks >= 1, "{}", outcome.describe());
    }
}

/// Those that end the machine, on each kernel.
#[test]
fn the_letters_that_end_the_machine_end_it() {
    for kernel in [paths::vmlinuz(), paths::kernel()] {
        for (letter, end, says) in [
            ("b", End::Exited(0), "sysrq: Resetting"),
            ("o", End::Exited(0), "sysrq: Power Off"),
            ("c", End::Panicked, "sysrq triggered crash"),
        ] {
            let init = format!(
                "#!/bin/sh\n/bin/busybox mount -t proc proc /proc\necho {letter} > /proc/sysrq-trigger\n\
                 /bin/busybox sleep 20\necho went on\n{POWER_OFF}"
            );
            let outcome = run(&kernel, &init, LINE);
            assert_eq!(outcome.end, end, "{letter}: {}", outcome.describe());
            assert!(outcome.output.contains(says), "{letter}: {}", outcome.describe());
            assert!(!outcome.output.contains("went on"), "{letter}: {}", outcome.describe());
        }
    }
}

/// An administrator who wants another machine to take over has memory that is out end this one; the key that kills does not.
#[test]
fn memory_that_is_out_ends_the_machine_if_that_is_wanted() {
    for kernel in [paths::vmlinuz(), paths::kernel()] {
        for (value, says) in [("1", "system-wide panic_on_oom"), ("2", "compulsory panic_on_oom")] {
            let init = format!(
                "#!/bin/sh\nBB=/bin/busybox\n$BB mount -t proc proc /proc\n$BB mount -t devtmpfs dev /dev\nSET=/proc/sys/vm/panic_on_oom\n\
                 for bad in -1 3 x; do (echo $bad > $SET) 2> /dev/null && echo \"took $bad\"; done\n\
                 echo {value} > $SET\necho 1 > /proc/sys/vm/overcommit_memory\n$BB sleep 100 &\necho f > /proc/sysrq-trigger\nwait\n\
                 read now < $SET\necho \"lives at $now\"\n\
                 $BB dd if=/dev/zero of=/dev/null bs=2000M count=1\necho went on\n{POWER_OFF}"
            );
            let outcome = run(&kernel, &init, "console=ttyS0 panic=-1 no_timer_check");
            assert_eq!(outcome.end, End::Panicked, "{value}: {}", outcome.describe());
            assert!(
                outcome.output.contains(&format!("lives at {value}")),
                "{}",
                outcome.describe()
            );
            assert!(outcome.output.contains(says), "{value}: {}", outcome.describe());
            assert!(!outcome.output.contains("took"), "{value}: {}", outcome.describe());
        }
    }
}
