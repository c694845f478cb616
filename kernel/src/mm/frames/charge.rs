//! Who pays for the kernel's frames: the process for which they were taken.
//!
//! Slabs, large objects, pages of files and of pipes are charged to the running process when they are taken from the frame
//! allocator, which an object on a slab that is there already is not: who makes many pays for nearly all of their slabs, and
//! who makes few is given at most a page for each size. So nothing is counted on the fast paths. What is mapped, page tables
//! and stacks are counted elsewhere.
//!
//! Owns the accounts and each frame's number of one. An account of a process that has ended stands until what it paid for is
//! given back; meanwhile that counts against its user. Never refuses anything: the OOM killer reads it. Locks: none.

use super::pfn::Pfn;
use crate::sync::Once;
use alea_frames::Owner;
use core::sync::atomic::{
    AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering,
};

/// As many processes may have an account; what further ones take is charged to nobody.
const ACCOUNTS: usize = 8192;
/// The mark of an account whose process lives, beside the number of pages.
const OPEN: u32 = 1 << 31;
/// So many counts of what the dead have left: users share them if there are more.
const USERS: usize = 256;

/// Pages charged to each, and [`OPEN`]; 0 is an account that nobody has. Relaxed throughout: counters, of which a reader wants
/// no more than the moment; each frame's number is its owner's.
static PAGES: [AtomicU32; ACCOUNTS] = [const { AtomicU32::new(0) }; ACCOUNTS];
/// Whose the account was, once its process has ended.
static USER: [AtomicU8; ACCOUNTS] = [const { AtomicU8::new(0) }; ACCOUNTS];
/// Pages that ended processes of a user have left charged.
static LEFT: [AtomicI64; USERS] = [const { AtomicI64::new(0) }; USERS];
/// Where the search for a free account goes on.
static NEXT: AtomicUsize = AtomicUsize::new(1);
/// Each frame's account, 0 for none: as many as there is metadata.
static ACCOUNT_OF: AtomicPtr<AtomicU16> = AtomicPtr::new(core::ptr::null_mut());
/// The number of the running process's account, 0 for none; the process floor knows.
static PAYER: Once<fn() -> u16> = Once::new();

/// Fills the slot; called once at boot.
pub fn register_payer(payer: fn() -> u16) {
    PAYER.call_once(|| payer);
}

/// A process's account: opened when it first pays, closed when it ends.
#[derive(Debug, Default)]
pub struct Account(AtomicU16);

impl Account {
    /// Its number, of a new one if there is none yet; 0 if all are taken.
    pub fn number(&self) -> u16 {
        match self.0.load(Ordering::Relaxed) {
            0 => self.open(),
            number => number,
        }
    }

    #[cold]
    fn open(&self) -> u16 {
        let start = NEXT.load(Ordering::Relaxed);
        let order = (start..ACCOUNTS).chain(1..start);
        for at in order {
            let free = PAGES[at].compare_exchange(0, OPEN, Ordering::Relaxed, Ordering::Relaxed);
            if free.is_err() {
                continue;
            }
            NEXT.store(at + 1, Ordering::Relaxed);
            let new = at as u16;
            return match self.0.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => new,
                Err(other) => {
                    // Another thread was first.
                    PAGES[at].store(0, Ordering::Relaxed);
                    other
                }
            };
        }
        0
    }

    /// How many pages are charged to it.
    pub fn pages(&self) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            0 => 0,
            number => u64::from(PAGES[usize::from(number)].load(Ordering::Relaxed) & !OPEN),
        }
    }

    /// The process of `uid` has ended: what it leaves counts against that user.
    pub fn close(&self, uid: u32) {
        let at = usize::from(self.0.swap(0, Ordering::Relaxed));
        if at == 0 {
            return;
        }
        let user = slot_of(uid);
        USER[at].store(user, Ordering::Relaxed);
        // Release: pairs with the Acquire in `uncharge`, which reads whose it was.
        let left = PAGES[at].fetch_and(!OPEN, Ordering::Release) & !OPEN;
        LEFT[usize::from(user)].fetch_add(i64::from(left), Ordering::Relaxed);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.close(0);
    }
}

/// A user's place in [`LEFT`]; root, whose is never asked for, has one of his own.
fn slot_of(uid: u32) -> u8 {
    if uid == 0 { 0 } else { (uid % (USERS as u32 - 1) + 1) as u8 }
}

/// Pages that ended processes of `uid` have left charged.
pub fn left_by(uid: u32) -> i64 {
    LEFT[usize::from(slot_of(uid))].load(Ordering::Relaxed).max(0)
}

/// Whether frames of this owner are charged to who takes them.
#[inline(always)]
pub(super) const fn is_charged(owner: Owner) -> bool {
    matches!(owner, Owner::PageCache | Owner::Slab | Owner::Kernel)
}

/// Remembers where the numbers are; called once at boot with an array of zeros for all frames, never freed.
pub(super) fn init(array: *mut AtomicU16) {
    ACCOUNT_OF.store(array, Ordering::Relaxed);
}

/// The number of a frame's account.
fn of(frame: Pfn) -> &'static AtomicU16 {
    let array = ACCOUNT_OF.load(Ordering::Relaxed);
    // SAFETY: `boot::init` made an entry for each frame that there is metadata of, and `Pfn`s in use are below that number
    // (see `Pfn::meta`); the entries are atomics and live for ever.
    unsafe { &*array.wrapping_add(frame.0 as usize) }
}

/// Charges `pages` to the running process, under the name of their first frame.
pub(super) fn charge(frame: Pfn, pages: u32) {
    let number = PAYER.get().map_or(0, |payer| payer());
    if number != 0 {
        PAGES[usize::from(number)].fetch_add(pages, Ordering::Relaxed);
        of(frame).store(number, Ordering::Relaxed);
    }
}

/// Takes the charge back from who paid.
pub(super) fn uncharge(frame: Pfn, pages: u32) {
    let number = of(frame);
    let at = usize::from(number.load(Ordering::Relaxed));
    if at == 0 {
        return;
    }
    number.store(0, Ordering::Relaxed);
    // Before the last page: the account may be another's afterwards. What is read is of use only if the account was closed.
    let mut was = PAGES[at].load(Ordering::Acquire);
    loop {
        let user = USER[at].load(Ordering::Relaxed);
        // Acquire: pairs with the Release in `close`.
        match PAGES[at].compare_exchange(was, was - pages, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) if was & OPEN == 0 => {
                LEFT[usize::from(user)].fetch_sub(i64::from(pages), Ordering::Relaxed);
                return;
            }
            Ok(_) => return,
            Err(now) => was = now,
        }
    }
}
