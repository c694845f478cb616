//! What the hot paths of memory cost, in TSC ticks: run with `alea.selftest=figures`. Under QEMU's
//! `-icount shift=0` a tick is an instruction.

use super::spaces::{file, of_file, shaped};
use crate::base::tsc;
use crate::mm::frames::frame::Frame;
use crate::mm::frames::{self, For};
use crate::mm::kernel::stack::KernelStack;
use crate::mm::space::AddressSpace;
use crate::mm::space::request::{FaultAccess, Prot};
use crate::mm::user::iov::{Sink, Source};
use alea_frames::Owner;
use alloc::boxed::Box;
use alloc::vec::Vec;

const ROUNDS: u64 = 100;

/// Runs `work` and logs its average cost.
fn figure(name: &str, mut work: impl FnMut()) {
    work();
    work();
    let start = tsc::read();
    for _ in 0..ROUNDS {
        work();
    }
    log::info!("mm: {name}: {} ticks", (tsc::read() - start) / ROUNDS);
}

/// Measures and logs everything.
pub fn run() {
    figure("nothing", || {});
    figure("frame alloc and free", || drop(Frame::alloc()));
    figure("zeroed frame alloc and free", || drop(Frame::alloc_zeroed()));
    figure("table alloc and free", || {
        let _ = frames::alloc_table().map(frames::free_table);
    });
    figure("frames through the buddy, 200", || {
        let held: Vec<_> =
            (0..200).filter_map(|_| frames::alloc(Owner::Kernel, For::Kernel)).collect();
        held.into_iter().for_each(frames::put);
    });
    figure("heap 64 bytes", || drop(core::hint::black_box(Box::new([0u64; 8]))));
    figure("heap 64 bytes, 100 at once", || {
        drop((0..100).map(|_| Box::new([0u64; 8])).collect::<Vec<_>>());
    });
    figure("heap 8 KiB", || drop(core::hint::black_box(Vec::<u64>::with_capacity(1024))));
    figure("kernel stack", || drop(KernelStack::alloc()));
    figure("address space, empty", || drop(AddressSpace::new()));
    let file = file(&alloc::vec![7; 480 * 4096]);
    let s = shaped(&file);
    figure("fork and teardown of a small program", || drop(s.fork()));
    figure("fork, first write in both, teardown", || {
        let child = s.fork().expect("memory");
        let stack = 0x7fff_0000_0000 - 64;
        let _ = child.fault(stack, FaultAccess::Write);
        let _ = s.fault(stack, FaultAccess::Write);
    });
    figure("exec's mappings, faults, teardown", || drop(shaped(&file)));
    let base = 0x4000_0000;
    let s = AddressSpace::new().expect("memory");
    figure("map, unmap", || {
        s.map(of_file(&file, base, 480, Prot::READ, false)).expect("map");
        s.unmap(base, 480 * 4096).expect("unmap");
    });
    figure("map, fault, unmap", || {
        s.map(of_file(&file, base, 480, Prot::READ, false)).expect("map");
        let _ = s.fault(base, FaultAccess::Read);
        s.unmap(base, 480 * 4096).expect("unmap");
    });
    figure("map, prefault 480 pages, unmap", || {
        s.map(of_file(&file, base, 480, Prot::READ, false)).expect("map");
        s.prefault(base..base + 480 * 4096, false).expect("prefault");
        s.unmap(base, 480 * 4096).expect("unmap");
    });
    let mut page = [0; 4096];
    figure("page cache read, 4 KiB", || {
        let _ = file.0.read(0, &mut Sink::kernel(&mut page));
    });
    figure("page cache write, 1 byte", || {
        let _ = file.0.write(0, &mut Source::kernel(&[1]));
    });
}
