//! What tests of CPUs that no test can boot share: vendors, and the words of a command line.

use alea_speculation::Asked;

pub const INTEL: [u32; 3] = [0x756e6547, 0x6c65746e, 0x49656e69];
pub const AMD: [u32; 3] = [0x68747541, 0x444d4163, 0x69746e65];

/// What these words ask for; panics at one that is none.
pub fn asked(text: &str) -> Asked<'_> {
    let mut asked = Asked::default();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let value = Some(value);
        match name {
            "mitigations" => asked.mitigations = value,
            "nospectre_v1" => asked.nospectre_v1 = true,
            "nopti" => asked.pti = Some("off"),
            "pti" => asked.pti = value,
            "mds" => asked.mds = value,
            "tsx_async_abort" => asked.tsx_async_abort = value,
            "mmio_stale_data" => asked.mmio_stale_data = value,
            "reg_file_data_sampling" => asked.reg_file_data_sampling = value,
            "tsa" => asked.tsa = value,
            "nospectre_v2" => asked.nospectre_v2 = true,
            "spectre_v2" => asked.spectre_v2 = value,
            "spectre_v2_user" => asked.spectre_v2_user = value,
            "spectre_bhi" => asked.spectre_bhi = value,
            "nospec_store_bypass_disable" => asked.nospec_store_bypass_disable = true,
            "spec_store_bypass_disable" => asked.spec_store_bypass_disable = value,
            _ => panic!("{name}"),
        }
    }
    asked
}
