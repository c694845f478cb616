//! brk: the heap, which is an anonymous mapping that begins where exec has drawn it.
//!
//! Owns the break. Never moves it over another mapping: `brk` then returns the old one. Locks: the space's.

use crate::base::PAGE_SIZE;
use crate::base::page::USER_END;
use crate::mm::layout::page_up;
use crate::mm::space::limits::limits;
use crate::mm::space::request::{Backing, MapFixed, MapRequest, Prot, VmFlags};
use crate::mm::space::space::{AddressSpace, Inner};
use x86_64::VirtAddr;

impl AddressSpace {
    /// Sets where the heap starts; exec draws it.
    pub fn set_brk(&self, start: u64) {
        let mut inner = self.inner.lock();
        (inner.layout.brk_start, inner.layout.brk) = (start, start);
    }

    /// brk: the break after the call, unchanged if it could not be moved. What is new may be executed if `exec`.
    pub fn brk(&self, new: u64, exec: bool) -> u64 {
        let mut inner = self.inner.lock();
        if new >= inner.layout.brk_start
            && new <= USER_END
            && inner.move_brk(self, new, exec).is_some()
        {
            inner.layout.brk = new;
        }
        inner.layout.brk
    }
}

impl Inner {
    fn move_brk(&mut self, space: &AddressSpace, new: u64, exec: bool) -> Option<()> {
        if new - self.layout.brk_start > limits().data {
            return None;
        }
        let (old_end, new_end) = (page_up(self.layout.brk)?, page_up(new)?);
        if new_end < old_end {
            return self.unmap_range(space, new_end, old_end).ok();
        }
        let grows = new_end - old_end;
        if grows == 0 {
            return Some(());
        }
        // One page of distance to what lies above, so that the heap cannot run into it unnoticed.
        if !self.vmas.is_free(old_end, new_end) || !self.fits(old_end, grows + PAGE_SIZE as u64) {
            return None;
        }
        let mut prot = Prot::READ | Prot::WRITE;
        prot.set(Prot::EXEC, exec);
        let (addr, len) = self
            .map(
                space,
                MapRequest {
                    addr: Some(VirtAddr::new_truncate(old_end)),
                    fixed: MapFixed::NoReplace,
                    len: grows,
                    prot,
                    shared: false,
                    backing: Backing::ANON,
                    flags: VmFlags::empty(),
                    populate: false,
                },
            )
            .ok()?;
        // What cannot be made ahead is made by faults.
        let _ = self.map_known_heap(&space.cpus);
        if self.lock_future {
            // What cannot be populated is left to faults.
            let _ = self.populate(space, addr, addr + len);
        }
        Some(())
    }
}
