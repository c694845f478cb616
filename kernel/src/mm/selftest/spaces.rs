//! Self tests of address spaces and page caches.

use crate::base::isolation::Roots;
use crate::mm::frames::frame::Frame;
use crate::mm::page_cache::PageCache;
use crate::mm::page_cache::source::MapSource;
use crate::mm::space::AddressSpace;
use crate::mm::space::request::{
    Advice, Backing, Fault, FaultAccess, MapFixed, MapRequest, MmLimits, Prot, VmFlags,
};
use crate::mm::space::table::tlb::Was;
use crate::mm::space::table::{ACCESSED, PRESENT, WRITABLE};
use crate::mm::user::iov::{Sink, Source};
use abi::Errno;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use x86_64::VirtAddr;

const PAGE: u64 = crate::base::PAGE_SIZE as u64;
const BASE: u64 = 0x10_0000_0000;

/// A file for mappings.
pub(super) struct File(pub Arc<PageCache>);

impl MapSource for File {
    fn cache(&self) -> &Arc<PageCache> {
        &self.0
    }
    fn name(&self) -> abi::Result<String> {
        Ok(String::from("/file"))
    }
    fn dev_ino(&self) -> (u64, u64) {
        (1, 2)
    }
}

pub(super) fn file(text: &[u8]) -> Arc<File> {
    let cache = Arc::new(PageCache::new());
    assert_eq!(cache.write(0, &mut Source::kernel(text)), Ok(text.len()));
    Arc::new(File(cache))
}

/// The CPU uses an entry between the look at it and its change, as a walk that speculates may: it counts as used, so its page is
/// flushed before the frame goes.
pub(super) fn used_after_look() {
    for (new, seen) in [(0, PRESENT), (PRESENT, PRESENT | WRITABLE)] {
        let slot = AtomicU64::new(seen);
        slot.fetch_or(ACCESSED, Ordering::Relaxed);
        let was = Was::exchange(&slot, seen, new);
        assert_eq!(was.entry(), seen | ACCESSED, "what the CPU has was lost");
        assert_eq!(slot.into_inner(), new);
    }
}

fn anon(addr: u64, pages: u64, prot: Prot) -> MapRequest {
    MapRequest {
        addr: (addr != 0).then(|| VirtAddr::new(addr)),
        fixed: if addr == 0 { MapFixed::No } else { MapFixed::Replace },
        len: pages * PAGE,
        prot,
        shared: false,
        backing: Backing::ANON,
        flags: VmFlags::empty(),
        populate: false,
    }
}

pub(super) fn of_file(
    file: &Arc<File>,
    addr: u64,
    pages: u64,
    prot: Prot,
    shared: bool,
) -> MapRequest {
    let source = file.clone() as Arc<dyn MapSource>;
    MapRequest { backing: Backing::File { source, offset: 0 }, shared, ..anon(addr, pages, prot) }
}

fn space() -> Arc<AddressSpace> {
    AddressSpace::new().expect("memory")
}

fn ranges(space: &AddressSpace) -> Vec<Range<u64>> {
    let mut all = Vec::new();
    let visited = space.maps(&mut |info| {
        all.push(info.range.clone());
        Ok(())
    });
    assert!(visited.is_ok());
    all
}

fn byte(space: &AddressSpace, addr: u64) -> u8 {
    let mut found = [0];
    assert_eq!(space.read_bytes(addr, &mut found), 1);
    found[0]
}

const RW: Prot = Prot::READ.union(Prot::WRITE);

