//! The assembler macro that marks where user access is opened and closed.
//!
//! Owns nothing; `boot::smap` patches what it lists, once.

/// An assembler macro: a three-byte no-op that boot turns into CLAC (kind 0) or STAC (kind 1) when
/// the CPU has SMAP.
macro_rules! smap_site_macro {
    () => {
        concat!(
            ".macro SMAP_SITE kind\n",
            "777: .byte 0x0f, 0x1f, 0x00\n",
            ".pushsection .smap_sites, \"a\"\n",
            ".quad 777b\n",
            ".quad \\kind\n",
            ".popsection\n",
            ".endm",
        )
    };
}

pub(in crate::arch) use smap_site_macro;
