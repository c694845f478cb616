//! A machine that is saved and restored twice: what its twins draw.
//!
//! `userland/random/clone.c` waits for a byte, is saved there, and draws from every interface afterwards.
//! `userland/random/snapshots.c` is saved in the middle of a draw or a reseed: a sample of what `cargo xtask snapshots` does at every
//! instruction. Which sample differs from run to run, and is told.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use alea_tests::{PATIENCE, alea, in_turn};
use xtask_check::snapshots::{self, Found, SCENARIOS, Sample};
use xtask_guest::guest::Guest;
use xtask_guest::qemu::Machine;
use xtask_host::paths;

/// What one machine drew, in order: the interface's name and the bytes.
type Draws = Vec<(String, Vec<u8>)>;

/// Which draw is to be the first after the machine was restored.
const SYSTEM_CALL: &str = "s";
const VDSO: &str = "v";

/// Every draw of the program, sorted.
const ALL: [&str; 8] =
    ["at_random", "getrandom", "getrandom", "getrandom", "random", "urandom", "uuid", "vdso"];

fn machine(generation: Option<&str>) -> Machine {
    let machine = alea().append("console=ttyS0 rdinit=/usr/lib/alea/clone quiet");
    match generation {
        Some(id) => machine.args(["-device", &format!("vmgenid,guid={id}")]),
        None => machine,
    }
}

/// Boots, draws, and saves the machine while it waits.
fn save(machine: &Machine, file: &Path) -> Draws {
    let mut guest = Guest::start(machine).unwrap();
    guest.wait_for("clone: waiting", PATIENCE).unwrap();
    guest.monitor().unwrap().save(file, PATIENCE).unwrap();
    let draws = draws(&guest.output());
    guest.stop().unwrap();
    draws
}

/// Restores the saved machine and returns what it drew after that, the system call or the vDSO first.
fn restore(machine: Machine, file: &Path, first: &str) -> Draws {
    let incoming = format!("file:{}", file.display());
    let mut guest = Guest::start(&machine.args(["-incoming", &incoming])).unwrap();
    let mut monitor = guest.monitor().unwrap();
    monitor.restored(PATIENCE).unwrap();
    // The byte is there before the machine runs, so that it draws at once.
    guest.send(format!("{first}\n")).unwrap();
    monitor.resume().unwrap();
    guest.wait_for("clone: done", PATIENCE).unwrap();
    let draws = draws(&guest.output());
    guest.stop().unwrap();
    draws
}

fn draws(output: &str) -> Draws {
    let draw = |line: &str| {
        let (name, hex) = line.trim().strip_prefix("draw ")?.split_once(' ')?;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        Some((name.to_owned(), hex.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?))
    };
    output.lines().filter_map(draw).collect()
}

/// Every eight bytes in a row, at any offset.
fn windows(draws: &Draws) -> HashSet<&[u8]> {
    draws.iter().flat_map(|(_, bytes)| bytes.windows(8)).collect()
}

#[test]
fn twins_with_different_ids_share_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let before = save(&machine(Some("01234567-89ab-cdef-0123-456789abcdef")), &file);
    let ids = ["11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"];
    for order in [SYSTEM_CALL, VDSO] {
        let [first, second] = ids.map(|id| restore(machine(Some(id)), &file, order));
        for (twin, id) in [(&first, ids[0]), (&second, ids[1])] {
            let mut names: Vec<_> = twin.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names[0], if order == VDSO { "vdso" } else { "getrandom" });
            names.sort_unstable();
            assert_eq!(names, ALL, "{id}");
            assert!(windows(twin).is_disjoint(&windows(&before)), "{id} repeats what came before");
        }
        let (of_first, of_second) = (windows(&first), windows(&second));
        let common = of_first.intersection(&of_second).count();
        assert_eq!(common, 0, "the twins drew the same:\n{first:?}\n{second:?}");
    }
}