/// Mappings merge, split and go as on Linux.
pub fn map_and_unmap() {
    let s = space();
    s.map(anon(BASE, 4, RW)).expect("map");
    s.map(anon(BASE + 4 * PAGE, 4, RW)).expect("map");
    assert_eq!(ranges(&s), alloc::vec![BASE..BASE + 8 * PAGE]);
    s.protect(BASE + PAGE, 2 * PAGE, Prot::READ).expect("protect");
    assert_eq!(ranges(&s).len(), 3);
    s.protect(BASE + PAGE, 2 * PAGE, RW).expect("protect");
    assert_eq!(ranges(&s), alloc::vec![BASE..BASE + 8 * PAGE]);
    s.unmap(BASE + 2 * PAGE, PAGE).expect("unmap");
    assert_eq!(ranges(&s), [BASE..BASE + 2 * PAGE, BASE + 3 * PAGE..BASE + 8 * PAGE]);
    assert_eq!(s.protect(BASE, 8 * PAGE, Prot::READ), Err(Errno::ENOMEM));
    assert_eq!(s.unmap(BASE + 1, PAGE), Err(Errno::EINVAL));
    assert_eq!(s.fault(BASE + 2 * PAGE, FaultAccess::Read), Err(Fault::SegvMap));
    assert_eq!(s.fault(BASE, FaultAccess::Write), Err(Fault::SegvAcc));
    assert_eq!(s.fault(u64::MAX, FaultAccess::Read), Err(Fault::SegvMap));
    let request = MapRequest { fixed: MapFixed::NoReplace, ..anon(BASE, 1, RW) };
    assert_eq!(s.map(request), Err(Errno::EEXIST));
    let chosen = s.map(anon(0, 3, RW)).expect("map").as_u64();
    assert_eq!(chosen, crate::base::page::USER_END - 3 * PAGE);
    assert_eq!(s.usage().size, 10);
    s.unmap(0, crate::base::page::USER_END).expect("unmap all");
    assert_eq!((s.usage().size, s.usage().page_tables), (0, 1));
}

/// Anonymous memory reads as zeros, keeps what is written and forgets it on advice.
pub fn anonymous() {
    let s = space();
    s.map(anon(BASE, 600, RW)).expect("map");
    assert_eq!(byte(&s, BASE), 0);
    assert_eq!(s.usage().rss_anon, 0, "the zero page counts for nothing");
    for page in 0..600 {
        s.write_bytes(BASE + page * PAGE, &[page as u8]).expect("write");
    }
    assert_eq!(s.usage().rss_anon, 600);
    assert!((0..600).all(|page| byte(&s, BASE + page * PAGE) == page as u8));
    s.advise(BASE, 10 * PAGE, Advice::DontNeed).expect("advise");
    assert_eq!((byte(&s, BASE + PAGE), byte(&s, BASE + 10 * PAGE)), (0, 10));
    assert_eq!(s.usage().rss_anon, 590);
    s.protect(BASE + 20 * PAGE, PAGE, Prot::empty()).expect("protect");
    assert_eq!(s.fault(BASE + 20 * PAGE, FaultAccess::Read), Err(Fault::SegvAcc));
    s.protect(BASE + 20 * PAGE, PAGE, RW).expect("protect");
    assert_eq!(byte(&s, BASE + 20 * PAGE), 20);
    let moved = s.remap(BASE, 600 * PAGE, 700 * PAGE, (1, 0), true).expect("remap");
    assert_eq!(moved, BASE);
    s.map(anon(BASE + 700 * PAGE, 1, Prot::READ)).expect("map");
    let moved = s.remap(BASE, 700 * PAGE, 900 * PAGE, (1, 0), true).expect("remap");
    assert!(moved != BASE && byte(&s, moved + 599 * PAGE) == 599u64 as u8);
    assert_eq!(s.fault(BASE, FaultAccess::Read), Err(Fault::SegvMap));
    assert_eq!(s.usage().rss_anon, 590);
}

/// Parent and child see their own writes only; pages written after a fork are copied ahead at the next.
pub fn fork_copies() {
    let parent = space();
    parent.map(anon(BASE, 8, RW)).expect("map");
    for page in 0..8 {
        parent.write_bytes(BASE + page * PAGE, &[1]).expect("write");
    }
    for round in 0..3u8 {
        let child = parent.fork().expect("fork");
        assert_eq!(child.usage().rss_anon, 8);
        child.write_bytes(BASE, &[10 + round]).expect("write");
        parent.write_bytes(BASE + PAGE, &[20 + round]).expect("write");
        assert_eq!((byte(&parent, BASE), byte(&child, BASE)), (1, 10 + round));
        assert_eq!(byte(&parent, BASE + PAGE), 20 + round);
        assert_ne!(byte(&child, BASE + PAGE), 20 + round);
        assert_eq!(byte(&child, BASE + 7 * PAGE), 1);
        let grandchild = child.fork().expect("fork");
        drop(child);
        assert_eq!(byte(&grandchild, BASE), 10 + round);
    }
    parent.advise(BASE, PAGE, Advice::DontFork).expect("advise");
    parent.advise(BASE + PAGE, PAGE, Advice::WipeOnFork).expect("advise");
    let child = parent.fork().expect("fork");
    assert_eq!(child.fault(BASE, FaultAccess::Read), Err(Fault::SegvMap));
    assert_eq!((byte(&child, BASE + PAGE), byte(&child, BASE + 2 * PAGE)), (0, 1));
}

