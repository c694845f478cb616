//! The assembler macros that mark code that is chosen at boot, by what the CPU needs.
//!
//! Owns nothing; `boot::sites` goes over what they list, once. Never names an address: a place in the list is how far it is.

/// Three macros. `CHOSEN NEED, CODE`: instructions that stay if the CPU has the need, and become no-ops otherwise. `DETOUR NEED, PLACE`,
/// behind the label 771 and at least five bytes: these are run as they stand, or, if the CPU has the need, a jump to the
/// place is. `SMAP_SITE KIND`: CLAC (0) or STAC (1) where the CPU has SMAP. The numbers are those of `Need`.
macro_rules! site_macros {
    () => {
        concat!(
            ".set NEED_SMAP, 0\n",
            ".set NEED_FENCE_USER, 1\n",
            ".set NEED_FENCE_KERNEL, 2\n",
            ".set NEED_CLEAR, 3\n",
            ".set NEED_FILL, 4\n",
            ".set NEED_HISTORY, 5\n",
            ".set NEED_ISOLATION, 6\n",
            ".macro LIST_SITE need, place:vararg\n",
            ".pushsection .code_sites, \"a\"\n",
            ".long 771b - .\n",
            ".long \\place\n",
            ".byte \\need\n",
            ".byte 772b - 771b\n",
            ".short 0\n",
            ".popsection\n",
            ".endm\n",
            ".macro CHOSEN need, code:vararg\n",
            "771: \\code\n",
            "772:\n",
            "LIST_SITE \\need, 0\n",
            ".endm\n",
            ".macro DETOUR need, place\n",
            "772:\n",
            "LIST_SITE \\need, \\place - .\n",
            ".endm\n",
            ".macro SMAP_SITE kind\n",
            ".if \\kind\n",
            "CHOSEN NEED_SMAP, stac\n",
            ".else\n",
            "CHOSEN NEED_SMAP, clac\n",
            ".endif\n",
            ".endm\n",
        )
    };
}

/// Takes the names back: a macro can be defined once in a unit.
macro_rules! purge_site_macros {
    () => {
        ".purgem LIST_SITE\n.purgem CHOSEN\n.purgem DETOUR\n.purgem SMAP_SITE\n"
    };
}

pub(in crate::arch) use {purge_site_macros, site_macros};
