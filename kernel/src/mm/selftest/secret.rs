//! Self test of pages that the direct map does not show.

use super::spaces;
use crate::mm::MapSource;
use crate::mm::frames::{Pfn, direct};
use crate::mm::page_cache::{Lookup, PageCache};
use crate::mm::space::AddressSpace;
use crate::mm::space::request::{Backing, FaultAccess, MapFixed, MapRequest, Prot, VmFlags};
use alloc::string::String;
use alloc::sync::Arc;
use x86_64::VirtAddr;

const PAGE: u64 = crate::base::PAGE_SIZE as u64;
const BASE: u64 = 0x20_0000_0000;

struct Secret(Arc<PageCache>);

impl MapSource for Secret {
    fn cache(&self) -> &Arc<PageCache> {
        &self.0
    }
    fn name(&self) -> abi::Result<String> {
        Ok(String::from("/secret"))
    }
    fn dev_ino(&self) -> (u64, u64) {
        (1, 3)
    }
    fn rights(&self, _: bool, _: Prot) -> abi::Result<VmFlags> {
        Ok(VmFlags::MAY_ALL | VmFlags::SECRET)
    }
}

fn page_at(cache: &PageCache, index: u64) -> Pfn {
    match cache.lookup_or_alloc(index) {
        Ok(Lookup::Page(frame)) => frame,
        _ => panic!("no page {index}"),
    }
}

/// A page of a secret cache is hidden while it is in the cache, its neighbours are not and it is shown again when it goes.
pub fn hidden_and_shown() {
    let cache = Arc::new(PageCache::secret());
    cache.set_size(3 * PAGE);
    let frames = [0, 1, 2].map(|index| page_at(&cache, index));
    assert!(frames.iter().all(|&frame| direct::is_hidden(frame)));
    let plain = spaces::file(b"for all to see");
    assert!(!direct::is_hidden(page_at(&plain.0, 0)));

    let space = AddressSpace::new().expect("memory");
    let source = Arc::new(Secret(cache.clone())) as Arc<dyn MapSource>;
    let request = MapRequest {
        addr: Some(VirtAddr::new(BASE)),
        fixed: MapFixed::Replace,
        len: 3 * PAGE,
        prot: Prot::READ | Prot::WRITE,
        shared: true,
        backing: Backing::File { source, offset: 0 },
        flags: VmFlags::empty(),
        populate: false,
    };
    space.map(request).expect("map");
    space.activate();
    space.fault(BASE + PAGE, FaultAccess::Write).expect("fault");
    assert_eq!(page_at(&cache, 1), frames[1], "the page is another now");
    // As nobody else may: by neither way.
    let mut byte = [0];
    assert_eq!(space.read_bytes(BASE + PAGE, &mut byte), 0);
    assert_eq!(space.write_bytes(BASE + PAGE, &byte), Err(abi::Errno::EFAULT));
    AddressSpace::unload();
    drop(space);

    cache.truncate(PAGE).expect("truncate");
    assert!(direct::is_hidden(frames[0]));
    assert!(!direct::is_hidden(frames[1]) && !direct::is_hidden(frames[2]));
    drop(cache);
    assert!(frames.iter().all(|&frame| !direct::is_hidden(frame)));
}