/// Private and shared mappings of a file, its end, and truncation under a mapping.
pub fn file_mappings() {
    let text: Vec<u8> = (0..5 * PAGE + 100).map(|n| (n / PAGE) as u8 + 1).collect();
    let file = file(&text);
    let s = space();
    s.map(of_file(&file, BASE, 8, RW, false)).expect("map");
    let shared = BASE + 16 * PAGE;
    s.map(of_file(&file, shared, 8, RW, true)).expect("map");
    assert_eq!((byte(&s, BASE + 2 * PAGE), byte(&s, shared + 5 * PAGE)), (3, 6));
    assert_eq!(byte(&s, BASE + 5 * PAGE + 100), 0, "zeros after the end in the last page");
    assert_eq!(s.fault(BASE + 6 * PAGE, FaultAccess::Read), Err(Fault::Bus));
    s.write_bytes(BASE, &[99]).expect("write");
    s.write_bytes(shared + PAGE, &[98]).expect("write");
    let mut back = [0; 2 * PAGE as usize];
    assert_eq!(file.0.read(0, &mut Sink::kernel(&mut back)), Ok(back.len()));
    assert_eq!((back[0], back[PAGE as usize]), (1, 98));
    let child = s.fork().expect("fork");
    assert_eq!((byte(&child, BASE), byte(&child, BASE + PAGE)), (99, 98));
    s.prefault(BASE..BASE + 8 * PAGE, false).expect("prefault");
    file.0.truncate(PAGE + 10).expect("truncate");
    for s in [&s, &child] {
        assert_eq!(s.fault(BASE + 2 * PAGE, FaultAccess::Read), Err(Fault::Bus));
        assert_eq!(
            (byte(s, BASE), byte(s, BASE + PAGE + 9), byte(s, BASE + PAGE + 10)),
            (99, 2, 0)
        );
    }
    assert_eq!(file.0.resident(), 2);
    file.0.punch(0..PAGE).expect("punch");
    assert_eq!((byte(&s, BASE), byte(&s, shared)), (99, 0));
    file.0.truncate(0).expect("truncate");
    assert_eq!(s.fault(BASE, FaultAccess::Read), Err(Fault::Bus), "private copies go too");
    let write_only = MapRequest { shared: true, ..anon(BASE, 2, RW) };
    s.map(write_only).expect("map");
    let child = s.fork().expect("fork");
    child.write_bytes(BASE, b"x").expect("write");
    assert_eq!(byte(&s, BASE), b'x', "shared memory is shared");
}

/// Holes, sparse files and SEEK_DATA.
pub fn sparse_files() {
    let cache = PageCache::new();
    for at in [3 * PAGE, 700 * PAGE, 5000 * PAGE + 7] {
        assert_eq!(cache.write(at, &mut Source::kernel(b"data")), Ok(4));
    }
    assert_eq!((cache.resident(), cache.size()), (3, 5000 * PAGE + 11));
    assert_eq!(cache.next_data(0), Some(3 * PAGE));
    assert_eq!(cache.next_hole(3 * PAGE), 4 * PAGE);
    assert_eq!(cache.next_data(4 * PAGE), Some(700 * PAGE));
    assert_eq!(cache.next_data(5001 * PAGE), None);
    cache.punch(700 * PAGE..701 * PAGE).expect("punch");
    assert_eq!(cache.next_data(4 * PAGE), Some(5000 * PAGE));
    cache.truncate(3 * PAGE + 2).expect("truncate");
    cache.set_size(4 * PAGE);
    let mut found = [9; 4];
    assert_eq!(cache.read(3 * PAGE, &mut Sink::kernel(&mut found)), Ok(4));
    assert_eq!(&found, b"da\0\0");
    assert_eq!(cache.resident(), 1);
}

