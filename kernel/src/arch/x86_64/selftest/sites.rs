//! That the code which is chosen at boot is there: at each place what this CPU needs, and where it clears its buffers, VERW on
//! each way to user mode.
//!
//! Owns nothing. Never runs without `alea.selftest`. Locks: none.

use crate::arch::boot::needed;
use crate::arch::copy::site_list::{self, Need, Site};
use crate::arch::entry::shown;

/// VERW of a word at a distance from the next instruction.
const VERW: &[u8] = &[0x0f, 0x00, 0x2d];
const LFENCE: &[u8] = &[0x0f, 0xae, 0xe8];
const SWAPGS: &[u8] = &[0x0f, 0x01, 0xf8];

fn code(at: u64, len: usize) -> &'static [u8] {
    // SAFETY: kernel text, which nobody writes to any more.
    unsafe { core::slice::from_raw_parts(at as *const u8, len) }
}

pub(super) fn check() {
    let mut found = [0; Need::COUNT];
    for site in site_list::all() {
        let (need, here) = (site.need(), code(site.address(), site.len()));
        found[need as usize] += 1;
        match site.change(needed(need)) {
            Some(wanted) => assert_eq!(here, &wanted[..here.len()], "need {need:?}"),
            None => assert!(holds(site, here), "need {need:?}: {here:x?}"),
        }
        if needed(need) && here[0] == 0xe9 {
            let distance = i32::from_le_bytes([here[1], here[2], here[3], here[4]]);
            let to = (site.address() + 5).wrapping_add_signed(distance.into());
            if need == Need::Isolation {
                let [entries, _] = shown::of_all();
                assert!(
                    entries.pages.contains(&to),
                    "a detour of isolated tables leads out of the entry code"
                );
                continue;
            }
            let [first, second] = match need {
                Need::Fill => [SWITCH, SIXTEEN],
                Need::History => [FIVE, &[0xe8]],
                _ => [SWAPGS, VERW],
            };
            assert_eq!(code(to, first.len()), first);
            assert_eq!(code(to + first.len() as u64, second.len()), second);
        }
    }
    // By SYSRET, by IRET, and from what has a stack of its own; the first and the last once more for isolated tables, which change on
    // three ways in and three out, one of which puts back what it found.
    assert_eq!(
        found[1..],
        [1, 1, 5, 1, 1, 6],
        "a way to user mode is missing, or this test does not know a new one"
    );
    let count = |need| found[need as usize] * u32::from(needed(need));
    let (clear, user, kernel) = (Need::Clear, Need::FenceUser, Need::FenceKernel);
    log::info!("arch: {} places clear, {} and {} fence", count(clear), count(user), count(kernel));
    let (fill, history) = (count(Need::Fill), count(Need::History));
    log::info!("arch: {} places change tables", count(Need::Isolation));
    log::info!("arch: {fill} fills the return stack, {history} clears the history");
}

/// The stack that is switched from, and to; the number of rounds of what follows.
const SWITCH: &[u8] = &[0x48, 0x89, 0x27, 0x48, 0x8b, 0x26];
const SIXTEEN: &[u8] = &[0xb9, 16, 0, 0, 0];
/// The number of a system call, cut to 32 bits; and the number of rounds that make it forget.
const NUMBER: &[u8] = &[0x89, 0xc0];
const FIVE: &[u8] = &[0xb9, 5, 0, 0, 0];
/// Without isolated tables: how a system call begins and ends, an entry of any other kind begins, an IRET's last instructions, and what puts
/// the base of GS back.
const ISOLATED: [&[u8]; 5] = [
    SWAPGS,
    &[0x41, 0x5b],
    &[0x56, 0x52, 0x51],
    &[0x48, 0x83, 0xc4, 8, 0x0f, 0x01, 0xf8],
    &[0xb9, 1, 1, 0, 0xc0],
];

/// Whether the assembler's own code of a place is there.
fn holds(site: &Site, here: &[u8]) -> bool {
    match site.need() {
        Need::Smap => matches!(here, [0x0f, 0x01, 0xca | 0xcb]),
        Need::FenceUser | Need::FenceKernel => here == LFENCE,
        Need::Fill => here == SWITCH,
        Need::History => here.starts_with(NUMBER),
        Need::Isolation => ISOLATED.iter().any(|code| here.starts_with(code)),
        Need::Clear => here.starts_with(VERW) || here.starts_with(SWAPGS),
    }
}