/// Why the id is needed: without it, twins hand out the same bytes. (A reseed by the clock may come
/// between; that is why one equal pair in five is enough.)
#[test]
fn twins_without_an_id_draw_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    save(&machine(None), &file);
    for order in [SYSTEM_CALL, VDSO] {
        let equal = (0..5).any(|_| {
            let [first, second] =
                [0, 1].map(|_| restore(machine(None), &file, order).swap_remove(0));
            first == second
        });
        assert!(equal, "the machine was not restored, or the test above shows nothing");
    }
}

/// Registers, memory, clocks and the number of instructions are the same at each start on one CPU, on a busy host too: otherwise
/// slices of several runs would not be parts of one operation.
#[test]
fn every_start_stands_at_the_same_place() {
    for name in ["reseed", "vDSO, new batch"] {
        let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap();
        let quiet = in_turn(|| scenario.begun(&paths::kernel())).unwrap();
        let busy = AtomicBool::new(true);
        let loaded = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while busy.load(Ordering::Relaxed) {
                        std::hint::spin_loop()
                    }
                });
            }
            let loaded = in_turn(|| scenario.begun(&paths::kernel()));
            busy.store(false, Ordering::Relaxed);
            loaded.unwrap()
        });
        assert!(quiet.registers == loaded.registers, "{name}: {:?}", quiet.registers);
        let differ = quiet.memory.iter().zip(&loaded.memory).filter(|(one, other)| one != other);
        assert_eq!(differ.count(), 0, "{name}: bytes of memory that differ");
        assert_eq!(quiet.clocks, loaded.clocks, "{name}");
    }
    let reseed = SCENARIOS.iter().find(|scenario| scenario.name == "reseed").unwrap();
    let count = || in_turn(|| reseed.explore(&paths::kernel(), Sample::none())).unwrap();
    let [one, other] = [count(), count()].map(|found| (found.instructions, found.reads));
    assert_eq!(one, other);
}

/// Snapshots at one instruction in `every`, and after each that reads the id.
fn explore(name: &str, every: u64) -> Found {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap();
    let sample = Sample::one_in(every, snapshots::chance(every));
    println!("{name}: {sample:?}");
    let found = in_turn(|| scenario.explore(&paths::kernel(), sample)).unwrap();
    assert!(found.faults.is_empty(), "{}", found.tell(&paths::kernel()));
    assert!(found.snapshots >= found.instructions / every / 20, "{found:?}");
    found
}

/// A draw reads both halves of the id once. From then on until the call has returned its bytes are the twins' as well: from the
/// very instruction that follows the last read. Checked at each snapshot: what twins share is that draw, never a later one, none of
/// it before the last read, and once they share it they do until the end.
#[test]
fn twins_of_a_draw_share_what_was_compared_and_nothing_else() {
    for name in ["getrandom(16)", "vDSO"] {
        let found = explore(name, 23);
        assert_eq!(found.reads, 2, "{found:?}");
        let from = found.from.map(|(instruction, _)| instruction);
        assert_eq!(from, Some(found.last_read), "{found:?}");
        assert!(found.compared < found.snapshots, "{found:?}");
    }
    let found = explore("getrandom(16), new key", 997);
    assert_eq!(found.reads, 2, "{found:?}");
}

#[test]
fn twins_of_a_machine_that_learns_of_its_id_share_nothing() {
    let found = explore("learning by getrandom(16)", 2503);
    assert!(found.reads > 6, "nothing was learnt: {found:?}");
}

/// The place of a fault that was there once: a seed was taken from the pool, the machine was cloned, the other CPU learnt
/// of it, and then the old seed became the key of both twins.
#[test]
fn twins_share_nothing_when_another_cpu_learns_in_the_middle_of_a_reseed() {
    let found = explore("reseed | learning", 29);
    assert!(found.held > 0 && found.twins > 10, "{found:?}");
}