/// The stack grows to its limit and no further; the heap moves.
pub fn stack_and_heap() {
    let s = space();
    let top = 0x7fff_0000_0000;
    let most = MmLimits::default().stack;
    s.map_stack(top, 2 * PAGE, false).expect("stack");
    s.install(top - PAGE, Frame::alloc_zeroed().expect("memory")).expect("install");
    assert_eq!(s.fault(top - most + 4 * PAGE, FaultAccess::Write), Ok(()));
    assert_eq!(s.fault(top - most - PAGE, FaultAccess::Write), Err(Fault::SegvMap));
    assert_eq!(ranges(&s), alloc::vec![top - most + 4 * PAGE..top]);
    s.set_brk(BASE);
    assert_eq!(s.brk(0, false), BASE);
    assert_eq!(s.brk(BASE + 5 * PAGE + 1, false), BASE + 5 * PAGE + 1);
    s.write_bytes(BASE + 5 * PAGE, &[7]).expect("write");
    assert_eq!(s.brk(BASE + PAGE, false), BASE + PAGE);
    assert_eq!(s.fault(BASE + 2 * PAGE, FaultAccess::Read), Err(Fault::SegvMap));
    s.map(anon(BASE + 3 * PAGE, 1, RW)).expect("map");
    assert_eq!(s.brk(BASE + 4 * PAGE, false), BASE + PAGE, "the way is blocked");
    let mut names = Vec::new();
    let visited = s.maps(&mut |info| {
        names.push(info.name.clone());
        Ok(())
    });
    assert!(visited.is_ok());
    assert_eq!(names, ["[heap]", "", "[stack]"]);
}

/// A space like that of a small static program that has run for a moment.
pub(super) fn shaped(file: &Arc<File>) -> Arc<AddressSpace> {
    let s = space();
    let (text, data, top) = (0x40_0000, 0x5d_b000, 0x7fff_0000_0000);
    s.map(of_file(file, text, 1, Prot::READ, false)).expect("map");
    s.map(of_file(file, text + PAGE, 388, Prot::READ | Prot::EXEC, false)).expect("map");
    s.map(of_file(file, text + 389 * PAGE, 86, Prot::READ, false)).expect("map");
    s.map(of_file(file, data, 9, RW, false)).expect("map");
    s.map(anon(data + 9 * PAGE, 8, RW)).expect("map");
    s.map_stack(top, 33 * PAGE, false).expect("stack");
    s.set_brk(data + 0x100_0000);
    s.brk(data + 0x100_0000 + 33 * PAGE, false);
    for page in [1u64, 40, 80, 120, 160, 200, 240, 300, 330, 400, 440] {
        let _ = s.fault(text + page * PAGE, FaultAccess::Read);
    }
    for page in 0..8 {
        let _ = s.fault(data + page * PAGE, FaultAccess::Write);
    }
    for addr in [data + 10 * PAGE, data + 0x100_0000, top - 64, top - PAGE - 64] {
        let _ = s.fault(addr, FaultAccess::Write);
    }
    s
}

/// Maps pages far apart, and takes them out again; `used` tells how many entries of the top-level table are in use, if it
/// looks.
pub(super) fn spread(used: impl Fn(Roots) -> usize) {
    const FAR: u64 = 1 << 40;
    let s = space();
    let look = |wanted: usize| {
        let used = used(s.roots());
        assert!(used == 0 || used == wanted, "{used} entries, {wanted} wanted");
    };
    for n in 1..=4 {
        s.map(anon(n * FAR, 1, RW)).expect("map");
        s.fault(n * FAR, FaultAccess::Write).expect("a page");
        look(n as usize);
    }
    s.unmap(2 * FAR, PAGE).expect("unmap");
    look(3);
    s.unmap(0, crate::base::page::USER_END).expect("unmap all");
    look(0);
}
