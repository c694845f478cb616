//! QEMU's microvm with and without its clocks, tables and serial port: a program runs and power-off ends QEMU, or the kernel says
//! in one line what is missing. Its devices, which are on no bus, are used.
//!
//! Debian's Linux 6.12 runs on the machines that have a PIT; without one it says "Marking TSC unstable due to could not calculate
//! TSC khz" and stands still for ever.

use std::io::Write;

use alea_tests::boot;
use xtask_guest::guest::{End, Outcome};
use xtask_guest::initramfs::Tree;
use xtask_guest::qemu::Machine;
use xtask_host::paths;

/// A machine of that kind whose init runs `script` and powers off. `more` are arguments for QEMU.
fn run(kind: &str, script: &str, more: &[&str]) -> Outcome {
    let mut tree = Tree::new();
    tree.dir("bin", 0o755).host_file("bin/busybox", 0o755, &paths::busybox()).unwrap();
    tree.symlink("bin/sh", "busybox");
    tree.file("init", 0o755, format!("#!/bin/sh\n{script}\n"));
    let mut image = tempfile::NamedTempFile::new().unwrap();
    image.write_all(&tree.archive()).unwrap();
    let machine = Machine::new(paths::kernel()).initrd(image.path()).args(["-machine", kind]);
    boot(&machine.args(more)).unwrap()
}

const POWER_OFF: &str = "/bin/busybox sleep 0.1; echo slept; /bin/busybox poweroff -f";
const REBOOT: &str = "/bin/busybox sleep 0.1; echo slept; /bin/busybox reboot -f";

#[track_caller]
fn ran(outcome: &Outcome, clock: &str) {
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
    let by = format!("MHz by {clock}");
    assert!(outcome.output.contains(&by), "{by}\n{}", outcome.describe());
    assert!(outcome.output.contains("slept"), "{}", outcome.describe());
}

#[test]
fn a_program_runs_with_whatever_clock_there_is() {
    for (options, clock) in [
        ("", "PIT"),
        (",rtc=off", "PIT"),
        (",pit=off,rtc=on", "RTC"),
        (",pit=off,pic=off,rtc=on", "RTC"),
    ] {
        // A machine that starts again instead of going off never ends.
        let more = ["-action", "reboot=reset", "-smp", "2"];
        ran(&run(&format!("microvm,acpi=on{options}"), POWER_OFF, &more), clock);
    }
    ran(&run("microvm,acpi=on", REBOOT, &[]), "PIT");
}

/// Such a machine has no power switch: QEMU is told to end where it would start again.
#[test]
fn a_machine_without_tables_ends_by_a_restart() {
    for (options, clock) in [("", "PIT"), (",pit=off,rtc=on", "RTC")] {
        ran(&run(&format!("microvm,acpi=off{options}"), POWER_OFF, &[]), clock);
    }
}

#[test]
fn a_machine_without_any_clock_is_told_so_in_one_line() {
    for acpi in ["on", "off"] {
        let kind = format!("microvm,acpi={acpi},pit=off,rtc=off,pic=off");
        let outcome = run(&kind, POWER_OFF, &[]);
        assert_eq!(outcome.end, End::Panicked, "{}", outcome.describe());
        let why = "Kernel panic - not syncing: this machine has no clock: no CPUID leaf states the TSC's rate, and none of \
                   HPET, ACPI PM timer, PIT and RTC counts";
        assert_eq!(outcome.output.matches(why).count(), 1, "{}", outcome.describe());
    }
}

#[test]
fn a_machine_without_a_serial_port_goes_off() {
    let outcome = run("microvm,acpi=on,isa-serial=off", POWER_OFF, &["-action", "reboot=reset"]);
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
    assert_eq!(outcome.output, "");
}

/// What ACPI names or the command line, by the old interface and by the present one: a source of random bytes, and the port to the
/// host. The second source and the network card get a line each.
#[test]
fn devices_that_are_on_no_bus_are_used() {
    for (acpi, legacy) in [("on", "true"), ("off", "false"), ("on", "false"), ("off", "true")] {
        let got = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let chardev = format!("file,id=port,path={}", got.display());
        let global = format!("virtio-mmio.force-legacy={legacy}");
        let more = [
            ["-global", &global],
            ["-chardev", &chardev],
            ["-device", "virtio-serial-device"],
            ["-device", "virtserialport,chardev=port"],
            ["-device", "virtio-rng-device"],
            ["-device", "virtio-rng-device"],
            ["-device", "virtio-net-device"],
        ];
        let script = "/bin/busybox mkdir /dev; /bin/busybox mount -t devtmpfs dev /dev\n\
                      /bin/busybox seq 20000 > /dev/vport0p1; /bin/busybox poweroff -f";
        let outcome = run(&format!("microvm,acpi={acpi},rtc=on"), script, &more.concat());
        assert_eq!(outcome.end, End::Exited(0), "{}", outcome.describe());
        let sent: String = (1..=20000).map(|number| format!("{number}\n")).collect();
        assert!(std::fs::read_to_string(&got).unwrap() == sent, "{}", outcome.describe());
        assert!(outcome.output.contains("random: virtio-rng delivers"), "{}", outcome.describe());
        for what in ["virtio-net: no driver", "virtio-rng: not used: another one is"] {
            let lines = outcome.output.lines();
            let said = lines.filter(|line| line.contains("virtio-mmio") && line.contains(what));
            assert_eq!(said.count(), 1, "{what}: {}", outcome.describe());
        }
    }
}
