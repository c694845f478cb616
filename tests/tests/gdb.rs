//! The client of QEMU's gdb stub: a machine is stopped at a function of the kernel, looked into, stepped, and goes on.

use std::time::Duration;

use alea_tests::{PATIENCE, alea};
use xtask_guest::gdb::{Breakpoint, Gdb, Stepping, Stop};
use xtask_guest::guest::Guest;
use xtask_guest::symbolize::address_of;
use xtask_host::paths;

/// A function that every boot calls once.
const FUNCTION: &str = "alea_kernel::random::service::fill_secret";

/// Where the kernel's image begins, in the address space of the CPU and in memory.
const IMAGE: u64 = 0xffff_ffff_8000_0000;

const TRAP: u8 = 5;

fn step(gdb: &mut Gdb) -> u64 {
    assert_eq!(gdb.step(0, PATIENCE).unwrap(), Stop::Signal { signal: TRAP, cpu: 0 });
    gdb.registers(0).unwrap().rip().unwrap()
}

#[test]
fn a_machine_stops_at_a_function_is_stepped_and_goes_on() {
    let machine = alea().smp(2).append("console=ttyS0 alea.selftest=only").standing();
    let guest = Guest::start(&machine).unwrap();
    let mut gdb = guest.gdb().unwrap();
    assert_eq!(gdb.cpus().unwrap(), 2);
    let function = address_of(&paths::kernel(), FUNCTION).unwrap();
    gdb.set_breakpoint(Breakpoint::Hardware, function).unwrap();
    let stopped = gdb.resume(PATIENCE).unwrap();
    assert_eq!(stopped, Stop::Signal { signal: TRAP, cpu: 0 });
    let registers = gdb.registers(0).unwrap();
    assert_eq!(registers.rip().unwrap(), function);
    assert!(registers.bytes("xmm15").is_some_and(|bytes| bytes.len() == 16));

    // The same memory by both addresses; longer than one packet.
    let code = gdb.read(0, function, 100_000).unwrap();
    assert_eq!(gdb.read_physical(function - IMAGE, code.len()).unwrap(), code);
    let free = registers.value("rsp").unwrap() - 512;
    gdb.write(0, free, b"something else").unwrap();
    assert_eq!(gdb.read(0, free, 14).unwrap(), b"something else");
    assert!(gdb.read(0, 0x10, 8).is_err(), "the first page is not mapped");

    // One instruction each, of this CPU alone.
    gdb.clear_breakpoint(Breakpoint::Hardware, function).unwrap();
    gdb.set_stepping(Stepping::Undisturbed).unwrap();
    let other = gdb.registers(1).unwrap();
    let mut at = function;
    for _ in 0..5 {
        let next = step(&mut gdb);
        assert!((1..=15).contains(&(next - at)), "no step from {at:#x} to {next:#x}");
        at = next;
    }
    assert_eq!(gdb.registers(1).unwrap(), other);

    // Nothing stops it at once: it stands all the same, and then runs to its end.
    gdb.set_breakpoint(Breakpoint::Software, function).unwrap();
    let late = gdb.resume(Duration::from_millis(1)).unwrap_err();
    assert!(late.to_string().contains("nothing stopped the machine"), "{late:#}");
    assert_eq!(gdb.resume(PATIENCE).unwrap(), Stop::Exited(0));
    assert!(guest.output().contains("random: ready"), "{}", guest.output());
}
